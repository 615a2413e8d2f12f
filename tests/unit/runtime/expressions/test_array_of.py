"""Numpy's arrays as Arrow's, which pandas has no part in."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from penstock.runtime.expressions.operands import array_of

VALUES = [
    np.arange(11), np.arange(11, dtype=np.int32)[::2], np.linspace(0, 1, 9), np.arange(20) % 3 == 0,
    np.broadcast_to(np.uint8(4), 5), np.empty(0, np.int64), np.array([2**63], np.uint64),
]  # fmt: skip


@pytest.mark.parametrize("values", VALUES, ids=lambda one: f"{one.dtype}-{len(one)}")
@pytest.mark.parametrize("some", [False, True])
def test_as_arrow_makes_them(values: np.ndarray, some: bool) -> None:
    nulls = np.arange(len(values)) % 4 == 1 if some else None
    found = array_of(values, nulls)
    found.validate(full=True)
    assert found.equals(pa.array(values, mask=nulls))


def test_nothing_loads_pandas() -> None:
    text = (
        "import sys, numpy as np; from penstock.runtime.expressions.operands import array_of;"
        "array_of(np.arange(3), np.arange(3) > 1); assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", text], check=True)
