"""How the result of a check is told to people."""

from __future__ import annotations

from control_plane.cli.check_text import project_text, provider_text

WORKS = {
    **{"state": "ok", "summary": "It answered.", "drone": "oka", "total_ms": 900, "first_token_ms": None},
    **{"price": "listed", "input_usd": 2.5, "output_usd": 10.0, "tool_calls": "text", "reports_usage": False},
    **{"context_window": 128_000, "window_from": "set"},
}
BROKEN = {
    **{"state": "failed", "summary": "It failed.", "next": "fleet project edit shop", "code": "E-CHECK-VERIFY"},
    **{"drone": "oka", "remote_ms": 40, "branch": "main", "default_branch": "main", "may_push": False},
    "commands": [
        {"phase": "setup", "command": "make\ndeps", "passed": True, "return_code": 0, "duration_ms": 5, "output": ""},
        {"phase": "verify", "command": "a", "passed": False, "return_code": None, "duration_ms": 5, "output": "b\x1b"},
    ],
}


def lines_of(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_provider_without_usage_and_tools_works_and_says_so() -> None:
    verdict, *told = lines_of(provider_text({"name": "main", "model": "openai/x", "check": WORKS}))
    assert verdict == "✓ provider main works: It answered."
    assert {"first token unknown", "tool calls are made in text", "window 128,000 tokens (as set)"} <= set(told)
    assert "streaming works, but reports no usage" in told
    assert "price $2.5 in, $10 out per million tokens (LiteLLM's list)" in told
    unknown = provider_text({"name": "main", "model": "openai/x", "check": {**WORKS, "price": "unknown"}})
    assert "fleet price set openai/x" in unknown


def test_a_project_shows_each_command_with_its_output_and_what_to_do_next() -> None:
    verdict, *told = lines_of(project_text({"slug": "shop", "check": BROKEN}))
    assert verdict == "✗ project shop does not work: It failed."
    assert told == [
        *("drone oka", "repository answered in 40 ms, branch main (the default)"),
        *("push refused; each order keeps a patch and a bundle", "setup make deps: passed, 5 ms"),
        *("verify a: failed, timed out, 5 ms", "b␛", "next fleet project edit shop", "help fleet help E-CHECK-VERIFY"),
    ]
