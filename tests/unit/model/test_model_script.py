"""Which reply of a script a request gets: read off the request, so that any number of conversations play it at once."""

from __future__ import annotations

from typing import Any

from drone.model.scripted.script import Book

USER = {"role": "user", "content": "Go."}
ASSISTANT = {"role": "assistant", "content": "Yes."}
SYSTEM = {"role": "system", "content": "script:other is not looked for here"}


def _texts(book: Book, *requests: list[dict[str, Any]]) -> list[str]:
    return [book.reply(messages)[1].text for messages in requests]


def test_the_reply_is_chosen_by_the_number_of_answers_so_far() -> None:
    book = Book.of([{"text": "one"}, {"text": "two"}])
    opening = {"role": "user", "content": "Next.\n<situation>\n</situation>"}
    requests = [[SYSTEM, USER], [SYSTEM, USER, ASSISTANT, USER], [SYSTEM, USER], [USER, *[ASSISTANT] * 2, opening]]
    assert _texts(book, *requests) == ["one", "two", "one", "one"]
    for_ever = Book.of([{"text": "one"}, {"text": "and so on", "repeat": True}])
    assert _texts(for_ever, [USER, *[ASSISTANT] * 9]) == ["and so on"]


def test_failures_are_played_once_a_conversation_and_before_the_reply() -> None:
    book = Book.of([{"text": "one", "fail": [{"status": 429}, {"status": 500}]}])
    other = {"role": "user", "content": "Another conversation."}
    assert [book.reply([USER])[1].status for _ in range(4)] == [429, 500, 200, 200]
    assert book.reply([other])[1].status == 429


def _called(number: int) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"id": f"call_{number}_0"}, {"id": f"call_{number}_1_2"}]}


def test_after_a_compaction_the_script_goes_on_where_it_was() -> None:
    compacted = {"role": "user", "content": "<summary>\nshort\n\n<request>\nscript:long\n</request>\n</summary>"}
    book = Book.of({"long": [{"text": str(n)} for n in range(10)]})
    assert _texts(book, [compacted, _called(4), _called(5)], [compacted, _called(5), USER, ASSISTANT]) == ["6", "7"]
    opening = {"role": "user", "content": "Next: script:long\n<situation>\n</situation>"}
    assert _texts(book, [compacted, _called(0), opening], [compacted, _called(0), opening, _called(0)]) == ["0", "1"]
