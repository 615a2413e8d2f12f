"""The lab's parts: tables at work against the tuple-at-a-time LFTA, streams, captures, flushes, cycles, plans."""

from __future__ import annotations

import itertools
import random
import struct
from pathlib import Path

import numpy as np
import pytest

from experiments.kit import probing
from experiments.kit.captured import capture_files, captured_streams, stream_of
from experiments.kit.counts import drawn_counts
from experiments.kit.cycles import Work, allocated, chosen, counted, epes, optimal, price, run_cycles
from experiments.kit.measure import Tables, TableSpec, places, run_epochs
from experiments.kit.report import ExperimentSettings, InputAnswer, judged
from experiments.kit.streams import PRINTED, PaperStream, drawn, in_flows, nested, of_rows, subsets
from experiments.kit.trains import trains
from experiments.models.costs import end_of_epoch, epochs_of, per_cycle
from experiments.models.notation import parse
from experiments.models.spaces import allocate
from experiments.smap.common import (
    C1,
    C2,
    PAIRS,
    SINGLE,
    all_configurations,
    bare,
    buckets_in,
    fixed_cost,
    measured_lengths,
    model_cost,
    problem,
    real_cost,
    running_lengths,
    shape,
)
from experiments.smap.costs import cost_claims, fitted
from experiments.smap.peak_load import flush_bound
from experiments.tree.tables import DirectTable
from penstock.errors import ConfigError
from penstock.sharing.choose.choice import choose
from penstock.sharing.graph.notation import text
from penstock.sharing.model.collision import occupied, rate
from penstock.sources.registry import open_source
from support.captures import Packet, pcap
from support.phantoms import FREQUENT, NEWEST, Phantoms, Relation

POLICIES = {probing.NEWEST: NEWEST, probing.FREQUENT: FREQUENT}


def simulated(stream: PaperStream, tables: list[TableSpec], salt: int) -> Phantoms:
    """The same tables, one tuple at a time; keys are codes of the relation, found through a tuple that has them."""
    letters = [table.letters for table in tables]
    buckets = [
        places(stream.groups(name), table.buckets, salt * 1000 + i)
        for i, (name, table) in enumerate(zip(letters, tables, strict=True))
    ]
    first = [{int(code): row for row, code in reversed(list(enumerate(stream.codes(name))))} for name in letters]

    def key_of(number: int):  # type: ignore[no-untyped-def]
        parent = tables[number].parent
        code = stream.codes(letters[number])
        return (lambda row: int(code[row])) if parent < 0 else (lambda key: int(code[first[parent][key]]))

    relations = [
        Relation(str(i), table.parent, key_of(i), table.buckets, table.query, POLICIES[table.policy])
        for i, table in enumerate(tables)
    ]
    return Phantoms(relations, lambda number, key: int(buckets[number][key]), ("add",))


@pytest.mark.parametrize("policy", list(POLICIES))
@pytest.mark.parametrize("seed", range(6))
def test_tables_at_work_do_what_one_tuple_at_a_time_does(seed: int, policy: int) -> None:
    dice = random.Random(seed)
    stream = in_flows(drawn(3000, 4, groups=60, seed=seed), dice.choice([1, 4]), seed)
    shapes = (("ABCD", -1, False), ("AB", 0, True), ("BCD", 0, False), ("BC", 2, True), ("CD", 2, True), ("A", 1, True))
    tables = [
        TableSpec(name, parent, dice.randrange(0 if query else 1, 30), query, policy) for name, parent, query in shapes
    ]
    work, reference = Tables(stream, tables, salt=seed), simulated(stream, tables, seed)
    epochs = {"AB": 2, "BC": 3, "CD": 1, "A": 2}
    for number in range(6):
        rows = stream.rows[number * 500 : (number + 1) * 500]
        due = [name for name, length in epochs.items() if (number + 1) % length == 0]
        work.run(rows)
        work.flush(due)
        reference.run([(int(row), (1,)) for row in rows])
        reference.flush([str(i) for i, table in enumerate(tables) if table.letters in due])
    for ours, theirs in zip(work.measured().counts, reference.tables, strict=True):
        counts = theirs.counts
        if theirs.relation.buckets:
            assert (ours.probes, ours.evictions) == (counts.probes, counts.evictions)
            assert (ours.flush_probes, ours.flush_evictions) == (counts.flush_probes, counts.flush_evictions)
        assert ours.flushed == counts.flushed


@pytest.mark.parametrize("policy", list(POLICIES))
def test_entries_are_passed_on_in_the_same_order(policy: int) -> None:
    stream = in_flows(drawn(2000, 3, groups=40), 3)
    tables = [TableSpec("ABC", -1, 17, True, policy)]
    reference = simulated(stream, tables, 3)
    reference.run([(int(row), (1,)) for row in stream.rows])
    (running,) = Tables(stream, tables, salt=3).running
    passed = running.probe(stream.rows, flushing=False)
    assert [int(code) for code in stream.codes("ABC")[passed]] == [entry.key for entry in reference.tables[0].passed]


def test_keeping_the_first_passes_newcomers_on() -> None:
    stream = of_rows("s", np.array([[1], [2], [1], [3], [2]]))
    (running,) = Tables(stream, [TableSpec("A", -1, 1, True, probing.FIRST)]).running
    passed = running.probe(stream.rows, flushing=False)
    assert stream.tuples[passed, 0].tolist() == [2, 3, 2]


def test_costs_are_those_of_the_paper() -> None:
    """Three groups in one bucket, each tuple another: all but the first collide; the flush passes the last one on."""
    stream = of_rows("s", np.array([[1], [2], [3], [1]]))
    measured = run_epochs(stream, [TableSpec("A", -1, 1, True)])
    assert measured.per_tuple(1, 15) == (4 * 1 + 3 * 15) / 4
    assert measured.per_flush(1, 15) == 15
    assert measured.whole(1, 15) == (4 + 3 * 15 + 15) / 4
    assert measured.counts[0].rate == 0.75


def test_a_random_stream_collides_as_the_model_says() -> None:
    stream = nested(200_000)
    found = [run_epochs(stream, [TableSpec("ABCD", -1, 2837, True)], salt=salt).counts[0].rate for salt in range(8)]
    assert np.mean(found) == pytest.approx(rate(2837, 2837), rel=0.02)


def test_streams_have_the_printed_counts() -> None:
    stream = nested(5000)
    assert tuple(stream.groups(letters) for letters in ("A", "AB", "ABC", "ABCD")) == PRINTED
    others = [stream.groups(letters) for letters in subsets("ABCD")]
    assert min(others) == 552
    assert max(others) == 2837
    assert len(np.unique(stream.rows)) == 2837
    few = drawn(4000, 12)
    assert (few.groups("A"), few.groups("AB"), few.groups("ABCD")) == (12, 144, 2837)


def test_other_counts_stay_what_they_are_when_values_go_together() -> None:
    free, close = nested(5000), nested(5000, alike=4)
    for stream in (free, close):
        assert tuple(stream.groups(letters) for letters in ("A", "AB", "ABC", "ABCD")) == PRINTED
        assert {stream.groups(letter) for letter in "ABCD"} == {552}
    assert all(close.groups(letters) < free.groups(letters) for letters in ("AC", "AD", "CD", "ABD"))


def test_drawn_counts_agree_with_all_that_the_paper_tells() -> None:
    drawn = drawn_counts(200, seed=5)
    for counts in drawn:
        assert tuple(counts[letters] for letters in ("A", "AB", "ABC", "ABCD")) == PRINTED
        others = [counts[letters] for letters in subsets("ABCD") if letters != "ABCD"]
        assert min(others) == 552
        assert max(others) == 2836
        for part, whole in itertools.permutations(subsets("ABCD"), 2):
            assert not set(part) < set(whole) or counts[part] <= counts[whole]
    spread = [counts["D"] for counts in drawn]
    assert np.quantile(spread, 0.1) < 650 < 1200 < np.quantile(spread, 0.9)
    assert np.corrcoef(spread[1:], spread[:-1])[0, 1] == pytest.approx(0, abs=0.2)


def test_trains_have_the_papers_counts_and_come_in_bursts() -> None:
    made = trains(200_000, seed=3)
    assert tuple(made.groups(letters) for letters in ("A", "AB", "ABC", "ABCD")) == PRINTED
    sizes = np.bincount(made.rows, minlength=2837)
    assert len(made.rows) == sizes.sum() == 200_000
    assert sizes.min() >= 1
    runs = 1 + np.count_nonzero(np.diff(made.rows))
    assert 4 < len(made.rows) / runs < 9  # bursts of 8, cut at the ends of connections
    first = np.unique(made.rows, return_index=True)[1]
    assert np.median(first) < 0.55 * len(made.rows)  # connections start all the time
    assert np.quantile(first, 0.95) > 0.7 * len(made.rows)
    assert np.array_equal(made.rows, trains(200_000, seed=3).rows)
    assert not np.array_equal(made.rows, trains(200_000, seed=4).rows)


def test_trains_keep_their_flow_length_where_the_paper_has_it() -> None:
    """Fig. 9: l_m of ABCD is between 20 and 80, and falls as tables get smaller."""
    (large,), (small,) = (measured_lengths(trains(), "ABCD", ratio) for ratio in (0.2, 5.0))
    assert 80 > large > small > 20


def test_costs_of_tuples_in_and_out_are_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a tuple in takes 10 ns and one out 150 ns, exactly, that is what comes out."""

    def stretch(keys: np.ndarray, buckets: int) -> tuple[int, int]:
        out = len(DirectTable(buckets).take(keys))
        return out, 10 * len(keys) + 150 * out

    monkeypatch.setattr("experiments.smap.costs._stretch", stretch)
    found = fitted(nested(100_000), "ABCD", ExperimentSettings(quick=True))
    assert (found.entering, found.leaving) == pytest.approx((10, 150))
    assert found.error == pytest.approx(0, abs=1e-12)
    assert all(claim.holds for claim in cost_claims([found]))


def test_groups_within_a_window() -> None:
    stream = of_rows("s", np.array([[1, 1], [1, 2], [2, 1], [2, 2]]))
    assert stream.groups_within("A", 2) == 1
    assert stream.groups_within("B", 2) == 2
    assert stream.groups_within("AB", 4) == 4


def udp(source: int, sport: int) -> bytes:
    ports = struct.pack(">HHHH", sport, 53, 8, 0)
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28, 0, 0, 64, 17, 0, bytes([10, 0, 0, source]), bytes([10, 0, 1, 1]))
    return bytes(12) + b"\x08\x00" + head + ports


def test_captures_become_streams(tmp_path: Path) -> None:
    icmp = bytes(12) + b"\x08\x00" + struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, 28, 0, 0, 64, 1, 0, bytes(4), bytes(4)
    ) + bytes(8)  # fmt: skip
    packets = [udp(1, 1000), udp(1, 1001), icmp, udp(2, 1000), udp(1, 1000)]
    (tmp_path / "mine.pcap").write_bytes(pcap([Packet(data) for data in packets]))
    (stream,) = captured_streams(ExperimentSettings(captures=tmp_path), lambda text: None)
    assert stream.name == "mine"
    assert len(stream.rows) == 4  # without the packet that has no ports
    assert [stream.groups(letters) for letters in ("A", "B", "C", "D", "AC")] == [2, 1, 2, 1, 3]
    assert stream.rows[0] == stream.rows[-1]


def test_without_captures_flows_are_generated() -> None:
    settings = ExperimentSettings(rows=20_000, quick=True)
    assert capture_files(settings) == []
    (stream,) = captured_streams(settings, lambda text: None)
    assert stream.name == "generated flows"
    assert len(stream.rows) > 15_000


def test_folders_without_captures_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no captures in"):
        capture_files(ExperimentSettings(captures=tmp_path))
    with pytest.raises(ConfigError, match="no folder"):
        capture_files(ExperimentSettings(captures=tmp_path / "none"))


def test_addresses_of_both_versions_differ() -> None:
    source = open_source("generate:flows", {"rows": "5000", "seed": "1"})
    stream = stream_of("flows", source)
    assert 1 < stream.groups("A") <= stream.groups("AB") <= stream.groups("ABCD") <= 5000


def test_all_configurations_of_the_paper() -> None:
    groups = nested(1000).groups_by_letters()
    found = {text(one) for one in all_configurations(PAIRS, groups)}
    assert {"AB BC BD CD", "ABCD(AB BCD(BC BD CD))", "ABC(AB BC) BD CD", "ABCD(ABC(AB BC) BD CD)"} <= found
    assert "ABCD(ABC(AB BC BD CD))" not in found
    for one in all_configurations(SINGLE, groups):
        assert all(len(one.children(i)) > 1 for i, node in enumerate(one.nodes) if not node.query)


def test_shapes_forget_names_only() -> None:
    assert shape(parse("ABCD(AC(A C) BD(B D))")) == shape(parse("ABCD(BC(B C) AD(D A))"))
    assert shape(parse("ABCD(AC(A C) B D)")) != shape(parse("ABCD(AC(A C) BD(B D))"))


def test_the_model_and_tables_at_work_agree_on_one_level() -> None:
    """All groups of these two relations are equally frequent, as the model takes them to be."""
    stream = nested(200_000)
    queries = ("ABCD", "BCD")
    asked = problem(stream.groups_by_letters(), queries, 30_000, rows=len(stream.rows))
    none = bare(queries)
    spaces = allocate("sl", none, asked)
    assert real_cost(stream, none, spaces, asked, hashes=3) == pytest.approx(model_cost(none, spaces, asked), rel=0.03)
    assert fixed_cost(stream, queries, "16 buckets") > 2 * real_cost(stream, none, spaces, asked)


def test_lengths_of_a_clustered_stream_are_measured() -> None:
    stream = in_flows(nested(500_000), 8)
    length = running_lengths(stream, PAIRS, 40_000)
    assert length[0] == pytest.approx(8, rel=0.1)
    assert max(length[1:]) < 4


def test_the_bound_of_a_flush_by_hand() -> None:
    """AB(A): all entries of AB pass through A's table as often as its buckets are occupied."""
    asked = problem({"AB": 100, "A": 10, "B": 90}, ["A"], 1000)
    configuration = parse("AB(A)")
    full, entries = occupied(10, 20), occupied(100, 50)
    expected = entries * C1 + (full + entries * full / 20) * C2
    assert flush_bound(configuration, [50, 20], asked) == pytest.approx(expected)
    assert flush_bound(configuration, [50, 20], asked) > end_of_epoch(configuration, [50, 20], asked)


@pytest.mark.parametrize("memory", [15_000, 40_000])
def test_flushes_stay_below_the_bound(memory: int) -> None:
    stream = in_flows(nested(60_000), 6)
    asked = problem(stream.groups_by_letters(), PAIRS, memory, running_lengths(stream, PAIRS, memory))
    plan = choose("gc", asked, "sl")
    for spaces in (plan.spaces, [space / 2 for space in plan.spaces]):
        buckets = buckets_in(plan.configuration, spaces, asked)
        tables = [
            TableSpec(name, node.parent, int(size), node.query)
            for node, size in zip(plan.configuration.nodes, buckets, strict=True)
            for name in ("".join(sorted(base for base, _ in node.grain)),)
        ]
        flush = run_epochs(stream, tables).per_flush(C1, C2)
        assert flush < flush_bound(plan.configuration, buckets, asked)


def work_of(memory: float = 20_000, **settings: object) -> Work:
    groups = nested(1000).groups_by_letters()
    return Work({"A": 2, "B": 3, "C": 5}, groups, memory, 1000, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("printed", [False, True])
def test_cycles_are_priced_as_the_mathematics_does(printed: bool) -> None:
    work = work_of(printed=printed)
    plan = allocated("sl", parse("ABC(AC(A C) B)"), work)
    buckets = buckets_in(plan.configuration, plan.spaces, work.problem())
    whole = per_cycle(plan.configuration, buckets, work.problem(), epochs_of(work.epochs), printed=printed)
    assert plan.cost == pytest.approx(whole / (work.unit * work.cycle))


def test_the_optimum_of_a_cycle_is_below_all_heuristics() -> None:
    work = work_of()
    configuration = parse("ABC(AC(A C) B)")
    best = optimal(configuration, work)
    assert sum(best.spaces) == pytest.approx(work.memory)
    assert best.cost == pytest.approx(price(configuration, best.spaces, work))
    for name in ("sl", "sr", "pl", "pr", "es"):
        assert best.cost <= allocated(name, configuration, work).cost
    assert epes(work).cost <= chosen("gc", "sl", work).cost * (1 + 1e-9)


def test_a_cycle_at_work_is_flushed_as_often_as_counted() -> None:
    """Every tuple is another group, so a table holds all since its last flush: 22 flushes of ABC pass on everything."""
    rows = np.arange(3000)
    stream = PaperStream("s", np.stack([rows, rows, rows], axis=1), rows.astype(np.int32))
    work = Work({"A": 2, "B": 3, "C": 5}, {}, 0, 100)
    tables = [TableSpec("ABC", -1, 100_000, False), *(TableSpec(name, 0, 100_000, True) for name in "ABC")]
    measured = run_cycles(stream, Tables(stream, tables), work)
    assert measured.epochs == 22
    assert measured.rows == 3000
    top, *below = measured.counts
    assert top.evictions + top.flushed + top.flush_evictions == 3000
    for count in below:
        assert count.evictions + count.flush_evictions + count.flushed == 3000


def test_a_short_stream_is_played_again_until_its_cycle_is_full() -> None:
    stream = nested(1000)
    work = Work({"A": 2, "B": 3}, {}, 0, 700)
    measured = run_cycles(stream, Tables(stream, [TableSpec(name, -1, 2, True) for name in "AB"]), work)
    long = PaperStream("s", stream.tuples, np.tile(stream.rows, 6)[: 6 * 700])
    again = run_cycles(long, Tables(long, [TableSpec(name, -1, 2, True) for name in "AB"]), work)
    assert measured.rows == again.rows == 6 * 700
    assert measured.counts == again.counts


def test_plans_for_cycles_work() -> None:
    stream = nested(30 * 1000)
    work = work_of()
    plan = chosen("gc", "sl", work)
    assert counted(stream, plan, work).whole(C1, C2) == pytest.approx(plan.cost, rel=0.25)


def test_a_claim_holds_only_where_all_inputs_say_so() -> None:
    yes, no = InputAnswer("x", "1", True), InputAnswer("y", "2", False)
    assert judged("c", "p", [yes, yes], "w").holds
    for answers in itertools.permutations([yes, no]):
        claim = judged("c", "p", list(answers), "w")
        assert not claim.holds
        assert "fails for y" in claim.why
        assert "y: 2" in claim.ours
