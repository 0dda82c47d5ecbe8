"""`fleet backup, restore`: the whole control plane of this machine, saved while it works and restored elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli.local_settings import DataDirOption, data_directory, own_settings, settings_of
from shared.terminal.command_line import FleetGroup, JsonFlag, examples, print_json, say

if TYPE_CHECKING:
    from control_plane.server.backup.manifest import LocalFleet, Manifest
    from control_plane.server.embedded.data_dir import DataDir

PANEL = "Setup"
Backup = Annotated[Path, typer.Argument(metavar="FROM", help="The directory of the backup.")]


class _CreatedByDefault(FleetGroup):
    """`fleet backup TO` is `fleet backup create TO`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {*self.commands, *ctx.help_option_names}
        return super().parse_args(ctx, args if not args or args[0] in known else ["create", *args])


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    commands = typer.Typer(
        name="backup",
        cls=_CreatedByDefault,
        help="Save the control plane of this machine; check what was saved.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    commands.command(
        "create",
        epilog=examples("fleet backup create /backups/monday", "fleet backup create /backups/monday --with-keys"),
    )(create)
    commands.command("check", epilog=examples("fleet backup check /backups/monday"))(check)
    app.add_typer(commands, rich_help_panel=PANEL)
    app.command(
        "restore",
        rich_help_panel=PANEL,
        epilog=examples("fleet restore /backups/monday --data-dir /srv/fleet", "fleet restore /backups/monday"),
    )(restore)


def create(
    to: Annotated[Path, typer.Argument(metavar="TO", help="A directory that is new or empty.")],
    with_keys: Annotated[bool, typer.Option("--with-keys", help="Include the master key.")] = False,
    as_json: JsonFlag = False,
    data_dir: DataDirOption = None,
) -> None:
    """Save database, blobs and, on request, the master key, while the fleet works.

    Without the word create, it is the same. Prompts and results in a backup are not encrypted: keep it private.
    """
    from control_plane.cli.server_packages import require_server

    require_server("fleet backup create")
    from control_plane.server.backup.writing import make_backup

    settings = own_settings(data_dir)
    manifest = make_backup(settings, to, with_keys=with_keys, local_fleet=_local_fleet(data_dir))
    if as_json:
        print_json(_document(to, manifest))
        return
    say(f"The backup is in {to}: {_contents(manifest)}.")
    if manifest.with_keys:
        say("It contains the master key, which opens every secret in it: keep it as safe as that key.")
    else:
        say(f"It does not contain the master key {manifest.master_keys[0]}: keep a copy of that in another place.")
    _tell_missing(manifest)


def check(backup: Backup, as_json: JsonFlag = False) -> None:
    """Verify every file of a backup without restoring it."""
    from control_plane.cli.server_packages import require_server

    require_server("fleet backup check")
    from control_plane.server.backup.checking import check_backup

    manifest = check_backup(backup)
    if as_json:
        print_json(_document(backup, manifest))
        return
    say(f"The backup {backup} is complete: {_contents(manifest)}.")
    say(f"Made {manifest.made_at:%Y-%m-%d %H:%M} UTC by Dronefleet {manifest.program}.")
    if not manifest.with_keys:
        say(f"It needs the master key {' and '.join(manifest.master_keys)}, which is not in it.")
    _tell_missing(manifest)


def restore(
    backup: Backup,
    key_file: Annotated[
        Path | None, typer.Option("--key-file", metavar="FILE", help="The master key, if the backup does not have it.")
    ] = None,
    as_json: JsonFlag = False,
    data_dir: DataDirOption = None,
) -> None:
    """Restore a backup to an empty database, blob store and broker, and upgrade it to this version.

    The target is a new data directory of `fleet up`, or what the variables of `fleet serve` name.
    """
    from control_plane.cli.server_packages import require_server

    require_server("fleet restore")
    from control_plane.core.settings import read_settings
    from control_plane.server.backup.restoring import restore_backup

    if data_dir is None and "FLEET_DATABASE_URL" in os.environ:
        manifest, then = restore_backup(read_settings(), backup, key_file=key_file), "fleet serve"
    else:
        data = data_directory(data_dir)
        manifest, then = _restore_locally(data, backup, key_file), f"fleet up --data-dir {data.root}"
    if as_json:
        print_json(_document(backup, manifest))
        return
    say(f"Restored the fleet of {manifest.made_at:%Y-%m-%d %H:%M} UTC: {_contents(manifest)}.")
    _tell_missing(manifest)
    say(f"Next: {then}")


def _restore_locally(data: DataDir, backup: Path, key_file: Path | None) -> Manifest:
    from control_plane.server.backup.restoring import restore_backup
    from control_plane.server.backup.target import require_empty_directory
    from control_plane.server.embedded.data_dir import Remembered
    from control_plane.server.embedded.drones import registered_ids

    with _unused(data):
        # Of the brokers with TLS, which this fleet may use again.
        for directory in data.root.glob("broker-*"):
            require_empty_directory(directory)
        settings, homes = settings_of(data, os.environ), registered_ids(data)
        manifest = restore_backup(settings, backup, key_file=key_file, homes=homes, broker_dir=data.broker)
        if manifest.local_fleet and not data.remembered().port:
            ports: dict[str, Any] = {**manifest.local_fleet.ports}
            data.remember(Remembered(**ports).with_new_passwords())
    return manifest


@contextmanager
def _unused(data: DataDir) -> Iterator[None]:
    """No `fleet up` uses the directory meanwhile. If the block raises, a directory that was created is deleted."""
    existed = data.root.exists()
    data.open()
    try:
        yield
    except BaseException:
        data.close()
        if not existed:
            data.discard()
        raise
    data.close()


def _local_fleet(data_dir: Path | None) -> LocalFleet | None:
    """What the `fleet up` of this machine remembers; None for a `fleet serve`."""
    from dataclasses import asdict

    from control_plane.server.backup.manifest import LocalFleet
    from control_plane.server.embedded.drones import registered_ids

    if data_dir is None and "FLEET_DATABASE_URL" in os.environ:
        return None
    data = data_directory(data_dir)
    ports = {name: value for name, value in asdict(data.remembered()).items() if name.endswith("port")}
    return LocalFleet(ports=ports, drone_ids=tuple(registered_ids(data)))


def _document(backup: Path, manifest: Manifest) -> dict[str, Any]:
    kept = manifest.model_dump(
        mode="json", include={"program", "revision", "made_at", "rows", "blobs", "missing_blobs", "master_keys"}
    )
    return {"path": str(backup.absolute()), **kept, "bytes": manifest.size, "with_keys": manifest.with_keys}


def _contents(manifest: Manifest) -> str:
    rows, mib = sum(manifest.rows.values()), manifest.size / (1 << 20)
    return f"{rows:,} rows of revision {manifest.revision} and {manifest.blobs:,} blobs, {mib:,.1f} MiB"


def _tell_missing(manifest: Manifest) -> None:
    if manifest.missing_blobs:
        say(f"WARNING: the blob store lacked files that the database names: {', '.join(manifest.missing_blobs[:3])}…")
