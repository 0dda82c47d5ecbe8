"""Which MCP servers are configured; nothing that these files can hold stops a run."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from drone.mcp_servers import Configs, read_configs, secrets_of
from drone.mcp_servers.config_files import LARGEST_FILE, MOST_SERVERS
from tests.support.documents import ROOT

ENVIRON = {"TOKEN": "t0ken", "EMPTY": ""}


@pytest.fixture
def homes(tmp_path: Path) -> Path:
    """The drone's home; a project's directory `.dronefleet` is in it."""
    (tmp_path / ".dronefleet").mkdir()
    return tmp_path


def read(homes: Path) -> Configs:
    return read_configs(homes, homes / ".dronefleet", ENVIRON)


def owner(homes: Path, **servers: Any) -> Configs:
    (homes / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return read(homes)


def project(homes: Path, **servers: Any) -> Configs:
    (homes / ".dronefleet" / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return read(homes)


def test_servers_of_both_files_are_sorted_by_name_and_the_owners_wins(homes: Path) -> None:
    project(homes, c={"command": "c"})
    assert read_configs(homes, None, ENVIRON) == Configs(), "a project without permission is not looked at"
    owner(homes, b={"command": "b"}, d={"command": "d"})

    found = project(homes, c={"command": "c"}, a={"url": "https://mcp.example.org/mcp"})

    assert [(each.name, each.owners) for each in found.servers] == [*zip("abcd", [False, True] * 2, strict=True)]
    # The owner's entry wins even where it starts nothing.
    entries: list[dict[str, Any]] = [{"command": "mine"}, {"command": "mine", "disabled": True}, {"nonsense": 1}]
    for entry in entries:
        owner(homes, same=entry)
        found = project(homes, same={"command": "theirs"})
        assert [each.command for each in found.servers if each.command == "theirs"] == [], entry


def test_variables_are_put_into_the_owners_entries_alone_and_no_sentence_quotes_what_may_be_secret(homes: Path) -> None:
    headers = {"Authorization": "Bearer ${TOKEN}abc${EMPTY}", "Accept": "text/html"}
    entry = {"url": "https://x.example/${TOKEN}", "headers": headers}
    owner(homes, mine=entry, other={"command": "x", "env": {"A_KEY": "k"}})

    mine, _, theirs = project(homes, theirs=entry).servers

    assert (mine.url, mine.headers) == ("https://x.example/t0ken", {**headers, "Authorization": "Bearer t0kenabc"})
    assert (theirs.url, theirs.headers) == (entry["url"], entry["headers"])
    # What is secret in the owner's servers is known to the redactor.
    assert secrets_of(homes, ENVIRON) == ["Bearer t0kenabc", "k", "t0ken", "t0kenabc"]
    assert secrets_of(homes / "none", ENVIRON) == []
    found = owner(homes, mine={"command": "x", "env": {"KEY": ["s3cret"]}, "headers": {"A": "s3cret\n"}})
    assert "s3cret" not in " ".join(found.problems)
    found = owner(homes, mine={"command": "x", "env": {"KEY": "${NOT_THERE}"}})
    assert [each.name for each in found.servers] == ["theirs"]
    assert found.problems[0].endswith("is ignored: environment variable NOT_THERE is not set on the drone")
    assert "t0ken" not in repr(owner(homes, mine={"command": "x", "env": {"KEY": "${TOKEN}"}}).servers)


WRONG: list[tuple[Any, str]] = [
    ([], "it is not an object with a `command` or a `url`"),
    ({}, "it must have either a `command` or a `url`"),
    ({"command": ["x"]}, "`command`: Input should be a valid string"),
    ({"command": "x\0"}, "`command`: contains an invalid character"),
    ({"command": "x", "args": "-v"}, "`args`: Input should be a valid list"),
    ({"command": "x", "args": ["\ud800"]}, "`args.0`: contains an invalid character"),
    ({"command": "x", "env": {"A B": "1"}}, "is not a valid variable name"),
    ({"command": "x", "timeout": 0}, "`timeout`: Input should be greater than 0"),
    ({"command": "x", "timeout": float("nan")}, "`timeout`: "),
    ({"command": "x", "start_timeout": 301}, "`start_timeout`: Input should be less than or equal to 300"),
    ({"command": "x", "type": "sse"}, "`type`: Input should be 'stdio', 'http'"),
    ({"url": "ftp://x.example"}, "its `url` is not an http or https address"),
    ({"url": "http://[::1"}, "its `url` is invalid"),
    ({"url": "http://x.example"}, "its `url` is plain http to another machine"),
    ({"url": "https://x.example", "headers": {"A": "1\r\nB: 2"}}, "is not a valid header"),
]


def test_a_wrong_entry_is_left_out_with_one_sentence(homes: Path) -> None:
    for entry, why in WRONG:
        found = owner(homes, wrong=entry, right={"command": "x"})
        assert ([each.name for each in found.servers], len(found.problems)) == (["right"], 1), entry
        assert f"MCP server 'wrong' of the owner's file {homes}/mcp.json is ignored: " in found.problems[0]
        assert why in found.problems[0]
    assert owner(homes, slow={"command": "x", "start_timeout": 60}).servers[0].start_timeout == 60
    unknown = owner(homes, mine={"command": "x", "cwd": "/", "autoApprove": []})
    assert ([each.name for each in unknown.servers], len(unknown.problems)) == (["mine"], 1)
    hostile = owner(homes, **{"\ud800\x1b[31m": {"command": "x", "\udfff\n": 1}})
    assert ([each for each in hostile.problems if not each.isprintable()], hostile.servers) == ([], ())
    many = owner(homes, **{f"s{number:03}": {"command": "x"} for number in range(MOST_SERVERS + 2)})
    assert (len(many.servers), len(many.problems)) == (MOST_SERVERS, 2)


def test_plain_http_is_for_this_machine_or_where_the_owner_says_so(homes: Path) -> None:
    plain = {"url": "http://intern.example/mcp", "allow_http": True}
    owner(homes, mine=plain, here={"url": "http://127.0.0.1:1/mcp"})

    found = project(homes, theirs=plain, local={"url": "http://localhost:1/mcp"})
    assert [each.name for each in found.servers] == ["here", "local", "mine"]
    (problem,) = found.problems
    assert problem.endswith(
        "'theirs' of the project's .dronefleet/mcp.json is ignored: "
        "only the file of the drone's owner can set `allow_http`"
    )


BROKEN = [
    (b'{"mcpServers": {},}', "it is not JSON"),
    (b"\xff{}", "it is not UTF-8: byte 0"),
    (b"{\0}", "it is not text: it contains a NUL byte"),
    (b"[" * 100_000, "it is not JSON"),
    (b"1" * 10_000, "it is not"),
    (b'{"mcpServers": []}', 'it is not an object with an object "mcpServers"'),
    (b'{"servers": {}}', 'it is not an object with an object "mcpServers"'),
    (b" " * (LARGEST_FILE + 1), "it is larger than 1,000,000 bytes"),
]


def test_a_broken_file_is_one_sentence_and_the_other_counts(homes: Path) -> None:
    file = homes / ".dronefleet" / "mcp.json"
    owner(homes, mine={"command": "x"})
    for content, why in BROKEN:
        file.write_bytes(content)
        found = read(homes)
        assert ([each.name for each in found.servers], len(found.problems)) == (["mine"], 1), content[:20]
        assert found.problems[0].startswith(f"No MCP servers from the project's .dronefleet/mcp.json: {why}")
    # Nor is a pipe or a link in a repository read.
    file.unlink()
    os.mkfifo(file)
    assert "it is not a file" in read(homes).problems[0]
    file.unlink()
    file.symlink_to(homes / "mcp.json")
    assert "it cannot be read" in read(homes).problems[0]


def test_the_examples_of_the_documents_are_read_as_they_stand(homes: Path) -> None:
    blocks = re.findall(r"(?s)```json\n(.*?)```", (ROOT / "docs" / "mcp.md").read_text())
    (homes / "mcp.json").write_text(blocks[0])
    (homes / ".dronefleet" / "mcp.json").write_text(blocks[1])

    found = read_configs(homes, homes / ".dronefleet", {"GITHUB_TOKEN": "secret"})

    assert found.problems == ()
    assert [each.name for each in found.servers] == ["github", "notes", "schema"]
