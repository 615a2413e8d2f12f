"""The picture of docs/anomalies.md: seconds without packets stay empty, and every capture has its column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("matplotlib")

from penstock.app.pictures.anomalies import by_second, main


def floods(*seconds: int) -> pa.Table:
    """Rows of the query `floods`, in any order."""
    numbers = np.array(seconds, np.int64)
    return pa.table({
        "packets": 100 + numbers,
        "sources": 10 + numbers,
        "source_bits": numbers / 2,
        "destination_bits": numbers / 4,
        "window_start": pa.array(numbers * 1_000_000, pa.timestamp("us", "UTC")),
    })  # fmt: skip


def test_seconds_without_packets_are_empty() -> None:
    found = by_second(floods(14, 10, 11))
    assert found["packets"][[0, 1, 4]].tolist() == [110, 111, 114]
    assert np.isnan(found["packets"][2:4]).all()
    assert found["source_bits"][4] == 7


def test_a_column_for_every_capture(tmp_path: Path) -> None:
    for name, rows in (("one", floods(3, 4, 9)), ("other", floods(1))):
        (tmp_path / name).mkdir()
        pq.write_table(rows, tmp_path / name / "part.parquet")
    path = tmp_path / "picture.svg"
    main([str(path), f"a flood={tmp_path / 'one'}", f"a calm={tmp_path / 'other'}"])
    drawn = path.read_text()
    assert "<!-- a flood -->" in drawn
    assert "<!-- a calm -->" in drawn
    assert drawn.count("<!-- seconds of the capture -->") == 2
