"""Every operation has each of its doors, or says why not; and the page of them is up to date."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from control_plane.cli.main import app as fleet
from control_plane.contract.declarations.operation import (
    About,
    Command,
    Operation,
    Tool,
    every_operation,
    fields_of,
    names_of,
    operations_of,
)
from control_plane.operations.gateway import implementation
from control_plane.web.api import api_routes
from control_plane.web.mcp_server.declared import TOOLS
from tests.support.command_tree import commands
from tests.support.operations_table import PAGE, door_name, page

OPERATIONS = every_operation()
OTHER_ROUTES = {
    **dict.fromkeys(
        (
            "POST /registrations",
            "GET /registrations/self",
            "DELETE /registrations/self",
            "POST /registrations/self/keys",
            "GET /runs/{run_id}/blobs/{sha256}",
            "PUT /runs/{run_id}/blobs/{sha256}",
            "POST /runs/{run_id}/push-grant",
            "POST /runs/{run_id}/allowance",
            "POST /runs/{run_id}/model-permit",
        ),
        "a drone calls it, with a token of its own",
    ),
    "GET /health": "it is asked without a token",
}
"""Routes that belong to no operation of a person, and why."""
OTHER_COMMANDS = {
    **dict.fromkeys(("up", "serve", "flower"), "it runs a program of this machine"),
    **dict.fromkeys(
        ("logs", "stop"), "it is about the `fleet up` of this machine, also while its server does not answer"
    ),
    "open": "it opens a page with a login link",
    **dict.fromkeys(("db status", "db upgrade"), "it works on the database itself, also while no server runs"),
    **dict.fromkeys(("keys ls", "keys rotate master", "keys rotate broker"), "no server gives these keys away"),
    **dict.fromkeys(("backup create", "backup check", "restore"), "it works on the files themselves, with all secrets"),
    **dict.fromkeys(("help", "completion", "install-skill"), "it explains the commands of this machine"),
    **dict.fromkeys(("session mode", "session rename"), "it is a shorter form of session edit"),
    "comment": "it is a shorter form of task comment",
    "task follow": "it shows a task again and again, with the orders that work on it",
    "mcp": "it passes on the tools of the server",
    "top": "it shows a board of several operations' answers on the whole screen",
    "compare": "it shows several orders, or those of a race, side by side",
}
"""Commands that call no operation, and why."""


def test_each_operation_has_a_name_of_its_own_and_a_function_that_is_guarded_by_its_declaration() -> None:
    names = [operation.name for operation in OPERATIONS]
    assert sorted(set(names)) == sorted(names)
    assert [each.name for each in OPERATIONS if vars(implementation(each))["operation"] is not each] == []


def test_each_operation_has_its_doors_and_each_door_its_operation_or_says_why_not() -> None:
    api = FastAPI()
    api.router.routes += api_routes()
    paths = api.openapi()["paths"]
    routes = {f"{method.upper()} {path.removeprefix('/api/v1')}" for path, each in paths.items() for method in each}
    assert [each.name for each in OPERATIONS if each.route not in routes] == []
    assert routes - {operation.route for operation in OPERATIONS} == set(OTHER_ROUTES)
    words = {" ".join(node.words) for node in commands(fleet)}
    assert [each.name for each in OPERATIONS if is_missing(each.tool, set(TOOLS))] == []
    assert [each.name for each in OPERATIONS if is_missing(each.command, words)] == []
    assert words - {door_name(operation.command) for operation in OPERATIONS} == set(OTHER_COMMANDS)


def is_missing(door: Any, doors: set[str]) -> bool:
    """Is a declared door not there, or one that is left out or written by hand without its reason?"""
    name = door_name(door)
    unexplained = not isinstance(door, Tool | Command) and len(door.why) <= 10
    return unexplained or (name is not None and name not in doors)


def asked(operation: Operation) -> list[tuple[str, About]]:
    """What a person is asked for."""
    found = [*names_of(operation), *(fields_of(operation.request) if operation.request else ())]
    return [(name, about) for name, _, about in found]


def test_what_a_person_is_asked_for_by_a_derived_command_is_explained() -> None:
    derived = [operation for operation in OPERATIONS if isinstance(operation.command, Command)]
    assert [(each.name, name) for each in derived for name, about in asked(each) if len(about.help) < 5] == []
    emptied = [(each, name, about) for each in derived if each.method == "PATCH" for name, about in asked(each)]
    assert [(each.name, name) for each, name, about in emptied if about.none and not about.absent] == []


def test_the_values_of_a_field_come_from_a_list_that_there_is() -> None:
    sources = {about.source for operation in OPERATIONS for _, about in asked(operation) if about.source}
    for noun, _, field in (source.partition("|")[0].partition(":") for source in sources):
        listing = next(found for found in operations_of(noun) if found.method == "GET" and not found.names)
        assert field in listing.answer.__args__[0].model_fields, (noun, field)


def test_the_page_of_operations_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.support.operations_table"


def test_a_comment_of_a_thread_is_never_changed_or_deleted() -> None:
    about = [operation for operation in OPERATIONS if "/comments" in operation.route and "/tasks/" in operation.route]
    assert {operation.route.split()[0] for operation in about} == {"POST"}
