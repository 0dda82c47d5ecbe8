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


def test_nothing_is_fine_and_a_project_says_nothing_of_the_person_and_brings_no_templates(
    tmp_path: Path, project: Path
) -> None:
    (project / "USER.md").write_text("Ada is a spy.")
    (project / "templates").mkdir()
    (project / "templates" / "rules.jinja").write_text("No rules.")
    for sources in (PromptSources(), PromptSources(tmp_path / "no", tmp_path / "nor"), PromptSources(None, project)):
        assert read_sources(sources) == PromptParts()


def test_a_huge_file_is_cut_not_read_whole_and_both_the_model_and_people_are_told(home: Path) -> None:
    with (home / "MEMORY.md").open("wb") as file:
        file.write(b"x" * 200_000)
        file.truncate(5_000_000_000)

    parts = read_sources(PromptSources(home), "x" * (MAX_CHARACTERS + 1))

    assert parts.memory[0] == "x" * MAX_CHARACTERS + "\n[MEMORY.md continues; the rest is not shown]"
    assert len(parts.problems) == 2
    assert "prompt/MEMORY.md" in "".join(parts.problems)


def test_what_is_no_file_or_leads_out_of_a_project_is_reported_and_never_opened(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "SYSTEM.md").mkdir()
    (home / "SOUL.md").symlink_to("SOUL.md")
    (home / "secret").write_text("private")
    (home / "USER.md").symlink_to(home / "secret")
    (project / "MEMORY.md").symlink_to(home / "secret")
    os.mkfifo(home / "MEMORY.md")
    monkeypatch.chdir(home)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("APPEND.md")
        parts = read_sources(PromptSources(home, project))

    # The owner may link to files elsewhere.
    assert (parts.memory, parts.user) == ((), "private")
    assert sorted(problem.partition(" is ")[0].partition(" cannot")[0] for problem in parts.problems) == [
        ".dronefleet/MEMORY.md",
        *(f"the drone's prompt/{name}" for name in ("APPEND.md", "MEMORY.md", "SOUL.md", "SYSTEM.md")),
    ]


BROKEN = {
    "{% if %}": "TemplateSyntaxError, line 1",
    "{{ nothing }}": "UndefinedError: 'nothing' is undefined",
    "{{ 1 / 0 }}": "ZeroDivisionError",
    '{% include "gone.jinja" %}': "gone.jinja not found",
    '{% include "identity.jinja" %}': "RecursionError",
    "{{ ''.__class__.__mro__ }}": "SecurityError",
    "{{ mode.upper.__globals__ }}": "identity.jinja failed",
    "{% for i in range(90000) %}xxxxx{% endfor %}": "(maximum 400,000)",
    "{% for i in range(10 ** 9) %}{% endfor %}": "OverflowError",
}


def test_each_file_has_its_place(home: Path, project: Path) -> None:
    [(home / name).write_text(f"\n the drone's {name}\n\n") for name in (*NAMES, "USER.md")]
    [(project / name).write_text(f"the project's {name}") for name in NAMES]

    parts = read_sources(PromptSources(home, project), " Use tabs.\n")

    assert parts.problems == []
    assert (parts.system, parts.soul) == ("the project's SYSTEM.md", "the project's SOUL.md")
    assert parts.appended == ("the project's APPEND.md", "the drone's APPEND.md")
    assert parts.memory == ("the project's MEMORY.md", "the drone's MEMORY.md")
    assert (parts.user, parts.instructions) == ("the drone's USER.md", "Use tabs.")


def test_a_file_that_is_no_text_is_reported_and_left_out(home: Path) -> None:
    (home / "SOUL.md").write_bytes(b"\xef\xbb\xbfYou are Gr\xc3\xa4ce.\r\n")
    for content, words in ((b"caf\xe9", "is not UTF-8: byte 3"), (b"a\0b", "contains NUL")):
        (home / "SYSTEM.md").write_bytes(content)

        parts = read_sources(PromptSources(home))

        assert (parts.system, parts.soul) == ("", "You are Gräce.")
        assert parts.problems[0].startswith("the drone's prompt/SYSTEM.md")
        assert words in parts.problems[0]


def test_a_disk_that_does_not_answer_costs_its_seconds_and_no_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr("drone.prompting.sources.read_templates", lambda _: answered.wait(60))

    parts = read_sources(PromptSources(home), "Use tabs.", seconds=0.1)
    answered.set()

    assert parts.instructions == "Use tabs."
    assert parts.problems == ["The files for the prompt could not be read within 0.1 s and were left out."]


def with_template(home: Path, name: str, text: str | bytes) -> PromptParts:
    (home / "templates").mkdir(exist_ok=True)
    (home / "templates" / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_sources(PromptSources(home))


def test_an_owners_template_takes_the_place_of_ours_and_may_use_them(home: Path) -> None:
    with_template(home, "identity.jinja", "# You\n\nYou work in mode {{ mode }}.")
    parts = with_template(home, "rules.jinja", '{% include "ours/rules.jinja" %}\n\n- Whisper.')

    text = system_prompt(ORDER, parts)

    assert text.startswith("# Rules\n")
    assert "\n- Whisper.\n\n# You\n\nYou work in mode build.\n\n# Mode: build" in text
    assert parts.problems == []


def test_an_owners_template_that_is_broken_is_reported_once_and_ours_is_used(home: Path) -> None:
    for template, words in BROKEN.items():
        parts = with_template(home, "identity.jinja", template)

        texts = [system_prompt(ORDER, parts), system_prompt(ORDER, parts)]

        assert texts == [system_prompt(ORDER)] * 2
        assert (len(parts.problems), words in parts.problems[0]) == (1, True)


def test_a_slow_template_is_broken_off_and_ours_is_used() -> None:
    problems: list[str] = []
    loops = "{% for i in range(99999) %}" * 3 + "{% endfor %}" * 3

    text = Templates({"channel.jinja": loops}, problems, seconds=0.2).render("channel.jinja", channel="a terminal")

    assert "a terminal" in text
    assert problems == ["The template channel.jinja took longer than 0.2 s; the default is used."]
    wait_until(lambda: "bounded" not in [thread.name for thread in threading.enumerate()])


def test_a_template_file_that_cannot_be_used_is_reported(home: Path) -> None:
    files = [
        ("rules.jinja", b"caf\xe9", "is not UTF-8"),
        ("rules.jinja", b"x" * (MAX_CHARACTERS + 1), "longer than 40,000 characters"),
        ("ruels.jinja", b"Be kind.", "is not a known template"),
    ]
    for name, content, words in files:
        parts = with_template(home, name, content)
        (home / "templates" / name).unlink()

        assert (parts.templates, words in parts.problems[0]) == ({}, True)
        assert system_prompt(ORDER, parts) == system_prompt(ORDER)


def test_the_opening_message_can_be_the_owners_and_never_sees_the_providers_key(home: Path) -> None:
    parts = with_template(home, "user.jinja", "{{ prompt }} on {{ date }} in {{ workspace }}{{ order }}")
    provider = OrderProvider(name="p", model="m", api_key="k3y")

    text = user_prompt(ORDER.model_copy(update={"provider": provider}), Path("/w"), NOW, parts)

    assert "'order' is undefined" in parts.problems[0]
    assert "k3y" not in text
    parts = with_template(home, "user.jinja", "{{ prompt }} on {{ date }} in {{ workspace }}")
    assert user_prompt(ORDER, Path("/w"), NOW, parts) == "Warm up. on 2026-11-21 in /w\n"
