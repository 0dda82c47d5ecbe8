"""Where Flower is served, and as whom the control plane logs in to it."""

from __future__ import annotations

FLOWER_PATH = "/flower"
FLOWER_USER = "fleet"
