"""`fleet provider add|ls|show|edit|rm`: where models are reached."""

from __future__ import annotations

import json
import os
from typing import Annotated, Any

import typer

from control_plane.cli.connection import Org, client
from shared.errors import Invalid
from shared.terminal.command_line import (
    JsonFlag,
    confirmed,
    examples,
    group,
    print_json,
    print_table,
    put,
    read_secret,
    say,
)

PANEL = "Set-up"
Doc = dict[str, Any]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The provider's name.")]
Model = Annotated[str | None, typer.Option("--model", help="LiteLLM's name of the model, openai/gpt-x.")]
ApiBase = Annotated[str | None, typer.Option("--api-base", help="The endpoint's base URL, with its /v1.")]
Window = Annotated[
    int | None,
    typer.Option("--context-window", min=0, help="Tokens that the model takes; 0: what is known of the model."),
]
Protocol = Annotated[
    str | None,
    typer.Option("--protocol", help="How the model calls tools: auto, tools (natively) or text (in fenced blocks)."),
]
Param = Annotated[list[str] | None, typer.Option("--param", help="k=v for the model, temperature=0; repeats.")]
Fallback = Annotated[list[str] | None, typer.Option("--fallback", help="Provider to try when this one fails; repeats.")]
KeyEnv = Annotated[
    str | None, typer.Option("--api-key-env", metavar="VAR", help="Read the key from this variable here.")
]
KeyStdin = Annotated[bool, typer.Option("--api-key-stdin", help="Read the key from stdin.")]
KeyOnDrone = Annotated[str | None, typer.Option("--key-on-drone", metavar="VAR", help="The key stays on the drone.")]
NoKey = Annotated[bool, typer.Option("--no-key", help="The endpoint wants none.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    commands = group("provider", "Say where models are reached.")
    example = "fleet provider add main --model openai/gpt-x --api-key-env OPENAI_API_KEY"
    commands.command("add", epilog=examples(example))(add)
    commands.command("ls", epilog=examples("fleet provider ls"))(list_)
    commands.command("show", epilog=examples("fleet provider show NAME"))(show)
    commands.command("edit", epilog=examples("fleet provider edit NAME --param temperature=0"))(edit)
    commands.command("rm", epilog=examples("fleet provider rm NAME"))(remove)
    app.add_typer(commands, rich_help_panel=PANEL)


def add(
    name: Name,
    model: Model = None,
    api_base: ApiBase = None,
    context_window: Window = None,
    protocol: Protocol = None,
    param: Param = None,
    fallback: Fallback = None,
    api_key_env: KeyEnv = None,
    api_key_stdin: KeyStdin = False,
    key_on_drone: KeyOnDrone = None,
    no_key: NoKey = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Add a provider. The key is sealed on arrival and never shown again."""
    if model is None:
        raise Invalid("--model is missing", code="E-USAGE", next=f"fleet provider add {name} --model openai/MODEL")
    keys = _key(api_key_env, api_key_stdin=api_key_stdin, key_on_drone=key_on_drone, no_key=no_key)
    request = {
        "name": name,
        "model": model,
        "api_base": api_base,
        "context_window": context_window or 0,
        "protocol": protocol or "auto",
        "params": params(param),
        "fallbacks": fallback or [],
    }
    provider = client(org).add_provider({**request, **{k: v for k, v in keys.items() if k != "no_key"}})
    _tell(provider, as_json=as_json)


def list_(as_json: JsonFlag = False, org: Org = None) -> None:
    """List the providers."""
    found = client(org).list_providers()
    if as_json:
        print_json(found)
        return
    rows = [(p["name"], p["model"], p["api_base"], p["key"], ",".join(p["fallbacks"]) or None) for p in found]
    print_table(("PROVIDER", "MODEL", "API BASE", "KEY", "FALLBACKS"), rows, empty="no providers; fleet provider add")


def show(name: Name, as_json: JsonFlag = False, org: Org = None) -> None:
    """Show a provider, without its key."""
    _tell(client(org).show_provider(name), as_json=as_json)


def edit(
    name: Name,
    model: Model = None,
    api_base: ApiBase = None,
    context_window: Window = None,
    protocol: Protocol = None,
    param: Param = None,
    fallback: Fallback = None,
    api_key_env: KeyEnv = None,
    api_key_stdin: KeyStdin = False,
    key_on_drone: KeyOnDrone = None,
    no_key: NoKey = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Change a provider; only what is named changes."""
    changes: Doc = {
        "model": model,
        "api_base": api_base,
        "context_window": context_window,
        "protocol": protocol,
        "params": params(param) if param else None,
        "fallbacks": fallback,
        **_key(api_key_env, api_key_stdin=api_key_stdin, key_on_drone=key_on_drone, no_key=no_key),
    }
    provider = client(org).edit_provider(name, {key: value for key, value in changes.items() if value is not None})
    _tell(provider, as_json=as_json)


def remove(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Remove a provider; orders that used it keep their record."""
    confirmed(f"Remove provider {name}?", yes=yes)
    provider = client(org).remove_provider(name)
    if as_json:
        print_json(provider)
    else:
        say(f"provider {name} is removed")


def params(pairs: list[str] | None) -> Doc:
    """`temperature=0.2` texts as a mapping; a value that is JSON is taken as such, any other as text."""
    found: Doc = {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise Invalid(f"{pair[:80]!r} is not a parameter", code="E-PARAM", next="--param temperature=0.2")
        try:
            found[key.strip()] = json.loads(value)
        except ValueError:
            found[key.strip()] = value
    return found


def _key(variable: str | None, *, api_key_stdin: bool, key_on_drone: str | None, no_key: bool) -> Doc:
    """The key's fields of a request. Raises Invalid where two sources are named, or the one named is empty."""
    if sum(map(bool, (variable, api_key_stdin, key_on_drone, no_key))) > 1:
        raise Invalid("name one source of the key", code="E-USAGE", why="several of the --…key… options are given")
    if variable:
        value = os.environ.get(variable, "")
        if not value:
            raise Invalid(
                f"the variable {variable} is not set here", code="E-KEY-VARIABLE", next=f"export {variable}=…"
            )
        return {"api_key": value}
    if api_key_stdin:
        return {"api_key": read_secret("-", "API key")}
    if key_on_drone:
        return {"key_variable": key_on_drone}
    return {"no_key": True} if no_key else {}


def _tell(provider: Doc, *, as_json: bool) -> None:
    if as_json:
        print_json(provider)
        return
    window = f"{provider['context_window']:,} tokens" if provider["context_window"] else "what is known of the model"
    lines = [
        f"provider  {provider['name']}",
        f"model     {provider['model']}",
        f"api base  {provider['api_base'] or 'the default of the model'}",
        f"window    {window}",
        f"protocol  {provider['protocol']}",
        f"params    {json.dumps(provider['params'])}",
        f"fallbacks {', '.join(provider['fallbacks']) or 'none'}",
        f"key       {provider['key']}",
    ]
    put("\n".join(lines) + "\n")
