"""The rights of a drone's Redis user: only its own queue, stream, keys and channels."""

from __future__ import annotations

from shared import names

_UP_TO_PRIORITIES = "\x06\x16*"
"""kombu keeps a queue's other priorities in lists named after it, with these two bytes between."""

# fmt: off
_COMMANDS = (
    "+@all", "-@admin", "-@dangerous", "-keys", "-scan", "-randomkey", "-dbsize",
    "+info", "+client|setname", "+client|id",
    "-publish", "-spublish", "-function", "-script", "+script|load", "+script|exists",
    "-select", "-swapdb", "-move", "-copy", "-pubsub",
)
# fmt: on


def rules(drone_id: str, password_hash: str, *, knows_setinfo: bool) -> list[str]:
    """The arguments of `ACL SETUSER <drone>`: they begin with a reset, so that no older right remains.

    `password_hash` is the SHA-256 of the password in hexadecimal. `CLIENT SETINFO` came with Redis 7.2; naming it to an
    older server is an error, and not granting it on a newer one fills the ACL log.
    """
    setinfo = ["+client|setinfo"] if knows_setinfo else []
    who = ["reset", "on", f"#{password_hash}"]
    return [*who, *_keys(drone_id), *_channels(drone_id), *_COMMANDS, *setinfo, *_selectors(drone_id)]


def _keys(drone_id: str) -> list[str]:
    queue = names.queue(drone_id)
    bound = (queue, "celery.pidbox", "reply.celery.pidbox", "celeryev")
    patterns = [
        queue,
        queue + _UP_TO_PRIORITIES,
        f"fleet:{drone_id}:*",
        *(f"{name}.{drone_id}" for name in ("unacked", "unacked_index", "unacked_mutex")),
        *(f"_kombu.binding{kind}.{name}" for kind in ("", "_permanent") for name in bound),
        "_kombu.binding_deadlines*",
        f"{drone_id}@*.celery.pidbox*",
    ]
    return [f"~{pattern}" for pattern in patterns]


def _channels(drone_id: str) -> list[str]:
    return ["&/0.celery.pidbox", f"&fleet:{drone_id}:*"]


def _selectors(drone_id: str) -> list[str]:
    return [
        f"(+publish &fleet:{drone_id}:* &/0.celeryev*)",
        "(+lpush +rpush %W~*.reply.celery.pidbox)",
        "(+smembers +sismember %R~_kombu.binding.reply.celery.pidbox)",
    ]
