"""The settings of version 1; kept for the programs that use it."""

import os
from types import SimpleNamespace


def load():
    timeout = int(os.environ.get("APP_TIMEOUT", 0)) or 30
    debug = bool(os.environ.get("APP_DEBUG"))
    return SimpleNamespace(timeout=timeout, debug=debug)
