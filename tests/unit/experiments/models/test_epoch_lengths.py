"""Flush counts against enumeration of the times."""

from __future__ import annotations

import random

from experiments.models.epoch_lengths import cycle, flush_counts, flushes
from penstock.sharing.graph.configuration import STREAM


def enumerated(lengths: list[int], span: int) -> int:
    return sum(any(time % length == 0 for length in lengths) for time in range(1, span + 1))


def test_the_papers_example_has_22_flushes_in_30() -> None:
    assert cycle([2, 3, 5]) == 30
    assert flushes([2, 3, 5]) == 22
    assert flushes([2, 3]) == 4


def test_flushes_are_those_that_enumeration_finds() -> None:
    for seed in range(200):
        random_ = random.Random(seed)
        lengths = [random_.randint(1, 12) for _ in range(random_.randint(1, 6))]
        assert flushes(lengths) == enumerated(lengths, cycle(lengths)), f"seed {seed}: {lengths}"
        span = cycle([*lengths, random_.randint(1, 12)])
        assert flushes(lengths, span) == enumerated(lengths, span), f"seed {seed}: {lengths} in {span}"


def test_many_lengths_that_divide_one_another_are_quick() -> None:
    lengths = [2**k for k in range(1, 40)]
    assert flushes(lengths, within=2**20) == 2**19


def test_a_relation_is_flushed_for_all_queries_at_or_below_it() -> None:
    # ABC(AB(A B) C), Fig. 14 (b), with epochs of 2, 3 and 5
    assert flush_counts([STREAM, 0, 1, 1, 0], [0, 0, 2, 3, 5]) == [22, 20, 15, 10, 6]


def test_a_query_that_feeds_is_flushed_for_its_own_epochs_too() -> None:
    assert flush_counts([STREAM, 0], [4, 6]) == [4, 2]
