"""The account of closed windows: a ring that wraps, survives kills and torn writes, and counts what merges count."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from penstock.errors import RunError
from penstock.runtime.merge.results.tally import Tally, gathered, least_kept, per_window, tally
from penstock.state import rings
from penstock.state.protocol import WindowCounts
from penstock.state.windows import ACCOUNTS, accounted, fresh, listed, overdue, write_delays, write_windows

SIZE = ACCOUNTS.record.itemsize


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> int:
    """A ring of eight windows."""
    monkeypatch.setattr(rings, "CAPACITY", 8)
    return 8


def records(first: int, beyond: int) -> np.ndarray:
    """Window k starts at 10 k, and has k rows of 2 k tuples."""
    numbers = np.arange(first, beyond)
    made = fresh(numbers)
    made["start"], made["end"], made["rows"], made["exact"] = 10 * numbers, 10 * numbers + 10, numbers, 2 * numbers
    return made


def windows(checkpoint: Path, closed: int, most: int = 1 << 16) -> list[int]:
    """Numbers of the windows that are kept; their account must be theirs."""
    found = listed(checkpoint, "q", closed, most)
    for one in found:
        k = one["window"]
        assert one == {"window": k, "start": 10 * k, "end": 10 * k + 10, "rows": k, "exact": 2 * k, "triaged": 0}
    return [one["window"] for one in found]


def ring(checkpoint: Path) -> Path:
    return checkpoint / "windows" / "q"


# -- the ring


def test_a_record_is_sixty_four_bytes_and_the_ring_bounded(tmp_path: Path) -> None:
    assert (SIZE, rings.CAPACITY) == (64, 65_536)
    write_windows(tmp_path, "q", 70_000, records(0, 65_536))
    assert ring(tmp_path).stat().st_size == 64 * 65_536
    assert len(windows(tmp_path, 70_000)) == 65_536


def test_batches_follow_each_other(tmp_path: Path) -> None:
    write_windows(tmp_path, "q", 3, records(-3, 0))
    write_windows(tmp_path, "q", 3, records(0, 0))
    write_windows(tmp_path, "q", 5, records(7, 9))
    assert windows(tmp_path, 5) == [-3, -2, -1, 7, 8]
    assert windows(tmp_path, 5, 2) == [7, 8]
    assert windows(tmp_path, 5, 0) == []


def test_it_wraps(tmp_path: Path, small: int) -> None:
    done = 0
    for count in (3, 4, 5, 1, 8, 2, 7):
        write_windows(tmp_path, "q", done + count, records(done, done + count))
        done += count
        assert windows(tmp_path, done) == list(range(max(0, done - small), done))
        assert windows(tmp_path, done, 3) == list(range(max(0, done - 3), done))
    assert ring(tmp_path).stat().st_size == small * SIZE


def test_queries_have_files_of_their_own(tmp_path: Path) -> None:
    assert accounted(tmp_path) == set()
    write_windows(tmp_path, "q", 2, records(0, 2))
    write_windows(tmp_path, "other-1", 1, records(5, 6))
    assert accounted(tmp_path) == {"q", "other-1"}
    assert windows(tmp_path, 2) == [0, 1]


def test_without_a_file_nothing_is_kept(tmp_path: Path) -> None:
    """Also of a checkpoint that has closed windows before there was an account of them."""
    assert windows(tmp_path, 0) == []
    assert windows(tmp_path, 5) == []
    write_windows(tmp_path, "q", 7, records(5, 7))
    assert windows(tmp_path, 7) == [5, 6]


# -- kills and damage


def test_only_what_the_manifest_counts_is_believed(tmp_path: Path) -> None:
    write_windows(tmp_path, "q", 3, records(0, 3))
    write_windows(tmp_path, "q", 6, records(3, 6))  # and killed before the manifest
    assert windows(tmp_path, 3) == [0, 1, 2]


def test_a_replay_writes_the_same(tmp_path: Path, small: int) -> None:
    write_windows(tmp_path, "q", 6, records(0, 6))
    write_windows(tmp_path, "q", 11, records(6, 11))
    before = ring(tmp_path).read_bytes()
    write_windows(tmp_path, "q", 11, records(6, 11))
    assert ring(tmp_path).read_bytes() == before


def test_a_kill_before_the_manifest_costs_the_oldest_windows_at_most(tmp_path: Path, small: int) -> None:
    write_windows(tmp_path, "q", 8, records(0, 8))
    write_windows(tmp_path, "q", 11, records(8, 11))
    assert windows(tmp_path, 8) == [3, 4, 5, 6, 7]
    assert windows(tmp_path, 11) == list(range(3, 11))


@pytest.mark.parametrize("place", range(0, SIZE, 5))
def test_a_torn_record_is_left_out(tmp_path: Path, place: int) -> None:
    write_windows(tmp_path, "q", 5, records(0, 5))
    data = bytearray(ring(tmp_path).read_bytes())
    data[2 * SIZE + place] ^= 0x40
    ring(tmp_path).write_bytes(data)
    assert windows(tmp_path, 5) == [0, 1, 3, 4]


@pytest.mark.parametrize("length", [0, 1, SIZE, 3 * SIZE - 1, 5 * SIZE - 8])
def test_a_file_that_is_cut_off(tmp_path: Path, length: int) -> None:
    write_windows(tmp_path, "q", 5, records(0, 5))
    os.truncate(ring(tmp_path), length)
    assert windows(tmp_path, 5) == list(range(length // SIZE))
    write_windows(tmp_path, "q", 6, records(5, 6))  # goes on all the same
    assert windows(tmp_path, 6) == [*range(length // SIZE), 5]


def test_a_record_of_nothing_but_zeros_is_none(tmp_path: Path) -> None:
    """Index 0 in a hole of the file."""
    write_windows(tmp_path, "q", 2, records(1, 2))
    assert ring(tmp_path).read_bytes()[:SIZE] == bytes(SIZE)
    assert windows(tmp_path, 2) == [1]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
def test_a_full_disk_is_told(tmp_path: Path) -> None:
    (tmp_path / "windows").mkdir()
    ring(tmp_path).symlink_to("/dev/full")
    with pytest.raises(RunError, match=f"^cannot write {ring(tmp_path)}: No space left on device\n  hint: make room"):
        write_windows(tmp_path, "q", 2, records(0, 2))


# -- counting


@pytest.mark.parametrize("numbers", [[], [4], [3, 3], [-2, 5, -2, 0], [0, 10**15, 0, -(10**15)]])
def test_sums_by_window(numbers: list[int]) -> None:
    found, sums = per_window(np.array(numbers, np.int64), np.arange(1, len(numbers) + 1))
    expected = {k: sum(i + 1 for i, number in enumerate(numbers) if number == k) for k in sorted(set(numbers))}
    assert dict(zip(found.tolist(), sums.tolist(), strict=True)) == expected
    assert found.tolist() == sorted(expected)


def test_sums_are_exact_beyond_a_double() -> None:
    _, sums = per_window(np.array([0, 1, 0]), np.array([1 << 60, 5, 1]))
    assert sums.tolist() == [(1 << 60) + 1, 5]


def bounds(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return numbers * 10, numbers * 10 + 10


def test_a_tally_adds_passes_and_has_windows_without_rows() -> None:
    passes = [(np.array([2, 4]), np.array([5, 1])), (np.array([3, 4]), np.array([7, 9]))]
    made = tally(passes, np.array([4, 2, 4]), bounds)
    assert made.report("q", 2) == WindowCounts("q", (2, 3, 4), (20, 30, 40), (30, 40, 50), (1, 0, 2), (5, 7, 10), 3)
    assert made.report("q", 4) == WindowCounts("q", (4,), (40,), (50,), (2,), (10,), 3)
    assert made.report("q", 5) == WindowCounts("q", (), (), (), (), (), 3)


def test_the_driver_adds_up_what_tasks_report(small: int, tmp_path: Path) -> None:
    closing = np.arange(0, 40, 2)  # more than the ring holds
    least = least_kept(closing)
    assert least == 24
    none = np.zeros(20, np.int64)
    one = Tally(closing, *bounds(closing), np.ones(20, np.int64), np.full(20, 3), none).report("q", least)
    other = Tally(closing[-1:], *bounds(closing[-1:]), np.array([4]), np.array([5]), np.array([7])).report("q", least)
    write_windows(tmp_path, "q", 20, gathered(closing, [one, other]))
    found = listed(tmp_path, "q", 20)
    assert [window["window"] for window in found] == list(range(24, 40, 2))
    assert found[0] == {"window": 24, "start": 240, "end": 250, "rows": 1, "exact": 3, "triaged": 0}
    assert found[-1] == {"window": 38, "start": 380, "end": 390, "rows": 5, "exact": 8, "triaged": 7}


# -- delays


def test_a_window_tells_how_late_its_result_came(tmp_path: Path, small: int) -> None:
    write_windows(tmp_path, "q", 10, records(2, 10))
    write_delays(tmp_path, "q", 9, np.arange(5, 9), np.array([100, 2_000, 1_000, 5]), 1_000)
    write_delays(tmp_path, "q", 10, np.array([9]), np.array([7]), None)
    found = {one["window"]: (one.get("delay"), one.get("overdue")) for one in listed(tmp_path, "q", 10)}
    assert found[2] == (None, None)  # a killed run has not told
    assert [found[k] for k in range(5, 9)] == [(100, False), (2_000, True), (1_000, False), (5, False)]
    assert found[9] == (7, None)  # nothing was promised


def test_late_windows_are_counted_whatever_is_listed(tmp_path: Path) -> None:
    assert overdue(tmp_path, "q", 0) is None
    write_delays(tmp_path, "q", 4, np.arange(4), np.array([100, 2_000, 3_000, 5]), 1_000)
    assert overdue(tmp_path, "q", 4) == 2
    write_delays(tmp_path, "r", 1, np.array([0]), np.array([9]), None)
    assert overdue(tmp_path, "r", 1) is None
