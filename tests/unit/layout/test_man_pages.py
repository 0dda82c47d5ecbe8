"""The manual pages: up to date, complete, and without warnings of groff."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.support import needs
from tests.support.command_tree import walk
from tests.support.man_pages import PROGRAMS, page, path_of


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_manual_page_is_up_to_date_and_has_every_command_and_every_option(program: str) -> None:
    assert path_of(program).read_text(encoding="ascii") == page(program), "make man"
    text = path_of(program).read_text(encoding="ascii").replace("\\-", "-")
    top, *nodes = walk(PROGRAMS[program])
    shown = [node for node in nodes if not node.command.hidden]
    sections = dict(re.findall(r'(?ms)^\.SS "(.*?)"\n(.*?)(?=^\.S[SH] )', text))

    assert set(sections) == {f"{program} {node.name}" for node in shown}
    missing = {
        (node.name, option)
        for node in shown
        if not node.is_group
        for option in node.options
        if option not in sections[f"{program} {node.name}"]
    }
    assert missing == set()
    assert top.options <= set(re.findall(r"--?[\w-]+", text))


@pytest.mark.parametrize("program", PROGRAMS)
def test_groff_finds_nothing_wrong_in_the_manual_page(program: str) -> None:
    needs("groff")
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", path_of(program)], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert program.upper() in done.stdout
