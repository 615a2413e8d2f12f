"""Flags of Arrow's as numpy's."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from penstock.runtime.expressions.operands import flags, truths

WITHOUT_PANDAS = """
import sys
import pyarrow as pa
from penstock.runtime.expressions.operands import truths
truths(pa.nulls(3).is_null())
sys.exit("pandas" in sys.modules)
"""


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 1000])
def test_flags_of_any_part(rows: int) -> None:
    given = np.random.default_rng(rows).integers(0, 3, rows)
    array = pa.array([(False, True, None)[one] for one in given], pa.bool_())
    for begin in (0, 1, 5):
        part = array.slice(begin)
        found = flags(part)
        assert found.dtype == bool
        assert found.tolist() == [bool(one) for one in part.to_pylist()]
        assert truths(part.is_null()).tolist() == [one is None for one in part.to_pylist()]


def test_pandas_is_not_loaded() -> None:
    assert subprocess.run([sys.executable, "-c", WITHOUT_PANDAS], check=False).returncode == 0
