"""Which refusals are answered by asking in another way, and that this always comes to an end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drone.model.errors import ErrorClass, Failure
from drone.model.model_families import Family, conceded

CLAUDE = Family("blocks", markers=True)


def _after(said: str, family: Family = CLAUDE, error_class: ErrorClass = ErrorClass.FORMAT) -> Family:
    changed = conceded(family, Failure(error_class, said), text=True)
    return changed[0] if changed else family


NO_TOOLS = [
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


LEVEL_REFUSED = [
    "Unrecognized request argument supplied: reasoning_effort",
    "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model.",
    "`max_tokens` must be greater than `thinking.budget_tokens`.",
    "Budget 0 is invalid. This model only works in thinking mode.",
]


def test_who_refuses_a_level_a_temperature_or_missing_reasoning_gets_what_it_takes_and_changes_add_up() -> None:
    levels = {"thinking", "reasoning_effort"}
    assert [said for said in LEVEL_REFUSED if _after(said).leave_out != levels] == []
    once = _after("`temperature` may only be set to 1 when thinking is enabled.")
    assert once.leave_out == {"temperature", "top_p", "top_k"}
    assert _after("reasoning_effort is not supported", once).leave_out == once.leave_out | levels
    missing = "Missing `reasoning_content` field in the assistant message"
    filled = _after(missing, Family("reasoning"))
    as_text = _after(missing, filled)
    assert [filled.thinking, as_text.thinking, _after(missing, as_text)] == ["filled", "tags", as_text]


SAID = st.lists(
    st.sampled_from(
        [
            "does not support tools",
            "reasoning_content is missing",
            "Invalid signature in thinking block",
            "cache_control",
        ]
    )
)


@given(SAID)
def test_no_provider_can_have_its_way_for_ever(refusals: list[str]) -> None:
    family, changes = CLAUDE, 0
    for said in [" ".join(refusals)] * 20:
        changed = conceded(family, Failure(ErrorClass.FORMAT, said), text=True)
        family, changes = (changed[0], changes + 1) if changed else (family, changes)
    assert changes <= 5
