"""Columns that queries compute, or find in tables, are taken in like columns that are read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from penstock.kernels import inet
from penstock.kernels.tables.pack import ALL_VALID
from penstock.logical.types import INET, STRING
from penstock.relations.component import inet6_component
from penstock.runtime.expressions.operands import Addresses
from penstock.runtime.task.arrow import with_nulls
from penstock.runtime.task.codes import Codes
from penstock.sources.texts import text_bytes

TEXTS = ["10.0.0.1", "2001:db8::1", "::", "255.255.255.255", "2001:db8::1", "::1"]


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1], TEXTS[1:3]])
@pytest.mark.parametrize("nulls", [False, True])
def test_addresses(texts: list[str], nulls: bool) -> None:
    valid = np.arange(len(texts)) % 3 != 1 if nulls else np.ones(len(texts), bool)
    read, made = Codes({"a": INET}, []), Codes({"a": INET}, [])
    column = read.addresses("a", pa.array(texts, mask=~valid))
    mask = ALL_VALID if valid.all() else valid.astype(np.uint8)
    computed = made.computed("a", Addresses(*inet.parse(*text_bytes(pa.array(texts)))), mask)
    component = inet6_component("a")
    for one in (column, computed):
        assert one.valid.tolist() == mask.tolist()
    assert computed.numbers[valid].tolist() == column.numbers[valid].tolist()
    codes = [np.zeros(len(texts), np.int64) if one.inet6 is None else one.inet6 for one in (column, computed)]
    assert (codes[0][valid] > 0).tolist() == (codes[1][valid] > 0).tolist()
    words = [_words(codes.dictionaries[component].data.tobytes()) for codes in (read, made)]
    for one, other in zip(codes[0][valid].tolist(), codes[1][valid].tolist(), strict=True):
        assert one == other == 0 or words[0][one - 1] == words[1][other - 1]
    assert set(words[1]) <= set(words[0])


def _words(data: bytes) -> list[bytes]:
    return [data[at : at + 16] for at in range(0, len(data), 16)]


def test_texts_with_nulls_keep_their_dictionary() -> None:
    words = pa.array(["a", "b", "c"])
    strings = pa.DictionaryArray.from_arrays(pa.array([2, 0, 1, 2], pa.int32()), words)
    valid = np.array([1, 0, 1, 1], np.uint8)
    holed = with_nulls(strings, valid)
    assert holed.to_pylist() == with_nulls(strings.dictionary_decode(), valid).to_pylist() == ["c", None, "b", "c"]
    assert with_nulls(strings, ALL_VALID) is strings
    codes = Codes({"s": STRING}, [])
    first = codes.strings("s", holed)
    assert first.valid.tolist() == [1, 0, 1, 1]
    assert holed.dictionary.buffers()[1].address == words.buffers()[1].address
    assert first.numbers[[0, 2, 3]].tolist() == codes.strings("s", strings).numbers[[0, 2, 3]].tolist()
