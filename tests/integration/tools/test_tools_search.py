"""grep and glob look at what git tracks or would track, open plain files alone, and stay small and quick."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from drone.sandbox import Sandbox, choose
from drone.tools.arguments import GrepArguments
from drone.tools.search import Search
from shared.errors import Preempted
from tests.support.repositories import git, work_tree
from tests.support.toolboxes import Call, called, toolbox

FILES = {
    "src/a.py": "import os\ndef first(x):\n    return x\n",
    "src/deep/b.py": "def second(y):\n    return y\n",
    "src/deep/c.ts": "function third() {}\n",
    "docs/guide.md": "How to define a function.\n",
    ".gitignore": "node_modules/\n*.log\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A work tree with tracked, untracked and ignored files."""
    path = work_tree(tmp_path / "work", FILES)
    (path / "new.py").write_text("def fresh():\n    pass\n")
    (path / "node_modules" / "lib").mkdir(parents=True)
    (path / "node_modules" / "lib" / "index.py").write_text("def ignored():\n    pass\n")
    (path / "run.log").write_text("def logged():\n")
    return path


@pytest.fixture
def call(tree: Path) -> Call:
    """Calls tools on `tree`; only the list of its files comes from a sandbox."""
    tools = toolbox(tree)
    return lambda name, **arguments: called(tools, name, **arguments)


def test_in_every_sandbox_tracked_and_new_files_are_searched_and_not_what_git_ignores(
    tree: Path, sandbox: Sandbox, tmp_path: Path
) -> None:
    tools = toolbox(tree, sandbox=sandbox)
    assert called(tools, "grep", pattern=r"^def \w+").output.split("\n\n") == [
        "new.py\n1:def fresh():",
        "src/a.py\n2:def first(x):",
        "src/deep/b.py\n1:def second(y):",
    ]
    assert called(tools, "glob", pattern="**/*.py", sort="name").output == "new.py\nsrc/a.py\nsrc/deep/b.py"
    assert called(tools, "file_read", mode="find", search_pattern="*.log").output == "(nothing found)"

    # A repository around the workspace has no say.
    outer = work_tree(tmp_path / "outer", {".gitignore": "work/\n"})
    (outer / "work").mkdir()
    (outer / "work" / "a").write_text("word")
    assert called(toolbox(outer / "work", sandbox=sandbox), "grep", pattern="word").output == "a\n1:word"


def test_a_directory_that_git_ignores_is_searched_when_it_is_asked_for(call: Call) -> None:
    assert call("grep", pattern="ignored", path="node_modules").output == "node_modules/lib/index.py\n1:def ignored():"
    assert call("glob", pattern="*", path="node_modules/lib").output == "node_modules/lib/index.py"
    assert call("grep", pattern="logged", path="run.log").output == "run.log\n1:def logged():"


def test_what_git_tracks_is_found_and_so_is_a_repository_inside(call: Call, tree: Path) -> None:
    git(tree, "add", "-f", "run.log")
    assert call("grep", pattern="logged").output == "run.log\n1:def logged():"
    work_tree(tree / "vendored", {"inner.py": "def inner(): ...\n"})
    assert call("grep", pattern="inner").output == "vendored/inner.py\n1:def inner(): ..."
    (tree / "src" / "a.py").unlink()
    assert "a.py" not in call("grep", pattern="def").output
    assert "a.py" not in call("glob", pattern="*.py").output


def test_without_git_everything_but_the_git_directory_is_searched(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    (plain / ".git").mkdir(parents=True)
    (plain / ".git" / "x").write_text("word")
    (plain / "node_modules").mkdir()
    (plain / "node_modules" / "y").write_text("word")

    assert called(toolbox(plain), "grep", pattern="word").output == "node_modules/y\n1:word"


def test_glob_knows_the_usual_patterns(call: Call) -> None:
    cases: dict[str, list[str]] = {
        "*.ts": ["src/deep/c.ts"],
        "src/*.py": ["src/a.py"],
        "src/**/*.py": ["src/a.py", "src/deep/b.py"],
        "./src/**/*.{py,ts}": ["src/a.py", "src/deep/b.py", "src/deep/c.ts"],
        "**/deep/[!b]*": ["src/deep/c.ts"],
        "src/deep/?.py": ["src/deep/b.py"],
        ".git*": [".gitignore"],
        "src": ["(nothing found)"],
        "a[.py": ["(nothing found)"],
    }
    assert {pattern: call("glob", pattern=pattern, sort="name").output.split("\n") for pattern in cases} == cases


def test_glob_takes_a_path_and_an_absolute_pattern(call: Call, tree: Path) -> None:
    assert call("glob", pattern="*.py", path="src/deep").output == "src/deep/b.py"
    assert call("glob", pattern=f"{tree}/src/*.py").output == "src/a.py"


def test_glob_shows_the_newest_first(call: Call, tree: Path) -> None:
    os.utime(tree / "new.py", (1, 1))
    os.utime(tree / "src" / "deep" / "b.py", (2_000_000_000, 2_000_000_000))

    assert call("glob", pattern="*.py").output == "src/deep/b.py\nsrc/a.py\nnew.py"


def test_glob_names_at_most_200_and_says_how_many_more(call: Call, tree: Path) -> None:
    [(tree / f"{number:03}.txt").touch() for number in range(250)]

    lines = call("glob", pattern="*.txt").output.splitlines()

    assert len(lines) == 201
    assert lines[-1].startswith("(and 50 more")


def test_grep_takes_case_context_files_and_perls_expressions(call: Call) -> None:
    cases: list[tuple[dict[str, object], str]] = [
        ({"pattern": "DEF", "ignore_case": True, "glob": "src/*.py"}, "src/a.py\n2:def first(x):"),
        (
            {"pattern": "first", "context": 1},
            "src/a.py\n1-import os\n2:def first(x):\n3-    return x",
        ),
        ({"pattern": "function", "glob": "*.{md,tsx}"}, "docs/guide.md\n1:How to define a function."),
        ({"pattern": r"f\w+?t\(\D\)"}, "src/a.py\n2:def first(x):"),
        ({"pattern": "(?<=def )second"}, "src/deep/b.py\n1:def second(y):"),
        ({"pattern": "no such line"}, "(no line matches)"),
        ({"pattern": "-e", "glob": "*.py"}, "(no line matches)"),
    ]
    wrong = [(arguments, got) for arguments, output in cases if (got := call("grep", **arguments).output) != output]
    assert wrong == []


def test_grep_says_that_there_is_more_and_stays_small(call: Call, tree: Path) -> None:
    (tree / "many.txt").write_text("".join(f"word {number}\n" for number in range(100_000)))
    (tree / "wide.txt").write_text("w" * 3_000_000 + "\n")

    some = call("grep", pattern="word", max_results=3).output
    all_of_it = call("grep", pattern="word", max_results=1000).output
    wide = call("grep", pattern="www").output

    assert some.splitlines()[:4] == ["many.txt", "1:word 0", "2:word 1", "3:word 2"]
    assert some.splitlines()[4].startswith("(more follows")
    assert len(all_of_it) < 10_000
    assert "elided" not in all_of_it
    assert all_of_it.splitlines()[-1].startswith("(more follows")
    assert len(wide) < 500
    assert "the line continues" in wide


def test_a_word_that_the_end_of_a_long_line_would_divide_is_left_out(call: Call, tree: Path) -> None:
    (tree / "long.txt").write_text(f"word {'a,' * 190}{'k3Y' * 20},b\n")

    shown = call("grep", pattern="word").output

    assert "k3Y" not in shown
    assert shown.endswith("a,a, [… the line continues]")


def test_lines_that_are_not_utf_8_are_found_and_binary_files_are_passed_over(call: Call, tree: Path) -> None:
    (tree / "latin").write_bytes(b"a word of caf\xe9\r\n")
    (tree / "utf8").write_text("ein Wörtchen\n", encoding="utf-8")
    (tree / "binary").write_bytes(b"word\0word\n")
    (tree / "run.log").rename(tree / os.fsdecode(b"caf\xe9"))

    assert call("grep", pattern="word").output == "latin\n1:a word of caf\ufffd"
    assert call("grep", pattern="wÖrt", ignore_case=True).output == "utf8\n1:ein Wörtchen"
    assert call("glob", pattern="caf*").output == "caf\ufffd"


def test_fifos_sockets_and_links_are_never_opened(call: Call, tree: Path) -> None:
    (tree.parent / "secret").write_text("word")
    os.mkfifo(tree / "fifo")
    (tree / "link").symlink_to(tree.parent / "secret")
    (tree / "linked").symlink_to("/etc")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tree / "socket"))
        found = [call("grep", pattern="word|root:"), call("grep", pattern="word", path="fifo")]
        asked_for = call("grep", pattern="word", path="socket")

    assert found[0].output == "(no line matches)"
    assert "cannot be searched" in found[1].output
    assert "cannot be searched" in asked_for.output
    assert call("glob", pattern="link*").output in ("link\nlinked", "linked\nlink")


def test_a_tracked_directory_that_became_a_link_out_of_the_workspace_is_not_followed(call: Call, tree: Path) -> None:
    outside = tree.parent / "outside"
    (tree / "src" / "deep").rename(outside)
    (tree / "src" / "deep").symlink_to(outside)

    assert "second" not in call("grep", pattern="def").output
    assert "b.py" not in call("grep", pattern="return", glob="**/deep/*").output


def test_a_file_of_5_gb_is_passed_over_unless_it_is_asked_for(call: Call, tree: Path) -> None:
    with (tree / "huge.txt").open("wb") as file:
        file.write(b"word\n")
        file.truncate(5_000_000_000)

    assert "larger than 100 MB: huge.txt" in call("grep", pattern="word|first").output
    assert call("grep", pattern="nothing", path="huge.txt").output == "(no line matches)"


def test_odd_names_are_only_names(call: Call, tree: Path) -> None:
    names = ["$(touch sprung)", "-rf", "a b", "a'b", "ü"]
    for name in names:
        (tree / name).write_text("word\n")
    assert sorted(call("grep", pattern="word").output.split("\n\n")) == [f"{name}\n1:word" for name in names]
    for name in names:
        assert call("grep", pattern="word", path=name).output == f"{name}\n1:word"
    assert not (tree / "sprung").exists()


def test_an_expression_that_takes_for_ever_ends_with_what_was_found(tree: Path) -> None:
    (tree / "a.txt").write_text("word\n")
    (tree / "slow.txt").write_text(("a" * 401 + "\n") * 20_000)
    wanted = GrepArguments(pattern=r"word|^(.*)(.*)(.*)(.*)\1\2\3\4$", glob="*.txt")

    # On a busy machine the first limits may end before the first file was searched.
    for seconds in (1.5, 6, 24, 96):
        found = Search(tree, choose("none", os.environ), lambda: None, seconds=seconds).grep(wanted)
        assert f"(ended after {seconds:g} s" in found.output
        if "word" in found.output:
            break

    assert found.output.startswith("a.txt\n1:word\n(ended after ")


def test_a_search_ends_when_the_run_is_asked_to_stop(tree: Path) -> None:
    def stop() -> None:
        raise Preempted

    with pytest.raises(Preempted):
        called(toolbox(tree, check=stop), "grep", pattern="def")
