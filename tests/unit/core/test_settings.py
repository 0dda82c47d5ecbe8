"""Settings that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from control_plane.core.settings import read_settings
from shared.errors import Invalid


@pytest.mark.parametrize("proxies", ["*", "caddy", "10.0.0.1,", "10.0.0.1/8", "127.0.0.1;::1"])
def test_a_trusted_proxy_is_an_address_or_a_network(tmp_path: Path, proxies: str) -> None:
    with pytest.raises(Invalid, match="FLEET_TRUSTED_PROXIES: ") as refusal:
        read_settings(database_url="sqlite://", broker_url="redis://x", blob_dir=tmp_path, trusted_proxies=proxies)
    assert refusal.value.code == "E-SETTINGS"
