"""What a task counted, for its report."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.runtime.tables.forest import Tree
from penstock.runtime.tables.leaf import Leaf
from penstock.runtime.work import TABLE
from penstock.state.protocol import Counts, Work


def counted(tree: Tree, leaves: Iterable[Leaf]) -> Work:
    """What the relations of a task did."""
    tables = {
        TABLE + branch.table.name: {
            "probes": branch.probes, "evictions": branch.evictions, "flushed": branch.flushed,
            "nanoseconds": branch.nanoseconds,
        }
        for branch in tree.branches
    }  # fmt: skip
    return tables | {
        leaf.relation.query: {"probes": leaf.probes, "groups": leaf.seen, "nanoseconds": leaf.nanoseconds}
        for leaf in leaves
    }


def sizes(tree: Tree, leaves: Iterable[Leaf]) -> Counts:
    """Bytes of the relations of a task, by the names of `counted`."""
    tables = {TABLE + branch.table.name: branch.size for branch in tree.branches}
    return tables | {leaf.relation.query: leaf.nbytes for leaf in leaves}
