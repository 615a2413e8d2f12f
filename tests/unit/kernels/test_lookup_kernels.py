"""Places in sorted lists, and codes, at the ends of 64 bits and with points that are not spread."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.kernels.dictionary import Dictionary
from penstock.kernels.lookups.codes import EMPTY, fill_words, find_dense, find_words, slot_count
from penstock.kernels.lookups.places import SIGN, in_buckets, place_words

ENDS = [-(2**63), -(2**63) + 1, -1, 0, 1, 2**62, 2**63 - 2, 2**63 - 1]


def points_of(kind: str) -> np.ndarray:
    rng = np.random.default_rng(7)
    return {
        "none": np.empty(0, np.int64),
        "one": np.array([5]),
        "ends": np.array(ENDS),
        "least": np.array([-(2**63), -(2**63) + 3]),
        "few": np.arange(0, 50, 7),
        "spread": np.unique(rng.integers(-(2**63), 2**63 - 1, 5000)),
        "crowded": np.unique(np.append(rng.integers(0, 9000, 3000), [2**60])),
    }[kind]


@pytest.mark.parametrize("kind", ["none", "one", "ends", "least", "few", "spread", "crowded"])
def test_places(kind: str) -> None:
    points = points_of(kind)
    near = [points, points[points < 2**63 - 1] + 1, points[points > -(2**63)] - 1, np.array(ENDS)]
    values = np.concatenate([*near, np.random.default_rng(3).integers(-(2**63), 2**63 - 1, 2000)])
    unsigned, places = points.view(np.uint64) ^ np.uint64(SIGN), np.empty(len(values), np.int64)
    place_words(unsigned, *in_buckets(unsigned), values, places)
    assert places.tolist() == np.searchsorted(points, values, side="right").tolist()


def test_codes_of_words() -> None:
    keys = points_of("spread")
    slots, codes = np.full((slot_count(len(keys)), 2), EMPTY, np.int64), np.empty(2 * len(keys), np.int64)
    fill_words(keys, slots)
    find_words(np.concatenate([keys, keys + 1]), slots, codes)
    assert codes[: len(keys)].tolist() == list(range(len(keys)))
    assert (codes[len(keys) :] == -1).all()
    found = np.empty(len(ENDS), np.int64)
    find_dense(np.array(ENDS), -1, np.array([7, -1, 8]), found)
    assert found.tolist() == [-1, -1, 7, -1, 8, -1, -1, -1]


@pytest.mark.parametrize("words", [[], ["a"], ["", "a", "ab", "b" * 40]])
def test_finding_in_a_dictionary(words: list[str]) -> None:
    asked = [*words, "c", "abc"]
    known = Dictionary()
    start, data = _bytes(words)
    known.intern(start, data)
    for one in (known, known.only(np.arange(known.count))):
        assert one.find(*_bytes(asked)).tolist() == [*range(len(words)), -1, -1]
    assert known.count == len(words)


def _bytes(words: list[str]) -> tuple[np.ndarray, np.ndarray]:
    encoded = [word.encode() for word in words]
    return np.cumsum([0, *map(len, encoded)], dtype=np.int64), np.frombuffer(b"".join(encoded), np.uint8)
