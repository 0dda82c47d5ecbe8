"""Files as editors write them: with a byte order mark, in UTF-16, with CRLF, empty, or behind a link."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from control_plane.cli import config_file
from control_plane.contract.documents import base
from drone.installation import policy
from drone.mcp_servers.config_files import read_configs
from drone.prompting.files import Folder
from shared.instructions import MAX_INSTRUCTIONS, instructions_of

WRITTEN: dict[str, Callable[[str], bytes]] = {
    "plain": str.encode,
    "with a mark": lambda text: text.encode("utf-8-sig"),
    "UTF-16": lambda text: text.encode("utf-16"),
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
        "SOUL.md": ("Be grün.\n", lambda: Folder("prompt/", home, links=True).text("SOUL.md")),
    }


def test_a_configuration_file_is_read_however_an_editor_wrote_it_and_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "dronefleet").mkdir()
    for name, (text, read) in readers(tmp_path).items():
        for how, write in WRITTEN.items():
            (tmp_path / name).write_bytes(write(text))
            assert "grün" in read(), (name, how)
        (tmp_path / name).rename(tmp_path / "target")
        (tmp_path / name).symlink_to(tmp_path / "target")
        assert "grün" in read(), (name, "link")


def test_an_empty_configuration_file_is_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "dronefleet").mkdir()
    for name, (_, read) in readers(tmp_path).items():
        none = read()
        for content in (b"", b"\xef\xbb\xbf", b"\xff\xfe", b" \r\n"):
            (tmp_path / name).write_bytes(content)
            assert read() == none, (name, content)
    (tmp_path / "mcp.json").write_bytes(b"\xef\xbb\xbf\r\n")
    assert read_configs(tmp_path, None, {}).problems == ()


BAD = [
    (b"", "is empty"),
    (b" \n\t\n", "is empty"),
    (b"x" * 5_000_000, "has 5,000,000 bytes; the maximum is 100,000 characters"),
    (b"x" * 100_001, "has 100,001 characters; the maximum is 100,000"),
    (b"Lead the t\xe9am.", "is not UTF-8: byte 10"),
    (b"\xff\xfeL\x00e", "is not UTF-16: byte 4"),
    (b"Lead\0", "is not text: it contains a NUL byte"),
]


@pytest.mark.parametrize(("content", "why"), BAD)
def test_content_that_cannot_be_instructions_is_refused(content: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}$"):
        instructions_of(content)


def test_the_text_comes_without_the_mark_and_the_white_space_around_it() -> None:
    assert instructions_of("\ufeff\n# Lead\n\nPlan. Ünd so.\n".encode()) == "# Lead\n\nPlan. Ünd so."
    assert instructions_of("# Lead: Ünd\n".encode("utf-16")) == "# Lead: Ünd"
    assert len(instructions_of(("€" * MAX_INSTRUCTIONS).encode())) == MAX_INSTRUCTIONS == base.MAX_INSTRUCTIONS
