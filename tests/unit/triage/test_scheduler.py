"""Single decisions of the scheduler."""

from __future__ import annotations

from math import inf

import pytest

from penstock.triage.picks import DROP
from penstock.triage.ranges import ranged, reads
from penstock.triage.scheduler import Costs, Due, Mode, Plan, Queue, fixed_step, planned

COSTS = Costs(batch=0.2, full=1e-6, skip=5e-8, close=0.3)
FUTURE = 1 << 62


def queue(arrived: int, *dues: Due, rate: float = 0.0, start: int = 0, promised: bool = True) -> Queue:
    return Queue("s", start, arrived, rate, dues, promised)


def plan(*queues: Queue, now: float = 0.0, mode: Mode = Mode.TRIAGE, rows: int = 1 << 40, fixed: int = 0) -> Plan:
    found = planned(now, queues, COSTS, mode, rows, fixed)
    assert found is not None
    return found


def test_little_work_waits() -> None:
    assert planned(0.0, [queue(1_000, Due(FUTURE, 10.0, 12.0))], COSTS, Mode.TRIAGE, 1 << 40) is None
    assert planned(0.0, [], COSTS, Mode.TRIAGE, 1 << 40) is None


def test_a_window_that_can_close_waits_for_nothing() -> None:
    found = plan(queue(1_000, Due(FUTURE, 10.0, 12.0)), now=10.0)
    assert found.ranges == {"s": ((1_000, 0),)}
    assert found.slack == pytest.approx(2.0 - 0.5 - 0.001)
    assert not found.overdue
    found = plan(queue(1_000, Due(900, 10.0, 12.0), Due(FUTURE, 20.0, 22.0)), now=9.9)
    assert found.ranges["s"][-1][0] >= 900


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("rows", [1, 10, 1_000])
def test_a_window_that_no_batch_holds_whole_is_read_all_the_same(mode: Mode, rows: int) -> None:
    """All has arrived, and its windows are overdue: what is not taken now never is."""
    start = 0
    while start < 3_000:
        end = plan(queue(3_000, Due(3_000, 10.0, 12.0), start=start), now=99.0, mode=mode, rows=rows).ranges["s"][-1][0]
        assert end > start
        start = end


@pytest.mark.parametrize("promised", [True, False])
def test_a_batch_that_is_full_waits_for_nothing(promised: bool) -> None:
    found = plan(queue(5_000, Due(FUTURE, 10.0, 12.0), promised=promised), mode=Mode.QUEUE, rows=1_000)
    assert found.ranges == {"s": ((1_000, 0),)}


def test_a_window_that_can_just_be_read_in_full_waits_for_nothing() -> None:
    """A step would leave some room for odd records, and none is forced."""
    records = 1_495_000  # 2 s, less 0.5 s of a batch and a close
    found = plan(queue(records, Due(records, -0.5, 2.0), Due(FUTURE, 9.5, 12.0), rate=500_000))
    assert found.ranges == {"s": ((records, 0),)}


def test_an_empty_window_closes_too() -> None:
    assert plan(queue(5, Due(FUTURE, 10.0, 12.0), start=5), now=10.5).ranges == {"s": ()}


def test_work_is_read_in_full_where_there_is_time() -> None:
    found = plan(queue(1_000_000, Due(FUTURE, 10.0, 12.0), rate=100_000))
    assert found.ranges == {"s": ((1_000_000, 0),)}


def test_a_window_that_would_be_late_gets_a_step() -> None:
    found = plan(queue(10_000_000, Due(10_000_000, -0.5, 2.0)))
    ranges = found.ranges["s"]
    assert ranges[-1][0] == 10_000_000
    assert {k for _, k in ranges} <= {0, 3, 4}
    seconds = COSTS.batch + COSTS.close + COSTS.reading(10_000_000, reads(0, ranges))
    assert 1.9 < seconds <= 2.0
    assert not found.overdue
    assert found.slack < 0.1


def test_behind_the_steepest_prefix_all_may_be_exact() -> None:
    dues = (Due(10_000_000, -2.0, 2.0), Due(10_500_000, -1.0, 60.0))
    found = plan(queue(10_500_000, *dues))
    assert all(k == 0 for stop, k in found.ranges["s"] if stop > 10_000_000)


def test_what_is_lost_gets_the_greatest_step_that_its_windows_allow() -> None:
    found = plan(queue(1 << 22, Due(1 << 22, -9.0, -7.0, most=5)))
    assert found.ranges == {"s": ((1 << 22, 5),)}
    assert found.overdue


def test_a_later_window_that_is_due_earlier_hurries_those_before_it() -> None:
    dues = (Due(5_000_000, -3.0, 60.0), Due(6_000_000, -1.0, 2.0))
    found = plan(queue(6_000_000, *dues))
    assert found.ranges["s"][-1][0] == 6_000_000
    assert any(k for _, k in found.ranges["s"])


def test_streams_share_one_budget() -> None:
    queues = [Queue(name, 0, 2_000_000, 0.0, (Due(2_000_000, -1.0, 2.6),)) for name in "ab"]
    alone, both = plan(queues[0]), plan(*queues)
    assert alone.ranges == {"a": ((2_000_000, 0),)}
    assert all(any(k for _, k in ranges) for ranges in both.ranges.values())


def test_nothing_promised_is_read_in_full_however_late() -> None:
    found = plan(queue(50_000_000, Due(50_000_000, -9.0, inf), promised=False), rows=1_000_000)
    assert found.ranges == {"s": ((1_000_000, 0),)}
    found = plan(queue(50_000_000, Due(50_000_000, -9.0, inf)))
    assert found.ranges == {"s": ((50_000_000, 0),)}


def test_what_is_owed_waits_while_promises_need_all_time() -> None:
    owed = Queue("owed", 0, 5_000_000, 0.0, (Due(FUTURE, 10.0, inf),), False)
    busy = queue(30_000_000, Due(FUTURE, 10.0, 12.0), rate=5_000_000)
    assert not plan(busy, owed).ranges.get("owed")
    idle = queue(0, Due(FUTURE, 10.0, 12.0))
    ((stop, k),) = plan(idle, owed).ranges["owed"]
    assert k == 0
    assert 3_000_000 < stop < 5_000_000  # a burst may begin meanwhile


def test_modes() -> None:
    late = queue(10_000_000, Due(10_000_000, -0.5, 2.0))
    assert plan(late, mode=Mode.QUEUE).ranges == {"s": ((10_000_000, 0),)}
    assert plan(late, mode=Mode.SUMMARISE, fixed=6).ranges == {"s": ((10_000_000, 6),)}
    (kept, exact), (stop, dropped) = plan(late, mode=Mode.DROP).ranges["s"]
    assert (exact, stop, dropped) == (0, 10_000_000, DROP)
    assert 0.9e6 < kept < 1.1e6
    light = queue(1_000_000, Due(FUTURE, 10.0, 12.0))
    assert plan(light, mode=Mode.DROP).ranges == {"s": ((1_000_000, 0),)}


def test_the_fixed_step_keeps_up_with_the_peak() -> None:
    assert fixed_step(100.0, 10.0, COSTS) == 0
    assert fixed_step(10e6, 10.0, COSTS) == 5
    assert fixed_step(1e9, 10.0, COSTS) == 12


@pytest.mark.parametrize("start", [0, 1, 4095, 123_457])
@pytest.mark.parametrize("step", [1.0, 1.3, 2.0, 5.5, 64.0, 3000.0, 4096.0])
@pytest.mark.parametrize("records", [1, 7, 1_000, 100_003])
def test_ranges_cover_all_records_and_keep_to_their_blocks(start: int, step: float, records: int) -> None:
    ranges = ranged(start, [(start + records, step)], drop=False)
    at = start
    for stop, k in ranges:
        assert stop > at
        assert not (at | stop) & ((1 << k) - 1)
        at = stop
    assert at == start + records
    if records > 64 * step:  # odd records are few there
        assert reads(start, ranges) == pytest.approx(records / step, rel=0.2, abs=2 * step)
    assert ranged(start, [], drop=False) == ()
