"""Closing windows and cutting them into items: every row in exactly one item."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from penstock.runtime.merge_plan import FOREVER, MergeItem, _cut, closing, share_out


def test_what_a_watermark_closes() -> None:
    assert closing(None, None, False, 60) == (0, 0)
    assert closing(None, 119, False, 60) == (-FOREVER, 1)
    assert closing(119, 120, False, 60) == (1, 2)
    assert closing(-61, -60, False, 60) == (-2, -1)
    assert closing(120, 120, True, 60) == (2, FOREVER)


@pytest.mark.parametrize("seed", range(30))
def test_items_cover_every_window_slot_and_pass_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    windows = np.unique(rng.integers(-50, 50, int(rng.integers(1, 40))))
    rows = rng.integers(1, 2000, len(windows))
    slots, limit = int(rng.integers(1, 9)), int(rng.integers(1, 3000))
    items = list(_cut("q", windows, rows, limit, slots))
    assert len({item.part for item in items}) == len(items)
    for window in windows:
        covered = [i for i in items if i.first <= window < i.beyond]
        passes = covered[0].passes
        parts = sorted((item.low, item.high, item.turn) for item in covered)
        edges = sorted({(low, high) for low, high, _ in parts})
        assert edges[0][0] == 0
        assert edges[-1][1] == slots
        assert all(a[1] == b[0] for a, b in itertools.pairwise(edges))
        assert parts == [(low, high, turn) for low, high in edges for turn in range(passes)]


def test_shares_have_all_items_once() -> None:
    items = [MergeItem("q", part, 0, 1, 0, 1, rows=part * 1000) for part in range(9)]
    shares = share_out(items, 4)
    assert sorted(item.part for share in shares for item in share) == list(range(9))
    assert len(share_out(items[:2], 4)) == 2
    assert share_out([], 4) == []
