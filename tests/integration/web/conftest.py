"""What the tests of live streams share."""

from __future__ import annotations

import pytest

from tests.support.fleet import Api, PlayedRun


@pytest.fixture
def run(api: Api) -> PlayedRun:
    """A run of a submitted order, on a drone that is online."""
    api.add_work()
    drone = api.add_drone()
    api.wait_for_hub()
    return drone.take(api.submit())
