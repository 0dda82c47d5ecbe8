"""A stand-in for GitLab.

Shapes: "GitLab REST API resources", v4 (issues, merge requests, notes, discussions, pipelines, jobs, branches), and
"Webhook events".
"""

from __future__ import annotations

import json
from typing import Any

from tests.support.host_stand_ins.server import (
    PEOPLE,
    REPOSITORY,
    Check,
    Delivery,
    Doc,
    HostStandIn,
    Note,
    Thread,
    delivery_id,
    iso,
    now,
    page_of,
)

_STATE = {"open": "opened", "closed": "closed"}


class GitLabStandIn(HostStandIn):
    kind = "gitlab"
    api = "/api/v4/projects/shop%2Fcalc"

    def allows(self, headers: Any) -> bool:
        return bool(headers.get("PRIVATE-TOKEN") == "hunter2")

    def public(self, path: str) -> Doc | None:
        return {"version": "18.6.0"} if path == "/api/v4/version" else None

    def next_number(self, kind: str) -> int:
        return sum(each.startswith(kind) for each in self.threads) + 1

    def answer(self, method: str, path: list[str], query: dict[str, str], said: Doc) -> tuple[int, Any]:
        match method, path:
            case "GET", ["issues" | "merge_requests" as of]:
                return 200, page_of(self._listed(of, query), query)
            case "POST", ["merge_requests"]:
                made = self.open_pull(said["source_branch"], said["target_branch"], said["title"], said["description"])
                return 201, self._thread(made)
            case "PUT", ["merge_requests", number]:
                thread = self.threads[f"pulls/{number}"]
                thread.title = said.get("title", thread.title)
                thread.state = "closed" if said.get("state_event") == "close" else thread.state
                return 200, self._thread(thread)
            case "GET", ["merge_requests", number] if f"pulls/{number}" in self.threads:
                return 200, self._thread(self.threads[f"pulls/{number}"])
            case "GET", ["repository", "branches"]:
                branch = query["search"]
                return 200, [{"name": branch, "commit": {"id": self.tip(branch)}}]
            case "GET", ["pipelines", number, "jobs"]:
                head = self.tip(self.threads[f"pulls/{int(number) - 1000}"].head)
                return 200, [self._job(each) for each in self.checks if each.head == head]
            case "GET", ["jobs", job, "trace"]:
                return 200, next(each.log for each in self.checks if str(each.id) == job)
            case _:
                return self._notes(method, path, query, said)

    def _notes(self, method: str, path: list[str], query: dict[str, str], said: Doc) -> tuple[int, Any]:
        place = f"{'pulls' if path[0] == 'merge_requests' else 'issues'}/{path[1]}"
        match method, path[2:]:
            case "GET", ["notes"]:
                rows = [each for each in self.notes if each.place == place]
                rows = rows[::-1] if query.get("sort") == "desc" else rows
                return 200, page_of([self._note(each) for each in rows], query)
            case "POST", ["notes"]:
                return 201, self._note(self.comment(place, "kim", said["body"]))
            case "PUT", ["notes", id] | ["discussions", _, "notes", id]:
                note = self.note(id)
                if note is None:
                    return 404, {"message": "404 Not found"}
                note.body = said["body"]
                return 200, self._note(note)
            case "GET", ["discussions"]:
                firsts = [each for each in self.notes if each.place == place and each.reply_to is None]
                return 200, page_of([self._discussion(each) for each in firsts], query)
            case "GET", ["discussions", id]:
                first = self.note(id.removeprefix("d"))
                assert first is not None
                return 200, self._discussion(first)
            case "POST", ["discussions", id, "notes"]:
                first = self.note(id.removeprefix("d"))
                assert first is not None
                note = self.comment(place, "kim", said["body"])
                note.path, note.line, note.commit, note.reply_to = first.path, first.line, first.commit, first.id
                return 201, self._note(note)
        return 404, {"message": "404 Not found"}

    def _listed(self, of: str, query: dict[str, str]) -> list[Doc]:
        kind = "pulls" if of == "merge_requests" else "issues"
        rows = [each for each in self.threads.values() if each.place.startswith(kind)]
        rows = [each for each in rows if iso(each.updated) >= query.get("updated_after", "")]
        if "source_branch" in query:
            rows = [each for each in rows if each.head == query["source_branch"] and each.state == "open"]
        return [self._thread(each) for each in rows]

    def _user(self, login: str) -> Doc:
        return {"id": PEOPLE[login], "username": login, "name": login.title()}

    def _thread(self, thread: Thread) -> Doc:
        of = "merge_requests" if thread.place.startswith("pulls/") else "issues"
        row = {
            "id": 5000 + thread.number,
            "iid": thread.number,
            "title": thread.title,
            "description": thread.body,
            "state": "merged" if thread.merged else _STATE[thread.state],
            "author": self._user(thread.author),
            "web_url": self.url(f"{REPOSITORY}/-/{of}/{thread.number}"),
            "updated_at": iso(thread.updated),
        }
        if of == "issues":
            return row
        return {
            **row,
            "source_branch": thread.head,
            "target_branch": thread.base,
            "sha": self.tip(thread.head),
            "has_conflicts": thread.state == "open" and self.has_conflicts(thread),
            "head_pipeline": {"id": 1000 + thread.number, "status": "failed"},
        }

    def _note(self, note: Note) -> Doc:
        row = {
            "id": note.id,
            "type": "DiffNote" if note.path else None,
            "body": note.body,
            "author": self._user(note.author),
            "created_at": iso(note.at),
            "updated_at": iso(note.changed),
            "system": False,
            "resolvable": bool(note.path),
        }
        if not note.path:
            return row
        position = {"new_path": note.path, "old_path": note.path, "new_line": note.line, "old_line": None}
        return {**row, "resolved": False, "position": {**position, "head_sha": note.commit, "line_range": None}}

    def _discussion(self, first: Note) -> Doc:
        notes = [first, *(each for each in self.notes if each.reply_to == first.id)]
        return {"id": f"d{first.id}", "individual_note": not first.path, "notes": [self._note(each) for each in notes]}

    def _job(self, check: Check) -> Doc:
        return {
            "id": check.id,
            "name": check.name,
            "status": "failed",
            "allow_failure": False,
            "web_url": self.url(f"{REPOSITORY}/-/jobs/{check.id}"),
        }

    # --- webhooks -------------------------------------------------------------------------

    def delivery(self, what: str, about: Any) -> Delivery:
        event, payload = self._payload(what, about)
        headers = {"X-Gitlab-Event": event, "Idempotency-Key": delivery_id(), "X-Gitlab-Event-UUID": delivery_id()}
        project = {"id": 1, "path_with_namespace": REPOSITORY, "name": "calc"}
        return Delivery(headers, json.dumps({**payload, "project": project, "at": iso(now())}).encode())

    def _payload(self, what: str, about: Any) -> tuple[str, Doc]:
        match what:
            case "comment":
                type_ = "MergeRequest" if about.place.startswith("pulls/") else "Issue"
                note = {"id": about.id, "note": about.body, "noteable_type": type_, "type": None, "action": "create"}
                user = self._user(about.author)
                return "Note Hook", {"object_kind": "note", "user": user, "object_attributes": note}
            case "review":
                line = next(each for each in self.notes if each.review == about.id)
                note = {"id": line.id, "note": line.body, "noteable_type": "MergeRequest", "type": "DiffNote"}
                return "Note Hook", {"object_kind": "note", "object_attributes": {**note, "action": "create"}}
            case "check":
                return "Pipeline Hook", {"object_kind": "pipeline", "object_attributes": {"status": "failed"}}
            case "push":
                return "Push Hook", {"object_kind": "push", "ref": f"refs/heads/{about}", "after": self.tip(about)}
            case _:
                attributes = {"iid": about.number, "action": "merge", "state": "merged"}
                return "Merge Request Hook", {"object_kind": "merge_request", "object_attributes": attributes}

    def sign(self, secret: str, body: bytes) -> dict[str, str]:
        return {"X-Gitlab-Token": secret}
