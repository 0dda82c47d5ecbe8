"""The order and the script of the warm-up: every kind of item in a stream, once."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shared.work_order import OrderProject, OrderProvider, OrderSession, WorkOrder

WORKSPACE = Path("/")
SCRIPT: list[dict[str, Any]] = [
    {"text": "Warm.", "thinking": "Warm?", "tool_calls": [{"name": "echo", "arguments": {"text": "warm"}}]},
    {"text": "Done.", "usage": None},
]
ORDER = WorkOrder(
    order_id="0" * 12,
    run_id="0" * 12,
    generation=0,
    drone_id="0" * 12,
    project=OrderProject(id="0" * 12, name="warm-up", slug="warm-up", git_url=""),
    session=OrderSession(id="0" * 12, name="warm-up"),
    provider=OrderProvider(name="warm-up", model="openai/scripted"),
    prompt="Warm up.",
    submitted_at=datetime(2000, 1, 1, tzinfo=UTC),
)
