"""Says at the end, in one line, what was skipped and why: a missing program, or a right that only root has."""

from __future__ import annotations

from collections import Counter

import pytest


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the line, if there is anything to say."""
    reasons = Counter(_reason(report) for report in terminalreporter.getreports("skipped"))
    if reasons:
        told = "; ".join(f"{count} for: {reason}" for reason, count in sorted(reasons.items()))
        terminalreporter.write_line(f"skipped {reasons.total()}: {told}")


def _reason(report: pytest.TestReport) -> str:
    # Pytest keeps a skip as file, line and message.
    message = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return " ".join(message.removeprefix("Skipped: ").split())
