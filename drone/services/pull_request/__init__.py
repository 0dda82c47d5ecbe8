"""Pull requests, opened with the credentials of the drone's owner, outside the sandbox.

    open_pull_request(order, context) -> Outcome

`address` says where a repository is hosted, `routes` how its host can be reached from this workstation, `commands` and
`http_api` are the two kinds of route, `hosts` knows the requests for GitHub, GitLab and Gitea, `template` fills in the
repository's own template.
"""

from __future__ import annotations

from drone.services.pull_request.opening import open_pull_request

__all__ = ["open_pull_request"]
