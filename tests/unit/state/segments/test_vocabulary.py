"""Codes of many dictionaries in terms of one."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.kernels.dictionary import Dictionary
from penstock.state.segments import vocabulary as vocabularies
from penstock.state.segments.vocabulary import Vocabulary, compacted


def dictionary(words: list[bytes]) -> Dictionary:
    made = Dictionary()
    made.intern(np.cumsum([0, *map(len, words)]).astype(np.int64), np.frombuffer(b"".join(words), np.uint8))
    return made


def words_of(known: Dictionary) -> list[bytes]:
    return [known.data[a:b].tobytes() for a, b in zip(known.offsets, known.offsets[1:], strict=False)]


def text(known: Dictionary, codes: np.ndarray, base: int = 0) -> list[bytes | None]:
    return [words_of(known)[code - base] if code >= base else None for code in codes.tolist()]


@pytest.mark.parametrize("base", [0, 1, 1 << 32])
def test_the_same_string_has_one_code_whatever_the_run(base: int) -> None:
    runs = {1: dictionary([b"a", b"b", b""]), 2: dictionary([b"c", b"", b"a", b"unused"])}
    codes = {1: np.array([0, 2, 1, -1, 0]) + base, 2: np.array([2, 1, 0, -1, 2]) + base}
    known, reads = Vocabulary(), []

    def read(run: int) -> tuple[np.ndarray, np.ndarray]:
        reads.append(run)
        return runs[run].offsets, runs[run].data

    for _ in range(2):
        for run, own in runs.items():
            recoded = known.recoded(run, "value:s", own.count, lambda run=run: read(run), codes[run], base)  # type: ignore[misc]
            assert text(known.dictionary("value:s"), recoded, base) == text(own, codes[run], base)
            assert recoded[3] == base - 1  # no string: as it was
    assert reads == [1, 2]  # the second time all was known
    assert sorted(words_of(known.dictionary("value:s"))) == [b"", b"a", b"b", b"c"]
    assert words_of(known.dictionary("value:t")) == []


def test_a_run_that_is_forgotten_is_read_again() -> None:
    known, own = Vocabulary(), dictionary([b"x", b"y"])
    codes = np.array([1, 0])
    before = known.recoded(7, "c", 2, lambda: (own.offsets, own.data), codes, 0)
    known.forget(7)
    other = dictionary([b"y", b"z"])  # another one in its place
    after = known.recoded(7, "c", 2, lambda: (other.offsets, other.data), codes, 0)
    assert text(known.dictionary("c"), before) == [b"y", b"x"]
    assert text(known.dictionary("c"), after) == [b"z", b"y"]


def test_it_does_not_grow_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabularies, "MOST", 50_000)
    known, largest = Vocabulary(), 0
    for run in range(200):
        known.trim()
        words = [b"%d of %d" % (n, run) for n in range(50)]
        own = dictionary(words)
        recoded = known.recoded(run, "c", 50, lambda own=own: (own.offsets, own.data), np.arange(50), 0)  # type: ignore[misc]
        assert text(known.dictionary("c"), recoded) == words
        largest = max(largest, known.dictionary("c").count)
    assert 50 < largest < 10_000


@pytest.mark.parametrize("seed", range(6))
def test_only_the_words_that_are_used(seed: int) -> None:
    dice = np.random.default_rng(seed)
    known = dictionary([b"word %d" % n for n in range(30)])
    columns = [(dice.integers(-1, 30, int(dice.integers(0, 20))) + base, base) for base in (0, 1 << 32)]
    own, recoded = compacted(known, columns)
    used = set()
    for (codes, base), again in zip(columns, recoded, strict=True):
        assert text(own, again, base) == text(known, codes, base)
        used |= {word for word in text(known, codes, base) if word is not None}
    assert set(words_of(own)) == used
    assert own.count == len(used)
    assert own.hashes.tolist() == dictionary(words_of(own)).hashes.tolist()
    # It is a dictionary like any other: more words can be added.
    assert own.intern(np.array([0, 3]), np.frombuffer(b"new", np.uint8)).tolist() == [own.count - 1]
    if used:
        first = words_of(own)[0]
        assert own.intern(np.array([0, len(first)]), np.frombuffer(first, np.uint8)).tolist() == [0]
