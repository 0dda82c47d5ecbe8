"""grep and glob look at what git tracks or would track, open plain files alone, and stay small and quick."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from drone.prompting import PromptSources, read_sources
from drone.sandbox import Sandbox, choose
from drone.tools import Tools
from drone.tools.arguments import GrepArguments
from drone.tools.file_tree import matcher
from drone.tools.search import Search
from shared.errors import Preempted
from tests.support.repositories import git, work_tree
from tests.support.sandboxes import ending_from_outside
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
    lasting = sandbox.for_session(scratch=tmp_path / "scratch")
    tools = toolbox(tree, sandbox=lasting)
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
    assert called(toolbox(outer / "work", sandbox=lasting), "grep", pattern="word").output == "a\n1:word"


def test_what_git_tracks_or_was_asked_for_is_found_and_so_are_a_repository_inside_and_plain_directories(
    call: Call, tree: Path, tmp_path: Path
) -> None:
    assert call("grep", pattern="ignored", path="node_modules").output == "node_modules/lib/index.py\n1:def ignored():"
    assert call("grep", pattern="logged", path="run.log").output == "run.log\n1:def logged():"
    git(tree, "add", "-f", "run.log")
    assert call("grep", pattern="logged").output == "run.log\n1:def logged():"
    work_tree(tree / "vendored", {"inner.py": "def inner(): ...\n"})
    assert call("grep", pattern="inner").output == "vendored/inner.py\n1:def inner(): ..."
    work_tree(tree / "lib", {"part.py": "def part(): ...\n", ".gitignore": "*.log\n"})
    (tree / "lib" / "part.log").touch()
    commit = git(tree / "lib", "rev-parse", "HEAD")
    for submodule in ("lib", "unfetched", "link/lib"):
        git(tree, "update-index", "--add", "--cacheinfo", f"160000,{commit},{submodule}")
    (tree / "unfetched").mkdir()
    (tree / "link").symlink_to(".")
    assert call("grep", pattern="part").output == "lib/part.py\n1:def part(): ..."
    assert call("glob", pattern="part.*").output == "lib/part.py"
    assert call("glob", pattern="*", path="unfetched").output == "(nothing found)"
    (tree / "unfetched" / "part.py").touch()
    assert call("glob", pattern="part.*", sort="name").output == "lib/part.py\nunfetched/part.py"
    (tree / "src" / "a.py").unlink()
    assert "a.py" not in call("grep", pattern="def").output + call("glob", pattern="*.py").output

    plain = tmp_path / "plain"
    for name in (".git", "node_modules"):
        (plain / name).mkdir(parents=True)
        (plain / name / "y").write_text("word")
    assert called(toolbox(plain), "grep", pattern="word").output == "node_modules/y\n1:word"


def test_glob_knows_the_usual_patterns() -> None:
    paths = [".gitignore", "new.py", "src/a.py", "src/deep/b.py", "src/deep/c.ts"]
    cases: dict[str, list[str]] = {
        "*.ts": ["src/deep/c.ts"],
        "src/*.py": ["src/a.py"],
        "./src/**/*.{py,ts}": ["src/a.py", "src/deep/b.py", "src/deep/c.ts"],
        "**/deep/[!b]*": ["src/deep/c.ts"],
        "src/deep/?.py": ["src/deep/b.py"],
        ".git*": [".gitignore"],
        "src?a.py": [],
        "src": [],
        "a[.py": [],
    }
    assert {pattern: list(filter(matcher(pattern), paths)) for pattern in cases} == cases


def test_glob_takes_whole_paths_and_names_the_newest_200_first(call: Call, tree: Path) -> None:
    assert call("glob", pattern=f"{tree}/src/*.py").output == "src/a.py"
    os.utime(tree / "new.py", (1, 1))
    os.utime(tree / "src" / "deep" / "b.py", (2_000_000_000, 2_000_000_000))
    assert call("glob", pattern="*.py").output == "src/deep/b.py\nsrc/a.py\nnew.py"
    [(tree / f"{number:03}.txt").touch() for number in range(250)]
    lines = call("glob", pattern="*.txt").output.splitlines()
    assert (len(lines), lines[-1].startswith("(and 50 more")) == (201, True)


def test_grep_takes_case_context_files_perls_expressions_and_other_encodings(call: Call, tree: Path) -> None:
    (tree / "latin").write_bytes(b"a word of caf\xe9\r\n")
    (tree / "utf8").write_text("ein Wörtchen\n", encoding="utf-8")
    (tree / "binary").write_bytes(b"word\0word\n")
    (tree / "run.log").rename(tree / os.fsdecode(b"caf\xe9"))
    cases: list[tuple[dict[str, object], str]] = [
        ({"pattern": "DEF", "ignore_case": True, "glob": "src/*.py"}, "src/a.py\n2:def first(x):"),
        ({"pattern": "first", "context": 1}, "src/a.py\n1-import os\n2:def first(x):\n3-    return x"),
        ({"pattern": "function", "glob": "*.{md,tsx}"}, "docs/guide.md\n1:How to define a function."),
        ({"pattern": "(?<=def )second"}, "src/deep/b.py\n1:def second(y):"),
        ({"pattern": "-e", "glob": "*.py"}, "(no line matches)"),
        ({"pattern": "word"}, "latin\n1:a word of caf\ufffd"),
        ({"pattern": "wÖrt", "ignore_case": True}, "utf8\n1:ein Wörtchen"),
    ]
    wrong = [(arguments, got) for arguments, output in cases if (got := call("grep", **arguments).output) != output]
    assert wrong == []
    assert call("glob", pattern="caf*").output == "caf\ufffd"


def test_grep_says_that_there_is_more_and_stays_small(call: Call, tree: Path) -> None:
    (tree / "many.txt").write_text("".join(f"word {number}\n" for number in range(20_000)))
    (tree / "wide.txt").write_text("w" * 3_000_000 + "\n")
    # A word that the end of a long line would divide, which may be a secret, is left out.
    (tree / "long.txt").write_text(f"long {'a,' * 190}{'k3Y' * 20},b\n")

    some = call("grep", pattern="word", max_results=3).output.splitlines()
    all_of_it = call("grep", pattern="word", max_results=1000).output
    wide, divided = call("grep", pattern="www").output, call("grep", pattern="long").output

    assert some[:4] == ["many.txt", "1:word 0", "2:word 1", "3:word 2"]
    assert some[4].startswith("(more follows")
    assert len(all_of_it) < 10_000
    assert all_of_it.splitlines()[-1].startswith("(more follows")
    assert (len(wide) < 500, "the line continues" in wide) == (True, True)
    assert ("k3Y" in divided, divided.endswith("a,a, [… the line continues]")) == (False, True)


def test_fifos_sockets_and_links_are_never_opened(call: Call, tree: Path) -> None:
    (tree.parent / "secret").write_text("word")
    os.mkfifo(tree / "fifo")
    (tree / "link").symlink_to(tree.parent / "secret")
    (tree / "linked").symlink_to("/etc")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tree / "socket"))
        assert call("grep", pattern="word|root:").output == "(no line matches)"
        for path in ("fifo", "socket"):
            assert "cannot be searched" in call("grep", pattern="word", path=path).output
    assert call("glob", pattern="link*").output in ("link\nlinked", "linked\nlink")
    # Nor a tracked directory that became a link out of the workspace.
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
    assert call("grep", pattern="word", path="-rf").output == "-rf\n1:word"
    assert not (tree / "sprung").exists()


def test_an_expression_that_takes_for_ever_ends_with_what_was_found_or_when_the_run_stops(tree: Path) -> None:
    (tree / "a.txt").write_text("word\n")
    (tree / "slow.txt").write_text(("a" * 401 + "\n") * 20_000)
    wanted = GrepArguments(pattern=r"word|^(.*)(.*)(.*)(.*)\1\2\3\4$", glob="*.txt")

    # On a busy machine the first limits may end before the first file was searched.
    for seconds in (0.5, 6, 24, 96):
        found = Search(tree, choose("none", os.environ), lambda: None, seconds=seconds).grep(wanted)
        assert f"(ended after {seconds:g} s" in found.output
        if "word" in found.output:
            break
    assert found.output.startswith("a.txt\n1:word\n(ended after ")

    def stop() -> None:
        raise Preempted

    with pytest.raises(Preempted):
        called(toolbox(tree, check=stop), "grep", pattern="def")


def test_a_search_that_was_ended_from_outside_says_why(tree: Path) -> None:
    ends: list[tuple[dict[str, Any], str]] = [
        ({"over": "too much memory"}, "too much memory"),
        ({"lost": "no sandbox"}, "no sandbox"),
        ({"lost": "no sandbox", "reached": ("too many processes",)}, "too many processes"),
    ]
    for how, why in ends:
        result = called(toolbox(tree, sandbox=ending_from_outside(**how)), "grep", pattern="(")
        assert (result.is_error, why in result.output) == (True, True), how


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    """A skill with a script in a drone's home, beside the drone's key."""
    folder = tmp_path / "home" / "prompt" / "skills" / "greet"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: greet\ndescription: Greets.\n---\nRun `sh greet.sh`.\n")
    (folder / "greet.sh").write_text("echo hello\n")
    folder.chmod(0o777)  # only the sandbox keeps commands from writing there
    (tmp_path / "home" / "key").write_text("k3y\n")
    return folder


@pytest.fixture
def tools(tmp_path: Path, skill: Path, sandbox: Sandbox) -> Tools:
    (tmp_path / "work").mkdir()
    parts = read_sources(PromptSources(home=tmp_path / "home" / "prompt"))
    lasting = sandbox.for_session(scratch=tmp_path / "scratch")
    return toolbox(tmp_path / "work", sandbox=lasting, readable=parts.readable)


def test_a_skill_of_the_drones_home_is_read_searched_and_run_and_nothing_beside_it(
    tools: Tools, skill: Path, sandbox: Sandbox
) -> None:
    assert "Run `sh greet.sh`" in called(tools, "file_read", path=str(skill / "SKILL.md")).output
    assert called(tools, "grep", pattern="hello", path=str(skill)).output == f"{skill}/greet.sh\n1:echo hello"
    assert called(tools, "shell", command=f"sh {skill}/greet.sh").output == "hello\n(return code 0)"
    for tool, arguments in (("file_read", {}), ("grep", {"pattern": "k3y"}), ("glob", {"pattern": "k3y"})):
        assert "outside the workspace" in called(tools, tool, path=str(skill.parents[2]), **arguments).output, tool
    if sandbox.kind != "none":
        result = called(tools, "shell", command=f"touch {skill}/new; cat {skill.parents[2]}/key")
        assert "k3y" not in result.output
        assert sorted(path.name for path in skill.iterdir()) == ["SKILL.md", "greet.sh"]
