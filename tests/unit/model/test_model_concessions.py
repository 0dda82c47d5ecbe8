"""Which refusals are answered by asking in another way, and that this always comes to an end."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drone.model.errors import ErrorClass, Failure
from drone.model.model_families import Family, conceded
from drone.model.route import Route
from shared.work_order import OrderProvider

CLAUDE = Family("blocks", markers=True)


def _after(said: str, family: Family = CLAUDE, error_class: ErrorClass = ErrorClass.FORMAT) -> Family:
    changed = conceded(family, Failure(error_class, said), text=True)
    return changed[0] if changed else family


NO_TOOLS = [
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    "llama2 does not support tools",
    "This model doesn't support tool use in streaming mode.",
    "Function calling is not enabled for models/gemma-3",
    "groq does not support parameters: ['tools'], for model=x",
    "[{'type': 'extra_forbidden', 'loc': ('body', 'tools'), 'msg': 'Extra inputs are not permitted'}]",
]
OTHER_REASONS = [
    "messages: tool_use ids were found without tool_result blocks",
    "temperature is not supported",
    "Invalid 'messages[3].tool_calls[0].function.name': string does not match pattern",
    "the tools are busy",
]


def test_who_takes_no_tools_gets_them_in_text_and_other_refusals_change_nothing() -> None:
    assert [said for said in NO_TOOLS if not _after(said).text] == []
    assert [said for said in OTHER_REASONS if _after(said) != CLAUDE] == []
    for error_class in (ErrorClass.RATE_LIMIT, ErrorClass.AUTH, ErrorClass.CONTEXT_OVERFLOW):
        assert _after(NO_TOOLS[0], error_class=error_class) == CLAUDE


LEVELS = frozenset({"thinking", "reasoning_effort"})
NO_LEVEL: dict[str, Any] = {"leave_out": LEVELS}
CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("Unrecognized request argument supplied: reasoning_effort", NO_LEVEL),
    ("Unsupported value: 'reasoning_effort' does not support 'minimal' with this model.", NO_LEVEL),
    ("`max_tokens` must be greater than `thinking.budget_tokens`.", NO_LEVEL),
    ("Budget 0 is invalid. This model only works in thinking mode.", NO_LEVEL),
    ("`temperature` may only be set to 1 when thinking is enabled.", {"leave_out": {"temperature", "top_p", "top_k"}}),
    ("messages.1.content.0: Invalid `signature` in `thinking` block", {"thinking": "tags", **NO_LEVEL}),
    ("The encrypted content ZW5j could not be verified.", {"thinking": "tags"}),
    ("tools.4.custom.cache_control: at most four blocks", {"markers": False}),
]


def test_who_refuses_a_level_a_temperature_or_thinking_gets_what_it_takes_and_changes_add_up() -> None:
    for said, fields in CHANGES:
        assert {name: getattr(_after(said), name) for name in fields} == fields, said
    once = _after(CHANGES[4][0])
    assert _after("reasoning_effort is not supported", once).leave_out == once.leave_out | LEVELS
    missing = "Missing `reasoning_content` field in the assistant message"
    filled = _after(missing, Family("reasoning"))
    as_text = _after(missing, filled)
    assert [filled.thinking, as_text.thinking, _after(missing, as_text)] == ["filled", "tags", as_text]
    ids = _after("Tool call id was toolu_1 but must be a-z, A-Z, 0-9, with a length of 9.").ids
    assert ids is not None
    assert (len(ids.accepted("toolu_1")), ids.accepted("a1b2c3d4e")) == (9, "a1b2c3d4e")


def test_an_endpoint_that_wants_another_name_for_the_length_limit_gets_it() -> None:
    why = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    route = Route(OrderProvider(name="p", model="openai/x", api_base="http://127.0.0.1:9", params={"max_tokens": 99}))
    assert route.request([], [], 99)["max_tokens"] == 99
    assert route.concede(Failure(ErrorClass.FORMAT, why), []) != ""
    asked = route.request([], [], 99)
    assert ("max_tokens" in asked, asked["max_completion_tokens"]) == (False, 99)


SAID = ["does not support tools", "reasoning_content is missing", "Invalid signature in thinking", "cache_control"]


@given(st.lists(st.sampled_from(SAID)))
def test_no_provider_can_have_its_way_for_ever(refusals: list[str]) -> None:
    family, changes = CLAUDE, 0
    for said in [" ".join(refusals)] * 20:
        changed = conceded(family, Failure(ErrorClass.FORMAT, said), text=True)
        family, changes = (changed[0], changes + 1) if changed else (family, changes)
    assert changes <= 5
