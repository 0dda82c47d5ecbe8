"""What goes over the wire to families of models: thinking in their own form and level, cache markers, tools as text."""

from __future__ import annotations

from typing import Any

import pytest

from drone.agent.values import ToolSpec
from drone.model.errors import ErrorClass, Failure
from drone.model.output_limit import least_output
from drone.model.route import Route
from drone.model.thinking import effort_of
from shared.events import CommentStep, RetryStep
from shared.messages import Message
from shared.outcome import ExitStatus
from shared.work_order import OrderProvider, Protocol, ThinkingLevel
from tests.support.endpoints import Endpoint, Said, anthropic_answer, call, chunk, refused, streamed, text_answer
from tests.support.protocols.played import Ran
from tests.support.scripted import Called

pytestmark = pytest.mark.usefixtures("warm_model")

CLAUDE, OPUS = "anthropic/claude-sonnet-4-5", "anthropic/claude-opus-4-6"
DONE, DONE_CLAUDE = text_answer("Done."), anthropic_answer({"type": "text", "text": "Done."})
ACTION = 'I look.\n\n```action echo\n{"text": "one"}\n```\n'
SUBMIT = '```action submit\n{"text": "Done."}\n```'
NO_TOOLS = [
    (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    (404, "No endpoints found that support tool use. Try disabling tools."),
    (500, "tools param requires --jinja flag"),
]
"""Their wording is tested in tests/unit/model/test_model_concessions.py."""


def provider(model: str, url: str, **fields: Any) -> OrderProvider:
    base = url if model.startswith("anthropic/") else f"{url}/v1"
    return OrderProvider(name="p", model=model, api_base=base, api_key="k", **fields)


def run(model: str, *said: Said, protocol: Protocol = "auto", **params: Any) -> Ran:
    return Ran(lambda url: provider(model, url, protocol=protocol, params=params), *said)


def test_details_of_openrouter_go_back_as_they_came() -> None:
    detail = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    first = streamed(
        chunk(role="assistant", reasoning="Where ", reasoning_details=[{**detail, "text": "Where "}]),
        chunk(reasoning="is it?", reasoning_details=[{**detail, "text": "is it?"}]),
        chunk(reasoning_details=[{**detail, "signature": "c2ln"}]),
        chunk(tool_calls=[call("echo", {"text": "x"})]),
        chunk("tool_calls"),
    )
    assistant, tool = run("openrouter/anthropic/claude-sonnet-4.5", first, DONE).bodies[1]["messages"][2:]
    assert assistant["reasoning_details"] == [{**detail, "text": "Where is it?", "signature": "c2ln"}]
    assert tool["content"] == [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]


def test_tools_are_called_in_text_where_the_provider_is_set_so() -> None:
    ran = run("openai/x", text_answer(ACTION), text_answer(SUBMIT), protocol="text")
    assert (ran.outcome.exit_status, ran.outcome.response) == (ExitStatus.SUBMITTED, "Done.")
    assert [call.arguments for call in ran.toolbox.ran] == ['{"text": "one"}', '{"text": "Done."}']
    assert not any("tools" in body for body in ran.bodies)
    system, user, assistant, result = ran.bodies[1]["messages"]
    assert system["content"].startswith("Rules.\n\n# How you act")
    assert (user["content"], assistant["content"]) == ("Go.", ACTION)
    assert result == {"role": "user", "content": '<result tool="echo" call="action_1">\none\n</result>'}


def test_a_refusal_of_tools_leads_to_text_at_once_and_for_the_rest_of_the_run_unless_they_must_be_native() -> None:
    for status, message in NO_TOOLS:
        refusal = refused(status, {"error": {"message": message}})
        ran = run("openai/x", refusal, text_answer(ACTION), text_answer(SUBMIT))
        assert ran.outcome.exit_status is ExitStatus.SUBMITTED, status
        assert ["tools" in body for body in ran.bodies] == [True, False, False], status
        (retry,) = ran.retries
        assert (retry.delay_s, retry.error.endswith("from now on they are called in text.")) == (0, True), status
    native = run("openai/x", refused(400, {"error": {"message": NO_TOOLS[0][1]}}), DONE, protocol="tools")
    assert native.outcome.exit_status is ExitStatus.MODEL_ERROR


def test_the_step_about_a_refused_tool_of_an_mcp_server_says_how_to_leave_it_out() -> None:
    name = "mcp__my_db__run-query"
    tools = [ToolSpec(each, "", {"type": "object"}) for each in (name, "echo")]
    named = Failure(ErrorClass.FORMAT, f"Invalid schema for function '{name}'")
    unnamed = Failure(ErrorClass.SERVER, "failed to parse grammar")
    for refusal, words in (
        (named, "(next: leave out the tool run-query of the MCP server my_db, with `tools` in"),
        (unnamed, "without the 1 of MCP servers (next: "),
    ):
        route = Route(provider("openai/x", "http://127.0.0.1:9"))
        assert words in route.concede(refusal, tools)
        assert [each["function"]["name"] for each in route.request([], tools)["tools"]] == ["echo"]
        assert route.concede(refusal, tools) == ""
    last = Failure(ErrorClass.FORMAT, "Invalid schema for function 'echo'")
    assert route.concede(last, tools) == "From now on it is asked without echo."
    assert route.request([], tools)["tools"] is None


def asked(
    model: str, level: ThinkingLevel | None, *said: Said, **params: Any
) -> tuple[list[dict[str, Any]], list[str]]:
    """What the requests say about thinking, and the comments and retries that were recorded."""
    with Endpoint(*(said or (DONE_CLAUDE if model.startswith("anthropic/") else DONE,))) as endpoint:
        called = Called("", provider(model, endpoint.url, thinking=level, params=params))
        called.ask(Message(role="user", content="Go."))
        called.model.close()
    names = ("reasoning_effort", "thinking", "output_config", "temperature")
    told = [body.text for body in called.recorder.bodies if isinstance(body, CommentStep)]
    told += [body.error for body in called.recorder.bodies if isinstance(body, RetryStep)]
    return [{name: body[name] for name in names if name in body} for body in endpoint.bodies], told


def tokens(budget: int) -> dict[str, Any]:
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def effort(word: str) -> dict[str, Any]:
    return {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": word}}


def test_a_level_becomes_what_the_family_understands_or_the_next_lower_one_and_a_comment_says_so() -> None:
    haiku = "anthropic/claude-3-5-haiku-latest"
    cases: list[tuple[str, ThinkingLevel | None, dict[str, Any], list[str]]] = [
        ("openai/any", None, {}, []),
        ("openai/any", "off", {"reasoning_effort": "none"}, []),
        ("openai/gpt-4o", "low", {"reasoning_effort": "low"}, []),  # at an endpoint with an address: any model
        (CLAUDE, "off", {}, []),
        (CLAUDE, "xhigh", tokens(8192), []),
        (OPUS, "off", {}, []),
        (OPUS, "xhigh", effort("high"), [f"{OPUS} has no thinking level `xhigh`: it is asked for `high`."]),
        (haiku, "high", {}, [f"{haiku} has no thinking levels: `high` is not sent."]),
        (haiku, "off", {}, []),
        ("openrouter/openai/gpt-5", "xhigh", {"reasoning_effort": "xhigh"}, []),
        ("deepseek/deepseek-reasoner", "off", {"thinking": {"type": "disabled"}}, []),
        ("deepseek/deepseek-reasoner", "low", {"thinking": {"type": "enabled"}}, []),
    ]
    for model, level, sent, told in cases:
        assert asked(model, level) == ([sent], told), (model, level)


def test_the_list_of_models_decides_where_there_is_no_address() -> None:
    cases: list[tuple[str, ThinkingLevel, str | None, str]] = [
        ("openai/gpt-5", "off", "minimal", "cannot stop thinking: it is asked for `minimal`"),
        ("openai/gpt-5.1", "off", "none", ""),
        ("openai/gpt-5.1", "minimal", "low", "has no thinking level `minimal`: it is asked for `low`"),
        ("openai/o3", "medium", "medium", ""),
        ("openai/gpt-4o", "medium", None, "has no thinking levels: `medium` is not sent"),
        ("gemini/gemini-2.5-flash", "xhigh", "high", "it is asked for `high`"),
        ("gpt-of-nobody", "high", None, "has no thinking levels"),
    ]
    for model, level, value, words in cases:
        wanted = OrderProvider(name="p", model=model, thinking=level)
        found = effort_of(wanted, Route(wanted).model)
        assert (found.value, words in found.note, bool(found.note)) == (value, True, bool(words)), model


def test_the_level_replaces_what_the_parameters_say_and_is_left_out_where_the_endpoint_refuses_it() -> None:
    kept = {"reasoning_effort": "low", "temperature": 0.5}
    assert asked("openai/any", "low", reasoning_effort="high", temperature=0.5)[0] == [kept]
    assert asked(CLAUDE, "off", **tokens(9000))[0] == [{}]
    assert asked("openai/any", None, reasoning_effort="high")[0] == [{"reasoning_effort": "high"}]
    refusal = refused(400, {"error": {"message": "Unrecognized request argument: reasoning_effort"}})
    sent, (told,) = asked("openai/any", "high", refusal, DONE)
    assert (sent, "It refuses the thinking level" in told) == ([{"reasoning_effort": "high"}, {}], True)


def test_an_answer_has_room_for_the_thinking() -> None:
    levels: tuple[ThinkingLevel, ...] = ("off", "minimal", "xhigh")
    least = [least_output(OrderProvider(name="p", model=CLAUDE, thinking=level)) for level in levels]
    assert least == [1024, 2048, 9216]
