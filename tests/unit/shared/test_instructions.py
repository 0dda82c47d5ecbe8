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
    (b"\xff\xfeL\x00e", "is not UTF-16: byte 4"),
    (b"Lead\0", "is not text: it contains a NUL byte"),
]


def test_content_that_cannot_be_instructions_is_refused_in_requests_and_in_files(tmp_path: Path) -> None:
    file = tmp_path / "lead.md"
    for content, why in BAD:
        with pytest.raises(ValueError, match=f"^{why}$"):
            instructions_of(content)
        file.write_bytes(content)
        with pytest.raises(Invalid) as refused:
            read_instructions(str(file), {"name": "lead"})
        assert (refused.value.code, refused.value.why) == ("E-AGENT-INSTRUCTIONS", f"{file} {why}")
    for missing in (tmp_path / "gone.md", tmp_path):
        with pytest.raises(Invalid) as refused:
            read_instructions(str(missing), {"name": "lead"})
        assert str(missing) in refused.value.why


def test_the_text_comes_without_the_mark_and_the_white_space_around_it() -> None:
    assert instructions_of("\ufeff\n# Lead\n\nPlan. Ünd so.\n".encode()) == "# Lead\n\nPlan. Ünd so."
    assert instructions_of("# Lead: Ünd\n".encode("utf-16")) == "# Lead: Ünd"
    assert len(instructions_of(("€" * MAX_INSTRUCTIONS).encode())) == MAX_INSTRUCTIONS == base.MAX_INSTRUCTIONS
