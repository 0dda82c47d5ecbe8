"""The settings of version 2."""

import os
from types import SimpleNamespace


def load():
    return SimpleNamespace(timeout=_number("APP_TIMEOUT", 30), debug=_switch("APP_DEBUG"))


def _number(name, default):
    return int(os.environ.get(name, 0)) or default


def _switch(name):
    return bool(os.environ.get(name))
