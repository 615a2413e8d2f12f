"""Streams of the experiments: rows as numbers of groups, and for every relation the code of each group.

A stream is a list of distinct tuples (its finest groups) and, row by row, which of them comes. A relation's key is then
one array from group to code, so tables are probed with small integers (`experiments.kit.measure`).

The smap paper prints only some of its inputs (Section 8.1): 2837 groups of four attributes, 2117 of three, 1846 of two,
552 of one, all others in between. `nested` makes tuples with just these counts; `drawn` has as many tuples, but
attributes apart from each other, each of a given number of values. Experiments say which of them they use.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int32]
Array = NDArray[Any]

LETTERS = "ABCD"
PRINTED = (552, 1846, 2117, 2837)  # groups of A, AB, ABC, ABCD: smap, Sections 5.2 and 8.1


@dataclass(frozen=True)
class PaperStream:
    """`tuples`: the distinct ones, a column an attribute; `rows`: which of them comes, in stream order."""

    name: str
    tuples: Array
    rows: Codes
    known: dict[str, Codes] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def letters(self) -> str:
        return LETTERS[: self.tuples.shape[1]]

    def codes(self, letters: str) -> Codes:
        """The group's number in the relation of these attributes, for each distinct tuple."""
        if letters not in self.known:
            columns = self.tuples[:, [self.letters.index(letter) for letter in letters]]
            self.known[letters] = row_numbers(columns)
        return self.known[letters]

    def groups(self, letters: str) -> int:
        """Groups of a relation in the whole stream."""
        return int(self.codes(letters).max()) + 1

    def groups_by_letters(self) -> dict[str, float]:
        return {letters: float(self.groups(letters)) for letters in subsets(self.letters)}

    def groups_within(self, letters: str, rows: int) -> float:
        """Groups of a relation in `rows` successive rows, on average over the stream."""
        codes = self.codes(letters)[self.rows]
        pieces = [codes[start : start + rows] for start in range(0, max(1, len(codes) - rows + 1), rows)]
        return float(np.mean([len(np.unique(piece)) for piece in pieces]))


def row_numbers(columns: Array) -> Codes:
    """Number equal rows equally, from 0.

    >>> row_numbers(np.array([[5, 1], [7, 1], [5, 1]])).tolist()
    [0, 1, 0]
    """
    number = np.zeros(len(columns), np.int64)
    for place in range(columns.shape[1]):
        values, codes = np.unique(columns[:, place], return_inverse=True)
        _, number = np.unique(number * len(values) + codes, return_inverse=True)  # by rows it is slow
    return np.asarray(number, np.int32)


def subsets(letters: str) -> list[str]:
    """All relations over some attributes.

    >>> subsets("ABC")
    ['A', 'B', 'AB', 'C', 'AC', 'BC', 'ABC']
    """
    return [
        "".join(letter for place, letter in enumerate(letters) if bits >> place & 1)
        for bits in range(1, 1 << len(letters))
    ]


def of_rows(name: str, columns: Array) -> PaperStream:
    """A stream of these rows."""
    rows = row_numbers(columns)
    _, first = np.unique(rows, return_index=True)
    return PaperStream(name, columns[first], rows)


def nested(rows: int, seed: int = 7, counts: tuple[int, ...] = PRINTED, alike: int = 0) -> PaperStream:
    """Tuples drawn uniformly from a fixed set in which the first k attributes have `counts[k - 1]` groups.

    A group of k attributes is one of k - 1 attributes with one more value; every value and every shorter group occurs.
    That value is any one, or, if told, one of those `alike` that go with the value of the first attribute: then other
    relations have fewer groups as well.
    """
    rng = np.random.default_rng(seed)
    tuples = np.arange(counts[0])[:, None]
    for count in counts[1:]:
        tuples = _extended(rng, tuples, count, counts[0], alike or counts[0])
    name = f"nested, {alike} alike" if alike else "nested as printed"
    return PaperStream(name, tuples, _drawn(rng, count, rows))


def _extended(rng: np.random.Generator, tuples: Array, count: int, values: int, alike: int) -> Array:
    """`count` distinct tuples with one more attribute: each old tuple at least once, and each value."""
    # Of each value of the first attribute: where those that go with it begin.
    start = rng.permutation(values) if alike < values else np.zeros(values, np.int64)
    first = rng.permutation(len(tuples)) % values
    if alike < values:
        first = (start[tuples[:, 0]] + first % alike) % values
        first[np.unique(tuples[:, 0], return_index=True)[1]] = start  # so that each value occurs
    made = {(*map(int, row), int(value)) for row, value in zip(tuples, first, strict=True)}
    while len(made) < count:
        old = tuples[rng.integers(len(tuples))]
        made.add((*map(int, old), int((start[old[0]] + rng.integers(alike)) % values)))
    return np.array(sorted(made))


def _drawn(rng: np.random.Generator, groups: int, rows: int) -> Codes:
    """Uniform draws in which every group occurs, as far as there are rows."""
    drawn = rng.integers(0, groups, rows, dtype=np.int32)
    drawn[rng.permutation(rows)[: min(groups, rows)]] = np.arange(min(groups, rows), dtype=np.int32)
    return drawn


def drawn(rows: int, values: int, groups: int = PRINTED[-1], attributes: int = 4, seed: int = 7) -> PaperStream:
    """Uniform draws from `groups` distinct tuples, whose attributes are uniform and apart from each other."""
    rng = np.random.default_rng(seed)
    tuples = np.unique(rng.integers(0, values, (2 * groups, attributes)), axis=0)
    while len(tuples) < groups:
        tuples = np.unique(np.concatenate([tuples, rng.integers(0, values, (groups, attributes))]), axis=0)
    tuples = rng.permutation(tuples)[:groups]
    return PaperStream(f"{values} values", tuples, _drawn(rng, groups, rows))


def in_flows(stream: PaperStream, length: float, seed: int = 7) -> PaperStream:
    """The same groups, rows coming in runs of geometric length: clustered, without interleaving."""
    rng = np.random.default_rng(seed)
    runs = rng.geometric(1 / length, len(stream.rows))
    rows = np.repeat(stream.rows, runs)[: len(stream.rows)]
    return PaperStream(f"{stream.name}, in flows of {length:g}", stream.tuples, np.ascontiguousarray(rows))
