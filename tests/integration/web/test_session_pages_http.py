"""The pages of sessions, orders and plans over HTTP, as a browser without scripts reads them and steers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import delete, event, update

from control_plane.contract.declarations import orders, plans, providers, sessions
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.declarations.sessions import SessionRequest
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.drones import InboxMessage
from control_plane.db.orders import Dispatch
from control_plane.db.runs import Blob, Run
from control_plane.operations.orders import changes as reported
from control_plane.orders.scores import Candidate, Usual, score
from control_plane.web.conversation.view import view_of_order
from control_plane.web.conversation.window import MOST_STEPS
from control_plane.web.pages.conversation_page import MOST_NEWS
from control_plane.web.pages.panels import MOST_PARTS
from shared.blobs import digest
from shared.errors import Invalid
from shared.events import (
    ApprovalStep,
    AssistantStep,
    CheckpointStep,
    ChildStep,
    CommentStep,
    CompactionStep,
    DecisionStep,
    ResumedStep,
    RetryStep,
    TodoItem,
    TodoStep,
    ToolCallStep,
    ToolResultStep,
    Usage,
    UserStep,
    VerifyStep,
)
from shared.plans import AgentPlan, PlanPoint
from shared.reasons import DroneChoice, Placed
from shared.states import OrderStatus
from tests.support.fleet import Api, Doc, PlayedRun
from tests.support.page_actions import PageForms
from tests.support.patches import SMALL, deliver, report


@pytest.fixture
def browser(api: Api) -> Iterator[httpx.Client]:
    """A logged-in admin."""
    with api.browser({"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}) as client:
        yield client


def calls(run: PlayedRun, name: str, output: str, **result: object) -> None:
    run.step(ToolCallStep(call_id=name, tool="shell", arguments={"command": f"run {name}"}))
    run.step(ToolResultStep.model_validate({"call_id": name, "output": output, "return_code": 0, **result}))


def test_a_reply_has_the_model_of_the_turn_before_and_without_one_the_projects(
    api: Api, browser: httpx.Client, run: PlayedRun
) -> None:
    def chosen(session: str) -> str:
        [select] = re.findall(r'<select name="provider".+?</select>', browser.get(f"/sessions/{session}").text)
        options = re.findall(r'<option value="([^"]*)"( selected)?>', select)
        return next((value for value, selected in options if selected), options[0][0])

    api.client.call(providers.ADD, ProviderRequest(name="a-first", model="openai/first"))
    run.ends()
    order = api.client.call(orders.SHOW, order_id=run.order_id)
    new = api.client.call(sessions.CREATE, SessionRequest(project="demo"))
    assert (chosen(new["id"]), chosen(order["session"])) == ("", order["provider"])


def test_a_session_opens_at_its_running_turn_and_an_order_at_its_own(
    api: Api, run: PlayedRun, browser: httpx.Client
) -> None:
    run.says("The first answer")
    run.ends(response="First.")
    session = api.client.call(orders.SHOW, order_id=run.order_id)["session"]
    second = run.drone.take(api.submit("And the guide", session=session))
    second.says("The second answer")
    page, first = browser.get(f"/sessions/{session[:6]}").text, browser.get(f"/orders/{run.order_id}").text
    for words in ("The first answer", "The second answer", "Fix the failing test", "And the guide", "Stop and send"):
        assert words in page
    assert "The second answer" not in first
    assert "See the result" in first
    assert f'href="/orders/{second.order_id}">Next turn' in first
    # One that ended before it began is no longer called queued.
    waits = str(api.submit("Not now")["id"])
    assert "</span>queued <time" in browser.get(f"/orders/{waits}").text
    api.client.call(orders.CANCEL, orders.CancelRequest(), order_id=waits)
    assert "</span>0 ms" in browser.get(f"/orders/{waits}").text


def test_the_log_has_all_outputs_with_numbers_that_stay_and_is_searched_and_paged_on_the_server(
    run: PlayedRun, browser: httpx.Client
) -> None:
    def numbered(page: str) -> list[tuple[str, str]]:
        return re.findall(r'id="L(\d+)"><a[^>]*>\d+</a><code>(.*?)</code>', page)

    def part_of(page: str) -> str:
        return str(re.findall(rf'data-part="({log}[^"]*)"', page)[0])

    log = f"/orders/{run.order_id}/log"
    calls(run, "one", "first\nsecond\n")
    calls(run, "two", "\x1b[31mthird\x1b[0m", return_code=1)
    before = browser.get(log).text
    run.step(VerifyStep(attempt=1, command="make test", passed=False, return_code=2, output="fourth"))
    page = browser.get(log).text
    texts = [("1", "first"), ("2", "second"), ("3", '<span class="t1">third</span>'), ("4", "fourth")]
    assert (numbered(before), numbered(page)) == (texts[:3], texts)
    for words in ("run one", "exit 1", "make test"):
        assert words in page

    calls(run, "long", "\n".join(f"line {number}" for number in range(5, 1001)))
    calls(run, "next", "the <b>needle</b>")
    followed = part_of(browser.get(log).text)
    run.ends()
    # Whose page follows it sees how it ended.
    last = browser.get(followed).text
    assert (numbered(last)[-1][0], part_of(last)) == ("1001", followed)
    first, found = browser.get(log).text, browser.get(log, params={"text": "NEEDLE</b>"}).text
    assert ("line 250<" in first, "line 251<" in first, f"{log}?line=251" in first) == (True, False, True)
    for words in ("1 line contain", "the &lt;b&gt;needle&lt;/b&gt;", f"{log}?line=981#L1001"):
        assert words in found
    assert 'id="L1001"' in browser.get(f"{log}?line=981").text


def test_the_log_of_many_short_calls_ends_with_the_last_one_and_is_paged_back_to_the_first(
    run: PlayedRun, browser: httpx.Client
) -> None:
    def numbers(page: str) -> list[int]:
        return [int(each) for each in re.findall(r'id="L(\d+)"', page)]

    log = f"/orders/{run.order_id}/log"
    for number in range(2 * MOST_PARTS + 10):
        calls(run, f"call-{number}", "short")
    pages = [browser.get(log).text]
    assert "data-follows" in pages[0]
    while previous := re.search(rf'href="({log}[^"]+)">Previous<', pages[-1]):
        pages.append(browser.get(previous[1]).text)
    assert [numbers(page) for page in pages[:2]] == [list(range(71, 131)), list(range(11, 71))]
    assert (numbers(pages[2])[0], len(pages)) == (1, 3)
    last = re.findall(rf'href="({log}[^"]+)">Last<', pages[2])[0]
    run.ends()
    assert numbers(browser.get(last).text)[-1] == 130


def test_a_log_in_files_and_rows_is_searched_on_from_a_line_and_counting_a_file_blocks_no_other_order(
    api: Api, run: PlayedRun, browser: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, other = f"/orders/{run.order_id}/log", api.add_drone("oka").take(api.submit("Another order"))
    calls(other, "one", "of the other order")
    texts = ["".join(f"{kind} {number}\n" for number in range(300)) for kind in ("hit", "hit", "miss")]
    for number, text in enumerate(texts):
        stored = api.store_blob(run, text.encode()) if number % 2 == 0 else None
        calls(run, f"call-{number}", text[:20] if stored else text, log_sha256=stored)
    answers: list[str] = []
    opened = api.core.blobs.content

    def counted(sha256: str) -> Any:
        if not answers:
            answers.append(browser.get(f"/orders/{other.order_id}/log").text)
        return opened(sha256)

    monkeypatch.setattr(api.core.blobs, "content", counted)
    found = browser.get(log, params={"text": "HIT"}).text
    more = browser.get(log, params={"text": "HIT", "after": 200}).text
    last = browser.get(log, params={"text": "HIT", "after": 400}).text
    assert "of the other order" in answers[0]
    links = [re.findall(rf"{log}\?line=\d+#L(\d+)", page) for page in (found, more, last)]
    assert links == [[str(n) for n in numbers] for numbers in (range(1, 201), range(201, 401), range(401, 601))]
    assert [f"after={n}" in page for n, page in ((200, found), (400, more), (600, last))] == [True, True, False]


def test_a_step_is_sent_once_and_as_many_bytes_as_before_however_long_its_group_is(
    run: PlayedRun, browser: httpx.Client
) -> None:
    page = {"resume": "0", "last": "0", "around": ""}

    def news(address: str = "news", **more: object) -> str:
        """What the page asks for now, and what it remembers of the answer."""
        text = browser.get(f"/orders/{run.order_id}/{address}", params={**page, **more}).text
        page.update(re.findall(r'data-(resume|last|around)="([^"]*)"', text.partition(">")[0]))
        return text

    def called(number: int) -> str:
        calls(run, f"call-{number:04}", "lines of a failure\n" * 30, return_code=1)
        return news()

    for number in range(6):
        called(number)
    assert "data-partial" in news()
    few = called(6)
    for number in range(7, 16):
        many = called(number)
    assert few.count('<details class="tool failed"') == many.count('<details class="tool failed"') == 1
    assert len(many) <= len(few) + 100
    assert 'id="head"' not in many
    run.step(TodoStep(items=[TodoItem(text="Look again", status="in_progress")]))
    assert ("Look again" in news(), "Look again" in news()) == (True, False)

    opened = news("steps", after=0, known=int(page["last"]) - 3)
    assert re.findall("run (call-[0-9]+)<", opened) == ["call-0015"]
    run.step(ToolCallStep(call_id="late", tool="shell", arguments={"command": "late"}))
    assert "live-now" in news()
    assert "live-now" in news()
    run.step(ToolResultStep(call_id="late", output="fine", return_code=0))
    assert re.findall(r'<p id="c-[^"]+" data-gone>', news())


def delegates(run: PlayedRun, steps: int) -> None:
    """A call of the run with this many steps of its sub-agent, and no result yet."""
    run.says("I delegate.")
    run.step(ToolCallStep(call_id="long", tool="spawn", arguments={"task": "all of it"}))
    for number in range(steps):
        run.step(ChildStep(call_id="long", step={"kind": "assistant", "text": f"step {number}"}))


def test_a_page_gets_past_a_call_with_more_steps_than_an_answer_has(run: PlayedRun, browser: httpx.Client) -> None:
    delegates(run, MOST_NEWS + 50)
    run.step(ToolResultStep(call_id="long", output="all done"))
    calls(run, "next", "after it")
    page, answers = {"resume": "0", "last": "0"}, list[str]()
    while not answers or 'data-more="yes"' in answers[-1]:
        answers.append(browser.get(f"/orders/{run.order_id}/later", params=page).text)
        page.update(re.findall(r'data-(resume|last)="([^"]*)"', answers[-1].partition(">")[0]))
        assert len(answers) < 5
    (fold,) = re.findall(r'data-calls="(/orders/[^"]+/steps[^"]+)"', answers[-1])
    opened = browser.get(fold.replace("&amp;", "&")).text
    for words in (f"Sub-agent: {MOST_NEWS + 50} steps", "all done", "after it"):
        assert words in opened


def test_a_conversation_within_a_long_call_is_shown_with_the_call_and_leads_to_its_beginning(
    run: PlayedRun, browser: httpx.Client
) -> None:
    for number in range(60):
        run.says(f"<answer {number}>" * 20)
    delegates(run, MOST_STEPS)
    run.step(RetryStep(attempt=1, delay_s=2, error_class="rate_limit", error="429"))
    run.step(ChildStep(call_id="long", step={"kind": "assistant", "text": "the last"}))
    for _ in range(4):
        run.step(CommentStep(text="* a point\n" * 200))
    page = browser.get(f"/orders/{run.order_id}").text
    assert (f"Sub-agent: {MOST_STEPS + 1} steps" in page, page.count('class="event')) == (True, 1)
    run.step(ToolResultStep(call_id="long", output="all done"))
    run.says("I am done.")
    page = shown = browser.get(f"/orders/{run.order_id}").text
    assert ("all done" in page, ">no result<" in page) == (True, False)
    while earlier := re.search(r'data-earlier="([^"]+)"', shown):
        shown = browser.get(earlier[1]).text
    assert "answer 0&gt;" in shown + page


def test_the_patch_is_read_once_for_all_steps_and_its_number_of_files_is_shown_as_long_as_it_is_stored(
    api: Api, run: PlayedRun, browser: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, reads = api.core.vault.open_content, list[bytes]()
    monkeypatch.setattr(api.core.vault, "open_content", lambda sealed: (reads.append(sealed), opened(sealed))[1])
    monkeypatch.setattr(reported, "_FILES", {})
    report(api, run, SMALL)
    shown = []
    for number in range(3):
        run.says(f"step {number}")
        shown.append(">Changes 3</a>" in browser.get(f"/orders/{run.order_id}/news").text)
    deliver(api, run)
    shown.append(">Changes 3</a>" in browser.get(f"/orders/{run.order_id}").text)
    assert (shown, len(reads)) == ([True] * 4, 1)
    with api.core.database.write() as db:
        db.execute(delete(Blob).where(Blob.sha256 == digest(SMALL)))
    assert ">Changes 3</a>" not in browser.get(f"/orders/{run.order_id}").text


def test_a_step_on_an_open_page_costs_few_statements_however_long_its_order_is(
    api: Api, run: PlayedRun, browser: httpx.Client
) -> None:
    seen, most = list[str](), {"later": 5, "news": 32}
    calls(run, "one", "out")
    event.listen(api.core.database.engine, "before_cursor_execute", lambda *given: seen.append(given[2]))

    def fetched(part: str) -> int:
        seen.clear()
        browser.get(f"/orders/{run.order_id}/{part}").raise_for_status()
        return len([each for each in seen if each.startswith("SELECT")])

    few = {part: fetched(part) for part in most}
    for number in range(20):
        calls(run, f"more-{number}", "out")
    assert {part: fetched(part) for part in most} == few
    assert all(few[part] <= limit for part, limit in most.items())


def test_later_steps_alone_are_the_blocks_of_the_news(api: Api, run: PlayedRun, browser: httpx.Client) -> None:
    run.says("one")
    first = re.search(r'data-resume="(\d+)" data-last="(\d+)"', browser.get(f"/orders/{run.order_id}/news").text)
    assert first is not None
    run.says("two words")
    known = {"resume": first[1], "last": first[2]}
    news, later = (browser.get(f"/orders/{run.order_id}/{part}", params=known).text for part in ("news", "later"))
    assert ("two words" in later, 'id="head"' in later, 'id="head"' in news) == (True, False, True)
    assert later[later.index('<div id="blocks">') :].strip() in news


def test_the_details_show_calls_waits_attempts_models_and_how_drones_were_scored(
    api: Api, run: PlayedRun, browser: httpx.Client
) -> None:
    used = Usage(input_tokens=1234, output_tokens=56, cost_usd=0.5)
    run.step(UserStep(text="Mend <it>", source="prompt"))
    for model in ("openai/one", "openai/two"):
        run.step(AssistantStep(text=f"by {model}", model=model, usage=used, duration_ms=4000))
    calls(run, "one", "out", duration_ms=1500)
    run.step(RetryStep(attempt=1, delay_s=2, error_class="rate_limit", error="429"))
    run.step(CompactionStep(summary="s", tokens_before=9000, tokens_after=1000))
    run.step(ChildStep(call_id="one", step={"kind": "assistant", "text": "child"}))
    busy = score(Candidate("oka", 1, 1, False, False, 0.0, None), Usual(400, 100)).as_fact()
    choice = DroneChoice(placed=Placed(code="repository", drone="mila"), scores=(busy,), scored=7)
    with api.core.database.write() as db:
        db.execute(update(Dispatch).where(Dispatch.order_id == run.order_id).values(choice=choice))
    page = browser.get(f"/orders/{run.order_id}/details").text
    for words in ("1,234", "$0.50", "run one", "rate limit", "9,000", "Attempt", "mila", "/trajectory"):
        assert words in page, words
    for words in ("Model call of openai/one", "Model call of openai/two", "scores of 7 drones"):
        assert words in page, words
    assert 'oka <span class="muted">full</span></th><td class="num">520</td><td class="num">400</td>' in page
    first, second, *_ = re.findall(rf'"(/orders/{run.order_id}/details/sent\?step=\d+)"', page)
    sent = browser.get(second).text
    for words in ("2 messages", "Mend &lt;it&gt;", "by openai/one"):
        assert words in sent
    assert "by openai" not in browser.get(first).text
    assert browser.get(f"/orders/{run.order_id}/details/sent?step=1").status_code == 404


def inbox_of(api: Api) -> list[Doc]:
    """What the drones are to be told, in the order in which it was said."""
    with api.core.database.read() as db:
        return [row.body for row in db.query(InboxMessage).order_by(InboxMessage.created_at)]


def test_an_order_says_what_it_asks_for_and_what_its_model_listed_and_wrong_wishes_are_refused(
    api: Api, run: PlayedRun
) -> None:
    for items in ((TodoItem(text="old"),), (TodoItem(text="read", status="done"), TodoItem(text="mend"))):
        run.step(TodoStep(items=items))
    todo = api.client.call(orders.SHOW, order_id=run.order_id)["todo"]
    assert todo == [{"text": "read", "status": "done"}, {"text": "mend", "status": "pending"}]
    order = api.submit(approve="all", allow=["git status*"], verify_attempts=5, approval_timeout=60, max_attempts=20)
    assert (order["approve"], order["allow"], order["max_attempts"]) == ("all", ["git status*"], 20)
    again = api.submit(session=order["session"], allow=["make*", "git status*"])
    assert (again["approve"], again["allow"]) == ("all", ["git status*", "make*"])
    out_of_range = {"max_attempts": 101, "progress_timeout": -1, "approval_timeout": -1, "verify_attempts": -1}
    for name, value in (*out_of_range.items(), ("max_attempts", 0), ("allow", [""]), ("allow", ["x"] * 101)):
        with pytest.raises(Invalid):
            api.submit(**{name: value})


def asks_for_leave(run: PlayedRun) -> None:
    run.step(ToolCallStep(call_id="c1", tool="shell", arguments={"command": "git push"}))
    run.asks("c1", "shell", "Publishes commits: git push")


def test_the_page_offers_to_decide_to_answer_and_to_write_and_its_forms_do(
    api: Api, run: PlayedRun, browser: httpx.Client
) -> None:
    address = f"/orders/{run.order_id}"
    asks_for_leave(run)
    assert f"fleet approve {run.order_id}" in browser.get(address).text
    form = {"order_id": run.order_id, "call": "c1", "next": address}
    answer = browser.post("/actions/approve", data={**form, "comment": "go", "always": "true"})
    assert (answer.status_code, answer.headers["location"]) == (303, address)
    assert browser.post("/actions/deny", data=form).status_code == 409
    run.step(DecisionStep(call_id="c1", approved=True, comment="go"))

    run.step(ToolCallStep(call_id="c2", tool="ask", arguments={"question": "Which?"}))
    choices = ("even", "up")
    run.step(ApprovalStep(about="question", call_id="c2", tool="ask", why="Which rule?\nNow.", choices=choices))
    page = browser.get(address).text
    assert ("Which rule?" in page, 'value="even"' in page, f"fleet answer {run.order_id}" in page) == (True,) * 3
    browser.post("/actions/answer_order", data={**form, "call": "c2", "text": "even"})
    run.step(DecisionStep(about="question", call_id="c2", approved=True, comment="even"))

    for more in ({}, {"after": "true"}, {"interrupt": "true"}):
        browser.post("/actions/say", data={"order_id": run.order_id, "text": "one\r\ntwo", **more})
    assert "Queued" in browser.get(address).text
    approved, told, *said = inbox_of(api)
    assert (approved["approved"], approved["comment"], told["answer"]) == (True, "go", "even")
    flags = [(body["text"], body["after"], body["interrupt"]) for body in said]
    assert flags == [("one\ntwo", False, False), ("one\ntwo", True, False), ("one\ntwo", False, True)]


def test_the_news_of_a_page_have_the_list_the_question_and_what_sub_agents_did(
    run: PlayedRun, browser: httpx.Client
) -> None:
    asks_for_leave(run)
    run.step(TodoStep(items=(TodoItem(text="fix the sum"),)))
    run.step(ChildStep(call_id="c1", step={"kind": "assistant", "text": "I am the child."}))
    news = browser.get(f"/orders/{run.order_id}/news").text
    for words in ("fix the sum", "Sub-agent: 1 step", "Approve this command?", "Send when finished"):
        assert words in news
    assert "I am the child." in browser.get(f"/orders/{run.order_id}/children?call=2").text


@pytest.mark.parametrize(
    ("reported", "count", "told"),
    [
        # A message came while the commands ran, so they ran again, from the first attempt on.
        (["1 lint -", "2 lint +", "2 test +", "1 lint +", "1 test +", "verified"], "2 of 2", "2 of 2 checks passed"),
        (["1 lint +", "1 test +", "1 lint -", "failed"], "0 of 1", "0 of 1 checks passed"),
        (["verified"], "", "Checks passed"),
        (["1 lint +", "1 test +", "not_reached"], "", "Checks skipped"),
        (["nothing_to_verify"], "", "No checks configured"),
    ],
)
def test_the_checks_of_an_ended_order_are_those_that_judged_its_work(
    run: PlayedRun, browser: httpx.Client, reported: Sequence[str], count: str, told: str
) -> None:
    *steps, verification = reported
    for attempt, command, result in map(str.split, steps):
        run.step(VerifyStep(attempt=int(attempt), command=command, passed=result == "+"))
    run.ends(verification=verification)
    page, panel = (browser.get(f"/orders/{run.order_id}{part}").text for part in ("", "/checks"))
    assert (told in page, f">Checks {count}".strip() + "</a>" in page) == (True, True)
    assert panel.count('<details class="tool"') == int(count[5:] or 0)
    (compared,) = re.findall(r"<dt>Checks</dt><dd>(.+?)</dd>", browser.get(f"/compare?orders={run.order_id}").text)
    colors = {"verified": "good", "failed": "bad"}
    assert (count in compared, colors.get(verification, "muted") in compared) == (True, True)


def test_the_pages_say_what_a_run_does_and_that_nothing_comes_of_it(
    api: Api, run: PlayedRun, browser: httpx.Client
) -> None:
    since = api.core.clock.now() - timedelta(minutes=4, seconds=30)
    with api.core.database.write() as db:
        values = {"doing": "shell: npm test", "doing_since": since, "progress_at": since}
        db.execute(update(Run).where(Run.id == run.id).values(**values))
    words = "no progress for 4 min: shell: npm test"
    assert words.capitalize() in browser.get(f"/orders/{run.order_id}").text
    (listed,) = api.client.call(orders.LIST)
    assert (listed["doing"], listed["stalled"]) == (words, True)


def test_a_failed_order_is_resumed_from_its_page_which_then_says_what_was_undone_and_where_it_went_on(
    api: Api, run: PlayedRun, browser: httpx.Client
) -> None:
    for body in (UserStep(text="Fix it", source="prompt"), AssistantStep(text="I look."), CheckpointStep()):
        run.step(body)
    run.ends(OrderStatus.FAILED)
    address = f"/orders/{run.order_id}"
    ended = browser.get(address).text
    assert ('action="/actions/retry"' in ended, "without changes" in ended) == (True, False)
    answer = browser.post("/actions/resume", data={"order_id": run.order_id, "say": "mind\r\nthe tests"})
    assert (answer.status_code, answer.headers["location"]) == (303, address)
    resumed = api.client.call(orders.SHOW, order_id=run.order_id)
    assert [word["text"] for word in resumed["unheard"]] == ["mind\nthe tests"]
    assert "/actions/resume" not in browser.get(address).text

    second = run.drone.take(resumed)
    with api.core.database.write() as db:
        row = db.get_one(Run, second.id)
        row.resumed_run_id, row.resumed_seq = run.id, 4
    second.step(ResumedStep(run_id=run.id, seq=4, why="the drone restarted"))
    page = browser.get(address).text
    # The end of the first run came after the checkpoint.
    assert ("Resumed from step 4 of attempt 1 on mila" in page, page.count("1 step undone")) == (True, 1)


@pytest.mark.parametrize("exit_status", ["model_error", "verification_failed"])
def test_an_order_that_runs_again_is_the_newest_turn_of_its_session_until_another_follows(
    api: Api, run: PlayedRun, exit_status: str
) -> None:
    def shown(order_id: str) -> tuple[list[str], bool, str | None]:
        view = view_of_order(api.core, system_caller(api.core), order_id)
        return [each.turn.order for each in view.turns], view.is_newest, view.next_order

    run.step(UserStep(text="Fix it", source="prompt"))
    run.ends(OrderStatus.FAILED, exit_status=exit_status)
    again = api.client.call(orders.RETRY, order_id=run.order_id)
    assert shown(run.order_id) == ([run.order_id], True, None)
    later = api.submit("And the guide", session=again["session"])
    assert shown(run.order_id) == ([run.order_id], False, later["id"])
    assert shown(later["id"]) == ([run.order_id, later["id"]], True, None)
    api.client.call(orders.CANCEL, orders.CancelRequest(), order_id=later["id"])
    second = run.drone.take(again)
    second.step(UserStep(text="Fix it", source="prompt"))
    second.ends()
    assert shown(run.order_id) == ([run.order_id], True, None)
    third = run.drone.take(api.submit("And the guide", session=again["session"]))
    third.step(UserStep(text="And the guide", source="prompt"))
    third.ends()
    assert shown(run.order_id) == ([run.order_id], False, third.order_id)
    assert shown(third.order_id) == ([run.order_id, third.order_id], True, None)


PLAN = AgentPlan(title="Notes", points=(PlanPoint(text="One"), PlanPoint(text="Two", files=("b.py",), verify="ls")))


@pytest.fixture
def planned(api: Api) -> PlayedRun:
    """A run whose plan waits."""
    api.add_work()
    made = api.add_drone("mila").take(api.submit(plan_first=True))
    made.presents(PLAN)
    return made


def send(api: Api, run: PlayedRun, **changes: Any) -> httpx.Response:
    """Send the form as the page does, with the empty row for a new point."""
    rows = {
        "text": ["One", "Two", ""],
        "files": ["", "b.py", ""],
        "verify": ["", "ls", ""],
        "place": ["1", "2", "3"],
        "tick": ["1", "2", "3"],
    }
    form = {"title": "Notes", "summary": "", "revision": "0", "round": "1", "comment": "", **rows, **changes}
    with api.http() as http:
        return http.post(f"/orders/{run.order_id}/plan", data=form, follow_redirects=False)


def shown(api: Api, run: PlayedRun) -> dict[str, Any]:
    return dict(api.client.call(plans.SHOW, order_id=run.order_id))


def decided(api: Api) -> list[Doc]:
    return [body for body in inbox_of(api) if body["kind"] == "decide"]


def test_a_plan_that_is_saved_waits_on_and_an_outdated_form_overwrites_nothing(api: Api, planned: PlayedRun) -> None:
    assert send(api, planned, act="save", text=["", "Two\r\nlines", "New"], tick=["3"]).status_code == 303
    points = [(each["text"], each["approved"]) for each in shown(api, planned)["points"]]
    assert (points, decided(api)) == ([("Two\nlines", False), ("New", True)], [])
    assert send(api, planned, act="approve").status_code == 409
    assert ([each["text"] for each in shown(api, planned)["points"]][1:], decided(api)) == (["New"], [])


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"act": "approve", "tick": []}, "no point of the plan is approved"),
    ({"act": "send-back"}, "the text is empty"),
    ({"act": "save", "text": ["", "", ""]}, "cannot be read as a plan"),
    ({"act": "save", "title": "Typed by me", "revision": "7"}, "was edited meanwhile"),
    ({"act": ""}, "choose approve, save or send back"),
]


def test_a_refused_plan_is_shown_as_it_was_sent(api: Api, planned: PlayedRun) -> None:
    for changes, says in REFUSED:
        answer = send(api, planned, comment="", **changes)
        assert answer.status_code in {409, 422}, says
        assert (says in answer.text.lower(), changes.get("title", "Notes") in answer.text) == (True, True), says
    assert decided(api) == []


def test_an_unchanged_plan_is_approved_without_an_edit_and_then_its_page_has_no_form(
    api: Api, planned: PlayedRun
) -> None:
    answer = send(api, planned, act="approve", comment="Fine.")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/orders/{planned.order_id}")
    assert (shown(api, planned)["revision"], [each["comment"] for each in decided(api)]) == (0, ["Fine."])
    planned.decides_plan(PLAN.approving([2]), who="kim")
    with api.http() as http:
        page = http.get(f"/orders/{planned.order_id}/plan").text
    assert "<textarea" not in page.partition("<main")[2].partition("Message the agent")[0]
    assert ("Approved by kim" in page, "Not reported" in page, "not approved" in page) == (True, True, True)


JSON = {"Accept": "application/json"}
SHELL = {"tool": "shell", "command": "git push"}
QUESTION = {"about": "question", "tool": "ask", "choices": ("a", "b")}
ASKED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (SHELL, {}),
    (SHELL, {"call_id": "call-2"}),
    (SHELL, {"command": "git push --force"}),
    (SHELL, {"tool": "mcp__a__fetch"}),
    ({"about": "secret", "tool": "delivery"}, {"why": "Another file"}),
    ({"about": "branch", "tool": "delivery"}, {"about": "secret"}),
    ({"about": "limit", "tool": "limit", "limit": "cost"}, {"limit": "time"}),
    ({"about": "question", "tool": "ask"}, {"why": "Which database?"}),
    (QUESTION, {"choices": ("b", "a")}),
    (QUESTION, {}),
]
"""What a run asks, and what is different when it asks again."""
OF_EACH_FORM = [ASKED[number] for number in (0, 2, 6, 8)]


@pytest.mark.parametrize(
    ("page", "asked"),
    [pytest.param("/orders/{0}", ASKED, id="/orders/{0}"), pytest.param("/", OF_EACH_FORM, id="/")],
)
def test_a_decision_is_about_what_the_page_showed(
    run: PlayedRun, browser: httpx.Client, page: str, asked: Sequence[tuple[dict[str, Any], dict[str, Any]]]
) -> None:
    """While the page is open, the run may ask for something else: also under the same id."""
    wrong: Doc = {}
    for fields, changed in asked:
        shown: Doc = {"call_id": "call-1", "why": "Publishes commits", **fields}
        run.step(ApprovalStep.model_validate(shown))
        every = PageForms(browser.get(page.format(run.order_id)).text).forms
        forms = [each for each in every if each.operation in {"approve", "answer_order"}]
        run.step(DecisionStep(call_id="call-1", approved=False))
        run.step(ApprovalStep.model_validate(shown | changed))
        sent = [
            browser.post(f"/actions/{each.operation}", data={**each.values, "text": "a"}, headers=JSON).status_code
            for each in forms
        ]
        for call in ("call-1", "call-2"):
            run.step(DecisionStep(call_id=call, approved=False))
        first = 409 if changed else 303
        if sent != [first, *[409] * (len(forms) - 1)] or not all("data-decides" in each.attributes for each in forms):
            wrong[str(fields)] = (sent, forms)
    assert wrong == {}
