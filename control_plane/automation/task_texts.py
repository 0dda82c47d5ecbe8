"""Default titles and descriptions of tasks from code hosts, for triggers without their own texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from control_plane.automation.code_host_events import CodeHostEvent
from control_plane.automation.task_templates import Unfilled, description_of, title_of
from control_plane.contract.declarations.task_documents import TaskRequest

DEFAULT_EVENTS = {"github": ["issues.opened"], "gitea": ["issues.opened"], "gitlab": ["issue.open"], "standard": []}
"""Pushes are not a default: most of them are work that is already done."""
_WORK = (
    "Determine what is requested and check it against the repository. If the request is clear and wanted, do the work;"
    " otherwise say what is missing."
)
_LOOK = "Review what was pushed and report your findings in a comment: mistakes, missing tests, documentation to fix."
_ISSUE = (
    "{{ payload.repository.name }}#{{ payload.issue.number }}: {{ payload.issue.title }}",
    "Issue #{{ payload.issue.number }} of {{ payload.repository.full_name }} was {{ payload.action }} by"
    " {{ payload.sender.login }}: {{ payload.issue.html_url }}\n\n" + _WORK + "\n\n{{ payload.issue.title }}\n\n"
    "{{ payload.issue.body|default('', true) }}",
)
_COMMITS = "{% for commit in payload.commits %}\n\nCommit {{ commit.id[:12] }}:\n\n{{ commit.message }}\n{% endfor %}"
_PUSH = (
    "{{ payload.repository.name }}: push to {{ payload.ref[11:] }}",
    "{{ payload.pusher.name|default(payload.pusher.login) }} pushed to `{{ payload.ref }}` of"
    " {{ payload.repository.full_name }}; the branch is now at {{ payload.after }}.\n\n" + _LOOK + _COMMITS,
)
_GITLAB_ISSUE = (
    "{{ payload.project.name }}#{{ payload.object_attributes.iid }}: {{ payload.object_attributes.title }}",
    "Issue #{{ payload.object_attributes.iid }} of {{ payload.project.path_with_namespace }}"
    " ({{ payload.object_attributes.action }}) by {{ payload.user.username }}: {{ payload.object_attributes.url }}\n\n"
    + _WORK
    + "\n\n{{ payload.object_attributes.title }}\n\n{{ payload.object_attributes.description|default('', true) }}",
)
_GITLAB_PUSH = (
    "{{ payload.project.name }}: push to {{ payload.ref[11:] }}",
    "{{ payload.user_username }} pushed to `{{ payload.ref }}` of {{ payload.project.path_with_namespace }}; the branch"
    " is now at {{ payload.after }}.\n\n" + _LOOK + _COMMITS,
)
_ANY = (
    "{{ event }} ({{ kind }})",
    "The event `{{ event }}` was received. " + _WORK + "\n\n{{ payload }}",
)
_OWN = {
    ("github", "issues"): _ISSUE,
    ("gitea", "issues"): _ISSUE,
    ("github", "push"): _PUSH,
    ("gitea", "push"): _PUSH,
    ("gitlab", "issue"): _GITLAB_ISSUE,
    ("gitlab", "push"): _GITLAB_PUSH,
}


def task_of(kind: str, event: CodeHostEvent, stored: Mapping[str, Any]) -> tuple[TaskRequest, str]:
    """The task for an event, and a note on templates that did not fit: the task then has a default text.

    An event is never lost because of a template; the trigger keeps the note.
    """
    values = {"event": event.name, "kind": kind, "payload": event.payload}
    title, description = _OWN.get((kind, event.name.partition(".")[0]), _ANY)
    unfit: list[str] = []

    def filled(what: str, fill: Any, templates: tuple[str, ...]) -> str:
        for template in templates:
            try:
                return str(fill(template, values))
            except Unfilled as error:
                unfit.append(f"the {what} template does not fit {event.name or 'the event'}: {error}")
        return f"event from {kind}"

    texts = {
        "title": filled("title", title_of, (stored.get("title") or title, _ANY[0])) or f"event from {kind}",
        "description": filled("description", description_of, (stored.get("description") or description, _ANY[1])),
    }
    return TaskRequest.model_validate({**stored, **texts}), "; ".join(unfit)
