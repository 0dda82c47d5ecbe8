"""What a thinking level becomes in the request to each family of models, and what is said where it becomes another."""

from __future__ import annotations

from typing import Any

import pytest

from drone.model.output_limit import least_output
from drone.model.route import Route
from drone.model.thinking import effort_of
from shared.events import CommentStep, RetryStep
from shared.messages import Message
from shared.work_order import OrderProvider, ThinkingLevel
from tests.support.endpoints import Endpoint, Said, anthropic_answer, refused, text_answer
from tests.support.scripted import Called

pytestmark = pytest.mark.usefixtures("warm_model")

CLAUDE, OPUS = "anthropic/claude-sonnet-4-5", "anthropic/claude-opus-4-6"
NAMES = ("reasoning_effort", "thinking", "output_config", "temperature")
DONE, DONE_CLAUDE = text_answer("Done."), anthropic_answer({"type": "text", "text": "Done."})


def asked(
    model: str, level: ThinkingLevel | None, *said: Said, **params: Any
) -> tuple[list[dict[str, Any]], list[str]]:
    """What the requests say about thinking, and the comments and retries that were recorded."""
    is_claude = model.startswith("anthropic/")
    with Endpoint(*(said or (DONE_CLAUDE if is_claude else DONE,))) as endpoint:
        base = endpoint.url if is_claude else f"{endpoint.url}/v1"
        called = Called(
            "", OrderProvider(name="p", model=model, api_base=base, api_key="k", thinking=level, params=params)
        )
        called.ask(Message(role="user", content="Go."))
        called.model.close()
    recorded = called.recorder.bodies
    told = [body.text for body in recorded if isinstance(body, CommentStep)]
    told += [body.error for body in recorded if isinstance(body, RetryStep)]
    return [{name: body[name] for name in NAMES if name in body} for body in endpoint.bodies], told


def tokens(budget: int) -> dict[str, Any]:
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def effort(word: str) -> dict[str, Any]:
    return {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": word}}


def test_a_level_becomes_what_the_family_understands() -> None:
    cases: list[tuple[str, ThinkingLevel | None, dict[str, Any]]] = [
        ("openai/any", None, {}),
        ("openai/any", "off", {"reasoning_effort": "none"}),
        ("openai/any", "high", {"reasoning_effort": "high"}),
        ("openai/gpt-4o", "low", {"reasoning_effort": "low"}),  # at an endpoint with an address: any model
        (CLAUDE, None, {}),
        (CLAUDE, "off", {}),
        (CLAUDE, "minimal", tokens(1024)),
        (CLAUDE, "high", tokens(4096)),
        (CLAUDE, "xhigh", tokens(8192)),
        (OPUS, "off", {}),
        (OPUS, "low", effort("low")),
        ("openrouter/openai/gpt-5", "xhigh", {"reasoning_effort": "xhigh"}),
        ("openrouter/anthropic/claude-sonnet-4.5", "off", {"reasoning_effort": "none"}),
        ("deepseek/deepseek-reasoner", "off", {"thinking": {"type": "disabled"}}),
        ("deepseek/deepseek-reasoner", "low", {"thinking": {"type": "enabled"}}),
    ]
    wrong = [(model, level, got) for model, level, sent in cases if (got := asked(model, level)) != ([sent], [])]
    assert wrong == []


def test_a_level_that_a_model_lacks_becomes_the_next_lower_one_and_a_comment_says_so() -> None:
    assert asked(OPUS, "xhigh") == (
        [effort("high")],
        [f"{OPUS} has no thinking level `xhigh`: it is asked for `high`."],
    )


def test_to_a_model_without_levels_nothing_is_sent_and_a_comment_says_so() -> None:
    model = "anthropic/claude-3-5-haiku-latest"
    assert asked(model, "high") == ([{}], [f"{model} has no thinking levels: `high` is not sent."])
    assert asked(model, "off") == ([{}], [])


def test_the_list_of_models_decides_where_there_is_no_address() -> None:
    cases: list[tuple[str, ThinkingLevel, str | None, str]] = [
        ("openai/gpt-5", "off", "minimal", "cannot stop thinking: it is asked for `minimal`"),
        ("openai/gpt-5.1", "off", "none", ""),
        ("openai/gpt-5.1", "minimal", "low", "has no thinking level `minimal`: it is asked for `low`"),
        ("openai/o3", "xhigh", "high", "has no thinking level `xhigh`: it is asked for `high`"),
        ("openai/o3", "medium", "medium", ""),
        ("openai/gpt-4o", "medium", None, "has no thinking levels: `medium` is not sent"),
        ("gemini/gemini-2.5-flash", "off", "none", ""),
        ("gemini/gemini-2.5-flash", "xhigh", "high", "it is asked for `high`"),
        ("gpt-of-nobody", "high", None, "has no thinking levels"),
    ]
    for model, level, value, words in cases:
        provider = OrderProvider(name="p", model=model, thinking=level)
        found = effort_of(provider, Route(provider).model)
        assert found.value == value, model
        assert words in found.note, model
        assert bool(words) == bool(found.note), model


def test_the_level_replaces_what_the_parameters_say() -> None:
    assert asked("openai/any", "low", reasoning_effort="high", temperature=0.5)[0] == [
        {"reasoning_effort": "low", "temperature": 0.5}
    ]
    assert asked(CLAUDE, "off", thinking={"type": "enabled", "budget_tokens": 9000})[0] == [{}]
    assert asked("openai/any", None, reasoning_effort="high")[0] == [{"reasoning_effort": "high"}]


def test_an_endpoint_that_refuses_the_level_is_asked_without_it() -> None:
    sent, told = asked(
        "openai/any",
        "high",
        refused(400, {"error": {"message": "Unrecognized request argument: reasoning_effort"}}),
        DONE,
    )
    assert sent == [{"reasoning_effort": "high"}, {}]
    assert told[0].endswith("It refuses the thinking level: from now on none is sent.")


def test_an_answer_has_room_for_the_thinking() -> None:
    levels: tuple[ThinkingLevel, ...] = ("off", "minimal", "xhigh")
    assert [least_output(OrderProvider(name="p", model=CLAUDE, thinking=level)) for level in levels] == [
        1024,
        2048,
        9216,
    ]
