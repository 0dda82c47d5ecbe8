"""A project's repository, and a drone's workspaces for it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from drone.sandbox import Sandbox, choose
from drone.workspace import Workspaces
from tests.support.repositories import MakeWorkspaces, calc_project


@pytest.fixture(scope="session")
def calc_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository to copy, which is quicker than to make one."""
    return calc_project(tmp_path_factory.mktemp("template") / "calc.git")


@pytest.fixture
def remote(calc_template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(calc_template, tmp_path / "calc.git"))


@pytest.fixture(scope="session")
def tried() -> str:
    """The kind of sandbox that works here."""
    return choose("auto", os.environ).kind


@pytest.fixture
def chosen(tried: str) -> Sandbox:
    return choose(tried, os.environ, trial=False)


@pytest.fixture
def workspaces(tmp_path: Path, drone_git: dict[str, str], workspaces_in: MakeWorkspaces, chosen: Sandbox) -> Workspaces:
    return workspaces_in(tmp_path / "workspace", drone_git, chosen, lambda _: None)


@pytest.fixture
def elsewhere(tmp_path: Path, drone_git: dict[str, str], workspaces_in: MakeWorkspaces, chosen: Sandbox) -> Workspaces:
    """The workspaces of another drone."""
    return workspaces_in(tmp_path / "elsewhere", drone_git, chosen, lambda _: None)
