"""Makes rows of a batch from the rows of a file: columns, defaults, templates; and names every bad row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from control_plane.cli.batch_files.choosing import Choice
from control_plane.cli.batch_files.records import Record
from control_plane.cli.batch_files.templates import PromptTemplate, UnfilledPrompt
from control_plane.contract.declarations.batches import MOST_ROWS, BatchRowRequest
from control_plane.contract.validation.invalid_requests import InvalidRequest, checked
from shared.errors import FleetError, Invalid, TooLarge
from shared.terminal.command_line import parse_labels

ALIASES: Mapping[str, str] = {
    "instance_id": "id",
    "model": "provider",
    "base_commit": "base",
    "problem_statement": "prompt",
}
"""Other names of columns: those of SWE-bench, and `model`."""
COLUMNS = frozenset(BatchRowRequest.model_fields) - {"session", "after"}
SWEBENCH = frozenset({"instance_id", "repo", "base_commit", "problem_statement"})
_SHOWN = 10


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be submitted."""

    line: int
    what: str


@dataclass
class RowReader:
    """Makes rows of records. `defaults`: fields of the rows that do not have them."""

    defaults: Mapping[str, Any] = field(default_factory=dict)
    template: PromptTemplate | None = None
    swebench: bool = False
    """Whether each row must have the columns of SWE-bench."""
    renders: bool = False
    """Whether each row's own prompt is a template."""
    projects: Mapping[str, str] | None = None
    """For rows of SWE-bench: the project of each repository."""
    bad: list[BadRow] = field(default_factory=list)
    unused: set[str] = field(default_factory=set)
    """Columns that no template uses."""

    def rows(self, records: Iterable[Record], choice: Choice) -> list[BatchRowRequest]:
        """The chosen rows; `bad` gets those that cannot be submitted. Raises TooLarge, Invalid for a wrong choice."""
        return [row for id, record in choice.chosen(self._named(records)) if (row := self._row(id, record)) is not None]

    def _named(self, records: Iterable[Record]) -> list[tuple[str, Record]]:
        """The readable records by their ids, each of which is there once."""
        lines: dict[str, int] = {}
        found = []
        for number, record in enumerate(records, 1):
            if number > MOST_ROWS:
                raise TooLarge(
                    f"the file has more than {MOST_ROWS:,} rows",
                    code="E-BATCH-SIZE",
                    why="a batch has at most that many",
                    next="split -l 10000 FILE    divides it",
                )
            named = (record.fields.get("id"), record.fields.get("instance_id"), number)
            id = str(next(each for each in named if each is not None))
            if record.problem:
                self.bad.append(BadRow(record.line, record.problem))
            elif id in lines:
                self.bad.append(BadRow(record.line, f"has the id {id[:80]!r} of the row on line {lines[id]}"))
            else:
                lines[id] = record.line
                found.append((id, record))
        return found

    def _row(self, id: str, record: Record) -> BatchRowRequest | None:
        try:
            return checked(BatchRowRequest, {**self._fields(record.fields), "id": id}, form="see docs/batches.md")
        except (UnfilledPrompt, InvalidRequest, Invalid) as error:
            self.bad.append(BadRow(record.line, _words(error)))
            return None

    def _fields(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the order. Raises UnfilledPrompt, and Invalid for an unknown column."""
        is_swebench = given.keys() >= SWEBENCH
        if self.swebench and not is_swebench:
            raise Invalid(f"has no {min(SWEBENCH - given.keys())}, which SWE-bench has", code="E-BATCH-ROW")
        fields = {ALIASES.get(name, name): value for name, value in given.items() if value is not None}
        self._check_columns(set(fields), is_swebench=is_swebench)
        own = {name: _value(name, value) for name, value in fields.items() if name in COLUMNS}
        if is_swebench and self.projects is not None:
            own["project"] = self._project(str(given["repo"]))
        own = {**self.defaults, **own}
        if "project" not in own:
            way = "--repos MAP.json" if is_swebench else "a column project"
            raise Invalid(f"has no project: give {way}, or --project SLUG", code="E-BATCH-ROW")
        return {**own, "prompt": self._prompt({**fields, **given}, own)}

    def _check_columns(self, names: set[str], *, is_swebench: bool) -> None:
        used = self.template.fields if self.template is not None else set()
        others = names - COLUMNS - used
        if self.template is not None or is_swebench or self.renders:
            self.unused |= set() if is_swebench else others
            return
        if others:
            name = min(others)
            close = get_close_matches(name, [*COLUMNS, *ALIASES], n=1)
            hint = f"did you mean {close[0]}?" if close else "a template can use it: --template FILE"
            raise Invalid(f"has an unknown column {name[:80]!r}; {hint}", code="E-BATCH-ROW")

    def _project(self, repository: str) -> str:
        assert self.projects is not None
        if repository not in self.projects:
            raise Invalid(f"the map of repositories has no {repository[:80]!r}", code="E-BATCH-ROW")
        return self.projects[repository]

    def _prompt(self, fields: Mapping[str, Any], own: Mapping[str, Any]) -> str:
        prompt = own.get("prompt")
        if self.template is None and prompt is None:
            raise Invalid("has no prompt: add a column prompt, or --template FILE", code="E-BATCH-ROW")
        if self.template is None and not self.renders:
            return str(prompt)
        # `task` is what mini-swe-agent's templates call the problem.
        known = {**fields, "project": own["project"], "task": fields.get("task", prompt if prompt is not None else "")}
        if self.renders and prompt is not None:
            known["prompt"] = PromptTemplate(str(prompt), "its prompt").filled(known)
        return self.template.filled(known) if self.template is not None else str(known["prompt"])


def refuse_bad(bad: Sequence[BadRow], total: int) -> None:
    """Raise Invalid if there is a bad row: nothing was started."""
    if bad:
        named = "; ".join(f"line {each.line} {each.what}" for each in bad[:_SHOWN])
        more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        raise Invalid(
            f"{len(bad)} of {total} rows cannot be submitted, so nothing was started",
            code="E-BATCH-FILE",
            why=f"{named}{more}"[:4000],
            next="correct them, or leave them out with --skip-bad",
        )


def _value(name: str, value: Any) -> Any:
    """The value of a column; in CSV, labels are `k=v`, and patterns and commands are lines."""
    if name == "labels" and isinstance(value, str):
        return parse_labels(value.replace(",", " ").split())
    if name in {"allow", "verify"} and isinstance(value, str):
        return value.splitlines()
    return value


def _words(error: Exception) -> str:
    what = error.what if isinstance(error, FleetError) else str(error)
    return what.removeprefix("invalid request: ")
