"""Runs deploy/demo/demo.py as a program that can start warm, as its parts do (`tests.support.warm_processes`)."""

from __future__ import annotations

import runpy
import sys

from tests.support.documents import ROOT

if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "deploy" / "demo"))
    runpy.run_path(str(ROOT / "deploy" / "demo" / "demo.py"), run_name="__main__")
