"""A shared plan made by hand, whose figures do not depend on machine or planner; for the tests of explanations.

`dst.src` feeds `pairs`, `talkers` and `nets`, which has a table of its own; `rate` is fed by the stream.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.logical.query import QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.sharing.graph.configuration import STREAM, Configuration, Node
from penstock.sharing.graph.grain import Grain, union
from penstock.sharing.graph.lattice import lattice
from penstock.sharing.graph.notation import text
from penstock.sharing.model.engine_problem import EACH
from penstock.sharing.model.figures import plant
from penstock.sharing.model.flow import flows, flush_cost, standing, tree_cost
from penstock.sharing.model.kinds.direct import KEEP
from penstock.sharing.model.partial_groups import behind, handed
from penstock.sharing.model.problem import Problem
from penstock.sharing.model.unit_costs import USUAL
from penstock.sharing.plan import Basis, Priced, SharedPlan, Table
from penstock.sources.base import fields
from penstock.sources.generate.source import open_generate
from penstock.state.protocol import TaskReport, Work
from support.alone import alone as stored_alone
from support.alone import names as relations_of
from support.reports import task_report

APP = """
CREATE STREAM flows FROM 'generate:flows' WATERMARK ts DELAY '2 seconds';
CREATE QUERY talkers AS SELECT src, count(*) AS n, sum(bytes) AS bytes FROM flows [RANGE '1 minute'] GROUP BY src;
CREATE QUERY pairs AS SELECT src, dst, count(*) AS n FROM flows [RANGE '1 minute'] WHERE proto = 6 GROUP BY src, dst;
CREATE QUERY nets AS SELECT src/24 AS net, max(bytes) AS most FROM flows [RANGE '5 minutes'] GROUP BY src/24;
CREATE QUERY rate AS SELECT count(*) AS n FROM flows [RANGE '1 second'];
"""
ROWS = 100_000.0
GROUPS = {"talkers": 2_000.0, "pairs": 8_000.0, "nets": 300.0, "rate": 40.0}
SHARES = {"pairs": 0.5}
LENGTHS = (4.0, 1.0)  # by depth
BUCKETS = (5_000, 100, 0, 0, 0)  # of the nodes below
PASSING = USUAL.passing


def app() -> QuerySet:
    return resolve_app(APP, "app", lambda uri, options: fields(open_generate("flows", {}).schema()))


def shared_plan(**changes: Any) -> SharedPlan:
    """`changes` are of its basis."""
    queries = app()
    kept, of = stored_alone(queries, "flows"), relations_of(queries, "flows")
    net = lattice(kept.relations)
    grains = {query: net.grains[name] for query, name in of.items()}
    by_grain = {grain: query for query, grain in grains.items()}
    phantom = union(grains["talkers"], grains["pairs"], grains["nets"])
    nodes = (
        Node(phantom, STREAM, False),
        *(Node(grains[query], 0, True) for query in ("nets", "pairs", "talkers")),
        Node(grains["rate"], STREAM, True),
    )
    names = {node.grain: by_grain.get(node.grain, "dst.src") for node in nodes}

    def share(grain: Grain) -> float:
        return SHARES.get(names[grain], 1.0)

    problem = Problem(
        tuple(net.grains.values()),
        ROWS,
        1 << 18,
        groups=lambda grain: GROUPS.get(names[grain], 9_000.0),
        entry=lambda grain: 40.0,
        length=lambda grain, depth: LENGTHS[depth - 1],
        probe=lambda grain: 10.0 * share(grain),
        evict=lambda grain: 12.0 * share(grain),
        passing=PASSING,
        each=EACH,
    )
    configuration = Configuration(nodes)
    found = flows(configuration, BUCKETS, problem)
    priced = tuple(
        Priced(
            names[node.grain], configuration.depth(i), problem.groups(node.grain), BUCKETS[i], 40.0,
            LENGTHS[configuration.depth(i) - 1], flow.rate, flow.occupied, share(node.grain),
            problem.probe(node.grain), problem.evict(node.grain) if node.query else 0.0,
            (of[names[node.grain]],) if node.query else (),
        )
        for i, (node, flow) in enumerate(zip(nodes, found, strict=True))
    )  # fmt: skip
    tree = plant(configuration, problem, [bool(b) for b in BUCKETS])
    cost = tree_cost(tree, BUCKETS)
    spaces = tuple(40.0 * b for b in BUCKETS)
    alone = sum(one.insert for one in priced)
    basis = Basis(
        "gc-sl", 1 << 18, ROWS, USUAL, cost, flush_cost(tree, BUCKETS, standing(tree, BUCKETS)),
        (("none", alone), ("gc-sl", cost)), priced, configuration, spaces,
    )  # fmt: skip
    tables = (
        Table("dst.src", STREAM, (of["pairs"], of["talkers"]), 5_000),
        Table("nets", 0, (of["nets"],), 100, policy=KEEP),
    )
    notation = text(configuration, names.__getitem__)
    groups = {of[query]: count for query, count in GROUPS.items()}
    way = behind(handed(kept, lambda relation: groups[relation.name], ROWS), ROWS, USUAL)
    return SharedPlan(queries.stream("flows"), kept, notation, tables, replace(basis, **changes), behind=way)


def closing(rows: int, times: float = 1.0) -> Work:
    """What a merge task of so many records could have counted, so many times as dear."""
    of = relations_of(app(), "flows")
    counts = {
        "merges": 1, "merged": rows // 20, "merge": round(times * (250_000 + 45 * (rows // 20))),
        "closed": 1, "finished": rows // 25, "cells": rows // 8, "finish": round(times * (150_000 + 2 * (rows // 8))),
        "staged": rows // 25, "sink": rows // 2,
    }  # fmt: skip
    return {of["talkers"]: counts, of["rate"]: {name: count // 10 for name, count in counts.items()}}


def counted(rows: int, c1: float = 20.0, passing: float = 30.0, c2: float = 15.0) -> TaskReport:
    """What a task of the plan could have counted, with just these unit costs."""

    def table(probes: int, evictions: int, flushed: int) -> dict[str, int]:
        spent = c1 * probes + passing * evictions
        return {"probes": probes, "evictions": evictions, "flushed": flushed, "nanoseconds": round(spent)}

    def leaf(probes: int, groups: int) -> dict[str, int]:
        return {"probes": probes, "groups": groups, "nanoseconds": round(c2 * probes)}

    of = relations_of(app(), "flows")
    evicted, flushed = rows // 8, 4_000
    down = evicted + flushed
    work = {
        "@dst.src": table(rows, evicted, flushed),
        "@nets": table(down, down // 2, 90),
        of["talkers"]: leaf(down, 1_900),
        of["pairs"]: leaf(down // 2, 7_000),
        of["nets"]: leaf(down // 2 + 90, 280),
        of["rate"]: leaf(rows, 40),
    }
    return task_report("flows", rows, work, dict.fromkeys(work, 1000))
