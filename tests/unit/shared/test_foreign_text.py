"""Files as editors write them: with a byte order mark, in UTF-16, with CRLF, empty, or behind a link."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from control_plane.cli import config_file
from drone.installation import policy
from drone.mcp_servers.config_files import read_configs
from drone.prompting.files import Folder

WRITTEN: dict[str, Callable[[str], bytes]] = {
    "plain": str.encode,
    "with a mark": lambda text: text.encode("utf-8-sig"),
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-16, big-endian": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "all of it": lambda text: text.replace("\n", "\r\n").encode("utf-16"),
    "no line feed at the end": lambda text: text.rstrip("\n").encode(),
}
TOML = '# Für uns, with a trailing comma\n[repositories]\nallow = [\n  "https://grün.example/*",\n]\n'
JSON = '{\n  "mcpServers": {"grün": {"command": "x"}}\n}\n'
FLEET = '# Ours\nurl = "https://grün.example"  # with a comment\n'


def readers(home: Path) -> dict[str, tuple[str, Callable[[], str]]]:
    """For each file, its text and what is read of it."""
    return {
        "policy.toml": (TOML, lambda: str(policy.load(home / "policy.toml").orders)),
        "mcp.json": (JSON, lambda: str([each.name for each in read_configs(home, None, {}).servers])),
        "dronefleet/fleet.toml": (FLEET, lambda: str(config_file.settings())),
        "SOUL.md": ("Be grün.\n", lambda: Folder(home, "prompt", links=True).text("SOUL.md")),
    }


def test_a_configuration_file_is_read_however_an_editor_wrote_it_and_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "dronefleet").mkdir()
    wrong = {}
    for name, (text, read) in readers(tmp_path).items():
        for how, write in WRITTEN.items():
            (tmp_path / name).write_bytes(write(text))
            if "grün" not in read():
                wrong[name, how] = read()
        (tmp_path / name).rename(tmp_path / "target")
        (tmp_path / name).symlink_to(tmp_path / "target")
        if "grün" not in read():
            wrong[name, "link"] = read()
    assert wrong == {}


def test_an_empty_configuration_file_is_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "dronefleet").mkdir()
    wrong = {}
    for name, (_, read) in readers(tmp_path).items():
        (tmp_path / name).unlink(missing_ok=True)
        none = read()
        for content in (b"", b"\n", b"\xef\xbb\xbf", b"\xff\xfe", b" \r\n"):
            (tmp_path / name).write_bytes(content)
            if read() != none:
                wrong[name, content] = read()
    assert wrong == {}
    (tmp_path / "mcp.json").write_bytes(b"\xef\xbb\xbf\r\n")
    assert read_configs(tmp_path, None, {}).problems == ()
