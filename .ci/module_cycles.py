"""Fail on circular imports, deferred imports included, and name one cycle per package."""

from __future__ import annotations

import sys
from graphlib import CycleError, TopologicalSorter

import grimp


def find_cycle(package: str) -> list[str]:
    """The modules of one import cycle in the package, with the first repeated at the end; empty if there is none."""
    graph = grimp.build_graph(package)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        # The sorter names predecessors first: the module at n is imported by the one at n + 1.
        return list(error.args[1])[::-1]
    return []


def main(packages: list[str]) -> None:
    cycles = [cycle for package in packages if (cycle := find_cycle(package))]
    if cycles:
        sys.exit("\n".join(f"error: modules import each other: {' imports '.join(cycle)}" for cycle in cycles))


if __name__ == "__main__":
    main(sys.argv[1:])
