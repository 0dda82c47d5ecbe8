"""The provider's raw answers are kept on request, and always if they cannot be acted on (M-007)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from drone.agent.values import RawAnswer
from drone.model.raw_chunks import MOST_RAW, RawChunks
from drone.runs.recorder import HOLDS_SECRET, RawAnswers
from shared.blobs import digest
from shared.events import AssistantStep
from shared.messages import Message
from shared.redaction import know
from tests.support.runs import Bench, shell
from tests.support.scripted import ScriptedFactory, says

pytestmark = pytest.mark.usefixtures("warm_model")


@pytest.fixture
def bench(bench: Bench) -> Iterator[Bench]:
    bench.keeps_logs = True
    yield bench
    know([])


def kept(bench: Bench) -> list[str]:
    """The raw answers, as they were kept; empty for those that were not."""
    steps = bench.of(AssistantStep)
    return [bench.blobs[step.raw_sha256].decode() if step.raw_sha256 is not None else "" for step in steps]


def spoken(raw: str) -> str:
    """The text in the pieces of a raw answer."""
    chunks = [json.loads(line) for line in raw.splitlines()]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


def test_every_answer_is_kept_if_the_order_asks_for_it(bench: Bench, scripted: ScriptedFactory) -> None:
    know(["correct-horse-battery"])
    bench.change(keep_raw=True)
    talk = says("It is correct-horse-battery.", tool_calls=shell("true")["tool_calls"])
    bench.run(scripted([shell("touch made"), talk, says("All is done.")]).url)
    first, with_secret, last = kept(bench)
    assert '"shell"' in first
    assert spoken(last) == "All is done."
    # The pieces of an answer with a secret could not be masked.
    assert (with_secret, [step.raw_note for step in bench.of(AssistantStep)]) == ("", ["", HOLDS_SECRET, ""])
    assert "battery" not in str(bench.blobs)


def test_without_a_request_only_an_answer_that_cannot_be_acted_on_is_kept(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    bench.run(scripted([shell("touch made"), says("half an ans", finish_reason="length"), says("done")]).url)
    assert [spoken(raw) for raw in kept(bench)] == ["", "half an ans", ""]


def test_what_is_kept_is_found_again_by_its_digest_and_a_disk_that_takes_nothing_ends_no_run(tmp_path: Path) -> None:
    answer = RawAnswer("{}\n"), Message(role="assistant", content="done")
    found, _ = RawAnswers(tmp_path, lambda path: digest(path.read_bytes()))(*answer)
    assert found == digest(b"{}\n")
    (tmp_path / "file").write_text("")
    assert RawAnswers(tmp_path / "file" / "logs", None)(*answer) == (None, "not kept: Not a directory")


def test_of_a_long_answer_only_a_part_is_kept() -> None:
    chunk = SimpleNamespace(choices=[], model_dump_json=lambda **_: "x" * 1000)
    stream = SimpleNamespace(completion_stream=iter([chunk] * 500))
    raw = RawChunks()
    raw.listen(stream)
    assert len(list(stream.completion_stream)) == 500
    assert raw.is_cut
    assert MOST_RAW / 2 < sum(map(len, raw.lines)) < MOST_RAW * 1.1
