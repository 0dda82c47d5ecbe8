"""Reads a trajectory file into a recording, or reports why it is not one; the contents are untrusted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from drone.replay.observations import expected_of, is_observation, text_of, whole
from drone.replay.recording import Expected, RecordedCall, RecordedTurn, Recording
from drone.tools.shell import SUBMIT_LINE
from shared.errors import Invalid
from shared.trajectories import FORMAT, SUBMITTED, command_in

MAX_BYTES = 100 * 1024 * 1024
_FENCES = (r"```mswea_bash_command\s*\n(.*?)\n```", r"```bash\s*\n(.*?)\n```")
_LOCAL = "minisweagent.environments.local.LocalEnvironment"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
Doc = Mapping[str, Any]


def load(path: Path) -> Recording:
    """Read a trajectory. Raises Invalid for a file that cannot be read, or that is not a trajectory of this format."""
    return recording_of(_parsed(path, _text(path)), str(path))


def recording_of(document: Any, name: str = "the document") -> Recording:
    """Convert a trajectory document to a recording. Raises Invalid if it is not one, or contains no model answers."""
    messages = _messages(document, name)
    info = _object(document.get("info"))
    environment = _object(_object(info.get("config")).get("environment"))
    opening, groups = _grouped(messages)
    if not groups:
        raise _not_one(name, "it contains no model answers to replay")
    regexes = _regexes(_object(_object(info.get("config")).get("model")))
    turns = [_turn(each, regexes) for each in groups]
    turns[-1] = _with_submission(turns[-1], messages[-1])
    return replace(_surroundings(info, environment), opening=tuple(opening), turns=tuple(turns))


@dataclass
class _AnswerGroup:
    """One answer, and the messages up to the next."""

    message: Doc
    observations: list[Doc] = field(default_factory=list)
    said: list[Doc] = field(default_factory=list)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    if len(content) > MAX_BYTES:
        raise _unreadable(path, f"it is larger than {MAX_BYTES:,} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unreadable(path, f"it is not UTF-8 ({error.reason} at byte {error.start})") from error


def _parsed(path: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise _not_one(str(path), f"it is not valid JSON: {error}") from error
    except RecursionError as error:
        raise _not_one(str(path), "it is nested too deeply") from error


def _messages(document: Any, name: str) -> list[Doc]:
    if not isinstance(document, dict) or "trajectory_format" not in document:
        raise _not_one(name, f"`trajectory_format: {FORMAT}` is missing")
    if document["trajectory_format"] != FORMAT:
        raise _not_one(name, f"its format is {str(document['trajectory_format'])[:60]!r}; expected {FORMAT}")
    messages = document.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise _not_one(name, "`messages` must be a list of objects")
    return messages


def _grouped(messages: Sequence[Doc]) -> tuple[list[str], list[_AnswerGroup]]:
    """Return the messages before the first answer, and the answers with the messages that belong to each."""
    opening: list[str] = []
    groups: list[_AnswerGroup] = []
    for message in messages:
        role = message.get("role")
        if role in {"system", "exit"}:
            continue
        if role == "assistant" or _actions(message) or message.get("object") == "response":
            groups.append(_AnswerGroup(message))
        elif not groups:
            opening.append(text_of(message))
        elif role == "tool" or message.get("type") == "function_call_output" or is_observation(message):
            groups[-1].observations.append(message)
        else:
            groups[-1].said.append(message)
    return opening, groups


def _turn(group: _AnswerGroup, regexes: Sequence[str]) -> RecordedTurn:
    message, content = group.message, text_of(group.message)
    calls = _calls(message, content, regexes)
    made = []
    for number, (call, call_id) in enumerate(calls):
        observation = _observation(group.observations, call_id, number)
        expected, executed = (None, True) if observation is None else expected_of(observation, call.tool)
        made.append(replace(call, expected=expected, executed=executed))
    # After a submitting command, the run continues only at a user's request; the command was run, although the
    # recording does not say so.
    if made and not _rejected(group.said) and (at := _submitting(made)) is not None:
        made[at] = replace(made[at], executed=True)
    thinking = message.get("reasoning_content")
    return RecordedTurn(
        content,
        tuple(made),
        whole(thinking) if isinstance(thinking, str) else "",
        tuple(text_of(each) for each in group.said),
    )


def _calls(message: Doc, content: str, regexes: Sequence[str]) -> list[tuple[RecordedCall, str]]:
    """The calls of a message with their ids: native calls, else executed actions, else the only fenced block."""
    native = message.get("tool_calls")
    if isinstance(native, list) and native:
        return [_native(call) for call in native if isinstance(call, dict)]
    if actions := _actions(message):
        return [(_shell(action["command"]), str(action.get("tool_call_id") or "")) for action in actions]
    found = next((blocks for regex in regexes if (blocks := re.findall(regex, content, re.DOTALL))), [])
    return [(_shell(found[0].strip()), "")] if len(found) == 1 and isinstance(found[0], str) else []


def _native(call: Doc) -> tuple[RecordedCall, str]:
    function = _object(call.get("function"))
    name, given = str(function.get("name") or ""), function.get("arguments")
    arguments = whole(given) if isinstance(given, str) else json.dumps(given or {})
    tool = "shell" if name == "bash" else whole(name)
    shown = command_in(arguments) if tool == "shell" else None
    return RecordedCall(tool, arguments, command=f"{tool} {arguments}" if shown is None else shown), str(call.get("id"))


def _shell(command: str) -> RecordedCall:
    command = whole(command)
    return RecordedCall("shell", json.dumps({"command": command}, ensure_ascii=False), command=command)


def _actions(message: Doc) -> list[Doc]:
    actions = _object(message.get("extra")).get("actions")
    found = actions if isinstance(actions, list) else []
    return [each for each in found if isinstance(each, dict) and isinstance(each.get("command"), str)]


def _observation(observations: Sequence[Doc], call_id: str, number: int) -> Doc | None:
    """The observation of a call: by its id, else by its position."""
    ids = [str(each.get("tool_call_id") or each.get("call_id") or "") for each in observations]
    if call_id and call_id in ids:
        return observations[ids.index(call_id)]
    return observations[number] if number < len(observations) and not (call_id and any(ids)) else None


def _with_submission(turn: RecordedTurn, last: Doc) -> RecordedTurn:
    """Add the output of a submitting last command, which is in the message that says how the run ended."""
    extra = _object(last.get("extra"))
    at = _submitting(turn.calls)
    if last.get("role") != "exit" or extra.get("exit_status") != SUBMITTED or at is None:
        return turn
    submission = extra.get("submission")
    output = f"{SUBMIT_LINE}\n{whole(submission) if isinstance(submission, str) else ''}"
    calls = list(turn.calls)
    calls[at] = replace(calls[at], expected=Expected(output, 0, submits=True), executed=True)
    return replace(turn, calls=tuple(calls))


def _submitting(calls: Sequence[RecordedCall]) -> int | None:
    """The call that submitted: the first one with the line in its text and without a recorded output."""
    return next(
        (at for at, call in enumerate(calls) if call.expected is None and SUBMIT_LINE in call.command),
        None,
    )


def _rejected(said: Sequence[Doc]) -> bool:
    return any(_object(each.get("extra")).get("interrupt_type") == "UserRejection" for each in said)


def _regexes(model: Doc) -> tuple[str, ...]:
    """Expressions that find actions in a text: from the recorded configuration, else for the known fences."""
    regex = model.get("action_regex")
    try:
        return (re.compile(regex).pattern, *_FENCES) if isinstance(regex, str) and regex else _FENCES
    except re.error:
        return _FENCES


def _surroundings(info: Doc, environment: Doc) -> Recording:
    config = _object(info.get("config"))
    own = _object(info.get("dronefleet"))
    cwd, timeout, variables = (environment.get(name) for name in ("cwd", "timeout", "env"))
    base, mode = own.get("base_commit"), _object(config.get("agent")).get("mode")
    return Recording(
        opening=(),
        turns=(),
        cwd=whole(cwd).rstrip("/") if isinstance(cwd, str) and cwd.startswith("/") else "",
        timeout=float(timeout) if isinstance(timeout, int | float) and 0 < timeout < float("inf") else None,
        environment=_variables(variables),
        shell=("/bin/sh", "-c") if config.get("environment_type") == _LOCAL else None,
        mode=mode if own and isinstance(mode, str) else "build",
        base_commit=base if isinstance(base, str) and re.fullmatch("[0-9a-f]{40,64}", base) else None,
        own=bool(own),
    )


def _variables(given: Any) -> dict[str, str]:
    return {
        name: whole(value)
        for name, value in _object(given).items()
        if _NAME.fullmatch(name) and isinstance(value, str) and "\0" not in value
    }


def _object(value: Any) -> Doc:
    return value if isinstance(value, dict) else {}


def _unreadable(path: Path, why: str) -> Invalid:
    return Invalid(
        f"{path} cannot be read", code="E-TRAJECTORY-FILE", why=why, next="drone replay RUN.traj.json --repo ."
    )


def _not_one(name: str, why: str) -> Invalid:
    return Invalid(
        f"{name} cannot be replayed",
        code="E-TRAJECTORY-FORMAT",
        why=why,
        next=f"use a file in the format {FORMAT}: fleet trajectory ORDER --output RUN.traj.json",
    )
