"""What a conversation makes of steps: who said what, what calls did in a line, and nothing hidden or run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from control_plane.contract.documents.orders import StepDocument
from control_plane.web.conversation.blocks import CallsBlock, ChatBlock
from control_plane.web.conversation.grouping import chat_of
from control_plane.web.rendering import environment, money

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
ORDER = "0" * 12


def steps_of(*kinds: tuple[str, dict[str, Any]]) -> list[StepDocument]:
    return [
        StepDocument(seq=seq, kind=kind, run=ORDER, at=NOW, **fields) for seq, (kind, fields) in enumerate(kinds, 1)
    ]


def step(kind: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return kind, fields


def blocks(*kinds: tuple[str, dict[str, Any]], active: bool = False) -> list[ChatBlock]:
    return chat_of(ORDER, steps_of(*kinds), active=active).blocks


def rendered(*kinds: tuple[str, dict[str, Any]], whole: bool = True) -> str:
    """The steps as the page shows them, with each call by itself."""
    return str(environment().get_template("session/blocks.html").module.blocks(blocks(*kinds), whole))  # type: ignore[attr-defined]


def call(number: int, tool: str = "shell", **result: Any) -> list[tuple[str, dict[str, Any]]]:
    arguments = {"path": f"f{number}.py"} if tool != "shell" else {"command": f"run {number}"}
    asked = step("tool_call", call_id=str(number), tool=tool, arguments=arguments)
    return [asked, step("tool_result", **{"call_id": str(number), "output": "out", "duration_ms": 1000, **result})]


def test_consecutive_calls_are_one_line_that_says_what_they_did_and_text_divides_them() -> None:
    reads = [each for number in range(3) for each in call(number, "file_read")]
    fetched = step("tool_call", call_id="9", tool="web_fetch", arguments={"offset": 5, "url": "https://example.org"})
    (block,) = blocks(*reads, fetched, *call(4), step("checkpoint"), *call(5, return_code=1))
    assert isinstance(block, CallsBlock)
    assert (block.sentence, block.duration_ms) == ("Read 3 files, fetched 1 page, ran 2 commands (1 failed)", 5000)
    assert [each.gist for each in block.open_calls] == ["run 5"]
    found = blocks(*call(1), step("reasoning", text="hm"), *call(2), step("assistant", text="Now."), *call(3))
    assert [each.kind for each in found] == ["calls", "said", "calls"]
    assert isinstance(found[0], CallsBlock)
    assert found[0].sentence == "Thought once, ran 2 commands"


def test_a_call_without_a_result_runs_only_while_its_run_does() -> None:
    asked = step("tool_call", call_id="1", tool="shell", arguments={"command": "sleep"})
    states = [block.calls[0].state for active in (True, False) for block in blocks(asked, active=active)]  # type: ignore[attr-defined]
    assert states == ["running", "none"]


def test_a_decision_belongs_to_its_call() -> None:
    html = rendered(
        step("tool_call", call_id="1", tool="shell", arguments={"command": "git push"}),
        step("approval", call_id="1", tool="shell", why="Publishes commits"),
        step("decision", call_id="1", approved=False, comment="not today"),
        step("tool_result", call_id="1", output="denied", is_error=True),
    )
    assert html.count("<details") == 1
    for words in ("Publishes commits", "not today", ">denied<"):
        assert words in html


def test_the_prompt_with_the_situation_is_not_shown_as_a_message() -> None:
    assert blocks(step("user", text="Do it\n\n<situation>\nDate: today", source="prompt")) == []


def test_what_a_submitting_call_says_is_text_of_the_agent() -> None:
    html = rendered(
        step("tool_call", call_id="1", tool="submit", arguments={"summary": "**Fixed** it"}),
        step("tool_result", call_id="1", output="Submitted.", execution="submitted"),
    )
    assert "<strong>Fixed</strong>" in html
    assert "Submitted." not in html


def test_a_part_leaves_a_result_to_the_part_before_and_is_asked_for_from_the_block_that_can_still_change() -> None:
    (block,) = chat_of(ORDER, steps_of(*call(1), *call(2))[1:], active=False).blocks
    assert (block.first, len(block.calls)) == (3, 1)  # type: ignore[attr-defined]
    steps = steps_of(step("assistant", text="a"), *call(1), *call(2))
    chat = chat_of(ORDER, steps, active=True)
    assert (chat.resume, chat.last) == (1, 5)
    assert chat_of(ORDER, steps[:1], active=True).resume == 1


def test_what_happens_during_a_call_leaves_it_open_until_its_result() -> None:
    asked = [step("tool_call", call_id=name, tool="spawn") for name in ("a", "b")]
    child = step("child", call_id="a", step={"kind": "assistant", "text": "x"})
    retry = step("retry", attempt=1, delay_s=2, error_class="rate_limit", error="429")
    results = [step("tool_result", call_id=name, output="out", duration_ms=1) for name in ("a", "b")]
    steps = steps_of(step("assistant", text="I delegate."), *asked, retry, child, step("comment", text="Hm"), *results)
    chat = chat_of(ORDER, steps[:6], active=True)
    block = chat.blocks[1]
    assert isinstance(block, CallsBlock)
    assert ([call.state for call in block.calls], chat.resume, chat.last) == (["running", "running"], 1, 6)
    calls_block, *others = chat_of(ORDER, steps[chat.resume :], active=True, known=chat.last).blocks
    assert isinstance(calls_block, CallsBlock)
    assert ([call.state for call in calls_block.calls], calls_block.last) == (["ok", "ok"], 8)
    assert [each.kind for each in others] == ["note", "said"]
    # The next answer of the model comes after all calls of the one before.
    after = chat_of(ORDER, [*steps[:3], *steps_of(*[step("assistant", text="Done")] * 4)[3:]], active=True)
    assert (after.resume, after.blocks[1].calls[0].state) == (4, "none")  # type: ignore[attr-defined]


def test_a_part_says_whether_it_needs_a_call_before_it() -> None:
    child = step("child", call_id="a", step={"kind": "assistant", "text": "x"})
    retry = step("retry", attempt=1, delay_s=2, error_class="rate_limit", error="429")
    steps = steps_of(step("tool_call", call_id="a", tool="spawn"), child, retry, child)
    shown = [chat_of(ORDER, steps[first:], active=True) for first in (0, 1, 2, 3)]
    assert [each.splits_call for each in shown] == [False, True, True, False]
    assert [(len(each.blocks), each.last) for each in shown] == [(2, 4), (2, 4), (2, 4), (0, 4)]


HIDING = "\r\x0b\x1b\x85\u2028\u200e\u202e\u2066\u00ad\u200b\ufeff\U000e0041"


def test_nothing_is_hidden_in_what_people_and_models_say() -> None:
    for hiding in HIDING:
        evil = f"evil(){hiding}print(1)"
        html = rendered(
            step("assistant", text=evil),
            step("reasoning", text=evil),
            step("tool_call", call_id="c", tool=evil, arguments={"command": evil, evil: [evil]}),
            step("approval", call_id="other", tool=evil, why=evil, command=evil),
            step("run_ended", status="failed", exit_status="lost", reason=evil),
            step("user", text=evil, source="steer"),
            step("error", what=evil, detail=evil),
        )
        assert (hiding in html, html.count("evil()") >= 9) == (False, True), ascii(hiding)


def test_what_a_model_or_a_command_says_is_never_markup() -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    html = rendered(
        step("assistant", text=evil),
        step("tool_call", call_id="c", tool=evil, arguments={evil: evil}),
        step("tool_call", call_id="d", tool="shell", arguments=evil),
        step("tool_result", call_id="c", output=evil),
        step("error", what=evil, detail=evil, code=evil),
        step("child", call_id="none", step={"kind": evil}),
        step("todo", items=[{"text": evil, "status": "done"}]),
        step(evil),
    )
    assert "<script>" not in html
    assert "<img" not in html
    assert html.count("&lt;script&gt;") >= 8


NOTES = {
    "loop blocked a call": step("guardrail", call_id="c", guardrail="loop", action="block"),
    "Denied, as there was no answer in time": step("decision", call_id="c", approved=False, by="clock"),
    "make test": step("verify", attempt=1, command="make test", passed=False, return_code=2),
    "9,000 → 1,000 tokens": step("compaction", summary="s", tokens_before=9000, tokens_after=1000),
    "a.py:3 (error): Wrong.": step(
        "reviewer", model="openai/mini", findings=[{"file": "a.py", "line": 3, "severity": "error", "text": "Wrong."}]
    ),
    "Not reviewed by openai/mini": step("reviewer", model="openai/mini", problem="no answer"),
    "Proposed a note for all projects: Use make": step("remember", text="Use make", why="x", scope="organization"),
    "fine": step("tool_result", call_id="c", output="fine"),
    "time travel": step("time_travel", years=3),
    "5 steps never arrived": step("gap", missing=5),
    "The model gave an empty answer": step("assistant"),
    "Resumed from step 7 of attempt 2 on oka. &lt;b&gt;died": step(
        "resumed", run_id="a" * 12, why="<b>died", from_step=7, from_attempt=2, from_drone="oka"
    ),
    "Resumed from an earlier step": step("resumed", run_id="a" * 12),
    "Pull request #7 opened": step("pull_request", state="opened", number=7, url="https://git.example/7"),
}


def test_what_happens_to_a_run_is_said_in_a_line() -> None:
    assert [words for words, each in NOTES.items() if words not in rendered(each)] == []
    retry = step("retry", attempt=1, delay_s=2, error_class="rate_limit", error="429")
    assert "rate limit; retried after 2.0 s (3 times)" in rendered(retry, retry, retry)
    # A link of another kind than the web is none.
    assert "<a" not in rendered(step("pull_request", state="opened", number=7, url="javascript:alert(1)"))
    html = rendered(step("assistant", text="lost", undone=True), step("assistant", text="kept"))
    assert ("1 step undone" in html, "lost" in html) == (True, False)
    # An output that is not shown whole leads to the log.
    html = rendered(*call(1, output="part", output_bytes=1_000_000, log_sha256="a" * 64))
    assert (f'href="/orders/{ORDER}/log?call=2"' in html, "log?call" in rendered(*call(1))) == (True, False)


def test_a_price_that_is_not_known_is_not_shown_as_nothing() -> None:
    assert [money(None), money(0.0), money(0.0312), money(12.345)] == ["price unknown", "$0.00", "$0.0312", "$12.35"]
