"""Dronefleet as users install it: the wheel in an environment of its own, outside the checkout.

The packages that it requires are those of the tests' own environment, linked one by one, so that no package index is
needed and nothing else can be imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from tests.support.command_tree import clean_environment
from tests.support.documents import INSTALLED, ROOT
from tests.support.licenses import required

TIMEOUT_S = 120.0
SERVER = "server"


@dataclass(frozen=True)
class Installation:
    """A virtual environment with the wheel."""

    path: Path

    @property
    def python(self) -> Path:
        return self.path / "bin" / "python"

    def command(self, program: str) -> str:
        """The path of `fleet` or `drone`."""
        return str(self.path / "bin" / program)

    def run(
        self, program: str, *words: str, home: Path, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, as a user with this home."""
        return subprocess.run(
            [self.command(program), *words],
            env={**self.environment(home), **(env or {})},
            cwd=home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    def environment(self, home: Path) -> dict[str, str]:
        """Variables of a user with this home and nothing set for Dronefleet or Python."""
        unwanted = ("XDG_", "PYTHON", "VIRTUAL_ENV")
        kept = {name: value for name, value in clean_environment().items() if not name.startswith(unwanted)}
        return {**kept, "HOME": str(home), "NO_COLOR": "1"}


def build(directory: Path, source: Path = ROOT, **environment: str) -> list[Path]:
    """Build wheel and sdist from `source`, as `make dist` does; the files, sorted."""
    directory.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--directory", directory],
        cwd=source,
        env={**os.environ, **environment},
        capture_output=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    return sorted(directory.iterdir())


def install(directory: Path, wheel: Path, *extras: str) -> Installation:
    """Install a wheel, with what it requires with these extras."""
    made = Installation(directory)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], timeout=TIMEOUT_S, check=True)
    packages = next(directory.glob("lib/python*/site-packages"))
    wanted = {name: each for extra in ("", *extras) for name, each in required(extra).items()}
    for package in wanted.values():
        for name in _top_names(package):
            place = packages / name
            if not place.is_symlink():
                place.symlink_to(Path(sysconfig.get_path("purelib")) / name)
    pip = [sys.executable, "-m", "pip", "--python", str(made.python), "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-index", "--no-deps", wheel], timeout=TIMEOUT_S, check=True)
    return made


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    """Wheel and sdist of the checkout, in this order."""
    if INSTALLED != ROOT:
        pytest.skip("these tests run against an installed wheel; there is no checkout to build from")
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def base_installation(tmp_path_factory: pytest.TempPathFactory, distributions: Sequence[Path]) -> Installation:
    """The wheel without extras."""
    return install(tmp_path_factory.mktemp("installed") / "base", distributions[0])


def _top_names(package: Distribution) -> Iterator[str]:
    """What a package has in site-packages; not its programs, which lie outside."""
    yield from {file.parts[0] for file in package.files or () if file.parts[0] not in {"..", "__pycache__"}}
