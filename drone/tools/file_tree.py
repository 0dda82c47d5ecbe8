"""Lists and searches the files of a tree: runs as a script inside the sandbox, so it uses only the standard library.

`python -I -S -c <this file> REQUEST`, where REQUEST is a JSON object (`TreeRequest`); prints the output for the model.
In a git work tree it covers tracked files and untracked files that are not ignored, and those of submodules and other
repositories inside; elsewhere, and if git ignores the whole requested directory, everything except `.git`. It opens
only plain files whose path contains no symlink.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypedDict

LARGEST = 100 * 1024 * 1024
"""Larger files are searched only if the path names them."""
SHOWN = 9_000
"""Characters of an answer; a command's output is shown in full up to 10,000."""
LINE = 400
_WORD = re.compile(r"[A-Za-z0-9+/=_%\\.~-]{1,200}\Z")
"""What may be the beginning of a key. Which keys there are is not known in a sandbox."""
_BATCH = 150_000
"""Characters of file names on one command line; Linux allows 2 MB, and a character has up to four bytes."""
_AT_ONCE = 2
FAILED = 2
"""Exit code for an invalid pattern."""
_LIMITED = 'ulimit -v 1048576; exec "$@"'
"""grep keeps a whole line in memory, and a line may be as large as the disk."""


class TreeRequest(TypedDict):
    """One search or listing. `pattern`: a name pattern for `glob`, a regular expression for `grep`."""

    do: str
    top: str
    """The directory to search, as a real path."""
    only: str
    """The name of the only file in `top` to search; empty for all."""
    ceiling: str
    """Git does not search for a `.git` above this directory."""
    shown_as: str
    """Prefix for each path in the output."""
    pattern: str
    names: str
    """grep: only files whose path matches this glob; empty for all."""
    ignore_case: bool
    context: int
    newest_first: bool
    most: int
    """Paths or matching lines."""
    seconds: float


def main(request: TreeRequest) -> int:
    """Print what was found and return the exit code."""
    os.chdir(request["top"])
    os.environ["GIT_CEILING_DIRECTORIES"] = request["ceiling"]
    look = grep if request["do"] == "grep" else glob
    try:
        lines = look(request, time.monotonic() + request["seconds"])
    except (ValueError, re.error) as error:
        print(error)  # noqa: T201 - a script's answer
        return FAILED
    text = "\n".join(lines).replace("\0", "\N{SYMBOL FOR NULL}")
    # File names and lines are bytes: bytes that are not UTF-8 must not break the transcript.
    sys.stdout.buffer.write(text.encode(errors="surrogateescape").decode(errors="replace").encode())
    return 0


def glob(request: TreeRequest, deadline: float) -> list[str]:
    """Return the matching paths."""
    fits = matcher(request["pattern"])
    found = []
    for path in files_below("", deadline):
        if fits(path) and (status := _status(path)) is not None and not stat.S_ISDIR(status.st_mode):
            found.append((-status.st_mtime_ns if request["newest_first"] else 0, path))
    answer = BoundedLines(request["most"])
    taken = [path for _, path in sorted(found) if answer.add(request["shown_as"] + path)]
    if len(found) > len(taken):
        answer.lines.append(f"(and {len(found) - len(taken):,} more; give a smaller directory or a narrower pattern)")
    if time.monotonic() > deadline:
        answer.lines.append(f"(ended after {request['seconds']:g} s; there may be more)")
    return answer.lines or ["(nothing found)"]


def grep(request: TreeRequest, deadline: float) -> list[str]:
    """Return the matching lines, grouped by file. Raises ValueError for a pattern that grep does not accept."""
    command = _grep_command(request)
    tried = subprocess.run([*command, "/dev/null"], capture_output=True, env=_environment(request), check=False)
    if tried.returncode >= FAILED:
        raise ValueError(tried.stderr.decode(errors="replace").strip() or "grep failed")
    large: list[str] = []
    answer = BoundedLines(request["most"])
    search = _Search(command, _environment(request), deadline)
    _add_matches(search, _searched(request, large, deadline), answer, request["shown_as"])
    if answer.full:
        answer.lines.append("(more follows; give a narrower pattern, path or glob)")
    if search.late:
        answer.lines.append(f"(ended after {request['seconds']:g} s; search a smaller directory)")
    if large:
        some = ", ".join(large[:5])
        answer.lines.append(f"(not searched because larger than 100 MB: {some}{' …' if len(large) > 5 else ''})")
    return answer.lines or ["(no line matches)"]


def files_below(directory: str, deadline: float) -> list[str]:
    """Paths of files below `directory`, which is empty or ends with a slash, sorted by name."""
    found: set[str] = set()
    for name in _git_listed(directory, deadline) or _walked(directory or ".", deadline):
        path = directory + name
        if _is_directory(path):
            # A repository inside, or the directory of a submodule: git lists it without its contents.
            found.update(files_below(path.rstrip("/") + "/", deadline))
        else:
            found.add(path)
    return sorted(found)


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a path matcher. A pattern without a slash matches names in any directory; `**` matches directories."""
    pattern = pattern.removeprefix("./")
    anywhere = "" if "/" in pattern else "(?:.*/)?"
    expression = re.compile(anywhere + _expression(pattern.lstrip("/")), re.DOTALL)
    return lambda path: expression.fullmatch(path) is not None


class BoundedLines:
    """Lines up to a maximum number and size."""

    def __init__(self, most: int) -> None:
        self.lines: list[str] = []
        self.full = False
        self._left = most
        self._room = SHOWN

    def add(self, line: str, *, counts: bool = True) -> bool:
        """Add a line unless there is no room for it."""
        if self._left < counts or self._room < len(line):
            self.full = True
        if self.full:
            return False
        self.lines.append(line)
        self._left -= counts
        self._room -= len(line) + 1
        return True


class _Search:
    """grep over batches of files, a few at a time, ended when the time is up or the consumer stops."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], deadline: float) -> None:
        self._command = command
        self._environment = environment
        self._deadline = deadline
        self._running: deque[subprocess.Popen[bytes]] = deque()
        self.late = False

    def lines(self, files: Iterable[str]) -> Iterator[tuple[str, int, bool, str]]:
        """Path, number, whether the line itself matches, and the line; in the order of the files."""
        guard = threading.Timer(max(0.0, self._deadline - time.monotonic()), self._end)
        guard.start()
        try:
            for batch in _batches(files):
                if self.late:
                    break
                self._running.append(self._started(batch))
                if len(self._running) > _AT_ONCE:
                    yield from self._oldest_lines()
            while self._running:
                yield from self._oldest_lines()
        finally:
            guard.cancel()
            for process in self._running:
                process.kill()

    def _started(self, batch: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self._command, *(f"./{path}" for path in batch)],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def _oldest_lines(self) -> Iterator[tuple[str, int, bool, str]]:
        with self._running[0] as process:
            try:
                for line in _short_lines(process):
                    name, _, rest = line.partition(b"\0")
                    if found := re.match(rb"(\d+)([:-])(.*)", rest, re.DOTALL):
                        path = os.fsdecode(name).removeprefix("./")
                        yield path, int(found[1]), found[2] == b":", os.fsdecode(found[3])
            finally:
                process.kill()
        self._running.popleft()

    def _end(self) -> None:
        self.late = True
        for process in list(self._running):
            process.kill()


def _add_matches(search: _Search, files: Iterable[str], lines: BoundedLines, shown_as: str) -> None:
    last = None
    for path, number, matches, text in search.lines(files):
        if path != last:
            last = path
            if not (lines.add(f"{chr(10) if lines.lines else ''}{shown_as}{path}", counts=False)):
                return
        line = text if len(text) <= LINE else f"{_without_last_word(text)} [… the line continues]"
        if not lines.add(f"{number}{':' if matches else '-'}{line}", counts=matches):
            return


def _without_last_word(text: str) -> str:
    """The beginning of a long line, without a word that the cut would divide: half a key would not be recognized."""
    return _WORD.sub("", text[:LINE]) if _WORD.match(text[LINE]) else text[:LINE]


def _searched(request: TreeRequest, large: list[str], deadline: float) -> Iterator[str]:
    """Yield the files to search; those that are too large are added to `large`. grep starts with the first ones."""
    if request["only"]:
        yield request["only"]
        return
    fits = matcher(request["names"]) if request["names"] else None
    real: dict[str, bool] = {}
    for path in files_below("", deadline):
        if "\n" in path or (fits and not fits(path)):
            continue
        status = _status(path)
        if status is None or not stat.S_ISREG(status.st_mode) or not _is_real(path.rpartition("/")[0], real):
            continue
        if status.st_size > LARGEST:
            large.append(path)
        else:
            yield path


def _git_listed(directory: str, deadline: float) -> list[str]:
    command = ["git", "-c", "core.fsmonitor=false", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    left = max(0.1, deadline - time.monotonic())
    try:
        done = subprocess.run(command, cwd=directory or ".", capture_output=True, timeout=left, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    listed = os.fsdecode(done.stdout).split("\0")[:-1] if done.returncode == 0 else []
    # So git names an empty directory of an outer repository, such as that of a submodule that was not fetched.
    return [path for path in listed if path != "./"]


def _walked(top: str, deadline: float) -> Iterator[str]:
    """Everything below `top` except `.git`; links to directories are listed, not followed."""
    for directory, names, files in os.walk(top):
        if time.monotonic() > deadline:
            return
        names[:] = [name for name in names if name != ".git"]
        links = [name for name in names if Path(directory, name).is_symlink()]
        for name in (*files, *links):
            yield os.path.relpath(f"{directory}/{name}", top)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None  # deleted: git also lists deleted files, and files may be deleted during the search


def _is_directory(path: str) -> bool:
    status = _status(path)
    return status is not None and stat.S_ISDIR(status.st_mode) and _is_real(path, {})


def _is_real(directory: str, known: dict[str, bool]) -> bool:
    """Whether no part of the path is a link: git still lists files whose directory has become one."""
    if directory not in known:
        known[directory] = os.path.realpath(directory or ".") == os.path.normpath(Path.cwd() / directory)
    return known[directory]


def _grep_command(request: TreeRequest) -> list[str]:
    pattern = request["pattern"]
    perl = re.search(r"\\[dDAzZ]|\(\?|[*+?}]\?", pattern) is not None
    options = ["-nHI", "-s", "--null", "--line-buffered", "-D", "skip", "-d", "skip", "-P" if perl else "-E"]
    options += ["-i"] if request["ignore_case"] else []
    options += ["-C", str(request["context"])] if request["context"] else []
    return ["sh", "-c", _LIMITED, "sh", "grep", *options, "-e", pattern, "--"]


def _environment(request: TreeRequest) -> dict[str, str]:
    """Match plain bytes if the pattern allows it: this is faster, and lines that are not UTF-8 still match."""
    return {**os.environ, "LC_ALL": "C" if request["pattern"].isascii() else "C.UTF-8"}


def _batches(files: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for path in files:
        batch.append(path)
        size += len(path) + 16
        if size > _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _short_lines(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """Yield each line of the output; very long lines are truncated."""
    stream = process.stdout
    if stream is None:
        return
    while piece := stream.readline(8192):
        line = piece
        while not piece.endswith(b"\n") and (piece := stream.readline(8192)):
            pass
        yield line.rstrip(b"\r\n")


def _expression(pattern: str) -> str:
    pieces: list[str] = []
    depth = 0
    for piece in re.findall(r"(?:\*\*/)+|\*+|\?|\[!?\]?[^]]{0,99}\]|\{|\}|,|[^*?\[{},]+|\[", pattern):
        closing = piece == "}" and depth > 0
        depth += (piece == "{") - closing
        pieces.append("|" if piece == "," and depth else ")" if closing else _translated(piece))
    if depth:
        raise ValueError(f"the pattern {pattern!r} has an unclosed brace")
    return "".join(pieces)


def _translated(piece: str) -> str:
    known = {"*": "[^/]*", "?": "[^/]", "{": "(?:"}
    if piece in known:
        return known[piece]
    if piece.startswith("**"):
        return "(?:.*/)?" if piece.endswith("/") else ".*"
    if piece.startswith("[") and len(piece) > 2:
        inner = piece[1:-1].replace("\\", "\\\\")
        return f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner}]"
    return re.escape(piece)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
