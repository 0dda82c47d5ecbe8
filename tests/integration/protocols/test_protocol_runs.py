"""A whole run of an order with signed thinking: journal, figures and the next question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shared.transcripts import messages_of
from tests.support.endpoints import Endpoint
from tests.support.protocols import ANTHROPIC
from tests.support.protocols.spoken import Answer, Counted, SpokenCall
from tests.support.runs import Bench, small_repository

pytestmark = pytest.mark.usefixtures("warm_model")


def test_a_run_keeps_what_was_signed_and_counts_what_came_from_the_cache(tmp_path: Path) -> None:
    protocol = ANTHROPIC
    bench = Bench(tmp_path / "drone", small_repository(tmp_path / "repository.git"))
    bench.order = bench.order.model_copy(update={"provider": protocol.provider("http://127.0.0.1:9")})
    calls = (SpokenCall("a1b2c3d4e", "shell", {"command": "true"}),)
    looks = Answer("Look.", "Where is it?", "c2lnbmVk", calls, Counted(1000, 50, read=400))
    done = Answer("Done.", usage=Counted(2000, 10, read=1000))
    with Endpoint(protocol.answer(looks), protocol.answer(done)) as endpoint:
        ended = bench.run(endpoint.url + protocol.path)
    assert (ended.exit_status, ended.response) == ("stopped", "Done.")
    assert (ended.stats.input_tokens, ended.stats.cached_tokens, ended.stats.output_tokens) == (3000, 1400, 60)
    assert 0 < (ended.stats.cost_usd or 0) < 0.02
    answer = messages_of(event.body for event in bench.events)[1]
    assert "c2lnbmVk" in json.dumps(answer.thinking_blocks)
    assert "c2lnbmVk" in endpoint.asked[1].raw.decode()
