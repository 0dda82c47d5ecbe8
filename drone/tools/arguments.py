"""The arguments of each tool as pydantic models, and the JSON schemas built from them for the model."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class ToolArguments(BaseModel):
    """Arguments of one call. Unknown ones are refused: a misspelled name would otherwise be silently ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class FileReadArguments(ToolArguments):
    mode: Literal["view", "lines", "search", "find"] = Field(
        "view",
        description="view: a whole file with line numbers, or a directory's entries. lines: start_line to end_line. "
        "search: lines that match search_pattern, as grep prints them. find: the files below a directory, at most 200.",
    )
    path: str = Field(".", description="Absolute, or relative to the workspace.")
    start_line: int | None = Field(None, ge=1, description="lines: the first line, counted from 1.")
    end_line: int | None = Field(None, ge=1, description="lines: the last line, which is included.")
    search_pattern: str | None = Field(
        None, description="search: an extended regular expression (grep -E). find: a name with wildcards, *.py."
    )


class GrepArguments(ToolArguments):
    pattern: str = Field(min_length=1, description="A regular expression, extended or Perl syntax.")
    path: str = Field(".", description="A file or a directory, absolute or relative to the workspace.")
    glob: str | None = Field(None, description="Only files that match: *.py in any directory, or src/**/*.{ts,tsx}.")
    ignore_case: bool = False
    context: int = Field(0, ge=0, le=20, description="Lines to show before and after each match.")
    max_results: int = Field(50, ge=1, le=1000, description="Maximum number of matching lines.")


class GlobArguments(ToolArguments):
    pattern: str = Field(
        min_length=1, description="*.py for names in any directory, src/**/*.{ts,tsx} for paths below `path`."
    )
    path: str = Field(".", description="The directory to search.")
    sort: Literal["newest", "name"] = "newest"


class FileWriteArguments(ToolArguments):
    path: str = Field(
        min_length=1, description="Absolute, or relative to the workspace. Parent directories are created."
    )
    content: str = Field(description="The whole content of the file; existing content is replaced.")


class EditorArguments(ToolArguments):
    command: Literal["str_replace", "insert", "undo_edit"] = Field(
        description="str_replace: replace old_str, which must occur exactly once, with new_str. insert: new_str "
        "becomes line insert_line. undo_edit: undo the last edit of this file."
    )
    path: str = Field(min_length=1, description="Absolute, or relative to the workspace.")
    old_str: str | None = Field(None, description="str_replace: the exact text to replace, including whitespace.")
    new_str: str | None = Field(None, description="str_replace, insert: the new text.")
    insert_line: int | None = Field(
        None, ge=1, description="insert: the line number of the first new line, counted from 1."
    )


class ShellArguments(ToolArguments):
    command: str = Field(min_length=1, description="A command line, run by bash in the workspace, without a terminal.")
    timeout: float | None = Field(None, gt=0, le=7200, description="Time limit in seconds.")


class WebFetchArguments(ToolArguments):
    url: str = Field(min_length=1, description="http:// or https://")
    offset: int = Field(0, ge=0, description="The character to read on from.")


class TodoItemArguments(ToolArguments):
    text: str = Field(min_length=1, max_length=500)
    status: Literal["pending", "in_progress", "done"] = "pending"


class TodoArguments(ToolArguments):
    items: tuple[TodoItemArguments, ...] = Field(
        max_length=100, description="The whole list, in order; it replaces the previous one."
    )


class SpawnArguments(ToolArguments):
    task: str = Field(
        min_length=1, description="All that the child needs to know: it sees nothing of this conversation."
    )
    tools: tuple[str, ...] | None = Field(None, description="Names of the tools that it may use (default: all).")


class AddCommentArguments(ToolArguments):
    message: str = Field(description="The whole comment: plain prose, ending with the tag of who is next.")


class AskArguments(ToolArguments):
    question: str = Field(description="One question, with all that the user needs to know to answer it.")
    choices: tuple[str, ...] = Field((), description="Suggested answers, at most 12; the user may give another one.")
    default: str | None = Field(None, description="The answer that counts after the deadline; one of the choices.")
    deadline: float | None = Field(None, description="Seconds to wait for the answer (default: as the order allows).")


class PlanPointArguments(ToolArguments):
    text: str = Field(description="What will be done, in one or two sentences.")
    files: tuple[str, ...] = Field((), description="The files that it concerns, as far as you know.")
    verify: str = Field("", description="How you will verify it: a command, or what to look at.")


class PresentPlanArguments(ToolArguments):
    title: str = Field(description="The plan in one line.")
    summary: str = Field("", description="What is there now, why this way, and what is uncertain.")
    points: tuple[PlanPointArguments, ...] = Field(
        description="What will be done, in order; each point can be approved or dropped separately."
    )


class ReportPointArguments(ToolArguments):
    point: int = Field(description="The number of the point in the approved plan.")
    result: Literal["done", "skipped", "changed"] = Field(
        description="done: as planned. skipped: not done. changed: done in another way."
    )
    commit: str = Field("", description="The commit that has it, if you made one.")
    text: str = Field("", description="The reason, which skipped and changed need; for done, anything worth knowing.")


class AnswerReviewArguments(ToolArguments):
    comment: str = Field(min_length=1, description="The comment's id, as in the review.")
    verdict: Literal["done", "declined", "asks"] = Field(
        description="done: the workspace has what the comment asks for. declined: you leave it as it is. asks: you "
        "need an answer from the user."
    )
    text: str = Field("", description="What you did; for declined the reason, for asks the question.")


class RememberArguments(ToolArguments):
    note: str = Field(
        min_length=1, description="One short fact or rule, in one line, that is understood without this conversation."
    )
    why: str = Field(min_length=1, description="Why later work needs it, and how you know that it is true.")
    scope: Literal["project", "organization"] = Field(
        "project", description="organization: for all projects, not only this one."
    )


class SubmitArguments(ToolArguments):
    summary: str = Field("", description="What was done, for the user who asked.")


def schema(arguments: type[ToolArguments]) -> dict[str, Any]:
    """A JSON schema that every provider accepts: no titles, no references, no `anyOf` for optional fields."""
    whole = _whole_schema(arguments)
    return _object(whole, whole.get("$defs", {}))


@cache
def _whole_schema(arguments: type[ToolArguments]) -> dict[str, Any]:
    # A millisecond for each tool of each run.
    return arguments.model_json_schema()


def _object(given: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: _plain(field, known) for name, field in given["properties"].items()},
        "required": given.get("required", []),
        "additionalProperties": False,
    }


def _plain(field: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in field:
        return _object(known[field["$ref"].rpartition("/")[2]], known)
    choices = [choice for choice in field.get("anyOf", []) if choice.get("type") != "null"]
    merged = {**field, **(choices[0] if choices else {})}
    if "items" in merged:
        merged["items"] = _plain(merged["items"], known)
    dropped = {"title", "anyOf"} | ({"default"} if field.get("default", ...) is None else set())
    return {name: value for name, value in merged.items() if name not in dropped}
