"""One thing of each kind that is sealed under the master key, and a process that is killed while it rotates the key."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

from sqlalchemy import select

from control_plane.contract.declarations.code_hosts import CodeHostRequest
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.declarations.triggers import TriggerRequest
from control_plane.contract.declarations.webhooks import WebhookRequest
from control_plane.core import Caller, Core
from control_plane.core.master_key import master_keys
from control_plane.core.settings import FleetSettings
from control_plane.core.vault import Purpose, Vault
from control_plane.db.automation import Trigger, Webhook
from control_plane.db.code_hosts import HostLink
from control_plane.db.installation import KeyPair
from control_plane.db.projects import Project, Provider
from control_plane.operations import projects, providers
from control_plane.operations.automation import triggers, webhooks
from control_plane.operations.code_hosts import connections as code_hosts
from control_plane.services.master_key_rotation import Step, purpose_of, rotate_master_key
from shared.blobs import digest
from tests.support.database import core_on

COLUMNS = (
    Provider.sealed_key,
    Project.sealed_git_url,
    Webhook.sealed_secret,
    Trigger.sealed_secret,
    HostLink.sealed_secret,
    KeyPair.sealed_private_key,
)
CHECKPOINT = b"a bundle"


def seal_one_of_each(core: Core, admin: Caller) -> None:
    """Store a secret of each kind, and a checkpoint."""
    providers.add(core, admin, ProviderRequest(name="local", model="openai/x", api_key="sk-hunter2"))
    projects.add(core, admin, ProjectRequest(slug="web", git_url="https://user:hunter2@git.example/web.git"))
    webhooks.create(core, admin, WebhookRequest(name="nightly", url="https://example.org/"))
    triggers.create(core, admin, TriggerRequest(name="nightly", kind="github"))
    connection = CodeHostRequest(name="nightly", kind="github", project="web", repository="shop/web")
    code_hosts.add(core, admin, connection)
    core.blobs.store_sealed(digest(CHECKPOINT), BytesIO(CHECKPOINT), core.vault.seal_content)


def sealed_values(core: Core) -> list[tuple[Purpose, str]]:
    """Every sealed text of the database, with what it is sealed for."""
    with core.database.read() as db:
        rows = [(column, db.scalars(select(column).where(column.is_not(None))).all()) for column in COLUMNS]
        return [(purpose_of(column.expression), text) for column, texts in rows for text in texts]


def openable(core: Core, keys: Sequence[bytes]) -> int:
    """How many of the stored things these keys open, texts and files."""
    vault = Vault(lambda: tuple(keys))
    texts = [vault.key_at_rest(text, purpose) for purpose, text in sealed_values(core)]
    return len([*filter(None, texts), *_opened_files(core, vault)])


def _opened_files(core: Core, vault: Vault) -> Iterator[bytes]:
    for name in core.blobs.sealed_names():
        if core.blobs.read_sealed(name, vault.key_of):
            yield core.blobs.read_sealed(name, vault.open_content)


def keys_of(settings: FleetSettings) -> tuple[bytes, ...]:
    """The master keys that a process with these settings has if it starts now."""
    return master_keys(settings)()


def main(database_url: str, directory: str, last: Step) -> None:
    """Rotate the master key, and die by SIGKILL after the step `last`."""

    def done(step: Step) -> None:
        if step == last:
            os.kill(os.getpid(), signal.SIGKILL)

    rotate_master_key(core_on(database_url, Path(directory)), lambda _: None, done)


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]
