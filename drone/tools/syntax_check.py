"""Says why an edited file no longer parses: runs as a script inside the sandbox, so it uses only the standard library.

`python -I -S -W ignore -c <this file> PATH BEFORE`, where BEFORE is the earlier content in base64, or `-` for a new
file. Prints one line, or nothing if the file parses, or did not parse before either.
"""

from __future__ import annotations

import ast
import base64
import json
import sys
import tomllib
from pathlib import Path

SUFFIXES = (".py", ".json", ".toml")


def problem(suffix: str, content: bytes) -> str:
    """Return why the content does not parse; empty if it does."""
    try:
        if suffix == ".py":
            compile(content, "file", "exec", ast.PyCF_ONLY_AST)
        elif suffix == ".json":
            json.loads(content)
        else:
            tomllib.loads(content.decode())
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except json.JSONDecodeError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or type(error).__name__
    return ""


def main(path: str, before: str) -> None:
    """Print the problem that an edit caused."""
    suffix = Path(path).suffix
    found = problem(suffix, Path(path).read_bytes())
    if found and (before == "-" or not problem(suffix, base64.b64decode(before))):
        print(found)  # noqa: T201 - a script's answer


if __name__ == "__main__":
    main(*sys.argv[1:])
