"""What the OpenAPI document contains besides the routes: the problem document as the form of every error."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI

from control_plane.web.problems import MEDIA_TYPE, Problem

_REFERENCE = {"$ref": "#/components/schemas/Problem"}
TAGS = [
    {"name": "orders", "description": "Work orders: submit, follow and cancel them, and read their results."},
    {"name": "sessions", "description": "Chats: their turns as a tree, and the turn from which they continue."},
    {"name": "drones", "description": "The registered workers."},
    {"name": "projects", "description": "Repositories that orders work on."},
    {"name": "providers", "description": "Model endpoints and their keys."},
    {"name": "tokens", "description": "Join tokens for drones, API tokens for users and scripts, login links."},
    {"name": "attention", "description": "How a user is told of what waits for them."},
    {"name": "registration", "description": "Registering and unregistering drones."},
    {"name": "runs", "description": "Requests from runs, with their drone's token."},
    {"name": "organizations", "description": "Isolated units with their own projects, members and tokens."},
    {"name": "agents", "description": "Identities for models: name, instructions, boss."},
    {"name": "tasks", "description": "Threads that agents and users work on through hand-offs."},
    {"name": "automation", "description": "Schedules, triggers and webhooks."},
    {"name": "audit", "description": "The log of all changes and refusals."},
    {"name": "server", "description": "The control plane itself."},
]


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """`responses=` of a route for these statuses; 422 and 503 can always occur."""
    return {status: _described(status) for status in (*statuses, 422, 503)}


def install(app: FastAPI) -> None:
    """Add the problem document to `app.openapi()`."""
    framework = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = framework()
            schemas = document.setdefault("components", {}).setdefault("schemas", {})
            own = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas.update(own.pop("$defs", {}))
            schemas["Problem"] = own
            schemas.pop("HTTPValidationError", None)
            schemas.pop("ValidationError", None)
            _describe_unreadable_bodies(document)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _describe_unreadable_bodies(document: dict[str, Any]) -> None:
    """Add the answers to a body that is no JSON or too large, which no route gives itself."""
    for path in document["paths"].values():
        for operation in path.values():
            if "application/json" in operation.get("requestBody", {}).get("content", {}):
                for status in (400, 413):
                    operation["responses"].setdefault(str(status), _described(status))


def _described(status: int) -> dict[str, Any]:
    return {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": _REFERENCE}}}
