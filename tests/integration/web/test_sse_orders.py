"""The live stream of an order over real HTTP: nothing missed, nothing doubled, whatever breaks on the way."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable

import pytest

from control_plane.contract.declarations import orders, tokens
from control_plane.contract.declarations.orders import CancelRequest, StepFilter
from control_plane.contract.declarations.tokens import ApiTokenRequest
from control_plane.web.stream import Pace
from shared.errors import Unauthenticated
from shared.events import AssistantStep, Phase, Usage
from tests.support import wait_until
from tests.support.fleet import Api, Follower, PlayedRun

NEVER_S = 3600.0
"""An interval that does not pass during a test: what happens nevertheless has another cause."""


@pytest.mark.parametrize("steps", [50, pytest.param(200, marks=pytest.mark.long)])
def test_whoever_connects_whenever_sees_each_step_once_and_in_order(api: Api, run: PlayedRun, steps: int) -> None:
    writer = background(lambda: [run.says(f"message {number}") for number in range(steps - 1)])
    followers = [connect_at(api, run, step) for step in sorted(random.Random(7).sample(range(steps - 20), 5))]
    writer.join()
    run.ends()
    followers.append(Follower(api, run.order_id, raw=True))
    wholes = [follower.ended() for follower in followers]
    assert [follower.seqs for follower in followers] == [list(range(1, steps + 2))] * 6
    assert all(len(whole["steps"]) == steps + 1 for whole in wholes)


def test_a_new_step_arrives_without_a_poll(api: Api, run: PlayedRun) -> None:
    # The stream would not look by itself, and its client does not open another one.
    at_pace(api, Pace(heartbeat_s=NEVER_S, poll_s=NEVER_S, figures_s=1.0))
    api.wait_for_hub()
    follower = Follower(api, run.order_id, raw=True)
    wait_until(lambda: follower.seqs == [1])
    run.says("there")
    wait_until(lambda: follower.seqs == [1, 2])
    # Figures that were held back follow without another step.
    for text in ("one", "two"):
        run.step(AssistantStep(text=text, usage=Usage(input_tokens=10)))
    wait_until(lambda: follower.of("order")[-1]["stats"]["input_tokens"] == 20)
    # Nor do changes of the order wait for one.
    api.client.call(orders.CANCEL, CancelRequest(), order_id=run.order_id)
    wait_until(lambda: [each["status"] for each in follower.of("order")][-1] == "canceling")
    assert "steps" not in follower.of("order")[-1]


def test_text_in_flight_comes_as_deltas_and_is_never_stored(api: Api, run: PlayedRun) -> None:
    follower = Follower(api, run.order_id)
    # A quiet stream beats.
    wait_until(lambda: follower.of("step") and follower.of("heartbeat"))
    wait_until(lambda: (run.streams("Let me "), joined(follower))[1])
    run.streams("look.", kind="text")
    wait_until(lambda: joined(follower).endswith("look."))
    run.ends()
    assert "Let me" not in str(follower.ended())
    assert {delta["run"] for delta in follower.of("delta")} == {run.id}


def test_text_in_flight_never_overtakes_the_step_that_it_follows_and_is_left_out_after_its_own(
    api: Api, run: PlayedRun
) -> None:
    follower = Follower(api, run.order_id)
    wait_until(lambda: (run.streams("now, "), joined(follower))[1])
    run.streams("later", after_seq=2)
    run.streams("soon, ", after_seq=1)
    wait_until(lambda: joined(follower).endswith("soon, "))
    run.says("the second step")
    wait_until(lambda: joined(follower).endswith("later"))
    kinds = [event for event, _ in follower.events if event in {"step", "delta"}]
    assert kinds[-2:] == ["step", "delta"]
    run.says("the third step")
    wait_until(lambda: len(follower.seqs) == 3)
    run.streams("late", after_seq=2, offset=5)
    wait_until(lambda: (run.streams("after", offset=0), joined(follower).endswith("after"))[1])
    assert "laterlate" not in joined(follower)


def test_neither_another_drone_nor_a_late_run_puts_words_into_a_run(api: Api, run: PlayedRun) -> None:
    stranger = api.add_drone("stranger")
    newer = run.drone.take({"id": run.order_id})
    # Somebody follows the stranger's own order, so that what it publishes is listened to.
    followers = [Follower(api, each) for each in (run.order_id, stranger.take(api.submit()).order_id)]
    wait_until(lambda: all(each.of("step") for each in followers))
    newer.streams("forged", drone=stranger)
    run.drone.core.broker.redis.publish(f"fleet:{run.drone.id}:live", "no json at all")
    run.streams("late")
    newer.streams("real")
    wait_until(lambda: joined(followers[0]) == "real")


def test_an_order_that_ended_gives_its_steps_its_state_and_the_end_without_proxies_holding_it_back(
    api: Api, run: PlayedRun
) -> None:
    text = "a\nb\r\nc\rd\u2028e\u0085f\x00g"
    run.step(Phase(name="working", detail=text))
    run.ends()
    follower = Follower(api, run.order_id)
    follower.ended()
    assert [event for event, _ in follower.events] == ["step", "step", "step", "order", "end"]
    # Line ends of every kind do not break the stream.
    assert follower.of("step")[1]["detail"] == text
    with api.http() as http, http.stream("GET", f"/api/v1/orders/{run.order_id}/events") as answer:
        headers = answer.headers
    assert headers["content-type"].startswith("text/event-stream")
    assert (headers["x-accel-buffering"], "no-cache" in headers["cache-control"]) == ("no", True)


def test_without_the_broker_steps_come_from_the_database_and_later_changes_are_heard_again(
    api: Api, run: PlayedRun
) -> None:
    at_pace(api, Pace(heartbeat_s=NEVER_S, poll_s=0.3, figures_s=NEVER_S))
    api.wait_for_hub()
    follower = Follower(api, run.order_id, raw=True)
    wait_until(lambda: follower.seqs == [1])
    api.broker.stop()
    wait_until(lambda: not api.hub.connected)
    run.says("nobody publishes this")
    wait_until(lambda: follower.seqs == [1, 2])
    api.broker.start()
    # What is in flight while nobody listens is lost, so it is said until somebody hears it.
    wait_until(lambda: (run.streams("still there"), joined(follower))[1], every=0.2)


def test_a_client_goes_on_through_a_restart_of_the_server_with_the_order_that_was_the_last_when_it_began(
    api: Api, run: PlayedRun
) -> None:
    follower = Follower(api, "@last")
    wait_until(lambda: follower.seqs == [1] and follower.of("order"))
    api.submit("One that is newer")
    api.stop()
    run.says("while it was away")
    wait_until(lambda: follower.of("connection"))
    api.start()
    run.ends()
    follower.ended()
    assert follower.seqs == [1, 2, 3]
    assert [each["state"] for each in follower.of("connection")][-1] == "back"


def test_a_stream_that_opens_while_the_server_stops_ends(api: Api, run: PlayedRun) -> None:
    api.hub.close_streams()
    follower = Follower(api, run.order_id)
    wait_until(lambda: follower.of("connection"))


def test_a_token_that_is_revoked_is_not_followed_any_further(api: Api, run: PlayedRun) -> None:
    token = api.client.call(tokens.CREATE_API, ApiTokenRequest(role="viewer"))
    follower = Follower(api, run.order_id, token=token["token"])
    wait_until(lambda: follower.seqs == [1])
    api.client.call(tokens.REVOKE_API, token_id=token["id"])
    wait_until(lambda: follower.error)
    assert isinstance(follower.error, Unauthenticated)


def test_a_client_that_does_not_read_for_a_while_gets_every_step_all_the_same(api: Api, run: PlayedRun) -> None:
    with slow_reader(api, run) as reader:
        background(lambda: [run.streams("x" * 20_000) for _ in range(300)]).join()
        background(lambda: [run.says(f"message {number}") for number in range(50)]).join()
        run.ends()
        received = b"".join(iter(lambda: reader.recv(1 << 20), b""))
    ids = [int(line.removeprefix(b"id: ")) for line in received.split(b"\n") if line.startswith(b"id: ")]
    assert ids[-51:] == list(range(2, 53))


def at_pace(api: Api, pace: Pace) -> None:
    """Restart the server with this pace of its streams."""
    api.pace = pace
    api.restart()


def joined(follower: Follower) -> str:
    return "".join(delta["text"] for delta in follower.of("delta"))


def background(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def connect_at(api: Api, run: PlayedRun, step: int) -> Follower:
    """Begin to follow, without the client's own care, once the order has at least `step` steps."""
    wait_until(
        lambda: len(api.client.call(orders.STEPS, StepFilter(limit=1000), order_id=run.order_id)) >= step, every=0.002
    )
    return Follower(api, run.order_id, raw=True)


def slow_reader(api: Api, run: PlayedRun) -> socket.socket:
    """A connection that asked for the stream and takes nothing of it, with as little room as can be."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.settimeout(60)
    reader.connect(("127.0.0.1", api.port))
    path = f"/api/v1/orders/{run.order_id}/events"
    request = f"GET {path} HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {api.token}\r\n\r\n"
    reader.sendall(request.encode())
    # The first step is there: from now on its text in flight is meant for this connection.
    received = b""
    while b"event: step" not in received:
        received += reader.recv(1024)
    return reader
