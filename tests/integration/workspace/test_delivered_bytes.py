"""What is in the workspace is what is delivered: nothing if nothing changed, one line if one line changed.

Repositories are generated from all pairs of attributes and contents, with both hashes of git, modes, depths, names,
links and a submodule.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from drone.workspace import Delivery, Workspace, Workspaces
from tests.integration.workspace.agent import deliver, keep
from tests.support.repositories import git, prepared, work_order

ATTRIBUTES = (
    *("", "text", "eol=lf", "eol=crlf", "text=auto", "text=auto eol=crlf", "-text eol=crlf", "ident", "text ident"),
    *("working-tree-encoding=UTF-16", "working-tree-encoding=ISO-8859-1", "text working-tree-encoding=UTF-16"),
    *("eol=crlf working-tree-encoding=UTF-16LE-BOM", "text working-tree-encoding=US-ASCII"),
    "working-tree-encoding=no-such-encoding",
)
"""Of all files in one directory."""
ENCODINGS = {"UTF-16": "utf-16", "UTF-16LE-BOM": "utf-16", "ISO-8859-1": "iso-8859-1"}
CONTENTS = {
    "lf": b"one\ntwo\nthree\n",
    "crlf": b"one\r\ntwo\r\nthree\r\n",
    "mixed": b"one\r\ntwo\n\r\n\nthree\r\n\nfour\n",
    "cr-and-crlf": b"one\r\r\ntwo\r\nthree\r",
    "bom-crlf": b"\xef\xbb\xbfone\r\ntwo\r\n",
    "utf-8": "grün\r\nżółw\r\n🐢\r\n".encode(),
    "latin-1": b"gr\xfcn\r\nna\xefve\r\n",
    "utf-16": "one\r\ntwo\r\n".encode("utf-16"),
    "binary": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\r\n\xff",
    "ident": b"one\r\n$Id$\r\nthree\r\n",
    "old-ident": b"one\n$Id: a.c,v 1.2 2001/02/03 somebody Exp $\nthree\n",
    "empty": b"",
}
DEPTHS = ("", "a b/", "ü/\u200b/", "-x/--y/", "[x]*/", f"{'d' * 250}/" * 3, "d/" * 150, ' "q"\\/')
_IDENT = re.compile(rb"\$Id[^$\n]*\$")


@dataclass(frozen=True)
class File:
    """A file of a generated repository."""

    path: str
    attributes: str
    content: bytes
    mode: str


def generated(numbers: random.Random) -> Iterator[File]:
    """A file for each pair, at different depths and with different modes."""
    for number, attributes in enumerate(ATTRIBUTES):
        for name, content in CONTENTS.items():
            path = f"{number}/{numbers.choice(DEPTHS)}{name}"
            yield File(path, attributes, content, numbers.choice(("100644", "100755")))


def repository(path: Path, files: list[File], object_format: str, attributes: Sequence[str] = ATTRIBUTES) -> Path:
    """A bare repository that stores the files as they are, whatever their attributes say."""
    git(path.parent, "init", "-q", "--bare", "--initial-branch=main", f"--object-format={object_format}", str(path))
    declared = "".join(f"/{number}/** {each}\n" for number, each in enumerate(attributes))
    entries = [(".gitattributes", declared.encode(), "100644")]
    entries += [(file.path, file.content, file.mode) for file in files]
    entries += [("link", b"lf", "120000"), ("dangling", b"/no/where\r\n", "120000")]
    lines = [b"commit refs/heads/main\ncommitter T <t@example.org> 1700000000 +0000\ndata 5\nBegin\n"]
    for name, content, mode in entries:
        quoted = name.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'M {mode} inline "{quoted}"\ndata {len(content)}\n'.encode() + content + b"\n")
    lines.append(f"M 160000 {'1' * len(git(path, 'hash-object', '--stdin'))} a module\n".encode())
    git(path, "fast-import", "--quiet", stdin=b"".join(lines))
    return path


def with_one_line_changed(content: bytes, attributes: str, numbers: random.Random) -> bytes:
    """The content as an editor would leave it that knows the file's encoding."""
    codec = next((codec for name, codec in ENCODINGS.items() if attributes.endswith(f"={name}")), "latin-1")
    # A file that does not have its declared encoding is edited as bytes.
    if content and content.decode(codec, "replace").encode(codec, "replace") != content:
        codec = "latin-1"
    lines = content.decode(codec).split("\n")
    at = numbers.randrange(max(1, len(lines) - 1))
    lines[at] = f"X{lines[at]}"
    return "\n".join(lines).encode(codec)


def in_tree(workspace: Workspace, commit: str, paths: list[str]) -> Mapping[str, bytes]:
    """The stored content of files in a commit."""
    asked = "".join(f"{commit}:{path}\n" for path in paths)
    output = workspace.session.git.raw("cat-file", "--batch", stdin=asked.encode())
    found = {}
    for path in paths:
        head, _, rest = output.partition(b"\n")
        size = int(head.split()[-1])
        found[path], output = rest[:size], rest[size + 1 :]
    return found


def wrong_lines(files: list[File], delivered: Mapping[str, bytes]) -> Mapping[str, tuple[bytes, bytes]]:
    """The files in which not exactly one line was changed."""
    wrong = {}
    for file in files:
        before, now = file.content.split(b"\n"), delivered[file.path].split(b"\n")
        differing = [1 for old, new in zip(before, now, strict=False) if old != new]
        if (len(now), differing) != (len(before), [1]):
            wrong[f"{file.attributes}: {file.path}"] = (file.content, delivered[file.path])
    return wrong


def wrong_in_clone(files: list[File], clone: Path, work: Path) -> Mapping[str, tuple[bytes, bytes]]:
    """The files that a user gets with other bytes than the workspace has; an id is renewed when the file is written."""
    found = {file.path: ((work / file.path).read_bytes(), (clone / file.path).read_bytes()) for file in files}
    return {path: both for path, both in found.items() if len({_IDENT.sub(b"", content) for content in both}) > 1}


# A delivery makes use of a checkpoint before it.
@pytest.mark.parametrize(("object_format", "before"), [("sha1", lambda _: None), ("sha256", keep)])
def test_a_run_that_changes_nothing_delivers_nothing_and_one_that_changes_a_line_delivers_that_line(
    workspaces: Workspaces, tmp_path: Path, object_format: str, before: Callable[[Workspace], object]
) -> None:
    numbers = random.Random(object_format)
    files = list(generated(numbers))[object_format == "sha1" :: 2]
    remote = repository(tmp_path / "made.git", files, object_format)
    workspace = prepared(workspaces, work_order(remote, order_id="0rder0rder00"))

    before(workspace)
    assert deliver(workspace) == Delivery(None, workspace.base_commit)
    for file in files:
        path = workspace.path / file.path
        path.write_bytes(with_one_line_changed(path.read_bytes(), file.attributes, numbers))
    before(workspace)
    made = deliver(workspace)

    assert (made.left_out, made.files_changed) == ((), len(files))
    assert wrong_lines(files, in_tree(workspace, str(made.head_commit), [file.path for file in files])) == {}
    assert workspace.push("fleet/made", None, 60).pushed
    git(tmp_path, "clone", "-q", "-b", "fleet/made", str(remote), "clone")
    assert wrong_in_clone(files, tmp_path / "clone", workspace.path) == {}
    modes = git(
        workspace.session.git_dir, "diff-tree", "-r", "--raw", str(workspace.base_commit), str(made.head_commit)
    )
    assert [line for line in modes.splitlines() if line[1:7] != line[8:14]] == []


def test_a_tracked_file_whose_attribute_names_no_encoding_is_delivered_as_it_is(
    workspaces: Workspaces, tmp_path: Path
) -> None:
    content = "gr\u00fcn\r\nrot\r\n".encode()
    attributes = ("working-tree-encoding", "-working-tree-encoding", "text working-tree-encoding", "ident")
    files = [File(f"{number}/file", each, content, "100644") for number, each in enumerate(attributes)]
    remote = repository(tmp_path / "made.git", files, "sha1", attributes)
    workspace = prepared(workspaces, work_order(remote, order_id="0rder0rder00"))
    for file in files:
        (workspace.path / file.path).write_bytes(content + b"blau\r\n")

    made = deliver(workspace)

    found = in_tree(workspace, str(made.head_commit), [file.path for file in files])
    assert found == {file.path: content + b"blau\r\n" for file in files}
