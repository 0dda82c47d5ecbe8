"""The model library is loaded beside other work, and a broken installation is reported where it is awaited."""

from __future__ import annotations

import subprocess
import sys

BROKEN = """
import sys
sys.modules["litellm"] = None
from drone.model.litellm_import import load
from drone.runs.beside import Beside
loading = Beside()
loading.start(load)
print("other work")
try:
    loading.settle()
except ImportError as error:
    print(type(error).__name__)
"""


def test_a_missing_library_is_an_import_error_when_it_is_awaited() -> None:
    ran = subprocess.run([sys.executable, "-c", BROKEN], capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n")[:2] == ["other work", "ModuleNotFoundError"]
