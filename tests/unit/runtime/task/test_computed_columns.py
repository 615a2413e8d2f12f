"""Columns that queries compute, or find in tables, are taken in like columns that are read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.kernels.tables.pack import ALL_VALID
from penstock.logical.types import STRING
from penstock.runtime.task.arrow import with_nulls
from penstock.runtime.task.codes import Codes


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
