"""A project's repository, and a drone's workspaces for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drone.sandbox import choose
from drone.workspace import Workspaces
from tests.support.repositories import MakeWorkspaces, calc_project


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return calc_project(tmp_path / "calc.git")


@pytest.fixture
def workspaces(tmp_path: Path, drone_git: dict[str, str], workspaces_in: MakeWorkspaces) -> Workspaces:
    return workspaces_in(tmp_path / "workspace", drone_git, choose("auto", os.environ), lambda _: None)
