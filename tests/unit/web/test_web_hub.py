"""One stream's mailbox: bounded, newest text first to stay, pieces joined."""

from __future__ import annotations

import asyncio

from control_plane.web.hub import WAITING_DELTAS, Changes, Subscription
from shared.events import Delta


def delta(text: str, run: str = "run", kind: str = "text") -> Delta:
    return Delta(run_id=run, order_id="order", kind=kind, text=text)


def filled(*deltas: Delta, changed: bool = False) -> tuple[bool, list[Delta]]:
    """What a stream finds that looks after all of this was posted from another thread."""

    async def look() -> tuple[bool, list[Delta]]:
        mailbox = Subscription("order", asyncio.get_running_loop())
        await asyncio.to_thread(lambda: [mailbox.post(each) for each in deltas])
        mailbox.post(Changes(row=1.0)) if changed else None
        # The posts of the other thread reach this loop in its next round.
        await asyncio.sleep(0)
        return bool(mailbox.take_changes().last), mailbox.deltas()

    return asyncio.run(look())


def test_pieces_of_one_text_that_follow_each_other_arrive_as_one() -> None:
    _, found = filled(delta("a"), delta("b"), delta("c", kind="thinking"), delta("d", run="other"), delta("e"))
    assert [each.text for each in found] == ["ab", "c", "d", "e"]


def test_a_mailbox_that_nobody_empties_keeps_the_newest_text_only() -> None:
    _, found = filled(*(delta(f"{number:04},") for number in range(WAITING_DELTAS + 100)))
    assert found[0].text.startswith("0100,")
    assert len(found[0].text) == WAITING_DELTAS * 5


def test_text_alone_is_no_change_of_the_order() -> None:
    assert filled(delta("a"))[0] is False
    assert filled(delta("a"), changed=True)[0] is True


def test_steps_do_not_hide_that_more_than_steps_changed_before_them() -> None:
    async def look() -> list[Changes]:
        mailbox = Subscription("order", asyncio.get_running_loop())
        for changes in (Changes(row=1.0), Changes(steps=2.0)):
            mailbox.post(changes)
        await asyncio.sleep(0)
        return [mailbox.take_changes(), mailbox.take_changes()]

    assert asyncio.run(look()) == [Changes(row=1.0, steps=2.0), Changes()]


def test_a_post_to_a_stream_whose_loop_has_ended_is_dropped_in_peace() -> None:
    async def make() -> Subscription:
        return Subscription("order", asyncio.get_running_loop())

    asyncio.run(make()).post(delta("a"))
