"""What a broker accepted is there after it restarts."""

from __future__ import annotations

import pytest
import redis

from tests.support.broker import BrokerServer


def test_transactions_and_scripts_with_several_writes_are_there_after_a_restart(broker_server: BrokerServer) -> None:
    """Redis 7.0 executes its file as the default user, and drops them if that user may not write."""
    with broker_server.redis.pipeline(transaction=True) as pipe:
        pipe.set("one", 1)
        pipe.set("two", 2)
        pipe.execute()
    broker_server.redis.eval("redis.call('SET', 'three', 3); redis.call('SET', 'four', 4)", 0)

    broker_server.restart()

    assert broker_server.redis.mget("one", "two", "three", "four") == ["1", "2", "3", "4"]


@pytest.mark.parametrize("login", [{}, {"username": "default"}, {"username": "default", "password": "default"}])
def test_nobody_is_the_default_user(broker_server: BrokerServer, login: dict[str, str]) -> None:
    with (
        redis.Redis(port=broker_server.port, **login) as stranger,  # type: ignore[arg-type]
        pytest.raises(redis.exceptions.AuthenticationError),
    ):
        stranger.set("one", 1)
