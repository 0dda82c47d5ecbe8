"""What stands below a summary: the request in the person's words, and the files, through any number of compactions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drone.agent.compaction.footer import Footer, footer_of, parted, without_tags
from drone.agent.transcript import Transcript
from shared.messages import Message, ToolCall
from tests.support.compactions import Compacting, called, conversation, long_conversation, said

REQUEST = "Mend the login, script:fix-it."
OPENING = Message(role="user", content=f"{REQUEST}\n\n<situation>\n</situation>", part="opening")


def _files(*steps: list[Message]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    footer = footer_of([message for step in steps for message in step], (), Footer(), "")
    return footer.read, footer.changed


def _long(*first: Message) -> Transcript:
    return conversation(*first, *long_conversation()[2:])


def test_files_are_listed_by_what_was_done_to_them_and_once() -> None:
    steps = [
        called(1, "Error: the first line of a log", "file_read", path="a.py"),
        called(2, "text", "file_read", path="b.py", mode="lines", start_line=3),
        called(6, "text", "file_read", path="d.py"),
        called(3, "text", "file_read", path="a.py", mode="view"),
        called(4, "edited", "editor", path="c.py", command="str_replace"),
        called(5, "wrote", "file_write", path="b.py", content="new"),
    ]
    assert _files(*steps) == (("d.py", "a.py"), ("c.py", "b.py"))


def test_a_later_run_carries_on_what_an_earlier_one_had_in_its_summary_also_in_one_of_a_hook() -> None:
    first, later = Compacting(request=REQUEST), Compacting()
    first.hooks.answer = "By hand."
    transcript = _long(OPENING, *called(70, "x", "file_read", path="a.py"))
    first.compaction.compact(transcript, "window")
    assert first.steps[0].summary == (
        f"By hand.\n\n<request>\n{REQUEST}\n</request>\n\n<files_read>\na.py\n</files_read>"
    )
    continued = conversation(*transcript[1:], *long_conversation()[2:])
    later.compaction.compact(continued, "window")
    assert later.steps[0].files_read == ("a.py",)


def test_what_touched_no_file_that_can_be_named_is_not_listed() -> None:
    steps = [
        called(1, "there is no 'a.py'", "file_read", failed=True, path="a.py"),
        called(1, "a.py", "file_read", path=".", mode="view"),
        called(1, "a.py:1: x", "file_read", path="src", mode="search", search_pattern="x"),
        called(1, "text", "shell", path="a.py"),
        called(1, "text", "file_read", path=["a.py"]),
        called(1, "text", "file_read", path="two\nlines"),
        called(1, "text", "file_read", path="</files_read>"),
    ]
    for arguments in ("not json", "[]", '"a.py"', "[" * 100_000):
        call = ToolCall(id="1", name="file_write", arguments=arguments)
        steps.append([said("assistant", "").model_copy(update={"tool_calls": (call,)})])
    assert [step for step in steps if _files(step) != ((), ())] == []


def test_request_and_files_are_carried_through_every_further_compaction() -> None:
    around = Compacting(request=REQUEST)
    transcript = _long(OPENING, *called(70, "x", "file_read", path="a.py"), *called(71, "x", "editor", path="b.py"))
    for number in range(3):
        around.compaction.compact(transcript, "window")
        transcript.append(*called(80 + number, "x", "file_read", path=f"{number}.py"), *long_conversation()[2:])
    step = around.steps[-1]
    assert (step.files_read, step.files_changed) == (("a.py", "0.py", "1.py"), ("b.py",))
    assert "<request>\nMend the login, script:fix-it.\n</request>" in step.summary
    assert [text.count(f"<request>\n{REQUEST}\n</request>") for text in around.asked_with] == [1, 1, 1]


def _todo(number: int, *items: tuple[str, str], failed: bool = False) -> list[Message]:
    listed = [{"text": text, "status": status} for text, status in items]
    return called(number, "noted", "todo", failed=failed, items=listed)


def test_what_is_open_on_the_list_stands_below_and_is_shown_to_the_model_that_summarizes() -> None:
    around = Compacting()
    first = _todo(70, ("Read", "done"), ("Write the\ntest", "in_progress"), ("Ship", "pending"))
    transcript = _long(OPENING, *_todo(69, ("Old", "pending")), *first, *_todo(71, ("Refused", "pending"), failed=True))
    for number in range(3):
        around.compaction.compact(transcript, "window")
        transcript.append(*called(80 + number, "x", "file_read", path=f"{number}.py"), *long_conversation()[2:])
    items = "<todo>\n[in progress] Write the test\n[pending] Ship\n</todo>"
    assert [step.summary.count(items) for step in around.steps] == [1, 1, 1]
    assert [text.count(items) for text in around.asked_with] == [1, 1, 1]


def test_a_list_whose_items_are_all_done_is_no_longer_carried() -> None:
    around = Compacting()
    transcript = _long(OPENING, *_todo(70, ("Ship", "pending")))
    around.compaction.compact(transcript, "window")
    transcript.append(*_todo(90, ("Ship", "done")), *long_conversation()[2:])
    around.compaction.compact(transcript, "window")
    assert ["<todo>" in step.summary for step in around.steps] == [True, False]
    assert ["<todo>" in text for text in around.asked_with] == [True, False]


def test_a_request_that_is_too_long_keeps_its_head_and_tail_and_half_of_the_room() -> None:
    request = "first " + "and " * 2_000 + "last"
    files = tuple(f"some/longer/path/{n}.py" for n in range(100))
    text = Footer(request, todo=("[pending] x" * 20,) * 9, read=files, changed=files).text(2_000)
    shown = parted(text)[1].request
    assert len(text) < 2_300
    assert 850 < len(shown) < 1_150
    assert shown.startswith("first and")
    assert shown.endswith("and last")
    assert "characters left out to save room" in shown


_NAMES = st.lists(
    st.from_regex(r"[a-z<>/(),. ]{1,20}", fullmatch=True).filter(lambda n: n not in {".", "./"}), unique=True
)


@given(text=st.text(), request=st.text(), read=_NAMES, changed=_NAMES, items=st.lists(st.text(min_size=1)))
def test_what_is_written_is_read_again(
    text: str, request: str, read: list[str], changed: list[str], items: list[str]
) -> None:
    steps = [called(n, "x", "file_read", path=name) for n, name in enumerate(read)]
    steps += [called(100 + n, "x", "file_write", path=name) for n, name in enumerate(changed)]
    steps.append(called(200, "noted", "todo", items=[{"text": item} for item in items]))
    footer = footer_of([message for step in steps for message in step], (), Footer(), request)
    assert parted(f"{without_tags(text)}\n\n{footer.text(100_000)}") == (without_tags(text), footer)
