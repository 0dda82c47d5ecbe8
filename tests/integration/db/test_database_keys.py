"""The control plane's own keys: made once, whoever starts first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from control_plane.assemble import open_core
from control_plane.core import Core
from control_plane.core.settings import FleetSettings
from shared.envelope import public_key
from shared.errors import Precondition
from tests.support.database import CoreFactory


def keys(core: Core) -> set[str]:
    with core.database.read() as db:
        return set(core.vault.box_keys(db).private_keys())


def test_control_planes_that_start_at_once_agree_on_one_key(core_factory: CoreFactory, database_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        cores = list(pool.map(lambda _: core_factory(database_url), range(4)))
    assert len(keys(cores[0])) == 1
    assert all(keys(core) == keys(cores[0]) for core in cores)


def test_the_public_key_belongs_to_the_private_one(core: Core) -> None:
    with core.database.read() as db:
        found = core.vault.box_keys(db)
    assert found.current_public_key() == public_key(found.current_private_key())


def test_the_keys_are_the_same_after_a_restart(core_factory: CoreFactory, database_url: str) -> None:
    assert keys(core_factory(database_url)) == keys(core_factory(database_url))


def test_another_master_key_is_told_apart_from_a_broken_database(core: Core, core_factory: CoreFactory) -> None:
    url = core.database.url.render_as_string(hide_password=False)
    other = core_factory(url, master_key="A" * 43 + "=")
    with pytest.raises(Precondition) as refusal:
        keys(other)
    assert refusal.value.code == "E-VAULT-KEY"


def test_a_core_on_a_database_without_tables_is_refused_with_the_command(empty_database_url: str, core: Core) -> None:
    settings = FleetSettings(**{**core.settings.model_dump(), "database_url": empty_database_url})
    with pytest.raises(Precondition) as refusal:
        open_core(settings)
    assert refusal.value.next == "fleet db upgrade"
