"""An agent's instructions as bytes of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from control_plane.cli.instructions_file import read_instructions
from control_plane.documents import base
from shared.errors import Invalid
from shared.instructions import MAX_INSTRUCTIONS, instructions_of

BAD = [
    (b"", "is empty"),
    (b" \n\t\n", "is empty"),
    (b"x" * 5_000_000, "has 5,000,000 bytes; the maximum is 100,000 characters"),
    (b"x" * 100_001, "has 100,001 characters; the maximum is 100,000"),
    (b"Lead the t\xe9am.", "is not UTF-8: byte 10"),
    (b"\xff\xfeL\x00e\x00a\x00d\x00", "is not UTF-8: byte 0"),
    (b"Lead\0", "is not text: it contains a NUL byte"),
]


@pytest.mark.parametrize(("content", "why"), BAD, ids=[why for _, why in BAD])
def test_content_that_cannot_be_instructions_is_refused_with_the_reason(content: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}$"):
        instructions_of(content)


def test_the_text_comes_without_the_mark_and_the_white_space_around_it() -> None:
    assert instructions_of("\ufeff\n# Lead\n\nPlan. Ünd so.\n".encode()) == "# Lead\n\nPlan. Ünd so."


def test_as_many_characters_as_are_allowed_pass_however_many_bytes_they_have() -> None:
    assert len(instructions_of(("€" * MAX_INSTRUCTIONS).encode())) == MAX_INSTRUCTIONS


def test_requests_and_files_have_the_same_limit() -> None:
    assert base.MAX_INSTRUCTIONS == MAX_INSTRUCTIONS


@pytest.mark.parametrize(("content", "why"), BAD, ids=[why for _, why in BAD])
def test_the_command_line_refuses_a_file_that_cannot_be_instructions(tmp_path: Path, content: bytes, why: str) -> None:
    file = tmp_path / "lead.md"
    file.write_bytes(content)

    with pytest.raises(Invalid) as refused:
        read_instructions(str(file), {"name": "lead"})

    assert refused.value.code == "E-AGENT-INSTRUCTIONS"
    assert refused.value.exit_code == 2
    assert (refused.value.what, refused.value.why) == (
        "the instructions of agent lead cannot be read",
        f"{file} {why}",
    )


def test_the_command_line_names_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="agent lead") as refused:
        read_instructions(str(tmp_path / "gone.md"), {"name": "lead"})

    assert refused.value.code == "E-AGENT-INSTRUCTIONS"
    assert refused.value.why == f"{tmp_path / 'gone.md'} cannot be read: No such file or directory"


def test_the_command_line_does_not_take_a_directory_for_a_file(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="agent lead") as refused:
        read_instructions(str(tmp_path), {"name": "lead"})

    assert refused.value.why.endswith("Is a directory")
