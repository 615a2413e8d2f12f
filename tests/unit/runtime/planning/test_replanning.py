"""The planner of a run: samples, what is known of a stream, when plans are thought about, and when they change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import ConfigError
from penstock.logical.query import QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.relations.storing import stored
from penstock.runtime.planning import replan as planners
from penstock.runtime.planning.replan import Planner
from penstock.runtime.profile.statistics import Known, exact_groups, measured_depths, rows_of
from penstock.runtime.profile.survey import Survey
from penstock.runtime.task import sampling
from penstock.runtime.task.task import sampled
from penstock.sharing.graph.grain import union
from penstock.sharing.graph.lattice import lattice
from penstock.sharing.model.kinds.direct import EVICT, KEEP
from penstock.sharing.options import NONE, OFF, Planning
from penstock.sharing.plan import unshared_plan, unshared_plans
from penstock.sources.base import fields
from penstock.sources.registry import open_source
from penstock.state.manifest import first_manifest
from penstock.state.protocol import Offset, TaskReport
from penstock.state.versions import Version, first_version
from support.alone import read_names
from support.reports import task_report

ROWS = 20_000
QUERIES = {"ab": "", "bc": "", "ac": "", "a": "", "b": "WHERE v > 50", "c": "WHERE v > 50"}


def write(path: Path, length: int, rows: int = ROWS) -> None:
    """Flows of so many tuples, over ten values of each column."""
    dice = np.random.default_rng(length)
    flows = np.repeat(np.arange(rows // length + 1), length)[:rows]
    columns = {name: dice.integers(0, 10, rows + 1)[flows] for name in "abc"}
    times = pa.array(np.arange(rows) * 1000, pa.timestamp("us"))
    pq.write_table(pa.table({"ts": times, **columns, "v": dice.integers(0, 100, rows)}), path, row_group_size=3_000)


def made(path: Path, queries: Mapping[str, str] = QUERIES, more: str = "") -> tuple[QuerySet, dict[str, Any]]:
    text = [f"CREATE STREAM s FROM 'parquet:{path}';", more]
    for keys, where in queries.items():
        listed = ", ".join(keys)
        window = "[RANGE '10 seconds' SLIDE '10 seconds']"
        text.append(f"CREATE QUERY q_{keys} AS SELECT {listed}, sum(v) AS t FROM s {window} {where} GROUP BY {listed};")
    app = resolve_app("\n".join(text), "app.sql", lambda uri, options: fields(open_source(uri, options).schema()))
    return app, {"s": open_source(app.streams[0].source, {})}


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    write(tmp_path / "in.parquet", 5)
    return tmp_path / "in.parquet"


def task(app: QuerySet, groups: int = 100, rows: int = 1_000_000, **tables: Mapping[str, int]) -> TaskReport:
    """What a task reports."""
    each = {"probes": rows, "groups": groups, "nanoseconds": 20 * rows}
    leaves = dict.fromkeys(read_names(app, "s").values(), each)
    counted = {f"@{name}": {"flushed": 1, "nanoseconds": 1, **counts} for name, counts in tables.items()}
    return task_report("s", rows, {**leaves, **counted})


def sample_of(app: QuerySet, sources: Mapping[str, Any]) -> Survey:
    found = sampled(unshared_plan(app, "s"), sources["s"], 1 << 20)
    assert found is not None
    return found


# -- samples


def test_a_sample_is_found_again(stream: Path, tmp_path: Path) -> None:
    app, sources = made(stream)
    survey = sample_of(app, sources)
    path = sampling.path_of(tmp_path, "a stream/with ä name")
    sampling.store(path, survey)
    found = sampling.load(path)
    assert found is not None
    assert found.layout == survey.layout
    assert (found.words == survey.words).all()
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_sample_goes_across_groups_of_rows(stream: Path) -> None:
    """The file has groups of 3,000 rows: the first one alone would say little."""
    app, sources = made(stream)
    assert sample_of(app, sources).tuples == sampling.RECORDS


@pytest.mark.parametrize("kept", [0, 1, 4, 50, 0.5, 0.99])
def test_half_a_sample_is_none(stream: Path, tmp_path: Path, kept: float) -> None:
    app, sources = made(stream)
    path = sampling.path_of(tmp_path, "s")
    sampling.store(path, sample_of(app, sources))
    data = path.read_bytes()
    path.write_bytes(data[: int(kept if kept >= 1 else kept * len(data))])
    assert sampling.load(path) is None


def test_damaged_samples_do_no_harm(stream: Path, tmp_path: Path) -> None:
    app, sources = made(stream)
    path = sampling.path_of(tmp_path, "s")
    sampling.store(path, sample_of(app, sources))
    data, dice = path.read_bytes(), np.random.default_rng(1)
    for place in (*range(0, 120, 3), *dice.integers(0, len(data), 60), *range(len(data) - 120, len(data), 3)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        assert sampling.load(path) is None, place
    for text in (b"", b"PK", b"not a sample"):
        path.write_bytes(text)
        assert sampling.load(path) is None
    path.unlink()
    assert sampling.load(path) is None


def test_a_sample_that_cannot_be_written_is_left_out(stream: Path, tmp_path: Path) -> None:
    app, sources = made(stream)
    (tmp_path / sampling.FOLDER).write_text("in the way")
    sampling.store(sampling.path_of(tmp_path, "s"), sample_of(app, sources))
    (tmp_path / "gone" / sampling.FOLDER).parent.mkdir()
    target = sampling.path_of(tmp_path / "gone", "s")
    target.mkdir(parents=True)  # a folder of its name
    (target / "something").touch()
    sampling.store(target, sample_of(app, sources))
    assert [each.name for each in target.parent.iterdir()] == [target.name]


# -- statistics


def test_exact_counts_replace_estimates_and_mend_those_of_phantoms(stream: Path) -> None:
    app, sources = made(stream)
    net = lattice(stored(app, "s").relations)
    known = Known(net, sample_of(app, sources), ROWS)
    of = read_names(app, "s")
    grain, other = net.grains[of["q_ab"]], net.grains[of["q_bc"]]
    both = union(grain, other)
    assert 200 <= known.groups(grain) < 300  # two windows, of which the sample has one and a half
    exact = {grain: 2 * known.groups(grain), other: known.groups(other)}
    counted = Known(net, known.survey, ROWS, exact)
    assert counted.groups(grain) == exact[grain]
    assert counted.groups(both) == pytest.approx(2 * known.groups(both), rel=0.01)
    assert Known(net, known.survey, ROWS, {grain: 0.0}).groups(grain) == 1
    assert Known(net, known.survey, ROWS, {grain: 5e6}).groups(both) >= 5e6
    assert Known(net, known.survey, 100, {grain: 90.0, other: 60.0}).groups(both) <= 100


def test_groups_and_rows_of_a_task(stream: Path) -> None:
    app, _ = made(stream)
    net = lattice(stored(app, "s").relations)
    tasks = [task(app, 100, 1000), task(app, 300, 3000), task(app, 0, 0)]
    assert rows_of(tasks) == 2000
    assert set(exact_groups(net, tasks).values()) == {200}
    assert rows_of([task(app, 0, 0)]) == 0
    assert rows_of([]) == 0


def test_flow_lengths_are_measured_by_depth(stream: Path) -> None:
    app, sources = made(stream)
    planner = Planner(Planning("gc", memory=16 << 10))
    planner.look(app, sources, ROWS, 1)
    plan = planner.plans(app)["s"]
    known = planner.known["s"]
    assert plan.basis is not None
    by_name = {each.name: each for each in plan.basis.relations}
    tables = {}
    for table in plan.tables:
        expected = by_name[table.name]
        tables[table.name] = {"probes": 10_000_000, "evictions": max(1, int(10_000_000 * expected.rate))}
    assert tables
    fits = measured_depths(plan, [task(app, **tables)], known)
    assert fits[1] == pytest.approx(1.0, rel=0.02)  # relative to the sample
    halved = {name: {**counts, "evictions": counts["evictions"] // 2} for name, counts in tables.items()}
    doubled = measured_depths(plan, [task(app, **halved)], known)
    assert doubled[1] == pytest.approx(2.0, rel=0.02)
    few = {name: {"probes": 10, "evictions": 5} for name in tables}
    assert measured_depths(plan, [task(app, **few)], known) == {}
    assert measured_depths(unshared_plan(app, "s"), [task(app)], known) == {}
    kept = replace(
        plan, tables=tuple(replace(table, policy=EVICT if table.policy == KEEP else KEEP) for table in plan.tables)
    )
    assert 1 not in measured_depths(kept, [task(app, **tables)], known)


def test_what_was_counted_is_kept_by_query_when_queries_change(tmp_path: Path) -> None:
    """A grain stands for something else without the longer window: its panes are then the first of the chain."""
    write(tmp_path / "in.parquet", 5)
    more = "CREATE QUERY long AS SELECT a, count(*) AS n FROM s [RANGE '20 seconds' SLIDE '20 seconds'] GROUP BY a;"
    app, sources = made(tmp_path / "in.parquet", {"a": "", "b": ""}, more)
    net = lattice(stored(app, "s").relations)
    of = read_names(app, "s")
    short, long = net.grains[of["q_a"]], net.grains[of["long"]]
    known = Known(net, sample_of(app, sources), ROWS, {short: 17.0, long: 5.0})
    assert known.groups(long) == 5
    known.survey.counted(long, net)
    left = QuerySet(app.streams, tuple(query for query in app.queries if query.name != "long"))
    other = lattice(stored(left, "s").relations)
    assert other.grains[of["q_a"]] == long  # the trap
    assert known.of(other).groups(other.grains[of["q_a"]]) == 17
    assert known.of(other).survey.counted(other.grains[of["q_a"]], other).groups == 20  # ten values in two panes
    assert known.of(net) is known


# -- when plans change


def unshared_version(app: QuerySet) -> Version:
    return first_version(app, lambda since: unshared_plans(app), {}, Planning(NONE))


def version_of(app: QuerySet, planner: Planner) -> Version:
    return first_version(app, partial(planner.plans, app), {}, planner.planning)


def test_a_cheaper_plan_is_taken_up_once(stream: Path, tmp_path: Path) -> None:
    app, sources = made(stream)
    planner = Planner(Planning(memory=64 << 10, stored="each"))
    version = unshared_version(app)
    sampling.store(sampling.path_of(tmp_path, "s"), sample_of(app, sources))
    tasks = [task(app, 200)]
    better = planner.next(tmp_path, version, tasks)
    assert better is not None
    assert better.number == 1
    assert better.plans["s"].tables
    assert better.app == app
    for _ in range(9):
        assert planner.next(tmp_path, better, tasks) is None


def test_no_look_at_what_is_nearly_done(stream: Path, tmp_path: Path) -> None:
    """A look has to be paid for by the records that are left."""
    app, sources = made(stream)
    version = unshared_version(app)
    sampling.store(sampling.path_of(tmp_path, "s"), sample_of(app, sources))
    for ends, looked in (({"s": 1_100_000}, False), ({"s": 100_000_000}, True), ({"s": inf}, True), ({}, True)):
        planner = Planner(Planning(memory=64 << 10, stored="each"), ends=ends)
        manifest = replace(first_manifest(), offset=Offset().moved("s", 1_000_000))
        assert (planner.next(tmp_path, version, [task(app, 200)], manifest=manifest) is not None) == looked
        assert ("s" in planner.looked) == looked


def test_no_change_without_a_gain_worth_it(stream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app, sources = made(stream)
    version = unshared_version(app)
    sampling.store(sampling.path_of(tmp_path, "s"), sample_of(app, sources))
    assert Planner(Planning(memory=64 << 10)).next(tmp_path, version, [task(app, 200, 2000)]) is None  # few tuples
    monkeypatch.setattr(planners, "GAIN", 0.01)
    assert Planner(Planning(memory=64 << 10)).next(tmp_path, version, [task(app, 200)]) is None
    assert Planner(Planning(NONE)).next(tmp_path, version, [task(app, 200)]) is None
    assert Planner(Planning(replan=OFF)).next(tmp_path, version, [task(app, 200)]) is None


def test_plans_are_looked_at_when_data_change(stream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app, sources = made(stream)
    planner, looks, plan_stream = Planner(Planning(memory=64 << 10, stored="each")), list[int](), planners.plan_stream
    monkeypatch.setattr(planners, "plan_stream", lambda *about: looks.append(1) or plan_stream(*about))
    version = unshared_version(app)
    sampling.store(sampling.path_of(tmp_path, "s"), sample_of(app, sources))
    for _ in range(12):
        planner.next(tmp_path, version, [task(app, 200)])
    assert len(looks) == 1  # when the first counters were there
    write(tmp_path / "other.parquet", 1)
    changed, others = made(tmp_path / "other.parquet")
    sampling.store(sampling.path_of(tmp_path, "s"), sample_of(changed, others))
    for _ in range(2):
        planner.next(tmp_path, version, [task(app, 200)])
    assert len(looks) == 2


def test_looks_that_change_nothing_become_rare() -> None:
    """Figures that sway by half again and back call for ever fewer looks; one that doubles calls for one at once."""
    planner, looked = Planner(Planning()), []
    for batch in range(100):
        if planner._worth_a_look("s", {"groups": 100.0 if batch % 2 else 150.0}):
            looked.append(batch)
    gaps = np.diff(looked)
    assert len(looked) < 12
    assert (np.diff(gaps) >= -1).all()
    assert planner._worth_a_look("s", {"groups": 1000.0})
    assert not planner._worth_a_look("s", {"groups": 1001.0})


def test_one_figure_of_many_calls_for_no_look() -> None:
    planner, figures = Planner(Planning()), dict.fromkeys(range(100), 100.0)
    assert planner._worth_a_look("s", figures)
    assert not planner._worth_a_look("s", figures | {7: 300.0})
    assert planner._worth_a_look("s", figures | dict.fromkeys(range(10), 1000.0))


def test_what_says_nothing_changes_nothing(stream: Path, tmp_path: Path) -> None:
    """No sample, a sample of a few tuples, tasks without tuples, tasks of other streams."""
    app, sources = made(stream)
    planner = Planner(Planning(memory=64 << 10))
    version = unshared_version(app)
    assert planner.next(tmp_path, version, [task(app, 200)]) is None
    survey = sample_of(app, sources)
    path = sampling.path_of(tmp_path, "s")
    for words in (survey.words[:, :0], survey.words[:, :99]):
        sampling.store(path, Survey(survey.layout, np.ascontiguousarray(words)))
        assert planner.next(tmp_path, version, [task(app, 200)]) is None
    sampling.store(path, survey)
    assert planner.next(tmp_path, version, [task(app, 0, 0)]) is None
    assert planner.next(tmp_path, version, [replace(task(app, 200), stream="q_a")]) is None
    assert planner.next(tmp_path, version, []) is None
    assert planner.next(tmp_path, version, [task(app, 200)]) is not None


def test_too_many_candidates_while_it_runs_change_nothing(
    stream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the start the user is told; a run does not end for it."""
    app, sources = made(stream)
    sampling.store(sampling.path_of(tmp_path, "s"), sample_of(app, sources))
    monkeypatch.setattr("penstock.sharing.choose.choice.MOST_EXHAUSTIVE", 0)
    planner = Planner(Planning("epes", memory=64 << 10))
    assert planner.next(tmp_path, unshared_version(app), [task(app, 200)]) is None
    planner.look(app, sources, ROWS, 1)
    with pytest.raises(ConfigError, match="epes"):
        planner.plans(app)


def test_added_and_dropped_queries_while_it_runs(stream: Path) -> None:
    """A query that the sample cannot tell of ends sharing until there is a new one; dropping any keeps it."""
    app, sources = made(stream)
    planner = Planner(Planning("gc", memory=64 << 10))
    planner.look(app, sources, ROWS, 1)
    assert planner.plans(app)["s"].tables
    for name in (query.name for query in app.queries):
        left = QuerySet(app.streams, tuple(query for query in app.queries if query.name != name))
        assert planner.plans(left)["s"].tables, name
        assert {r.query for r in planner.plans(left)["s"].readers} == {query.name for query in left.queries}
    more, _ = made(stream, {**QUERIES, "abc": ""})
    assert planner.plans(more)["s"].tables  # columns that others have, too
    other, _ = made(stream, {**QUERIES, "v": ""})
    assert planner.plans(other)["s"].tables == ()


def test_queries_on_results_are_left_alone(stream: Path, tmp_path: Path) -> None:
    more = "CREATE QUERY top AS SELECT max(t) AS most FROM q_a [RANGE '20 seconds' SLIDE '20 seconds'];"
    text = f"CREATE STREAM s FROM 'parquet:{stream}';\n"
    queries = [
        f"CREATE QUERY q_{k} AS SELECT {', '.join(k)}, sum(v) AS t FROM s [RANGE '10 seconds' SLIDE '10 seconds'] "
        f"GROUP BY {', '.join(k)};"
        for k in ("ab", "a", "b")
    ]
    whole = "\n".join([text, *queries, more])
    app = resolve_app(whole, "app.sql", lambda uri, options: fields(open_source(uri, options).schema()))
    sources = {"s": open_source(app.streams[0].source, {})}
    planner = Planner(Planning("gc", memory=64 << 10))
    planner.look(app, sources, ROWS, 1)
    version = version_of(app, planner)
    assert version.plans["s"].tables
    assert version.plans["q_a"].tables == ()
    assert version.plans["q_a"].basis is None
    sampling.store(sampling.path_of(tmp_path, "s"), sample_of(app, sources))
    changed = planner.next(tmp_path, replace(version, plans=unshared_plans(app)), [task(app, 200)])
    assert changed is not None
    assert changed.plans["q_a"] == version.plans["q_a"]


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_sources_of_few_tuples(rows: int, tmp_path: Path) -> None:
    write(tmp_path / "in.parquet", 5, rows)
    app, sources = made(tmp_path / "in.parquet")
    planner = Planner(Planning("gc", memory=64 << 10))
    planner.look(app, sources, ROWS, 2)
    plan = planner.plans(app)["s"]
    assert {r.query for r in plan.readers} == {query.name for query in app.queries}
    assert rows or not plan.tables
