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
from drone.prompting import PromptParts, PromptSources, Skill, Templates, read_sources
from drone.prompting.files import MAX_CHARACTERS
from shared.work_order import OrderProvider
from tests.support import wait_until
from tests.support.toolboxes import called, toolbox, workspace

NOW = datetime(2026, 11, 21, 23, 59, tzinfo=UTC)


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


def test_a_huge_file_is_cut_not_read_whole_and_both_the_model_and_people_are_told(home: Path) -> None:
    with (home / "MEMORY.md").open("wb") as file:
        file.write(b"x" * 200_000)
        file.truncate(5_000_000_000)

    parts = read_sources(PromptSources(home), {"AGENTS.md": b"x" * 200_000})

    assert parts.memory[0] == "x" * MAX_CHARACTERS + "\n[MEMORY.md continues; the rest is not shown]"
    assert parts.instructions == "x" * MAX_CHARACTERS + "\n[AGENTS.md continues; the rest is not shown]"
    assert [problem.partition(" is ")[0] for problem in parts.problems] == ["the drone's prompt/MEMORY.md", "AGENTS.md"]


def test_the_projects_instructions_may_have_every_encoding_and_what_is_no_text_is_left_out_and_reported() -> None:
    text = "я" * (MAX_CHARACTERS - 1)
    for content in (text.encode(), text.encode("utf-16"), text.encode("utf-8-sig")):
        assert read_sources(PromptSources(), {"AGENTS.md": content}) == PromptParts(instructions=text)
    for content, words in ((b"caf\xe9", "is not UTF-8: byte 3"), (b"a\0b", "contains NUL")):
        parts = read_sources(PromptSources(), {"AGENTS.md": content})
        assert (parts.instructions, len(parts.problems)) == ("", 1)
        assert parts.problems[0].startswith("AGENTS.md is not ")
        assert words in parts.problems[0]
    assert read_sources(PromptSources(), {"AGENTS.md": b"\n", "AGENT.md": b"x"}) == PromptParts(instructions="x")


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
    names = ("SYSTEM.md", "SOUL.md", "APPEND.md", "MEMORY.md")
    for name in (*names, "USER.md"):
        (home / name).write_bytes(f"\ufeff\n the drone's {name}\r\n\n".encode())
    (project / "USER.md").write_text("Ada is a spy.")
    (project / "templates").mkdir()
    (project / "templates" / "rules.jinja").write_text("No rules.")
    for sources in (PromptSources(), PromptSources(home / "no", project / "nor"), PromptSources(None, project)):
        assert read_sources(sources) == PromptParts(), "a project says nothing of the person and brings no templates"
    for name in names:
        (project / name).write_text(f"the project's {name}")

    parts = read_sources(PromptSources(home, project), {"AGENTS.md": b" Use tabs.\n"})
    assert parts.problems == []
    assert (parts.system, parts.soul) == ("the project's SYSTEM.md", "the project's SOUL.md")
    assert parts.appended == ("the project's APPEND.md", "the drone's APPEND.md")
    assert parts.memory == ("the project's MEMORY.md", "the drone's MEMORY.md")
    assert (parts.user, parts.instructions) == ("the drone's USER.md", "Use tabs.")
    for content, words in ((b"caf\xe9", "is not UTF-8: byte 3"), (b"a\0b", "contains NUL")):
        (home / "SYSTEM.md").write_bytes(content)
        parts = read_sources(PromptSources(home))
        assert (parts.system, parts.soul) == ("", "the drone's SOUL.md")
        assert parts.problems[0].startswith("the drone's prompt/SYSTEM.md")
        assert words in parts.problems[0]


def test_a_disk_that_does_not_answer_costs_its_seconds_and_no_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr("drone.prompting.sources.read_templates", lambda _: answered.wait(60))

    parts = read_sources(PromptSources(home), {"AGENTS.md": b"Use tabs."}, seconds=0.1)
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


def test_an_owners_template_that_cannot_be_used_is_reported_once_and_ours_is_used(home: Path) -> None:
    files: list[tuple[str, str | bytes, str]] = [
        *(("identity.jinja", template, words) for template, words in BROKEN.items()),
        ("rules.jinja", b"caf\xe9", "is not UTF-8"),
        ("rules.jinja", b"x" * (MAX_CHARACTERS + 1), "longer than 40,000 characters"),
        ("ruels.jinja", b"Be kind.", "is not a known template"),
    ]
    for name, content, words in files:
        parts = with_template(home, name, content)
        (home / "templates" / name).unlink()
        assert [system_prompt(ORDER, parts), system_prompt(ORDER, parts)] == [system_prompt(ORDER)] * 2
        assert (len(parts.problems), words in parts.problems[0]) == (1, True)

    problems: list[str] = []
    loops = "{% for i in range(99999) %}" * 3 + "{% endfor %}" * 3
    text = Templates({"channel.jinja": loops}, problems, seconds=0.2).render("channel.jinja", channel="a terminal")
    assert "a terminal" in text
    assert problems == ["The template channel.jinja took longer than 0.2 s; the default is used."]
    wait_until(lambda: "bounded" not in [thread.name for thread in threading.enumerate()])


def test_the_opening_message_can_be_the_owners_and_never_sees_the_providers_key(home: Path) -> None:
    parts = with_template(home, "user.jinja", "{{ prompt }} on {{ date }} in {{ workspace }}{{ order }}")
    provider = OrderProvider(name="p", model="m", api_key="k3y")

    text = user_prompt(ORDER.model_copy(update={"provider": provider}), Path("/w"), NOW, parts)

    assert "'order' is undefined" in parts.problems[0]
    assert "k3y" not in text
    parts = with_template(home, "user.jinja", "{{ prompt }} on {{ date }} in {{ workspace }}")
    assert user_prompt(ORDER, Path("/w"), NOW, parts) == "Warm up. on 2026-11-21 in /w\n"


__all__ = ["workspace"]
GOOD = "---\nname: {}\ndescription: Does {} well.\n---\n# How\n\nCarefully.\n"


def skill_file(folder: Path, name: str, text: str | bytes | None = None) -> Path:
    file = folder / "skills" / name / "SKILL.md"
    file.parent.mkdir(parents=True)
    content = GOOD.format(name, name) if text is None else text
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def test_skills_of_project_and_drone_are_listed_by_name_with_the_path_to_read(tmp_path: Path, workspace: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    skill_file(project, "release")
    skill_file(project, "audit", "---\r\nname: audit\r\ndescription: >\r\n  Does audit\r\n  well.\r\n---\r\n")
    (home / "skills").mkdir(parents=True)
    linked = skill_file(tmp_path / "elsewhere", "mend")
    (home / "skills" / "mend").symlink_to(linked.parent)
    parts = read_sources(PromptSources(home, project))
    location = str(linked)
    assert parts.skills == (
        Skill("audit", "Does audit well.", ".dronefleet/skills/audit/SKILL.md"),
        Skill("mend", "Does mend well.", location),
        Skill("release", "Does release well.", ".dronefleet/skills/release/SKILL.md"),
    )
    assert parts.problems == []
    assert "Carefully." in called(toolbox(workspace, readable=parts.readable), "file_read", path=location).output

    # Of two with one name, the project's and the first count.
    skill_file(project, "first", GOOD.format("mend", "first"))
    skill_file(project, "second", GOOD.format("mend", "second"))
    parts = read_sources(PromptSources(home, project))
    assert [(skill.name, skill.description) for skill in parts.skills][1] == ("mend", "Does first well.")
    assert (parts.readable, len(parts.problems)) == ((), 2)


BROKEN_SKILLS: list[tuple[str | bytes, str]] = [
    ("# No front matter", "does not begin with front matter"),
    ("---\nname: mend\ndescription: never closed", "does not begin with front matter"),
    ("---\n" + "[" * 1000 + "\n---\n", "is not valid YAML"),
    ("---\n!!python/object/apply:os.system [true]\n---\n", "is not valid YAML"),
    ("---\nname: 2026-99-99\n---\n", "is not valid YAML"),
    ("---\n---\n", "has no fields"),
    ("---\ndescription: Mends.\n---\n", "`name` must be"),
    (f"---\nname: {'x' * 65}\ndescription: Mends.\n---\n", "`name` must be"),
    ("---\nname: 7\ndescription: Mends.\n---\n", "`name` must be"),
    (f"---\nname: mend\ndescription: {'x' * 1025}\n---\n", "`description` must be"),
    (b"---\nname: mend\ndescription: caf\xe9\n---\n", "is not UTF-8"),
]


def test_a_broken_skill_is_reported_and_the_others_are_listed(tmp_path: Path) -> None:
    # Only its front matter is read.
    skill_file(tmp_path, "whole", GOOD.format("whole", "whole") + "x" * 1_000_000)
    file = skill_file(tmp_path, "broken")
    # Aliases that multiply cost neither time nor memory.
    levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    bomb = f"---\na0: &a0 [x]\n{levels}description: *a29\nname: bomb\n---\n"
    for text, words in [*BROKEN_SKILLS, (bomb, "`description` must be")]:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

        parts = read_sources(PromptSources(None, tmp_path))

        assert [skill.name for skill in parts.skills] == ["whole"]
        assert len(parts.problems) == 1
        assert parts.problems[0].startswith(".dronefleet/skills/broken/SKILL.md ")
        assert words in parts.problems[0]


def test_what_is_no_file_or_leads_out_of_a_project_is_reported_or_passed_over_and_never_opened(
    home: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "SYSTEM.md").mkdir()
    (home / "SOUL.md").symlink_to("SOUL.md")
    (home / "secret").write_text("private")
    (home / "USER.md").symlink_to(home / "secret")
    (project / "MEMORY.md").symlink_to(home / "secret")
    os.mkfifo(home / "MEMORY.md")
    skills = project / "skills"
    (skills / "waits").mkdir(parents=True)
    os.mkfifo(skills / "waits" / "SKILL.md")
    (skills / "folder" / "SKILL.md").mkdir(parents=True)
    (skills / "linked").symlink_to(skill_file(tmp_path / "outside", "mend").parent)
    (skills / "README.md").write_text("Here be skills.")
    monkeypatch.chdir(home)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("APPEND.md")
        parts = read_sources(PromptSources(home, project))

    # The owner may link to files elsewhere.
    assert (parts.memory, parts.user, parts.skills) == ((), "private", ())
    assert sorted(problem.partition(" is ")[0].partition(" cannot")[0] for problem in parts.problems) == [
        *(f".dronefleet/{name}" for name in ("MEMORY.md", "skills/folder/SKILL.md", "skills/waits/SKILL.md")),
        *(f"the drone's prompt/{name}" for name in ("APPEND.md", "MEMORY.md", "SOUL.md", "SYSTEM.md")),
    ]
