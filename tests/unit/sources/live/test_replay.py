"""Replays: what has arrived at an instant is what a look at every record says; what cannot be replayed is refused."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from penstock.errors import SourceError
from penstock.logical.query import Field, Stream
from penstock.logical.types import BIGINT, TIMESTAMP
from penstock.runtime.epoch import Epoch
from penstock.runtime.task.arrow import numeric
from penstock.runtime.task.times import Times
from penstock.sources.base import BAD, START, Position, Source, Split, growing, whole
from penstock.sources.live import course, replay, times
from penstock.sources.live.contract import LiveSource, live, source_time, wall_time
from penstock.sources.live.course import before_each, course_of
from penstock.sources.live.picking import read_picks, skipping
from penstock.sources.live.replay import ReplaySource
from penstock.sources.registry import open_source
from penstock.sources.tables import read_table
from penstock.state.protocol import Clock
from penstock.triage.picks import Picks

BLOCK = 8  # of these tests: blocks have many edges then
SECOND = 1_000_000
NOW = 1_800_000_000 * SECOND


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (replay, times):
        monkeypatch.setattr(module, "BLOCK", BLOCK)
    monkeypatch.setattr(times, "READ_ROWS", 3 * BLOCK)


@dataclass(frozen=True)
class Oracle:
    """Looks at each record, one after the other."""

    stamps: Sequence[int | None]
    ahead: int | None = None

    @property
    def running(self) -> list[int | None]:
        greatest: int | None = None
        found = []
        for stamp in self.stamps:
            far = (
                self.ahead is not None and greatest is not None and stamp is not None and stamp > greatest + self.ahead
            )
            if stamp is not None and not far and times.FIRST <= stamp <= times.LAST:
                greatest = stamp if greatest is None else max(greatest, stamp)
            found.append(greatest)
        return found

    def row_at(self, time: int) -> int:
        known = self.running
        return next((row for row, one in enumerate(known) if one is not None and one >= time), len(known))

    def arrived(self, time: int) -> int:
        known = self.running
        return next((row for row, one in enumerate(known) if one is not None and one > time), len(known))

    def reached(self, at: int) -> int | None:
        return self.running[at - 1] if at else None


def drawn(rng: random.Random) -> list[int | None]:
    """Times that mostly go on, with steps back, lulls, NULLs, and some far ahead."""
    at, found = 1_000 * SECOND, list[int | None]()
    for _ in range(rng.choice([1, 7, 8, 9, 64, 100, 300])):
        at += rng.choice([0, 0, 1, 2, 50, SECOND])
        wild = rng.choice(
            [None, at - rng.randrange(100), at + 5 * SECOND, at + 10**15, times.LAST, times.LAST + 1, -at]
        )
        found.append(wild if rng.random() < 0.2 else at)
    return found


def put(folder: Path, stamps: Sequence[int | None], rng: random.Random) -> str:
    """The same records in files of some format."""
    cuts = sorted(rng.randrange(len(stamps) + 1) for _ in range(rng.randrange(3)))
    edges, parquet = [0, *cuts, len(stamps)], rng.random() < 0.5
    for number, (begin, end) in enumerate(pairwise(edges)):
        table = pa.table(
            {"ts": pa.array(stamps[begin:end], pa.timestamp("us")), "n": pa.array(range(begin, end), pa.int64())}
        )
        if parquet:
            pq.write_table(table, folder / f"{number}.parquet", row_group_size=rng.choice([3, 20]))
        else:
            with ipc.new_file(str(folder / f"{number}.arrow"), table.schema) as writer:
                writer.write_table(table, max_chunksize=rng.choice([5, 100]))
    return f"{'parquet' if parquet else 'arrow'}:{folder}"


def opened(address: str, speed: str = "1", **options: str) -> ReplaySource:
    found = open_source(f"replay:{address}", {"speed": speed, **options})
    assert isinstance(found, ReplaySource)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_what_has_arrived_is_what_each_record_says(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    stamps, speed = drawn(rng), rng.choice(["0.1", "1", "3", "10", "1000"])
    oracle = Oracle(stamps, rng.choice([None, SECOND, 10 * SECOND]))
    address = put(tmp_path, stamps, rng)
    print(seed, address, speed, oracle)
    if not any(one is not None for one in oracle.running):
        with pytest.raises(SourceError, match="has a usable ts"):
            opened(address, speed).prepare("ts", oracle.ahead)
        return
    source: LiveSource = opened(address, speed).prepare("ts", oracle.ahead)
    if rng.random() < 0.5:
        source = pickle.loads(pickle.dumps(source))
    rows, known = source.rows(), oracle.running
    assert [source.reached(Position(at)) for at in range(rows + 1)] == [oracle.reached(at) for at in range(rows + 1)]
    near = [one + rng.choice([-1, 0, 1]) for one in known if one is not None]
    for time in [*near, -(1 << 63), -(1 << 70), 0, (1 << 63) - 1, 1 << 70]:
        assert source.row_at(time) == oracle.row_at(time)
    for _ in range(20):
        at = Position(rng.randrange(rows + 1))
        clock = source.anchored(NOW, at)
        usable = [one for one in known[at:] if one is not None]
        assert clock == Clock(NOW, usable[0] if usable else known[-1], source.speed)
        now = NOW + rng.randrange(-SECOND, 10 * SECOND)
        assert source.arrived(clock, NOW) > at or at == rows
        assert source.arrived(clock, now) == oracle.arrived(source_time(clock, now))
        assert source.arrived(clock, 1 << 80) == rows
    for _ in range(20):
        start, stop = sorted(Position(rng.randrange(rows + 1)) for _ in range(2))
        blocks = source.index(start, stop)
        if start == stop:
            assert len(blocks.stops) == len(blocks.greatest) == 0
            continue
        edges = list(range(start // BLOCK * BLOCK + BLOCK, stop, BLOCK))
        assert blocks.stops.tolist() == [*edges, stop]
        reached = [oracle.reached(edge) for edge in blocks.stops.tolist()]
        assert blocks.greatest.tolist() == [times.LEAST if one is None else one for one in reached]


@pytest.mark.parametrize("seed", range(60))
def test_picks_are_too_far_ahead_by_the_records_between_them(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    stamps, ahead = drawn(rng), rng.choice([1, 100, SECOND, 10 * SECOND, 10**15, (1 << 63) - 1])
    oracle = Oracle(stamps, ahead)
    known = oracle.running
    print(seed, oracle)
    monkeypatch.setattr(course, "PIECE", rng.choice([1, 3, 256]))
    if not any(one is not None for one in known):
        return
    source: LiveSource = opened(put(tmp_path, stamps, rng)).prepare("ts", ahead)
    for _ in range(20):
        start, stop = sorted(Position(rng.randrange(source.rows() + 1)) for _ in range(2))
        split = Split(start, stop)
        rows = sorted(rng.sample(range(start, stop), rng.randint(0, stop - start)))
        told = course_of(source, split, "ts", ahead)
        before = before_each(told, source.narrowed(split), np.array(rows, np.int64))
        column = numeric(TIMESTAMP, pa.array([stamps[row] for row in rows], pa.timestamp("us")))
        judge = Times(Stream("s", (Field("ts", TIMESTAMP),), "x", (), "ts", ahead=ahead), Epoch(0, before=before), ())
        good = list[int]()
        for row in rows:
            stamp, past = stamps[row], known[row - 1] if row else None
            if stamp is not None and times.FIRST <= stamp <= times.LAST and (past is None or stamp <= past + ahead):
                good.append(stamp)
        if not rows:
            continue
        expected, timely = judge.judge(column, [])
        assert (expected if timely is None else expected[timely]).tolist() == good


@pytest.mark.parametrize("seed", range(30))
def test_times_are_usable_where_tasks_say_so(seed: int) -> None:
    rng = random.Random(seed)
    print(seed)
    unit = rng.choice(["s", "ms", "us", "ns", "date32", "date64"])
    kind = {"date32": pa.date32(), "date64": pa.date64()}.get(unit) or pa.timestamp(unit)
    width = 32 if unit == "date32" else 64
    edges = [one // rng.choice([1, 1_000, SECOND]) for one in (times.FIRST, times.LAST)]
    pool = [0, 1, -1, -(1 << (width - 1)), (1 << (width - 1)) - 1]
    pool += [edge + step for edge in edges for step in (-1, 0, 1) if abs(edge) < 1 << (width - 2)]
    pool += [rng.randrange(-(1 << rng.randrange(1, width)), 1 << rng.randrange(1, width)) for _ in range(30)]
    numbers = [rng.choice([*pool, None]) for _ in range(100)]
    array = pa.array(numbers, pa.int32() if width == 32 else pa.int64()).view(kind)
    spoiled = pa.array([rng.random() < 0.1 for _ in numbers])
    ahead = rng.choice([None, SECOND, 10**15])
    batch = pa.record_batch([array, spoiled], ["ts", BAD + "ts"])

    column = numeric(TIMESTAMP, array)
    bad = spoiled.to_numpy(zero_copy_only=False)
    column.bad = bad if column.bad is None else column.bad | bad
    judge = Times(Stream("s", (Field("ts", TIMESTAMP),), "x", (), "ts", ahead=ahead), Epoch(0), ())
    expected, timely = judge.judge(column, [])
    found = times.usable(batch, "ts")
    after = times.LEAST if ahead is None else times._drop_far(found, times.LEAST, ahead)
    known = [int(one) for one in found if one != times.LEAST]
    assert known == (expected if timely is None else expected[timely]).tolist()
    assert judge.greatest == (max(known) if known else None)
    if ahead is not None and known:
        assert after == max(known)


@pytest.mark.parametrize("seed", range(20))
def test_an_instant_is_the_first_at_which_a_time_is_reached(seed: int) -> None:
    rng = random.Random(seed)
    speed = rng.choice([0.001, 0.1, 1.0, 3.0, 7.7, 1e6])
    clock = Clock(rng.randrange(1 << 51), rng.randrange(1 << 51), speed)
    for _ in range(50):
        time = clock.source + rng.randrange(-(1 << 40), 1 << 40)
        wall = wall_time(clock, time)
        assert source_time(clock, wall) >= time > source_time(clock, wall - 1)
        exact = clock.source + (wall - clock.wall) * Fraction(speed)
        assert source_time(clock, wall) == exact // 1


def test_a_replay_is_its_source_by_the_clock(tmp_path: Path) -> None:
    stamps = [n * SECOND for n in range(40)]
    address = put(tmp_path, stamps, random.Random(0))
    source, plain = opened(address, "10").prepare("ts", None), open_source(address, {})
    assert live(source)
    assert not live(plain)
    assert not growing(source)
    abilities = source.abilities
    assert (abilities.random_access, abilities.rows_in_order, abilities.grows) == (True, True, False)
    assert (source.schema(), source.rows(), source.speed) == (plain.schema(), plain.rows(), 10.0)
    split = Split(Position(3), Position(17))
    assert [*source.read(split, ["n"], 5)] == [*plain.read(split, ["n"], 5)]
    assert source.cut(START, 7) == plain.cut(START, 7)
    assert source.splits(START, source.rows(), 3) == plain.splits(START, plain.rows(), 3)
    assert source.place(Position(9)) == plain.place(Position(9))
    narrow: Source = pickle.loads(pickle.dumps(source.narrowed(split)))
    assert not isinstance(narrow, ReplaySource)
    assert [*narrow.read(split, ["n"], 5)] == [*plain.read(split, ["n"], 5)]
    assert skipping(source) == skipping(plain)
    picks = Picks(2, 5)
    found = [n for batch in read_picks(source, whole(source), ["n"], 5, picks) for n in batch.column(0).to_pylist()]
    assert found == picks.rows(0, 40).tolist()
    clock = source.anchored(NOW, START)  # ten seconds of the source's time in one of the wall's
    assert [source.arrived(clock, NOW + at) for at in (-1, 0, 99_999, 100_000, SECOND)] == [0, 1, 1, 2, 11]


def test_what_is_kept_of_times_read_again_is_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = opened(put(tmp_path, [n * SECOND for n in range(400)], random.Random(0))).prepare("ts", None)
    looked: list[int] = []
    running = replay.running
    monkeypatch.setattr(
        replay, "running", lambda s, split, *more: looked.append(split.start) or running(s, split, *more)
    )
    for _ in range(3):
        assert source.row_at(101 * SECOND) == 101
        assert source.reached(Position(104)) == 103 * SECOND  # at the end of a block
    assert looked == [96]
    for at in range(0, 400, BLOCK):
        source.reached(Position(at + 1))
    assert len(source._recent) == replay.RECENT
    assert "_recent" not in pickle.loads(pickle.dumps(source)).__dict__


def test_identity_is_of_records_and_not_of_speed(tmp_path: Path) -> None:
    rng = random.Random(4)
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir(), other.mkdir()
    address = put(one, [n * SECOND for n in range(40)], rng)
    first = opened(address, "10")
    assert first.fingerprint() == opened(address, "3").prepare("ts", None).fingerprint()
    assert first.fingerprint() != open_source(address, {}).fingerprint()
    assert first.fingerprint() != opened(put(other, [n * SECOND for n in range(41)], rng)).fingerprint()
    assert first.prepare("ts", None) == opened(address, "10").prepare("ts", None)


def test_as_fast_as_possible_is_the_source_itself(tmp_path: Path) -> None:
    address = put(tmp_path, [SECOND], random.Random(0))
    assert open_source(f"replay:{address}", {"speed": "MAX"}) == open_source(address, {})
    assert open_source("replay:generate:zipf", {"SPEED": "2", "rows": "7"}).rows() == 7
    assert opened("generate:zipf", "0.5").speed == 0.5
    default = open_source("replay:generate:zipf", {})
    assert isinstance(default, ReplaySource)
    assert default.speed == 1.0


@pytest.mark.parametrize("speed", ["0", "-1", "fast", "nan", "inf", "1e300", ""])
def test_speeds_that_make_no_sense(speed: str) -> None:
    with pytest.raises(SourceError, match=f"option 'speed' of replay is '{speed}'") as caught:
        open_source("replay:generate:zipf", {"speed": speed})
    assert "from 1e-06 to 1e+09" in caught.value.hint
    assert "'max'" in caught.value.hint


def test_records_are_kept_for_ever_or_for_a_while() -> None:
    sources = [open_source("replay:generate:zipf", options) for options in ({}, {"KEPT": "10 minutes"})]
    assert [source.kept_for for source in sources if isinstance(source, ReplaySource)] == [None, 600 * SECOND]
    assert open_source("replay:generate:zipf", {"kept": "1 h", "speed": "max"}) == open_source("generate:zipf", {})


@pytest.mark.parametrize("kept", ["0", "10", "-5 minutes", "999 ms", "a while", "1 month", "99999999999 weeks", ""])
def test_times_to_keep_records_that_make_no_sense(kept: str) -> None:
    for more in ({}, {"speed": "max"}):
        with pytest.raises(SourceError, match=f"option 'kept' of replay is '{kept}'") as caught:
            open_source("replay:generate:zipf", {"kept": kept, **more})
        assert "'10 minutes'" in caught.value.hint


@pytest.mark.parametrize(
    ("address", "fact", "hint"),
    [
        ("stdin:", "'replay:stdin:' cannot be replayed", "save it first"),
        ("stdin:csv", "'replay:stdin:csv' cannot be replayed", "save it first"),
        ("spark:view", "'replay:spark:view' cannot be replayed", "write it to files first"),
        ("frame:x", "'replay:frame:x' cannot be replayed", "write it to files first"),
        ("replay:pcap:x.pcap", "'replay:replay:pcap:x.pcap' cannot be replayed", "one replay: is enough"),
        ("", "nothing to replay is given", "replay:pcap:trace.pcap"),
        ("x.pcap", "unknown source 'x.pcap'", "did you mean pcap:x.pcap?"),
        ("gopher:x", "unknown source 'gopher:x'", "a source starts with one of"),
        ("kafka:x", "'replay:kafka:x' cannot be replayed", "write it to files first"),
        ("pcap:none.pcap", "no such file or folder: 'none.pcap'", "it was looked up as"),
    ],
)
def test_what_cannot_be_replayed(address: str, fact: str, hint: str) -> None:
    with pytest.raises(SourceError) as caught:
        open_source(f"replay:{address}", {"speed": "2"})
    assert fact == caught.value.fact
    assert hint in caught.value.hint


def test_options_of_the_source_are_checked_by_it() -> None:
    with pytest.raises(SourceError, match="unknown option 'unwarp' of pcap"):
        open_source("replay:pcap:.", {"unwarp": "all"}, (Field("ts", TIMESTAMP),))


def prepared(source: Source, column: str) -> Callable[[], Any]:
    assert isinstance(source, ReplaySource)
    return lambda: source.prepare(column, None)


def test_streams_that_never_arrive(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": pa.array([None, None], pa.timestamp("us")), "n": [1, 2]}), tmp_path / "x.parquet")
    (tmp_path / "empty").mkdir()
    columns = (Field("ts", TIMESTAMP), Field("n", BIGINT))
    cases: list[tuple[Source, str, str]] = [
        (opened(f"parquet:{tmp_path}"), "", "its stream has no time column"),
        (opened(f"parquet:{tmp_path}"), "at", "column 'at' is not in 'replay:parquet:"),
        (opened(f"parquet:{tmp_path}"), "n", "cannot be read as TIMESTAMP"),
        (opened(f"parquet:{tmp_path}"), "ts", "none of its 2 records has a usable ts"),
        (open_source(f"replay:csv:{tmp_path}/empty", {}, columns), "ts", "it has no records"),
        (opened("generate:zipf", rows="0"), "ts", "it has no records"),
    ]
    for source, column, fact in cases:
        with pytest.raises(SourceError) as caught:
            prepared(source, column)()
        assert fact in caught.value.fact
        assert caught.value.hint


def test_tables_are_not_replayed(tmp_path: Path) -> None:
    address = put(tmp_path, [SECOND], random.Random(0))
    with pytest.raises(SourceError, match="table 't' cannot be a replay") as caught:
        read_table(opened(address), None, "t")
    assert "without replay:" in caught.value.hint
    assert read_table(open_source(f"replay:{address}", {"speed": "max"}), None, "t").data.num_rows == 1


def test_text_has_times_that_cannot_be_read(tmp_path: Path) -> None:
    lines = ["never,1", "2026-01-01T00:00:05Z,2", "9026-01-01T00:00:00Z,3", "x", "2026-01-01T00:00:07Z,4"]
    (tmp_path / "x.csv").write_text("\n".join([*lines, ""]))
    source = open_source(f"replay:csv:{tmp_path}", {}, (Field("ts", TIMESTAMP), Field("n", BIGINT)))
    assert isinstance(source, ReplaySource)
    ready = source.prepare("ts", 60 * SECOND)
    first = int(datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC).timestamp()) * SECOND
    last = first + 2 * SECOND
    assert [ready.reached(Position(at)) for at in range(6)] == [None, None, first, first, first, last]
    assert ready.anchored(NOW, START) == Clock(NOW, first, ready.speed)
    assert ready.arrived(Clock(NOW, first, ready.speed), NOW) == 4


def test_a_trace_is_replayed_with_the_index_in_the_pickle() -> None:
    """What a task gets has no index; what decides about batches in another process has it all."""
    source = opened("generate:flows", rows="100000").prepare("ts", None)
    split = Split(START, Position(10))
    assert len(pickle.dumps(source.narrowed(split))) < 2_000
    again: LiveSource = pickle.loads(pickle.dumps(source))
    assert np.array_equal(again.index(START, again.rows()).greatest, source.index(START, source.rows()).greatest)
