"""Templates of titles and descriptions: what they may do, and what becomes of what others wrote."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control_plane.automation.code_host_events import CodeHostEvent
from control_plane.automation.task_templates import MATERIAL, Unfilled, check_template, description_of, title_of
from control_plane.automation.task_texts import task_of
from shared.errors import Invalid, TooLarge

VALUES: dict[str, Any] = {
    "event": "issues.opened",
    "payload": {"n": 7, "none": None, "items": [1, 2], "labels": [{"name": "bug"}, {"name": "ui"}], "long": "a\nb"},
}


def test_a_template_shows_what_was_sent() -> None:
    titles = {
        "#{{ payload.n }} {{ event }}": "#7 issues.opened",
        "{% for x in payload.labels %}{{ x.name|upper }}{% if not loop.last %},{% endif %}{% endfor %}": "BUG,UI",
        "{% if payload.n > 3 and payload.n is number %}big{% else %}small{% endif %}": "big",
        "{{ payload.nothing|default('none') }}{{ payload.none }}": "none",
        "{{ payload.items }}": "[ 1, 2 ]",
        "{{ event[:6] }} {{ payload.labels[0].name }} {{ payload['n'] }}": "issues bug 7",
        "{{ payload.long }}  \n {{ payload.labels|length }}": "a b 2",
    }
    assert {template: title_of(check_template("the title", template), VALUES) for template in titles} == titles


def test_a_template_that_is_malformed_or_wants_more_is_refused() -> None:
    templates = [
        "{{ x", "{% if %}", "{{ x() }}", "{{ payload.n * 9 }}", "{{ 9 ** 9 }}", "{{ 'a' ~ 'b' }}", "{% set a = 1 %}",
        "{% for a in b %}{% for c in d %}{% endfor %}{% endfor %}", "{% macro m() %}{% endmacro %}", "{{ [1] }}",
        "{% include 'x' %}", "{% import 'x' as y %}", "{{ x|replace('a', 'b') }}", "{{ x|map('upper') }}",
        "{{ x|attr('y') }}", "{% for a in b recursive %}{% endfor %}",
        "{{" + "(" * 3000 + "1" + ")" * 3000 + "}}", "{{ __builtins__ }}", " ",
    ]  # fmt: skip
    for template in templates:
        with pytest.raises(Invalid):
            check_template(template[:40], template)
    with pytest.raises(TooLarge):
        check_template("the title", "x" * 10_001)


def test_a_template_reaches_nothing_but_what_was_sent() -> None:
    templates = [
        "{{ payload.__class__ }}", "{{ payload.get }}", "{{ ''.__class__ }}", "{{ event.format }}", "{{ range }}",
        "{{ payload.nothing.at_all }}", "{{ nothing }}", "{{ payload.n|join }}", "{{ payload.n|truncate('x') }}",
        "{% for x in payload.n %}{% endfor %}", "{{ payload[1:2] }}", "{{ payload.n > 'a' }}",
    ]  # fmt: skip
    for template in templates:
        with pytest.raises(Unfilled):
            title_of(check_template(template, template), VALUES)


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=2000))
def test_whatever_somebody_wrote_is_a_quotation_in_a_description_and_one_line_in_a_title(text: str) -> None:
    filled = description_of("{{ payload.text }}", {"payload": {"text": f"long: {text}{'.' * 120}"}})
    body, _, said = filled.rpartition("\n\n")
    assert said == MATERIAL
    assert all(line.startswith(">") for line in body.splitlines() if line)
    title = title_of("{{ payload.text }}", {"payload": {"text": text}})
    assert (len(title.splitlines()) <= 1, len(title) <= 200, "\0" in title) == (True, True, False)
    title.encode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(["issue", "repository", "sender", "commits", "ref", "pusher", "object_attributes", "project"])


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(["github", "gitlab", "gitea", "standard"]), st.dictionaries(FIELDS, JSON, max_size=8))
def test_no_payload_keeps_an_event_from_becoming_a_task(kind: str, payload: dict[str, Any]) -> None:
    for event in ("issues.opened", "issue.open", "push", ""):
        request, _ = task_of(kind, CodeHostEvent(event, payload, ()), {"title": ""})
        assert request.title.strip()
        assert request.description
        assert len(request.description) < 25_000
