"""Models that take turns on one conversation, each at an endpoint of its own over real HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import pytest

from drone.agent.values import ModelCallFailed
from shared.events import RetryStep
from shared.messages import Message
from shared.work_order import Limits, OrderProvider, RotationOrder
from tests.support.scripted import HELLO, Called, ScriptedFactory, says

pytestmark = pytest.mark.usefixtures("warm_model")
NAMES = ("one", "two", "three")
REFUSES = {"status": 401, "error": "no"}
Taking = Callable[..., "SharedConversation"]


class SharedConversation:
    """One conversation with several models: each answer is appended to it, as the loop does."""

    def __init__(self, scripted: ScriptedFactory, broken: Sequence[str], rotation: RotationOrder) -> None:
        self.servers = [scripted([REFUSES if name in broken else says(f"I am {name}.")] * 60) for name in NAMES]
        own, *others = (
            OrderProvider(name=name, model=f"openai/{name}", api_base=server.url, context_window=window)
            for name, server, window in zip(NAMES, self.servers, (9_000, 5_000, 7_000), strict=True)
        )
        self.provider = own.model_copy(update={"fallbacks": tuple(others), "rotation": rotation})
        self.messages: list[Message] = list(HELLO)
        self.resume()

    def resume(self) -> None:
        """Go on with the model as another run of the order makes it."""
        self.called = Called("", self.provider, limits=Limits(max_retries=0))

    def ask(self) -> str:
        """The name of the model that answers."""
        answer = self.called.ask(*self.messages)
        self.messages += [answer.message, Message(role="user", content="Go on.")]
        return str(answer.model.removeprefix("openai/"))


@pytest.fixture
def taking(scripted: ScriptedFactory) -> Iterator[Taking]:
    """A function that makes such a conversation, some of whose models are broken."""
    made: list[SharedConversation] = []

    def make(*broken: str, rotation: RotationOrder) -> SharedConversation:
        made.append(SharedConversation(scripted, broken, rotation))
        return made[-1]

    yield make
    for each in made:
        each.called.model.close()


def test_models_alternate_answer_by_answer_on_one_conversation(taking: Taking) -> None:
    turns = taking(rotation="alternate")
    assert [turns.ask() for _ in range(4)] == ["one", "two", "three", "one"]
    said = [message["content"] for message in turns.servers[0].requests[1]["messages"]]
    assert said[-6:] == ["I am one.", "Go on.", "I am two.", "Go on.", "I am three.", "Go on."]
    # A resumed run goes on with the model whose turn it is.
    turns.called.model.close()
    turns.resume()
    assert turns.ask() == "two"


def test_at_random_every_model_answers(taking: Taking) -> None:
    turns = taking(rotation="random")
    # That one of three stays silent in 40 draws, or none answers twice in a row: less often than once in 10^6 runs.
    answered = [turns.ask() for _ in range(40)]
    assert set(answered) == set(NAMES)
    assert any(one == next_one for one, next_one in pairwise(answered))


def test_a_model_that_fails_is_left_out_and_the_others_go_on_taking_turns(taking: Taking) -> None:
    turns = taking("two", rotation="alternate")
    assert [turns.ask() for _ in range(5)] == ["one", "three", "one", "three", "one"]
    assert len(turns.servers[1].requests) == 1
    retries = [body for body in turns.called.recorder.bodies if isinstance(body, RetryStep)]
    assert [each.error.endswith("Continuing with openai/three.") for each in retries] == [True]
    assert turns.called.model.window == 7_000, "the one that is left out no longer bounds it"


def test_when_every_model_failed_the_last_one_says_why_and_is_asked_again(taking: Taking) -> None:
    turns = taking(*NAMES, rotation="alternate")
    for _ in range(2):
        with pytest.raises(ModelCallFailed) as caught:
            turns.ask()
        assert caught.value.error_class == "auth"
    assert [len(server.requests) for server in turns.servers] == [1, 1, 2]


def test_a_question_must_fit_every_model_that_may_answer_next(taking: Taking) -> None:
    cases: dict[RotationOrder, int] = {"off": 9_000, "alternate": 5_000, "random": 5_000}
    assert {rotation: taking(rotation=rotation).called.model.window for rotation in cases} == cases
