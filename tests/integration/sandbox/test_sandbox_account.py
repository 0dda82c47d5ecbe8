"""A drone that root runs: its commands have another account, to which the machine's own files are closed."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import pytest

from drone.sandbox import Sandbox, account
from drone.sandbox.bubblewrap import Bubblewrap
from drone.tools.arguments import FileWriteArguments
from drone.tools.file_write import FileWrite
from drone.tools.syntax import SyntaxFeedback
from tests.support.sandboxes import NOBODY, as_nobody, shell

pytestmark = pytest.mark.skipif(not account.is_root(), reason="only root runs commands under another account")
KERNEL = ("kernel/hostname", "kernel/core_pattern", "vm/overcommit_memory", "net/ipv4/ip_forward", "fs/suid_dumpable")
"""Written with the values that they have: where the wall is missing, a test changes nothing."""
CLOSED = (
    *(f'value=$(cat /proc/sys/{name}) && echo "$value" > /proc/sys/{name}' for name in KERNEL),
    'hostname "$(cat /proc/sys/kernel/hostname)"',
    "cat /etc/shadow | grep .",
    "cat /etc/gshadow | grep .",
    "cat /etc/shadow- | grep .",
    "ls /etc/ssh | grep .",
    "cat /etc/ssh/ssh_host_*_key",
    "cat /proc/1/environ",
    "ls /proc/1/root",
    "cat /proc/kcore | head -c 1 | grep .",
    "mknod /tmp/disk b 8 0",
    "chown 0:0 /tmp",
    "mount -t tmpfs none /mnt",
    "chroot / true",
    "setpriv --reuid 0 true",
    "find / -xdev -newermt '1 hour ago' -user 0 -writable -type f 2>/dev/null | grep -v ^/proc",
)


def test_what_only_root_may_do_is_refused(walled: Sandbox, tmp_path: Path) -> None:
    line = "\n".join(f"( {command} ) >&2 || echo refused {number}" for number, command in enumerate(CLOSED))
    said = set(re.findall(r"(?m)^refused (\d+)$", shell(walled, tmp_path, line).output))
    assert [command for number, command in enumerate(CLOSED) if str(number) not in said] == []


def test_a_command_has_no_right_of_root_but_the_usual_places_and_all_files_of_the_workspace(
    walled: Sandbox, tmp_path: Path
) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "sub").mkdir(parents=True)
    work.chmod(0o700)
    (work / "sub" / "file").write_text("old\n")
    outside.write_text("private")
    (work / "link").symlink_to(outside)

    status = shell(walled, work, "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs)' /proc/self/status").output
    places = shell(walled, work, "touch a ~/a /tmp/b /var/tmp/c /dev/shm/d && mkdir -p s/s && whoami && id -gn").output
    changed = shell(walled, work, "echo new > sub/file && chmod +x sub/file && cat sub/file; chmod 600 sub/file").output
    write = FileWrite(work, SyntaxFeedback(work, walled, lambda: None))
    for path in ("sub/file", "new", "x/b/c"):
        write(FileWriteArguments(path=path, content="two\n"))
    written = shell(walled, work, "rm new && echo three >> sub/file && mv x/b/c x/d && cat sub/file").output

    facts = {name: set(values.split()) for name, _, values in (line.partition(":") for line in status.splitlines())}
    assert facts["Uid"] == facts["Gid"] == facts["Groups"] | {"65533"} == {"65533"}
    assert {*facts["CapEff"], *facts["CapPrm"], *facts["CapInh"], *facts["CapBnd"], *facts["CapAmb"]} == {"0" * 16}
    assert facts["NoNewPrivs"] == {"1"}
    assert (places, changed, written) == ("drone\ndrone\n", "new\n", "two\nthree\n")
    assert outside.stat().st_uid == 0, "a link is not followed"


def test_a_workspace_of_an_earlier_version_is_handed_over(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").touch()
    assert account.give_tree(tmp_path, NOBODY)
    assert not account.give_tree(tmp_path, NOBODY)
    assert {path.stat().st_uid for path in (tmp_path, *tmp_path.rglob("*"))} == {NOBODY}


def test_bubblewrap_also_works_for_a_user_who_is_not_root_and_keeps_no_files_in_memory() -> None:
    in_memory = "awk '$3 == \"tmpfs\" { print $2 }' /proc/mounts"
    # Not in tmp_path: pytest's directories are root's alone.
    with tempfile.TemporaryDirectory() as directory:
        scratch, work = Path(directory, "scratch"), Path(directory, "work")
        work.mkdir()
        line = (
            Bubblewrap(os.environ)
            .for_session(scratch=scratch)
            .line(
                "id -u; touch made; cat /proc/sys/kernel/hostname > /proc/sys/kernel/hostname; "
                f"touch /dev/shm/a; for place in $({in_memory}); do touch $place/b && echo $place; done; true",
                workspace=work,
            )
        )
        account.give_tree(Path(directory), NOBODY)
        done = as_nobody(line)
        assert (done.stdout, (work / "made").exists()) == (b"65534\n", True), done.stderr
        assert (scratch / "shm" / "a").exists()
    assert b"hostname" in done.stderr
