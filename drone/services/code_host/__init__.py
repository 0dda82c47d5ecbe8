"""What happens at a code host, read and written with the login of the drone's owner, outside the sandbox.

    sync_code_host(order, context) -> Outcome

`reading` is the interface that `github`, `gitlab` and `gitea` implement; `syncing` carries out an order.
"""

from __future__ import annotations

from drone.services.code_host.syncing import sync_code_host

__all__ = ["sync_code_host"]
