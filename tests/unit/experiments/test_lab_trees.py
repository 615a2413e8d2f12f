"""The lab's parts for aggregate trees: tables at work against one tuple at a time, records, plans, allocations."""

from __future__ import annotations

import datetime
import random
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments.kit.report import ExperimentSettings
from experiments.models.notation import parse
from experiments.tree import evicted as tree_evicted
from experiments.tree import example as tree_example
from experiments.tree import uniform as tree_uniform
from experiments.tree.compared import Swept
from experiments.tree.evicted import below_a_table, chains_of, drawn, logged, outs_of, rates_of
from experiments.tree.local import lags_of, recurring
from experiments.tree.memory import compare
from experiments.tree.memory_claims import memory_claims, naive
from experiments.tree.plans import Colliding, TreePlanner, pruned, tuned
from experiments.tree.queries import query_sets
from experiments.tree.records import ALPHAS, CONNECTION, LOG, connections, generated_log, log_file, netflow, read_log
from experiments.tree.streams import LETTERS, PAIRS, RecordEpoch, RecordStream, grouped, run_lengths
from experiments.tree.tables import ROW_BITS, DirectTable, EntryTable, LruTable, run_tree, together
from penstock.kernels.tables import probe as kernels
from penstock.sharing.allocate.all_or_nothing import all_or_nothing
from penstock.sharing.allocate.fptas import fptas
from penstock.sharing.graph.configuration import STREAM, Configuration
from penstock.sharing.graph.notation import name_letters, text
from penstock.sharing.model.collision import rate
from penstock.sharing.model.popularity import exponent
from penstock.sources.generate.synthetic import mix
from support.phantoms import NEWEST, RECENT, Phantoms, Relation

TREE = "ABCD(AB BCD(BC CD BD) ABC(AC A)) D"
POLICIES = {LruTable: RECENT, DirectTable: NEWEST}
SMALL = ExperimentSettings(rows=30_000)


def columns_of(seed: int, rows: int, values: int = 5) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {letter: np.minimum(rng.zipf(1.4, rows), values) for letter in "ABCD"}


def epoch_of(columns: dict[str, np.ndarray]) -> RecordEpoch:
    return RecordEpoch({letter: mix(column, number) for number, (letter, column) in enumerate(columns.items())})


def simulated(
    epoch: RecordEpoch, rows: list[tuple[int, ...]], tree: Configuration, sizes: list[int], kind: type[EntryTable]
):  # type: ignore[no-untyped-def]
    """The same tables, one tuple at a time; a bucket is where the kernel puts the group's first row."""
    letters = [name_letters(node.grain) for node in tree.nodes]
    first: list[dict[tuple[int, ...], int]] = []
    for names in letters:
        seen: dict[tuple[int, ...], int] = {}
        for number, row in enumerate(rows):
            seen.setdefault(tuple(row["ABCD".index(name)] for name in names), number)
        first.append(seen)

    def bucket(number: int, key: object) -> int:
        word = np.array([[first[number][key] | (number + 1) << ROW_BITS]], np.uint64)  # type: ignore[index]
        hashes = np.empty(1, np.uint64)
        kernels.hash_keys(word, hashes)
        return (int(hashes[0]) >> 32) * sizes[number] >> 32

    def key_of(number: int):  # type: ignore[no-untyped-def]
        parent = tree.nodes[number].parent
        above = "ABCD" if parent == STREAM else letters[parent]
        return lambda key: tuple(key[above.index(name)] for name in letters[number])

    relations = [
        Relation(str(i), node.parent, key_of(i), sizes[i], node.query, POLICIES[kind])
        for i, node in enumerate(tree.nodes)
    ]
    return Phantoms(relations, bucket, ("add",))


@pytest.mark.parametrize("kind", [LruTable, DirectTable])
@pytest.mark.parametrize("seed", range(6))
def test_trees_at_work_do_what_one_tuple_at_a_time_does(seed: int, kind: type[EntryTable]) -> None:
    dice, columns, tree = random.Random(seed), columns_of(seed, 1500), parse(TREE)
    print(f"seed {seed}")
    epoch = epoch_of(columns)
    sizes = [dice.choice([0, 1, 3, 20, 60, 300]) if tree.children(i) else 0 for i in range(len(tree.nodes))]
    rows = list(zip(*(column.tolist() for column in columns.values()), strict=True))
    reference = simulated(epoch, rows, tree, sizes, kind)
    reference.run([(row, (1,)) for row in rows])
    before = [len(table.passed) for table in reference.tables]
    reference.flush()
    counted = run_tree(epoch, tree, [float(size) for size in sizes], kind)
    during = end = 0
    for i, node in enumerate(tree.nodes):
        if sizes[i] or not tree.children(i):  # a table, or a query that holds all its groups
            first = len(rows) if node.parent == STREAM else before[node.parent]
            all_of_it = len(rows) if node.parent == STREAM else len(reference.tables[node.parent].passed)
            during, end = during + first, end + all_of_it - first
    assert (counted.during, counted.end) == (during, end)
    outs = [len(table.passed) if tree.children(i) else 0 for i, table in enumerate(reference.tables)]
    assert list(counted.outs) == outs


def test_tables_pass_entries_on_in_chunks_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = np.minimum(np.random.default_rng(1).zipf(1.3, 5000), 900)
    whole = {kind: kind(100).take(keys).tolist() for kind in (LruTable, DirectTable)}
    monkeypatch.setattr("experiments.tree.tables.CHUNK", 64)
    for kind, found in whole.items():
        assert kind(100).take(keys).tolist() == found
        assert len(found) > 500


def test_lags_are_found_again() -> None:
    """Locality is measured apart from popularity, however skewed that is."""
    lags = np.array([0.2, 0.1, 0.0, 0.3])
    for alpha in (0.0, 0.9):
        fresh = drawn(alpha, 300, 60_000, 3)
        found = lags_of(recurring(fresh, lags, 3), 6)
        assert found == pytest.approx([*lags, 0, 0], abs=0.02)
        assert lags_of(np.random.default_rng(1).permutation(recurring(fresh, lags, 3)), 6).sum() < 0.04


def test_records_with_lags_repeat_those_before_them() -> None:
    fresh = np.arange(2000)
    made = recurring(fresh, np.array([0.0, 0.5]), 1)
    again = made[2:] == made[:-2]
    assert again.mean() == pytest.approx(0.5, abs=0.05)
    assert np.array_equal(made[2:][~again], fresh[2:][~again])
    assert np.array_equal(recurring(fresh, np.zeros(3), 1), fresh)
    assert len(np.unique(recurring(fresh, np.array([1.0]), 1))) == 1


def test_what_comes_again_soon_is_evicted_less() -> None:
    apart = rates_of(0.67, 2000, SMALL)
    local = rates_of(0.67, 2000, SMALL, np.array([0.5]))
    for one, other in zip(apart, local, strict=True):
        assert other.lru == pytest.approx(one.lru / 2, rel=0.1)
        assert other.lfu == pytest.approx(one.lfu, rel=0.1)


def test_naive_evaluation_takes_queries_times_tuples() -> None:
    epoch = epoch_of(columns_of(3, 700))
    assert naive(epoch, ("AB", "BC", "CD")) == 3.0
    two = together([run_tree(epoch, parse("AB BC"), [0, 0])] * 2)
    assert (two.rows, two.during, two.end) == (1400, 2800, 0)


def test_groups_are_counted_as_they_are() -> None:
    columns = columns_of(4, 4000, 9)
    epoch = epoch_of(columns)
    for letters in ("A", "BD", "ABC", "ABCD"):
        rows = np.stack([columns[letter] for letter in letters], axis=1)
        _, first, number, counts = np.unique(rows, axis=0, return_index=True, return_inverse=True, return_counts=True)
        assert epoch.groups(letters) == len(counts)
        assert sorted(epoch.counts(letters)) == sorted(counts)
        grouping = epoch.grouping(letters)
        assert sorted(grouping.first) == sorted(first)
        assert (first[number] == grouping.first[grouping.number]).all()
        below = np.unique(rows[epoch.grouping("ABCD").first], axis=0, return_counts=True)[1]
        assert sorted(epoch.sampled(letters, "ABCD")) == sorted(below)


def test_groupings_that_are_forgotten_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.tree.streams.KEPT", 2)
    epoch = epoch_of(columns_of(5, 500))
    before = epoch.grouping("AB").first.copy()
    for letters in ("A", "B", "C"):
        epoch.grouping(letters)
    assert (epoch.grouping("AB").first == before).all()


def test_what_comes_close_together_is_seen() -> None:
    rng = np.random.default_rng(2)
    apart = rng.integers(0, 5000, 40_000)
    flows = np.repeat(rng.integers(0, 5000, 10_000), 4)
    assert RecordEpoch({"A": mix(apart, 1)}).locality("A") < 1.1
    assert RecordEpoch({"A": mix(flows, 1)}).locality("A") == pytest.approx(4.0, rel=0.15)


def test_words_are_numbered_in_order_of_arrival() -> None:
    words = np.random.default_rng(0).integers(0, 300, 2000).astype(np.uint64)
    found = grouped(words)
    assert (words[found.first][found.number] == words).all()
    assert (np.diff(found.first) > 0).all()
    assert run_lengths(words.copy()).sum() == 2000


def test_generated_records_have_the_papers_exponents() -> None:
    settings = ExperimentSettings(rows=150_000)
    one, again = (netflow(settings, epochs=2) for _ in range(2))
    assert len(one.epochs) == 2
    assert one.scale == 150_000 / 400_000
    for letters, alpha in ALPHAS.items():
        assert exponent(one.usual.counts(letters)) == pytest.approx(alpha, abs=0.06)
    assert (one.epochs[0].words(LETTERS) == again.epochs[0].words(LETTERS)).all()
    assert (one.epochs[0].words(LETTERS) != one.epochs[1].words(LETTERS)).any()
    assert one.usual.groups("A") < one.usual.groups("AB") < one.usual.groups("ABCD") < one.usual.groups(LETTERS)


def write_log(path: Path) -> None:
    """Three connections of a day and two of the one before, which end later."""
    days = [2, 1, 2, 2, 1]
    columns: dict[str, object] = {
        "ts": pa.array([datetime.datetime(2022, 3, day, 5, tzinfo=datetime.UTC) for day in days])
    }
    for name in CONNECTION:
        columns[name] = pa.array(["x", None, "y", "x", None]) if name == "orig_h" else pa.array([7] * 5)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def test_a_day_of_the_log_is_an_epoch(tmp_path: Path) -> None:
    write_log(tmp_path / LOG)
    records = read_log(tmp_path / LOG)
    assert [epoch.rows for epoch in records.epochs] == [2, 3]
    assert [epoch.groups("A") for epoch in records.epochs] == [1, 2]  # NULL is a value
    assert records.usual.rows == 3
    assert "A orig_h, B orig_p" in records.legend()
    assert records.named()["source, destination"] == "AC"


def test_where_the_log_is_looked_for(tmp_path: Path) -> None:
    captures = tmp_path / "packets"
    captures.mkdir()
    assert log_file(ExperimentSettings(captures=captures)) is None
    write_log(tmp_path / "flows" / LOG)
    assert log_file(ExperimentSettings(captures=captures)) == tmp_path / "flows" / LOG
    write_log(captures / LOG)
    assert log_file(ExperimentSettings(captures=captures)) == captures / LOG
    assert log_file(ExperimentSettings(quick=True)) is None
    assert connections(ExperimentSettings(captures=captures), lambda told: None).name == "connection log"


def test_without_a_log_records_are_generated() -> None:
    records = connections(ExperimentSettings(rows=8000, quick=True), lambda told: None)
    assert records.name == "generated log"
    assert [epoch.rows for epoch in records.epochs] == [2000] * 4
    assert generated_log(ExperimentSettings(rows=8000)).usual.groups("AB") == records.usual.groups("AB")


def test_some_epochs_are_whole_ones() -> None:
    rows = [10, 1000, 900, 1100, 950, 1050]
    records = RecordStream("r", ("a",), "A", tuple(RecordEpoch({"A": np.zeros(n, np.uint64)}) for n in rows))
    assert [epoch.rows for epoch in records.some(2)] == [1000, 950]
    assert records.usual.rows == 1000


SOME = tuple(a + b for a, b in combinations("ABEHKL", 2))


@pytest.fixture(scope="module")
def records() -> RecordStream:
    return netflow(SMALL, epochs=1)


@pytest.fixture(scope="module")
def planner(records: RecordStream) -> TreePlanner:
    return TreePlanner(records.usual)


@pytest.mark.parametrize("memory", [500, 5_000, 50_000])
def test_what_is_predicted_is_counted(planner: TreePlanner, records: RecordStream, memory: int) -> None:
    plan = planner.plan(SOME, memory)
    counted = plan.run([records.usual])
    print(text(plan.configuration), plan.predicted, counted.per_tuple)
    assert plan.predicted == pytest.approx(counted.per_tuple, rel=0.1)
    assert counted.per_tuple < len(SOME)
    assert sum(plan.entries) <= memory * (1 + 1e-9)
    assert plan.spare == (memory == 50_000)
    assert plan.same(plan)
    assert not plan.same(planner.again(plan, memory / 100))


def test_slc_sees_no_ends_of_epochs(planner: TreePlanner, records: RecordStream) -> None:
    plan = planner.plan(SOME, 50_000, "slc")
    counted = plan.run([records.usual])
    assert sum(plan.entries) == pytest.approx(50_000)
    assert plan.predicted < counted.per_tuple
    assert counted.end > counted.during - records.usual.rows * len(plan.configuration.roots)
    curve = Colliding(1000.0)
    assert curve.response(700.0, 1e5) == (0.0, rate(1000.0, 700.0))
    assert curve.outs(np.array([0.0, 700.0]), np.array(1e5)).tolist() == [1e5, 1e5 * rate(1000.0, 700.0)]


def test_a_peak_load_is_taken_where_it_helps(planner: TreePlanner, records: RecordStream) -> None:
    plan = planner.plan(SOME, 50_000, "slc")
    best, counted = tuned(plan, [records.usual], (1.0, 0.5, 0.2))
    each = [plan.shrunk(share).run([records.usual]).total for share in (1.0, 0.5, 0.2)]
    assert counted.total == min(each)
    assert sum(best.entries) in [pytest.approx(share * 50_000) for share in (1.0, 0.5, 0.2)]


def test_a_plan_from_before_is_a_start(planner: TreePlanner) -> None:
    before = planner.plan(SOME, 2_000)
    assert planner.plan(SOME, 4_000, before=before).predicted <= planner.again(before, 4_000).predicted * 1.02


def test_tables_that_feed_one_node_are_no_start() -> None:
    tree = pruned(parse("ABCD(ABC(AB) BCD(BC CD))"))
    assert text(tree) == "ABCD(AB BCD(BC CD))"
    assert text(pruned(parse("ABC(AB(A)) D"))) == "A D"


def test_every_way_is_compared(records: RecordStream) -> None:
    found = compare(records, SOME[:6], (500, 20_000), 3, lambda told: None)
    assert [len(each.memory) for each in (found.kept, found.again, found.anew)] == [3, 3, 2]
    for worked in found.at:
        assert worked.counted["ours"].rows == SMALL.rows
        assert worked.share("ours") <= worked.share("slc") * 1.05
        assert worked.mapped >= worked.single["ours"]
    assert found.of(500).share("ours") > found.of(20_000).share("ours")


def test_costs_that_rise_are_told() -> None:
    rising, falling = Swept((1, 2, 3), (5.0, 4.0, 4.4), (5.0, 4.0, 3.0)), Swept((1, 2), (5.0, 4.0), (5.0, 4.0))

    class One:
        name, kept, again, anew = "one", rising, falling, falling

    predicted, counted, *others = memory_claims([One()])  # type: ignore[list-item]
    assert (predicted.holds, counted.holds) == (False, True)
    assert "10.000%" in predicted.ours
    assert all(claim.holds for claim in others)


@pytest.mark.parametrize("alpha", [0.0, 0.67, 1.0])
def test_models_of_eviction_against_tables(alpha: float) -> None:
    for rates in rates_of(alpha, 2000, ExperimentSettings()):
        assert rates.che == pytest.approx(rates.lru, abs=0.02)
        assert rates.exact == pytest.approx(rates.lfu, abs=0.02)
        assert rates.lfu <= rates.lru + 0.02
    for outs in outs_of(alpha, 5000, ExperimentSettings()):
        assert outs.che == pytest.approx(outs.counted, rel=0.1)
        assert outs.counted <= 1.01 * outs.direct
        assert outs.printed >= 0.95 * outs.counted


def test_a_log_is_looked_at_as_laws_are(records: RecordStream) -> None:
    found = logged(records.usual, "AB")
    assert [one.outs.share for one in found] == list(tree_evicted.KEPT_SHARES)
    for one in found:  # tuples that are independent: with or without locality
        assert one.outs.che == pytest.approx(one.outs.counted, rel=0.05)
        assert one.planned == pytest.approx(one.outs.counted, rel=0.1)
        assert one.lru_to_lfu > 1
        assert one.lemma < 1


def test_below_a_table_the_own_input_counts() -> None:
    child = below_a_table(ExperimentSettings(rows=100_000))
    assert child.own == pytest.approx(child.counted, rel=0.05)
    assert child.stream < 0.8 * child.counted


def test_chains_are_those_of_a_random_function() -> None:
    found = chains_of(5000, 3, 1)
    assert found.average == pytest.approx(1 / (1 - np.exp(-1)), rel=0.02)
    assert found.engine == pytest.approx(0.5 / (1 - np.exp(-0.5)), rel=0.02)
    assert all(4 <= longest <= 12 for longest in found.worst)


@pytest.mark.parametrize("case", tree_example.CASES, ids=lambda case: case.name)
def test_example_1(case: tree_example.StrategyCase) -> None:
    costs = tree_example.costs_of(case, ExperimentSettings())
    assert costs[0] == 3.0
    assert int(np.argmin(costs)) + 1 == case.best


@pytest.mark.parametrize("seed", range(8))
def test_allocations_are_held_against_all_divisions(seed: int) -> None:
    uniform = tree_uniform.random_tree(seed, "uniform")
    assert tree_uniform.cost(uniform, all_or_nothing(uniform)) <= tree_uniform.least(uniform, seed) * (1 + 1e-9)
    zipf = tree_uniform.random_tree(seed, "Zipf, LRU")
    assert tree_uniform.cost(zipf, fptas(zipf, 0.1)) <= 1.1 * tree_uniform.least(zipf, seed)
    nothing = [0.0] * len(zipf.parents)
    assert tree_uniform.least(zipf, seed) <= tree_uniform.cost(zipf, nothing)


def test_query_sets_are_drawn_anew_and_alike() -> None:
    sets = query_sets((20, 78), 3, 7)
    assert sets == query_sets((20, 78), 3, 7)
    assert [len(queries) for queries in sets] == [20, 20, 20, 78]
    assert len(set(sets)) == 4
    assert sets[-1] == PAIRS
    assert all(set(queries) <= set(PAIRS) for queries in sets)
