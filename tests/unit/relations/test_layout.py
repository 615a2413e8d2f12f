"""Packed layouts: every component comes back from the packed words, whatever its range."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.kernels.tables import pack
from penstock.relations.component import component_of as named
from penstock.relations.layout import Part, Place, lay_out, project, union, width
from penstock.runtime.tables.chunk import pack_words

EXTREME = [(0, 0), (0, 1), (5, 5), (-3, 4), (0, 65535), (-(1 << 63), (1 << 63) - 1), (1 << 62, (1 << 62) + 9)]


@pytest.mark.parametrize("span", EXTREME)
def test_a_field_holds_its_range(span: tuple[int, int]) -> None:
    base, bits = width(span)
    assert Place(0, 0, bits, base).holds(span)


def test_a_place_refuses_what_lies_outside() -> None:
    place = Place(0, 0, 4, 10)
    assert place.holds((10, 25))
    assert not place.holds((9, 12))
    assert not place.holds((10, 26))


def test_union_covers_both() -> None:
    assert union({"a": (1, 5)}, {"a": (-2, 3), "b": (0, 0)}) == {"a": (-2, 5), "b": (0, 0)}


@pytest.mark.parametrize("seed", range(20))
def test_project_and_extract_give_the_values_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    spans = {named(f"value:c{i}"): EXTREME[int(rng.integers(len(EXTREME)))] for i in range(int(rng.integers(1, 9)))}
    n = 50
    columns = {name: rng.integers(low, high, n, np.int64, endpoint=True) for name, (low, high) in spans.items()}
    layout = lay_out(spans)
    words = pack_words(layout, columns, n)
    chosen = [name for name in spans if rng.random() < 0.6] or list(spans)
    projection = project(layout, [Part(name) for name in chosen])
    assert projection.words <= layout.words + 1
    keys = np.empty((projection.words, n), np.uint64)
    terms = projection.terms
    pack.project(
        words,
        np.arange(n, dtype=np.int32),
        np.array([t.source for t in terms], np.int64),
        np.array([t.mask for t in terms], np.uint64),
        np.array([t.turn for t in terms], np.int64),
        np.array([t.target for t in terms], np.int64),
        keys,
    )
    for name in chosen:
        place, values = projection.places[name], np.empty(n, np.int64)
        if place.bits:
            pack.extract(np.ascontiguousarray(keys.T), place.word, place.shift, place.bits, place.base, values)
        else:
            values.fill(place.base)
        assert (values == columns[name]).all(), (seed, name)


def test_a_prefix_masks_the_low_bits() -> None:
    layout = lay_out({named("value:src"): (0, (1 << 32) - 1)})
    (term,) = project(layout, [Part(named("value:src"), 8)]).terms
    assert term.mask >> layout.places[named("value:src")].shift == 0xFFFFFF00


def test_nulls_pack_as_zero_whatever_their_value() -> None:
    layout = lay_out({named("value:x"): (100, 200), named("null:x"): (0, 1)})
    columns = {named("value:x"): np.array([150, -9]), named("null:x"): np.array([0, 1])}
    place = layout.places[named("value:x")]
    (word,) = pack_words(layout, columns, 2)
    assert (int(word[1]) >> place.shift) & place.mask == 0
