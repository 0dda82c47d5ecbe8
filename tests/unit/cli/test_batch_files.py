"""Files of rows as `fleet batch run` reads them: every format, and everything that can be wrong with a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane.cli.batch_files import records
from control_plane.cli.batch_files.choosing import Choice
from control_plane.cli.batch_files.mini_config import read_config
from control_plane.cli.batch_files.records import Record, read_records
from control_plane.cli.batch_files.results import write_results
from control_plane.cli.batch_files.rows import BadRow, RowReader, refuse_bad
from control_plane.cli.batch_files.swebench import predictions, read_repositories, slugs_of
from control_plane.cli.batch_files.templates import PromptTemplate
from control_plane.contract.declarations.batches import BatchRowRequest
from shared.errors import Conflict, Invalid, NotFound, TooLarge

Doc = dict[str, Any]
INSTANCE = {
    "instance_id": "django__django-1",
    "repo": "django/django",
    "base_commit": "a" * 40,
    "problem_statement": "It fails.",
    "test_patch": "diff",
    "version": "3.0",
}


def written(tmp_path: Path, name: str, content: str | bytes) -> str:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def fields_of(file: str) -> list[Doc]:
    return [record.fields for record in read_records(file)]


def read(file: str, **settings: Any) -> tuple[list[BatchRowRequest], list[BadRow]]:
    reader = RowReader(**{"defaults": {"project": "app"}, **settings})
    return reader.rows(read_records(file), Choice()), reader.bad


def test_rows_are_read_from_json_lines_json_and_csv(tmp_path: Path) -> None:
    wanted = [{"id": "a", "prompt": "x, y"}, {"id": "b", "prompt": "two\nlines"}]
    lines = "\n".join(json.dumps(each) for each in wanted)
    files = {
        "rows.jsonl": lines + "\n\n",
        "rows.json": json.dumps(wanted, indent=2),
        "lines.json": lines,
        "rows": lines,
        "list": json.dumps(wanted),
        "rows.csv": 'id,prompt\na,"x, y"\nb,"two\nlines"\n',
        "rows.tsv": 'id\tprompt\na\tx, y\nb\t"two\nlines"\n',
        "semicolons.csv": '\ufeffid;prompt\r\na;x, y\r\nb;"two\nlines"\r\n',
        "bom.jsonl": b"\xef\xbb\xbf" + lines.encode(),
    }
    for name, content in files.items():
        assert fields_of(written(tmp_path, name, content)) == wanted, name


def test_every_bad_row_is_named_with_its_line_and_the_good_ones_are_still_there(tmp_path: Path) -> None:
    good = json.dumps({"id": "a", "prompt": "x"})
    lines = [
        good,
        "{nonsense",
        json.dumps(["a"]),
        json.dumps({"id": "b", "prompt": "x", "max_iteration": 3}),
        json.dumps({"id": "a", "prompt": "y"}),
        json.dumps({"id": "c", "prompt": "x", "priority": 1000}),
        json.dumps({"id": "d"}),
    ]
    content = "\n".join(lines).encode() + b'\n{"id": "e", "prompt": "gr\xfc\xdfe"}\n'
    rows, bad = read(written(tmp_path, "rows.jsonl", content))
    assert [row.id for row in rows] == ["a"]
    words = {
        **{2: "is not JSON", 3: "is not a JSON object", 4: "did you mean max_iterations?", 5: "the row on line 1"},
        **{6: "priority: must be at most 100", 7: "has no prompt", 8: "is not UTF-8 text"},
    }
    assert {each.line: words[each.line] in each.what for each in bad} == dict.fromkeys(words, True)
    with pytest.raises(Invalid, match="7 of 8 rows cannot be submitted, so nothing was started") as refusal:
        refuse_bad(bad, 8)
    assert "line 4 has an unknown column 'max_iteration'" in refusal.value.why


def test_files_that_are_no_files_of_rows_are_refused_with_what_they_are(tmp_path: Path) -> None:
    cases: list[tuple[str, str | bytes, str]] = [
        ("open.csv", 'id,prompt\na,"x\nb,y\n', "is not CSV: line"),
        ("twice.csv", "id,id\na,b\n", "names column 'id' twice"),
        ("nameless.csv", "id,\na,b\n", "a column of"),
        ("object.json", '{\n"a": 1}', "is no list of rows"),
        ("broken.json", '[{"id": ', "is not JSON"),
        ("utf16.csv", "id,prompt\na,x\n".encode("utf-16"), "is UTF-16, not UTF-8"),
    ]
    for name, content, text in cases:
        with pytest.raises(Invalid, match=text):
            fields_of(written(tmp_path, name, content))
    with pytest.raises(NotFound):
        fields_of(str(tmp_path / "nothing.csv"))
    assert [fields_of(written(tmp_path, f"empty.{each}", "")) for each in ("jsonl", "csv")] == [[], []]


def test_a_value_of_a_row_counts_before_the_default_an_empty_one_is_absent_and_too_many_are_bad(tmp_path: Path) -> None:
    head = "id,prompt,project,model,labels,cost_limit,verify\n"
    lines = 'a,x,other,gpt,gpu=yes zone=eu,,"make a\nmake b"\nb,x {{ id }},,,,0.5,\nc,x,,,,2,3,4\n'
    file = written(tmp_path, "rows.csv", head + lines)
    rows, bad = read(file, defaults={"project": "app", "provider": "local", "max_iterations": 9, "verify": ["all"]})
    assert [(row.project, row.provider, row.labels, row.cost_limit, row.verify) for row in rows] == [
        ("other", "gpt", {"gpu": "yes", "zone": "eu"}, None, ["make a", "make b"]),
        ("app", "local", {}, 0.5, ["all"]),
    ]
    assert bad == [BadRow(5, "has 8 values for 7 columns")]
    # A row's own prompt is a template only if that is asked for.
    assert (rows[1].prompt, read(file, renders=True)[0][1].prompt) == ("x {{ id }}", "x b")


def test_a_row_without_a_prompt_is_bad_also_if_prompts_are_templates(tmp_path: Path) -> None:
    file = written(tmp_path, "rows.jsonl", '{"id": "a"}\n{"id": "b", "prompt": null}\n{"id": "c", "prompt": "x"}\n')
    for renders in (False, True):
        rows, bad = read(file, renders=renders)
        assert ([row.id for row in rows], [each.line for each in bad]) == (["c"], [1, 2]), renders


def test_a_row_without_an_id_has_its_number(tmp_path: Path) -> None:
    rows = ('"id": null', '"title": null', '"id": null, "instance_id": "c"')
    file = written(tmp_path, "rows.jsonl", "".join(f'{{{each}, "prompt": "x"}}\n' for each in rows))
    assert [row.id for row in read(file)[0]] == ["1", "2", "c"]


def test_of_a_million_rows_only_the_first_ten_thousand_are_read() -> None:
    taken = 0

    def endless() -> Iterator[Record]:
        nonlocal taken
        while True:
            taken += 1
            yield Record(taken, {"id": str(taken), "prompt": "x"})

    with pytest.raises(TooLarge, match="more than 10,000 rows"):
        RowReader().rows(endless(), Choice())
    assert taken == 10_001


def test_neither_a_long_line_nor_a_long_document_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "MAX_LINE", 100)
    monkeypatch.setattr(records, "MAX_DOCUMENT", 150)
    with pytest.raises(TooLarge, match="line 2 of"):
        fields_of(written(tmp_path, "rows.jsonl", '{"id": "a"}\n{"id": "' + "x" * 200 + '"}\n'))
    with pytest.raises(TooLarge, match="is larger than"):
        fields_of(written(tmp_path, "rows.json", "[\n" + '{"id": "a"},\n' * 50 + "]"))


def test_a_template_is_filled_with_the_columns_and_an_unknown_field_makes_a_row_bad(tmp_path: Path) -> None:
    file = written(tmp_path, "rows.csv", "id,title,extra\na,Crash,1\nb,,2\n")
    template = PromptTemplate("Fix {{ title }} ({{ id }}) of {{ project }}.")
    reader = RowReader({"project": "app"}, template)
    rows = reader.rows(read_records(file), Choice())
    assert [row.prompt for row in rows] == ["Fix Crash (a) of app."]
    [bad] = reader.bad
    assert (bad.line, "'title' is undefined" in bad.what) == (3, True)
    assert reader.unused == {"extra"}
    with pytest.raises(Invalid) as refusal:
        PromptTemplate("{{ title")
    assert refusal.value.code == "E-BATCH-TEMPLATE"


def test_rows_are_shuffled_filtered_and_sliced_as_mini_swe_agent_does() -> None:
    known = [(f"django__{number}", Record(number, {})) for number in range(10)] + [("flask__1", Record(11, {}))]

    def chosen(**options: Any) -> list[str]:
        return [id for id, _ in Choice(**options).chosen(known)]

    assert chosen(ids="flask") == ["flask__1"]
    assert chosen(ids="_1") == []
    assert chosen(part="0:2") == ["django__0", "django__1"]
    assert chosen(ids="django", part="8:") == ["django__8", "django__9"]
    # What `random.seed(42); random.shuffle(sorted ids)` gives.
    assert chosen(shuffle=42, part=":3") == ["django__7", "django__3", "django__2"]
    for wrong in ({"ids": "("}, {"part": "3"}, {"part": "a:b"}, {"part": "1:2:3:4"}):
        with pytest.raises(Invalid):
            chosen(**wrong)


def test_rows_of_swe_bench_are_recognized_and_their_repositories_are_projects(tmp_path: Path) -> None:
    other = {**INSTANCE, "instance_id": "flask__flask-2", "repo": "pallets/flask"}
    file = written(tmp_path, "rows.jsonl", f"{json.dumps(INSTANCE)}\n{json.dumps(other)}\n")
    (row,), bad = read(file, defaults={}, projects={"django/django": "django__django"})
    named = ("django__django-1", "django__django", "a" * 40, "It fails.")
    assert (row.id, row.project, row.base, row.prompt) == named
    assert bad == [BadRow(2, "the map of repositories has no 'pallets/flask'")]
    _, bad = read(written(tmp_path, "plain.jsonl", '{"id": "a", "prompt": "x"}'), swebench=True)
    assert bad == [BadRow(1, "has no base_commit, which SWE-bench has")]

    mirror = written(tmp_path, "map.json", json.dumps({"a/b": "mirrors/b.git", "C/D": "https://git.example/c/d.git"}))
    repositories = read_repositories(mirror)
    assert repositories == {"a/b": str(tmp_path / "mirrors/b.git"), "C/D": "https://git.example/c/d.git"}
    known = [{"slug": "bee", "git_url": f"file://{tmp_path}/mirrors/b.git"}]
    assert slugs_of(known, repositories) == {"a/b": "bee", "C/D": "c__d"}
    with pytest.raises(Conflict):
        slugs_of([{"slug": "c__d", "git_url": "https://git.example/other.git"}], repositories)


def test_predictions_have_the_shape_that_the_evaluation_of_swe_bench_demands() -> None:
    row = {"id": "a", "model": "openai/x", "patch": "diff --git a/x b/x\n", "state": "succeeded"}
    found = predictions([row, {**row, "id": "b", "state": "running"}, {**row, "id": "c", "patch": None}])
    common = {"model_name_or_path": "openai/x"}
    patches = {"a": "diff --git a/x b/x\n", "c": ""}
    assert found == {id: {**common, "instance_id": id, "model_patch": patch} for id, patch in patches.items()}


def test_results_say_in_which_status_each_row_is_and_whether_it_was_verified(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    cases = {"verified": ("failed", True), "failed": ("succeeded", False), None: ("waiting", False)}
    rows = [{"state": state, "verification": found, "duration_ms": 0} for found, (state, _) in cases.items()]
    assert write_results(rows, "jsonl", str(file)) == 3
    results = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(row["status"], row["verified"]) for row in results] == list(cases.values())


def test_configurations_of_mini_swe_agent_are_merged_and_mapped_and_the_rest_is_named(tmp_path: Path) -> None:
    first = written(
        tmp_path,
        "swebench.yaml",
        "agent: {step_limit: 250, cost_limit: 3.0, system_template: Be good, instance_template: 'Solve: {{task}}'}\n"
        "environment: {timeout: 60, env: {PAGER: cat, LESS: -R}}\nmodel: {model_kwargs: {drop_params: true}}\n",
    )
    keys = ("agent.cost_limit=0", "model.model_name=gpt-5", "agent.wall_time_limit_seconds=60", "agent.mode=confirm")
    found = read_config([first, *keys], {"MSWEA_GLOBAL_COST_LIMIT": "5", "MSWEA_MODEL_NAME": "other"})
    limits = {"max_iterations": 250, "cost_limit": 0, "max_run_seconds": 60}
    assert found.defaults == {**limits, "provider": "gpt-5", "approve": "all"}
    assert found.template == "Solve: {{task}}"
    assert [warning.split(" has no effect: ")[0] for warning in found.warnings] == [
        *("agent.system_template", "environment.timeout", "environment.env", "model.model_kwargs"),
        "MSWEA_GLOBAL_COST_LIMIT",
    ]
    assert read_config(["agent.nonsense=1", "more.x=2"], {"MSWEA_MODEL_NAME": "m"}).warnings == [
        "agent.nonsense has no effect: the drone's agent has no such setting",
        "more.x has no effect: mini-swe-agent has no such key either",
    ]
    wrong = (".a=1", "agent..x=1", "agent.mode=human", written(tmp_path, "list.yaml", "- 1\n"))
    for spec in wrong:
        with pytest.raises(Invalid) as refusal:
            read_config([spec], {})
        assert refusal.value.code == "E-BATCH-CONFIG", spec


def test_the_task_of_a_configuration_is_the_prompt_of_rows_without_one(tmp_path: Path) -> None:
    config = read_config(["run.task=Fix all warnings", "run.env_startup_command=make"], {})
    assert [warning.split(" has")[0] for warning in config.warnings] == ["run.env_startup_command"]
    file = written(tmp_path, "rows.jsonl", '{"id": "a"}\n{"id": "b", "prompt": "Fix one"}\n')
    rows, _ = read(file, defaults={"project": "app", **config.defaults})
    assert [row.prompt for row in rows] == ["Fix all warnings", "Fix one"]
    defaults = {"project": "app", **config.defaults}
    templated, _ = read(file, defaults=defaults, template=PromptTemplate("Now: {{ task }}"))
    assert [row.prompt for row in templated] == ["Now: Fix all warnings", "Now: Fix one"]
