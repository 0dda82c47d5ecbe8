"""Addresses of repositories, forms of pull requests, and the words in hosts' refusals."""

from __future__ import annotations

from drone.services.pull_request.address import address_of
from drone.services.pull_request.api import refusal_of
from drone.services.pull_request.template import MAX_BODY, filled

BODY = "What was done.\n\n## Verification\n\nNone.\n\nOrder: a\n\nFleet-Order: a\n"


def test_a_git_url_names_a_host_and_a_repository() -> None:
    expected = {
        "https://github.com/o/r.git": ("github.com", "https://github.com", "o/r"),
        "http://127.0.0.1:3000/o/r": ("127.0.0.1", "http://127.0.0.1:3000", "o/r"),
        "git@github.com:o/r.git": ("github.com", "https://github.com", "o/r"),
        "ssh://git@git.example:2222/g/s/r.git": ("git.example", "https://git.example", "g/s/r"),
        "ssh://git@ssh.github.com:443/o/r.git": ("github.com", "https://github.com", "o/r"),
    }
    found = {url: address_of(url) for url in expected}
    assert {url: each and (each.host, each.origin, each.path) for url, each in found.items()} == expected
    none = ("file:///srv/r.git", "/srv/r.git", "https://host/r", "ext::sh -c id", "https://h/../r")
    assert {url: address_of(url) for url in none} == dict.fromkeys(none)


def test_a_form_without_a_heading_for_it_has_the_summary_in_front() -> None:
    assert filled("", BODY) == BODY
    expected = "What was done.\n\n- [ ] Signed\n\n## Verification\n\nNone.\n\nOrder: a\n\nFleet-Order: a\n"
    assert filled("- [ ] Signed\n", BODY) == expected


def test_headings_in_code_and_comments_of_a_form_are_none() -> None:
    form = "```\n# Summary\n```\n<!--\n# Description\n-->\n### Summary of it\nrest\n"
    assert "### Summary of it\n\nWhat was done.\n\nrest" in filled(form, BODY)


def test_a_text_that_is_too_long_is_cut_and_keeps_its_trailers() -> None:
    long = filled("## Description\n" + "x" * 5000, "y" * 100_000 + "\n\n## Verification\n\nNone.\n\nFleet-Order: a\n")
    assert len(long) <= MAX_BODY + 1
    assert long.endswith("Fleet-Order: a\n")
    assert "… (cut)" in long


def test_a_hosts_refusal_is_told_in_its_words_whatever_form_they_have() -> None:
    assert "(HTTP 422): is taken; is odd" in str(refusal_of("h", 422, {"message": {"base": ["is taken", "is odd"]}}))
    assert "(HTTP 500)" in str(refusal_of("h", 500, None))
