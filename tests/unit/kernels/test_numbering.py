"""Runs of equal values, and codes of distinct words."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest

from penstock.kernels.numbering import SMALL, distinct_words, runs_of


@pytest.mark.parametrize("values", [[], [5], [5, 5, 5], [1, 2, 2, 1, 1, 3], [-1, -1, 0]])
def test_runs(values: list[int]) -> None:
    begins, at = [], 0
    for _, run in groupby(values):
        begins.append(at)
        at += len(list(run))
    assert runs_of(np.array(values, np.int64)).tolist() == begins


@pytest.mark.parametrize("different", [1, 2, SMALL // 2, SMALL // 2 + 1, SMALL * 9])
def test_words_in_the_order_in_which_they_come(different: int) -> None:
    dice = np.random.default_rng(different)
    known = np.append(dice.integers(0, 1 << 32, different - 1, np.uint64), np.uint64((1 << 32) - 1))
    words = dice.choice(known, 4 * different)
    found, codes = distinct_words(words)
    assert found.tolist() == list(dict.fromkeys(words.tolist()))
    assert (found[codes] == words).all()


def test_no_words() -> None:
    found, codes = distinct_words(np.empty(0, np.uint64))
    assert len(found) == len(codes) == 0
