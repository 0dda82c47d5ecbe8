"""What a check found, for people: the verdict with its reason first, then what is known, one line each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shared.durations import duration_label
from shared.terminal.output import printable

Doc = dict[str, Any]
_OUTPUT_LINES = 10
_ORIGINS = {"set": "as set", "listed": "LiteLLM's list", "assumed": "assumed; --context-window sets it"}
_TOOL_CALLS = {
    "native": "work",
    "text": "are made in text",
    "ignored": "not made when asked to",
    None: "unknown",
}
_PUSH = {True: "allowed", False: "refused; each order keeps a patch and a bundle", None: "unknown"}


def provider_text(provider: Doc) -> str:
    """`✓ provider main works: It answered in 0.9 s.`, with a line for each thing that is known."""
    check = provider["check"]
    return _text(f"provider {provider['name']}", check, _of_provider(provider, check))


def project_text(project: Doc) -> str:
    """The same for a project, with each command that was run."""
    check = project["check"]
    return _text(f"project {project['slug']}", check, _of_project(check))


def _text(what: str, check: Doc, facts: Iterator[tuple[str, str]]) -> str:
    works = check["state"] == "ok"
    verdict = f"{'✓' if works else '✗'} {what} {'works' if works else 'does not work'}: {check['summary']}"
    lines = [*facts, *advice(check)]
    width = max((len(label) for label, _ in lines), default=0)
    return "\n".join([verdict, *(f"  {label:<{width}}  {text}" for label, text in lines)]) + "\n"


def _of_provider(provider: Doc, check: Doc) -> Iterator[tuple[str, str]]:
    if check["drone"]:
        yield "drone", check["drone"]
    if check["total_ms"] is None:
        return
    yield "first token", "unknown" if check["first_token_ms"] is None else duration_label(check["first_token_ms"])
    yield "in all", duration_label(check["total_ms"])
    yield "price", _price(provider["model"], check)
    yield "tool calls", _TOOL_CALLS[check["tool_calls"]]
    yield "streaming", "works, and reports usage" if check["reports_usage"] else "works, but reports no usage"
    yield "window", f"{check['context_window']:,} tokens ({_ORIGINS[check['window_from']]})"


def _price(model: str, check: Doc) -> str:
    if check["price"] == "unknown":
        return f"unknown (next: fleet price set {model} --input USD --output USD)"
    if check["input_usd"] is None or check["output_usd"] is None:
        return f"known ({_ORIGINS[check['price']]})"
    return f"${check['input_usd']:g} in, ${check['output_usd']:g} out per million tokens ({_ORIGINS[check['price']]})"


def _of_project(check: Doc) -> Iterator[tuple[str, str]]:
    if check["drone"]:
        yield "drone", check["drone"]
    if check["remote_ms"] is not None:
        default = " (the default)" if check["branch"] == check["default_branch"] else ""
        yield "repository", f"answered in {duration_label(check['remote_ms'])}, branch {check['branch']}{default}"
        yield "push", _PUSH[check["may_push"]]
    for each in check["commands"] or ():
        code = "timed out" if each["return_code"] is None else f"exit code {each['return_code']}"
        how = f"{'passed' if each['passed'] else f'failed, {code}'}, {duration_label(each['duration_ms'])}"
        yield each["phase"], f"{' '.join(printable(each['command']).split())}: {how}"
        for line in each["output"].rstrip("\n").split("\n")[-_OUTPUT_LINES:] if each["output"] else ():
            yield "", f"  {printable(line)}"


def advice(check: Doc) -> Iterator[tuple[str, str]]:
    """What to do about a check that failed, as labels and texts."""
    if check["state"] == "ok":
        return
    if check["next"]:
        yield "next", check["next"]
    if check["code"]:
        yield "help", f"fleet help {check['code']}"
