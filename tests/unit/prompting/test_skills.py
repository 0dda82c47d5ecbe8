"""Skills: listed by name with their place; a broken one is reported and left out."""

from __future__ import annotations

import os
from pathlib import Path

from drone.prompting import PromptSources, Skill, read_sources
from tests.support.toolboxes import called, toolbox, workspace

__all__ = ["workspace"]
GOOD = "---\nname: {}\ndescription: Does {} well.\n---\n# How\n\nCarefully.\n"


def write(folder: Path, name: str, text: str | bytes | None = None) -> Path:
    file = folder / "skills" / name / "SKILL.md"
    file.parent.mkdir(parents=True)
    content = GOOD.format(name, name) if text is None else text
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def test_skills_of_project_and_drone_are_listed_by_name_with_the_path_to_read(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    write(project, "release")
    own = write(home, "mend")
    write(project, "audit")

    parts = read_sources(PromptSources(home, project))

    assert parts.skills == (
        Skill("audit", "Does audit well.", ".dronefleet/skills/audit/SKILL.md"),
        Skill("mend", "Does mend well.", str(own)),
        Skill("release", "Does release well.", ".dronefleet/skills/release/SKILL.md"),
    )
    assert parts.readable == (own.parent,)
    assert parts.problems == []


def test_a_skill_of_the_drone_can_be_read_through_the_toolbox_though_it_is_linked(
    tmp_path: Path, workspace: Path
) -> None:
    file = write(tmp_path / "elsewhere", "mend")
    (tmp_path / "home" / "skills").mkdir(parents=True)
    (tmp_path / "home" / "skills" / "mend").symlink_to(file.parent)
    parts = read_sources(PromptSources(tmp_path / "home"))

    read = called(toolbox(workspace, readable=parts.readable), "file_read", path=parts.skills[0].location)

    assert "Carefully." in read.output


BROKEN: list[tuple[str | bytes, str]] = [
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


def test_of_two_with_one_name_the_projects_and_the_first_count(tmp_path: Path) -> None:
    write(tmp_path / "home", "mend")
    write(tmp_path / "project", "a", "---\r\nname: mend\r\ndescription: >\r\n  Mends\r\n  things.\r\n---\r\n")
    write(tmp_path / "project", "b", GOOD.format("mend", "b"))

    parts = read_sources(PromptSources(tmp_path / "home", tmp_path / "project"))

    assert [(skill.location, skill.description) for skill in parts.skills] == [
        (".dronefleet/skills/a/SKILL.md", "Mends things.")
    ]
    assert parts.readable == ()
    assert len(parts.problems) == 2


def test_a_broken_skill_is_reported_and_the_others_are_listed(tmp_path: Path) -> None:
    # Only its front matter is read.
    write(tmp_path, "whole", GOOD.format("whole", "whole") + "x" * 10_000_000)
    file = write(tmp_path, "broken")
    # Aliases that multiply cost neither time nor memory.
    levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    bomb = f"---\na0: &a0 [x]\n{levels}description: *a29\nname: bomb\n---\n"
    for text, words in [*BROKEN, (bomb, "`description` must be")]:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

        parts = read_sources(PromptSources(None, tmp_path))

        assert [skill.name for skill in parts.skills] == ["whole"]
        assert len(parts.problems) == 1
        assert parts.problems[0].startswith(".dronefleet/skills/broken/SKILL.md ")
        assert words in parts.problems[0]


def test_what_is_no_file_or_leads_out_of_the_project_is_never_opened(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", "mend")
    project = tmp_path / "project"
    (project / "skills" / "waits").mkdir(parents=True)
    os.mkfifo(project / "skills" / "waits" / "SKILL.md")
    (project / "skills" / "folder" / "SKILL.md").mkdir(parents=True)
    (project / "skills" / "linked").symlink_to(outside.parent)
    (project / "skills" / "README.md").write_text("Here be skills.")
    (project / "skills" / "empty").mkdir()

    parts = read_sources(PromptSources(None, project))

    assert parts.skills == ()
    assert parts.problems == [
        ".dronefleet/skills/folder/SKILL.md is a directory, not a file.",
        ".dronefleet/skills/waits/SKILL.md is a FIFO, a device or a socket, not a file.",
    ]
