"""An order as one file: it has everything that its pages show, and asks no one for anything."""

from __future__ import annotations

from urllib.parse import urlsplit

from bs4 import BeautifulSoup
from sqlalchemy import delete

from control_plane.contract.declarations.orders import SHOW
from control_plane.db.runs import Step
from shared.events import AssistantStep, ChildStep, ReasoningStep, ToolCallStep, ToolResultStep, VerifyStep
from tests.support.fleet import Api, PlayedRun
from tests.support.patches import SMALL, deliver, many_lines

LOADING = ("script", "link", "img", "iframe", "object", "embed", "form", "base", "svg")
HOSTILE = '<script>x()</script> ![beacon](https://evil.example/pixel) <img src="//evil.example/"> \x1b]0;t\x07\u202etxt'


def exported(api: Api, order: str) -> BeautifulSoup:
    with api.http(api.token) as client:
        answer = client.get(f"/api/v1/orders/{order}/export")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-disposition"] == f'attachment; filename="{order}.html"'
    return BeautifulSoup(answer.text, "html.parser")


def play(run: PlayedRun) -> None:
    run.step(ReasoningStep(text="First I think."))
    run.step(AssistantStep(text=f"I say. {HOSTILE}", tool_calls=[]))
    run.step(ToolCallStep(call_id="c1", tool="shell", arguments={"command": "make all"}))
    run.step(ChildStep(call_id="c1", step={"kind": "assistant", "text": "I am the child."}))
    output = "".join(f"line {number}\n" for number in range(40)) + HOSTILE
    run.step(ToolResultStep(call_id="c1", output=output, return_code=2))
    run.step(VerifyStep(command="make test", attempt=1, passed=False, return_code=1, output="1 failed"))


def test_an_exported_order_has_prompt_result_changes_and_the_whole_conversation(api: Api, run: PlayedRun) -> None:
    play(run)
    page = exported(api, deliver(api, run))
    order = api.client.call(SHOW, order_id=run.order_id)
    text = page.get_text(" ")
    for part in (order["prompt"], "Fixed.", "First I think.", "I say.", "make all", "I am the child.", "1 failed"):
        assert part in text, part
    # All lines of an output: the page of the session shows only the last ones.
    assert [each for each in ("line 0\n", "line 39\n") if each not in page.get_text()] == []
    assert [each.get_text() for each in page.select(".file h3")] == ["docs/guide.md", "src/refund.py", "run.sh"]
    assert [each.get_text() for each in page.select("code.del")][:1] == ["Refunds are rounded."]


def test_an_exported_order_loads_and_runs_nothing_and_hides_nothing(api: Api, run: PlayedRun) -> None:
    play(run)
    page = exported(api, deliver(api, run))
    assert {name: found for name in LOADING if (found := page.find_all(name))} == {}
    policy = page.find("meta", {"http-equiv": "Content-Security-Policy"})
    assert policy is not None
    assert str(policy["content"]).startswith("default-src 'none'; style-src 'unsafe-inline'")
    # Links of the model's text stay links: they are followed only by a reader.
    schemes = {urlsplit(str(each["href"])).scheme for each in page.find_all("a")}
    handlers = [name for each in page.find_all(True) for name in each.attrs if name.startswith("on") or name == "src"]
    assert (schemes, handlers) == ({"https"}, [])
    style = page.find("style")
    assert style is not None
    assert "url(" not in style.get_text()
    assert not {"\x1b", "\x07", "\u202e"} & set(page.get_text())


def test_an_order_at_work_is_exported_as_far_as_it_is_and_a_large_patch_up_to_a_limit(api: Api, run: PlayedRun) -> None:
    run.says("Half of it.")
    early = exported(api, run.order_id)
    assert "Half of it." in early.get_text()
    assert early.select(".file") == []
    order = deliver(api, run, SMALL + many_lines(3, 9000))
    late = exported(api, order)
    assert len(late.select("code.add")) <= 20_000
    assert [bool(each.select(".more")) for each in late.select(".file")] == [False] * 5 + [True]


def test_an_exported_order_says_what_of_it_is_no_longer_stored(api: Api, run: PlayedRun) -> None:
    play(run)
    order = deliver(api, run)
    with api.core.database.write() as db:
        db.execute(delete(Step).where(Step.order_id == order))
    removed = api.client.call(SHOW, order_id=order)["removed"]
    conversation = exported(api, order).select("section")[-1]
    assert [each.get_text() for each in conversation.select("p")] == [removed]
