"""An agent's instructions as bytes of a file."""

from __future__ import annotations

import pytest

from control_plane.contract.documents import base
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


@pytest.mark.parametrize(("content", "why"), BAD)
def test_content_that_cannot_be_instructions_is_refused(content: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}$"):
        instructions_of(content)


def test_the_text_comes_without_the_mark_and_the_white_space_around_it() -> None:
    assert instructions_of("\ufeff\n# Lead\n\nPlan. Ünd so.\n".encode()) == "# Lead\n\nPlan. Ünd so."
    assert instructions_of("# Lead: Ünd\n".encode("utf-16")) == "# Lead: Ünd"
    assert len(instructions_of(("€" * MAX_INSTRUCTIONS).encode())) == MAX_INSTRUCTIONS == base.MAX_INSTRUCTIONS
