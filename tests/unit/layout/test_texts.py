"""The page of all texts is up to date, and the check of their words finds what it should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.documents import ROOT
from tests.support.texts_page import PAGE, page

CHECK = ROOT / ".ci" / "plain_words.py"


def test_the_page_of_all_texts_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.support.texts_page"


def test_words_to_avoid_are_found_in_texts_and_not_in_docstrings(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "part.py").write_text(
        '"""What nobody sees."""\n\ndef _go_on(value: str) -> str:\n    return f"{value} goes on; mend it"\n'
    )
    done = subprocess.run([sys.executable, CHECK, "room"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "room/part.py:4: 'goes on': use continue, resume",
        "room/part.py:4: 'mend': use fix",
    ]
