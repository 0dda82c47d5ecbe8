"""What the OpenAPI document contains besides the routes: the problem document as the form of every error."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI

from control_plane.web.problems import MEDIA_TYPE, Problem

_REFERENCE = {"$ref": "#/components/schemas/Problem"}
TAGS = [
    {"name": "orders", "description": "Work orders: submit, follow, cancel, and what became of them."},
    {"name": "sessions", "description": "Chats: their turns as a tree, and where they go on."},
    {"name": "drones", "description": "The registered workers."},
    {"name": "projects", "description": "Repositories that orders work on."},
    {"name": "providers", "description": "Where models are reached."},
    {"name": "tokens", "description": "Tokens for drones that join, for people and scripts, for browsers."},
    {"name": "registration", "description": "Drones joining and leaving."},
    {"name": "runs", "description": "What runs ask for, under their drone's token."},
    {"name": "organizations", "description": "The isolated units, and who works in them."},
    {"name": "agents", "description": "The identities that models take on."},
    {"name": "tasks", "description": "Threads that agents and people work on by hand-offs."},
    {"name": "automation", "description": "Schedules, triggers and webhooks."},
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
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _described(status: int) -> dict[str, Any]:
    return {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": _REFERENCE}}}
