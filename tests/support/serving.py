"""A program that serves parts of a control plane: `python -m tests.support.serving ROLE`, with settings from variables.

It waits only half a second for a database or a broker that does not answer.
"""

from __future__ import annotations

import sys

from control_plane.core.settings import read_settings
from control_plane.server.serve import serve
from shared.errors import FleetError

if __name__ == "__main__":
    try:
        sys.exit(serve(read_settings(), sys.argv[1], patience_s=0.5))
    except FleetError as error:
        sys.stderr.write(f"{error.what} / {error.next}\n")
        sys.exit(error.exit_code)
