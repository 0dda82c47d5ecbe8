"""What a message of the user is: told by a field, and read from the text of messages that older processes sent."""

from __future__ import annotations

from shared.events import CompactionStep, UserStep
from shared.messages import Message
from shared.transcripts import messages_of, opens_turn, said, summary_in, summary_message

OPENING = "Fix the login.\n\n<situation>\nDate: today\n</situation>"
SUMMARY = "<summary>\nAll is well.\n</summary>"


def test_steps_say_what_their_messages_are() -> None:
    steps = [
        UserStep(text=OPENING, source="prompt"),
        UserStep(text="And the logout.", source="steer"),
        CompactionStep(summary="All is well.", kept=1),
    ]
    assert [message.part for message in messages_of(steps[:2])] == ["opening", "other"]
    assert [message.part for message in messages_of(steps)] == ["summary", "other"]
    prompt = said(UserStep(text=SUMMARY, source="prompt"))
    assert (opens_turn(prompt), summary_in(prompt)) == (True, None)
    assert summary_in(summary_message("<summary>\nquoted\n</summary>")) == "<summary>\nquoted\n</summary>"


def test_words_of_a_person_that_look_like_the_loops_own_are_a_persons() -> None:
    for text in (OPENING, SUMMARY):
        message = said(UserStep(text=text, source="steer"))
        assert (opens_turn(message), summary_in(message)) == (False, None), text


def test_messages_of_older_processes_are_read_from_their_text() -> None:
    cases = {OPENING: (True, None), SUMMARY: (False, "All is well."), "And the logout.": (False, None)}
    read = {text: Message.model_validate({"role": "user", "content": text}) for text in cases}
    assert {text: (opens_turn(message), summary_in(message)) for text, message in read.items()} == cases
