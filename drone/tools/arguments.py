"""The arguments of each tool as pydantic models, and the JSON schemas that the model is given from them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Arguments(BaseModel):
    """Arguments of one call. Unknown ones are refused: a misspelt name would be ignored without a word."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class FileReadArguments(Arguments):
    mode: Literal["view", "lines", "search", "find"] = Field(
        "view",
        description="view: a whole file with line numbers, or a directory's entries. lines: start_line to end_line. "
        "search: lines that match search_pattern, in a file or everywhere below a directory. "
        "find: the files below a directory, at most 200.",
    )
    path: str = Field(".", description="Absolute, or relative to the workspace.")
    start_line: int | None = Field(None, ge=1, description="lines: the first line, counted from 1.")
    end_line: int | None = Field(None, ge=1, description="lines: the last line, which is included.")
    search_pattern: str | None = Field(
        None, description="search: an extended regular expression (grep -E). find: a name with wildcards, *.py."
    )


class FileWriteArguments(Arguments):
    path: str = Field(min_length=1, description="Absolute, or relative to the workspace. Parents are made.")
    content: str = Field(description="The whole content of the file; what was there is replaced.")


class EditorArguments(Arguments):
    command: Literal["str_replace", "insert", "undo_edit"] = Field(
        description="str_replace: replace old_str, which must occur exactly once, by new_str. insert: new_str becomes "
        "line insert_line. undo_edit: take back the last edit of this file."
    )
    path: str = Field(min_length=1, description="Absolute, or relative to the workspace.")
    old_str: str | None = Field(None, description="str_replace: the text to replace, with its white space.")
    new_str: str | None = Field(None, description="str_replace, insert: the new text.")
    insert_line: int | None = Field(
        None, ge=1, description="insert: the number that the first new line gets, counted from 1."
    )


class ShellArguments(Arguments):
    command: str = Field(min_length=1, description="A shell line, run by bash in the workspace, without a terminal.")
    timeout: float | None = Field(None, gt=0, le=7200, description="Seconds after which it is ended.")


class SubmitArguments(Arguments):
    summary: str = Field("", description="What was done, for the person who asked.")


def schema(arguments: type[Arguments]) -> dict[str, Any]:
    """A JSON schema that every provider takes: no titles, no references, no `anyOf` for what may be left out."""
    whole = arguments.model_json_schema()
    properties = {name: _plain(field) for name, field in whole["properties"].items()}
    return {
        "type": "object",
        "properties": properties,
        "required": whole.get("required", []),
        "additionalProperties": False,
    }


def _plain(field: dict[str, Any]) -> dict[str, Any]:
    choices = [choice for choice in field.get("anyOf", []) if choice.get("type") != "null"]
    merged = {**field, **(choices[0] if choices else {})}
    dropped = {"title", "anyOf"} | ({"default"} if field.get("default", ...) is None else set())
    return {name: value for name, value in merged.items() if name not in dropped}
