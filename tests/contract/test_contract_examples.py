"""Every message format of a release is kept as an example; the current code must still read all of them.

`v1` has those of the first release. From then on, examples are never edited: a new field gets a new example next to the
old one (`v1/beat.json`, `v2/beat.json`); the old one stays, and shows that messages of an old drone can still be read.
"""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from shared import control, events
from shared.budgets import Allowance, AllowanceRequest
from shared.code_hosts import CodeHostReading
from shared.control import ControlMessage
from shared.envelope import Binding, key_id, open_envelope, public_key
from shared.events import Beat, Delta, Event, Hello
from shared.rates import ModelPermit, PermitRequest
from shared.registration import (
    Credentials,
    JoinTokenString,
    NewKey,
    NewKeyAnswer,
    NewKeyRequest,
    RegistrationAnswer,
    RegistrationRequest,
)
from shared.wire import Wire
from shared.work_order import WorkOrder

EXAMPLES = Path(__file__).parent / "examples"
MODELS: dict[str, type[Wire]] = {
    "event": Event,
    "control": ControlMessage,
    "delta": Delta,
    "beat": Beat,
    "hello": Hello,
    "join_token": JoinTokenString,
    "registration_request": RegistrationRequest,
    "registration_answer": RegistrationAnswer,
    "credentials": Credentials,
    "new_key": NewKey,
    "new_key_request": NewKeyRequest,
    "new_key_answer": NewKeyAnswer,
    "work_order": WorkOrder,
    "code_host_reading": CodeHostReading,
    "allowance_request": AllowanceRequest,
    "allowance": Allowance,
    "permit_request": PermitRequest,
    "model_permit": ModelPermit,
}
FREE = frozenset({"labels", "params", "arguments", "blocks", "thinking_blocks", "step"})
"""Objects in which every key is content."""
PATHS = sorted(path for path in EXAMPLES.glob("v*/*.json") if path.stem != "envelope")


def model_of(path: Path) -> type[Wire]:
    """The model of an example file: `event.phase.json` is an Event."""
    return MODELS[path.name.split(".")[0]]


def parsed(path: Path) -> Wire:
    return model_of(path).model_validate_json(path.read_text())


def kinds(union: Any) -> set[str]:
    """The kinds of a body: the values of its discriminator."""
    return {each.model_fields["kind"].default for each in get_args(union)}


def with_news(value: Any) -> Any:
    """The same value from a newer sender: with an unknown field in every object of ours."""
    if isinstance(value, list):
        return [with_news(each) for each in value]
    if isinstance(value, dict):
        known = {key: each if key in FREE else with_news(each) for key, each in value.items()}
        return {**known, "a_field_of_tomorrow": {"x": [1]}}
    return value


def said_by(example: Any, read: Any) -> Any:
    """The parsed value without fields that are not in the example: they were added later, and have their defaults."""
    if isinstance(example, dict) and isinstance(read, dict):
        return {key: said_by(value, read[key]) for key, value in example.items()}
    if isinstance(example, list) and isinstance(read, list) and len(example) == len(read):
        return [said_by(one, other) for one, other in zip(example, read, strict=True)]
    return read


def places(value: Any, at: str = "") -> set[str]:
    """The paths of all fields in an example: `body.usage.cost_usd`."""
    if isinstance(value, list):
        return {place for each in value for place in places(each, at)}
    if isinstance(value, dict) and at.rpartition(".")[2] not in FREE:
        return {place for key, each in value.items() for place in {f"{at}.{key}", *places(each, f"{at}.{key}")}}
    return set()


def test_an_example_is_still_read_and_every_word_of_it_is_kept() -> None:
    examples = {path: json.loads(path.read_text()) for path in PATHS}
    written = {path: parsed(path).model_dump_json() for path in PATHS}
    lost = [path.name for path, example in examples.items() if said_by(example, json.loads(written[path])) != example]
    other = [path.name for path in PATHS if model_of(path).model_validate_json(written[path]) != parsed(path)]
    assert (lost, other) == ([], [])


def test_an_example_with_fields_of_a_newer_version_is_read_without_them() -> None:
    newer = {path: json.dumps(with_news(json.loads(path.read_text()))) for path in PATHS}
    read = {path: model_of(path).model_validate_json(text) for path, text in newer.items()}
    assert [path.name for path in PATHS if read[path] != parsed(path)] == []


def test_every_model_and_every_kind_of_body_has_an_example() -> None:
    stems = {path.stem for path in PATHS}
    wanted = {name for name in MODELS if name not in {"event", "control"}}
    wanted |= {f"event.{kind}" for kind in kinds(get_args(events.Body)[0])}
    wanted |= {f"control.{kind}" for kind in kinds(control.ControlMessage.model_fields["body"].annotation)}
    assert wanted - stems == set()


def test_every_field_of_today_however_deep_is_in_some_example() -> None:
    shown, today = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for path in PATHS:
        shown[path.stem] |= places(json.loads(path.read_text()))
        today[path.stem] |= places(json.loads(parsed(path).model_dump_json()))
    assert {stem: missing for stem, fields in today.items() if (missing := fields - shown[stem])} == {}


def test_an_envelope_that_was_sealed_long_ago_still_opens() -> None:
    for path in sorted(EXAMPLES.glob("v*/envelope*.json")):
        kept = json.loads(path.read_text())
        sender, recipient = (base64.b64decode(kept[f"{who}_private_key"]) for who in ("sender", "recipient"))
        opened = open_envelope(
            kept["envelope"],
            recipients={key_id(public_key(recipient)): recipient},
            sender=public_key(sender),
            expect=Binding(**kept["binding"]),
        )
        assert (opened.body, opened.issued_at) == (kept["body"], datetime.fromisoformat(kept["issued_at"])), path


def test_a_join_token_has_the_text_that_people_paste_and_what_is_none_is_told_apart() -> None:
    token = parsed(EXAMPLES / "v1" / "join_token.json")
    assert str(token) == "fj_" + "7" * 64 + "_" + "8" * 16
    assert JoinTokenString.parse(f"  {token}\n") == token
    for text in ("", "fj_x", "fj__x", "fj_x_", "fa_x_y", "fj_a_b_c", "fj x y"):
        assert JoinTokenString.parse(text) is None, text
