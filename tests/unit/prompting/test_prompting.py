"""Files that people write for the prompt: each is used, or reported and harmless."""

from __future__ import annotations

import os
import socket
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from drone.agent.prompts import system_prompt, user_prompt
from drone.model.warm_order import ORDER
from drone.prompting import PromptParts, PromptSources, Templates, read_sources
from drone.prompting.files import MAX_CHARACTERS
from drone.prompting.time_limit import within
from shared.work_order import OrderProvider
from tests.support import wait_until

NOW = datetime(2026, 11, 21, 23, 59, tzinfo=UTC)
NAMES = ["SYSTEM.md", "SOUL.md", "APPEND.md", "MEMORY.md"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "prompt"
    path.mkdir()
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "settings"
    path.mkdir()
    return path


def test_nothing_at_all_is_fine(tmp_path: Path) -> None:
    parts = [
        read_sources(PromptSources()),
        read_sources(PromptSources(tmp_path / "no", tmp_path / "nor")),
        read_sources(PromptSources(tmp_path, tmp_path)),
    ]

    assert parts == [PromptParts()] * 3


def test_each_file_has_its_place(home: Path, project: Path) -> None:
    [(home / name).write_text(f"\n the drone's {name}\n\n") for name in (*NAMES, "USER.md")]
    [(project / name).write_text(f"the project's {name}") for name in NAMES]

    parts = read_sources(PromptSources(home, project), " Use tabs.\n")

    assert parts.problems == []
    assert (parts.system, parts.soul) == ("the project's SYSTEM.md", "the project's SOUL.md")
    assert parts.appended == ("the project's APPEND.md", "the drone's APPEND.md")
    assert parts.memory == ("the project's MEMORY.md", "the drone's MEMORY.md")
    assert (parts.user, parts.instructions) == ("the drone's USER.md", "Use tabs.")


def test_a_project_says_nothing_of_the_person_and_brings_no_templates(project: Path) -> None:
    (project / "USER.md").write_text("Ada is a spy.")
    (project / "templates").mkdir()
    (project / "templates" / "rules.jinja").write_text("No rules.")

    assert read_sources(PromptSources(None, project)) == PromptParts()


def test_a_byte_order_mark_is_no_part_of_the_text(home: Path) -> None:
    (home / "SOUL.md").write_bytes(b"\xef\xbb\xbfYou are Gr\xc3\xa4ce.\r\n")

    assert read_sources(PromptSources(home)).soul == "You are Gräce."


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"caf\xe9", "is not UTF-8: byte 3"), (b"a\0b", "contains NUL"), (b"\xff\xfeY\0", "is not UTF-8: byte 0")],
)
def test_a_file_that_is_no_text_is_reported_and_left_out(home: Path, content: bytes, words: str) -> None:
    (home / "SYSTEM.md").write_bytes(content)
    (home / "SOUL.md").write_text("You are Grace.")

    parts = read_sources(PromptSources(home))

    assert (parts.system, parts.soul) == ("", "You are Grace.")
    assert parts.problems[0].startswith("the drone's prompt/SYSTEM.md")
    assert words in parts.problems[0]


def test_a_huge_file_is_cut_and_both_the_model_and_people_are_told(home: Path) -> None:
    (home / "MEMORY.md").write_text("é" * MAX_CHARACTERS + "no more")

    parts = read_sources(PromptSources(home))

    assert parts.memory[0] == "é" * MAX_CHARACTERS + "\n[MEMORY.md continues; the rest is not shown]"
    assert parts.problems == ["the drone's prompt/MEMORY.md is longer than 40,000 characters; the rest was left out."]


def test_a_file_of_5_gb_is_not_read_whole(home: Path) -> None:
    with (home / "MEMORY.md").open("wb") as file:
        file.write(b"x" * 200_000)
        file.truncate(5_000_000_000)

    assert len(read_sources(PromptSources(home)).memory[0]) < MAX_CHARACTERS + 100


@pytest.mark.parametrize("name", [*NAMES, "USER.md"])
def test_what_is_no_file_is_reported_and_never_opened(home: Path, name: str) -> None:
    os.mkfifo(home / name)
    waiting = threading.Thread(target=lambda: os.close(os.open(home / name, os.O_WRONLY)), daemon=True)
    waiting.start()

    parts = read_sources(PromptSources(home))

    assert parts.problems == [f"the drone's prompt/{name} is a FIFO, a device or a socket, not a file."]
    assert waiting.is_alive()
    os.close(os.open(home / name, os.O_RDONLY | os.O_NONBLOCK))


def test_directories_sockets_links_and_locked_files_are_reported(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "SYSTEM.md").mkdir()
    (home / "SOUL.md").symlink_to("SOUL.md")
    (home / "secret").write_text("private")
    (project / "MEMORY.md").symlink_to(home / "secret")
    monkeypatch.chdir(home)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("APPEND.md")
        parts = read_sources(PromptSources(home, project))

    assert parts.memory == ()
    assert sorted(parts.problems) == [
        ".dronefleet/MEMORY.md is a link, not a file.",
        "the drone's prompt/APPEND.md is a FIFO, a device or a socket, not a file.",
        "the drone's prompt/SOUL.md cannot be read: Too many levels of symbolic links.",
        "the drone's prompt/SYSTEM.md is a directory, not a file.",
    ]


def test_the_owner_may_link_to_files_elsewhere(home: Path, tmp_path: Path) -> None:
    (tmp_path / "soul").write_text("You are Grace.")
    (home / "SOUL.md").symlink_to(tmp_path / "soul")

    assert read_sources(PromptSources(home)).soul == "You are Grace."


@pytest.mark.parametrize(
    ("instructions", "words"),
    [("caf\ufffd", "contain invalid UTF-8"), ("x" * (MAX_CHARACTERS + 1), "longer than 40,000")],
)
def test_instructions_that_are_not_whole_are_reported(instructions: str, words: str) -> None:
    parts = read_sources(PromptSources(), instructions)

    assert words in parts.problems[0]
    assert parts.instructions == instructions


def test_a_disk_that_does_not_answer_costs_its_seconds_and_no_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr("drone.prompting.sources.read_templates", lambda _: answered.wait(60))

    parts = read_sources(PromptSources(home), "Use tabs.", seconds=0.1)
    answered.set()

    assert parts.instructions == "Use tabs."
    assert parts.problems == ["The files for the prompt could not be read within 0.1 s and were left out."]


def test_what_runs_for_ever_is_broken_off() -> None:
    turns = []

    def for_ever() -> None:
        while True:
            turns.append(1)

    with pytest.raises(TimeoutError):
        within(0.05, for_ever)

    wait_until(lambda: "bounded" not in [thread.name for thread in threading.enumerate()])


def with_template(home: Path, name: str, text: str | bytes) -> PromptParts:
    (home / "templates").mkdir(exist_ok=True)
    (home / "templates" / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_sources(PromptSources(home))


def test_an_owners_template_takes_the_place_of_ours(home: Path) -> None:
    parts = with_template(home, "identity.jinja", "# You\n\nYou work in mode {{ mode }}.")

    text = system_prompt(ORDER, parts)

    assert "# You\n\nYou work in mode build.\n\n# Mode: build" in text
    assert parts.problems == []


def test_an_owners_template_may_use_ours(home: Path) -> None:
    parts = with_template(home, "rules.jinja", '{% include "ours/rules.jinja" %}\n\n- Whisper.')

    text = system_prompt(ORDER, parts)

    assert text.startswith("# Rules\n")
    assert text.partition("\n\n# Who you are")[0].endswith("\n- Whisper.")


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{% if %}", "TemplateSyntaxError, line 1"),
        ("{{ nothing }}", "UndefinedError: 'nothing' is undefined"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ('{% include "gone.jinja" %}', "gone.jinja not found"),
        ('{% include "identity.jinja" %}', "RecursionError"),
        ("{{ ''.__class__.__mro__ }}", "SecurityError"),
        ("{{ mode.upper.__globals__ }}", "identity.jinja failed"),
        ("{% for i in range(90000) %}xxxxx{% endfor %}", "(maximum 400,000)"),
        ("{% for i in range(10 ** 9) %}{% endfor %}", "OverflowError"),
    ],
)
def test_an_owners_template_that_is_broken_is_reported_once_and_ours_is_used(
    home: Path, template: str, words: str
) -> None:
    parts = with_template(home, "identity.jinja", template)

    texts = [system_prompt(ORDER, parts), system_prompt(ORDER, parts)]

    assert texts == [system_prompt(ORDER)] * 2
    assert len(parts.problems) == 1
    assert parts.problems[0].startswith("The template identity.jinja failed; the default is used: ")
    assert words in parts.problems[0]


def test_a_slow_template_is_broken_off_and_ours_is_used() -> None:
    problems: list[str] = []
    loops = "{% for i in range(99999) %}" * 3 + "{% endfor %}" * 3

    text = Templates({"channel.jinja": loops}, problems, seconds=0.2).render("channel.jinja", channel="a terminal")

    assert "a terminal" in text
    assert problems == ["The template channel.jinja took longer than 0.2 s; the default is used."]
    wait_until(lambda: "bounded" not in [thread.name for thread in threading.enumerate()])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("rules.jinja", b"caf\xe9", "is not UTF-8"),
        ("rules.jinja", b"x" * (MAX_CHARACTERS + 1), "longer than 40,000 characters; the default is used"),
        ("ruels.jinja", b"Be kind.", "is not a known template"),
    ],
)
def test_a_template_file_that_cannot_be_used_is_reported(home: Path, name: str, content: bytes, words: str) -> None:
    parts = with_template(home, name, content)

    assert parts.templates == {}
    assert words in parts.problems[0]
    assert system_prompt(ORDER, parts) == system_prompt(ORDER)


def test_a_template_that_is_a_directory_is_reported(home: Path) -> None:
    (home / "templates" / "rules.jinja").mkdir(parents=True)

    assert read_sources(PromptSources(home)).problems == [
        "the drone's prompt/templates/rules.jinja is a directory, not a file."
    ]


def test_the_opening_message_can_be_the_owners_and_never_sees_the_providers_key(home: Path) -> None:
    parts = with_template(home, "user.jinja", "{{ prompt }} on {{ date }} in {{ workspace }}{{ order }}")
    provider = OrderProvider(name="p", model="m", api_key="k3y")

    text = user_prompt(ORDER.model_copy(update={"provider": provider}), Path("/w"), NOW, parts)

    assert "'order' is undefined" in parts.problems[0]
    assert "k3y" not in text
    parts = with_template(home, "user.jinja", "{{ prompt }} on {{ date }} in {{ workspace }}")
    assert user_prompt(ORDER, Path("/w"), NOW, parts) == "Warm up. on 2026-11-21 in /w\n"
