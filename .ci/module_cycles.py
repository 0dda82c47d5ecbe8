"""Fails where modules import each other in a circle, deferred imports included, and names one circle per package."""

from __future__ import annotations

import sys
from graphlib import CycleError, TopologicalSorter

import grimp


def find_cycle(package: str) -> list[str]:
    """The modules of a cycle in the package, the first one again at the end; empty where there is none."""
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
