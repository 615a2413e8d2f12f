"""Tables: one form whatever they were read from, digests by content, and refusals that say where."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from penstock.errors import SourceError, StateError
from penstock.logical.query import Field
from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, INET, STRING, TIMESTAMP, TINYINT
from penstock.sources.arrow.table import taken
from penstock.sources.base import ADDRESS, OF_FILES, TYPE_KEY
from penstock.sources.registry import open_source
from penstock.sources.tables import StoredTable, keep_table, load_table, read_table

FIELDS = (
    Field("n", BIGINT), Field("x", DOUBLE), Field("ok", BOOLEAN), Field("at", TIMESTAMP), Field("name", STRING),
    Field("low", INET),
)  # fmt: skip
MOMENT = datetime(2026, 1, 2, 3, 4, 5, 600_000, UTC)
ROWS = [
    {"n": 1, "x": 0.5, "ok": True, "at": MOMENT, "name": "größe", "low": "10.0.0.1"},
    {"n": None, "x": None, "ok": None, "at": None, "name": None, "low": None},
    {"n": -7, "x": 1e300, "ok": False, "at": MOMENT, "name": "a, b", "low": "2001:db8::1"},
]
# The same address, written in another way.
SPELLED = {"10.0.0.1": "10.0.0.1", "2001:db8::1": "2001:0DB8:0:0::0001", None: None}


def table(data: Any, fields: tuple[Field, ...] | None = FIELDS) -> StoredTable:
    source = taken("t", data)
    assert source is not None
    return read_table(source, fields, "t")


def arrow(kinds: dict[str, pa.DataType]) -> pa.Table:
    rows = [row | {"low": SPELLED[row["low"]]} for row in ROWS]
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()})


NARROW = {
    "n": pa.int8(), "x": pa.float64(), "ok": pa.bool_(), "at": pa.timestamp("ms"),
    "name": pa.dictionary(pa.int8(), pa.string()), "low": pa.string(),
}  # fmt: skip
WIDE = {
    "n": pa.decimal128(20, 0), "x": pa.float64(), "ok": pa.bool_(), "at": pa.timestamp("ns", tz="Europe/Berlin"),
    "name": pa.large_string(), "low": pa.large_string(),
}  # fmt: skip


def written(folder: Path, scheme: str) -> str:
    path = folder / f"t.{scheme}"
    if scheme == "parquet":
        pq.write_table(arrow(NARROW), path)
    elif scheme == "arrow":
        feather.write_feather(arrow(WIDE), path)
    elif scheme == "json":
        spelled = [row | {"at": row["at"] and row["at"].isoformat(), "low": SPELLED[row["low"]]} for row in ROWS]
        path.write_text("".join(json.dumps(row) + "\n" for row in spelled))
    else:
        lines = ["name,low,x,ok,at,n"]
        for row in ROWS:
            told = dict(row, at=row["at"] and row["at"].isoformat(), low=SPELLED[row["low"]])
            cells = ["NULL" if told[c] is None else str(told[c]) for c in ("name", "low", "x", "ok", "at", "n")]
            lines.append(",".join(f'"{cell}"' if "," in cell else cell for cell in cells))
        path.write_text("\n".join(lines) + "\n")
    return f"{scheme}:{path}"


@pytest.mark.parametrize("scheme", ["csv", "json", "parquet", "arrow"])
def test_the_format_does_not_show(tmp_path: Path, scheme: str) -> None:
    found = read_table(open_source(written(tmp_path, scheme), {}, FIELDS), FIELDS, "t")
    assert found.fields == FIELDS
    assert found.data.to_pylist() == ROWS
    assert found.data.schema.equals(table(arrow(NARROW)).data.schema, check_metadata=True)
    assert found.digest == table(arrow(NARROW)).digest == table(arrow(WIDE)).digest
    assert all(column.num_chunks == 1 for column in found.data.columns)


def test_digests_go_by_content() -> None:
    rows = arrow(NARROW)
    digests = {table(part).digest for part in (rows, rows.slice(0, 2), rows.take([1, 0, 2]), rows.take([0, 1, 1, 2]))}
    assert len(digests) == 4
    assert table(rows).digest == table(pa.concat_tables([rows.slice(0, 1), rows.slice(1)])).digest
    assert table(rows, FIELDS[:2]).digest != table(rows, FIELDS[:1]).digest
    # A digest that changes makes every checkpoint refuse its tables.
    assert table(rows).digest == "a1e5cc55014135f5593b9e311a39ea4c"


def test_values_of_other_types() -> None:
    nans = np.array([0x7FF8000000000000, 0xFFF8000000000001], np.uint64).view(np.float64)
    given = pa.table({"x": pa.array(nans)})
    assert all(math.isnan(x) for x in table(given, (Field("x", DOUBLE),)).data["x"].to_pylist())
    assert table(given, (Field("x", DOUBLE),)).digest == table(given.take([1, 0]), (Field("x", DOUBLE),)).digest
    cents = pa.table({"x": pa.array([Decimal(n) / 100 for n in range(1000)], pa.decimal128(10, 2))})
    assert table(cents, (Field("x", DOUBLE),)).data["x"].to_pylist() == [n / 100 for n in range(1000)]
    days = pa.table({"at": [date(2026, 1, 2), None]})
    midnight = [datetime(2026, 1, 2, tzinfo=UTC), None]
    for kind in (pa.date32(), pa.date64()):
        assert table(days.cast(pa.schema([("at", kind)])), (Field("at", TIMESTAMP),)).data["at"].to_pylist() == midnight
    before = pa.table({"at": pa.array([-1, -1000, -1001, 1001], pa.timestamp("ns"))})
    stored = table(before, (Field("at", TIMESTAMP),)).data["at"].cast(pa.int64()).to_pylist()
    assert stored == [-1, -1, -2, 1]
    wide = pa.table({"x": [(1 << 53) + 1]})
    assert table(wide, (Field("x", DOUBLE),)).data["x"].to_pylist() == [float(1 << 53)]


def test_addresses_of_numbers() -> None:
    marked = pa.field("low", pa.uint32(), metadata={TYPE_KEY: b"INET"})
    numbers = pa.table([pa.array([1, None, 2**32 - 1], pa.uint32())], schema=pa.schema([marked]))
    assert table(numbers, None).data["low"].to_pylist() == ["0.0.0.1", None, "255.255.255.255"]
    longs = pa.array(
        [{"four": 7, "six": None}, None, {"four": 0, "six": bytes(15) + b"\x01"}, {"four": 9, "six": None}], ADDRESS
    )
    found = read_table(Given(pa.record_batch([longs], ["low"])), (Field("low", INET),), "t")
    assert found.data["low"].to_pylist() == ["0.0.0.7", None, "::1", "0.0.0.9"]


class Given:
    """One batch as a source, of a form that no table in memory can have."""

    abilities = OF_FILES

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    def schema(self) -> pa.Schema:
        return self._batch.schema

    def rows(self) -> int:
        return self._batch.num_rows

    def read(self, *_: Any) -> Any:
        return iter([self._batch])


@pytest.mark.parametrize(
    ("values", "field", "reason"),
    [
        (pa.array([1, 127, 128, 300]), Field("c", TINYINT), "row 3: its c 128 is not a valid TINYINT"),
        (pa.array([1, None, 2**63], pa.uint64()), Field("c", BIGINT), f"row 3: its c {2**63} is not a valid BIGINT"),
        (pa.array(["::", None, "10.0.0", "x"]), Field("c", INET), "row 3: its c '10.0.0' is not a valid INET"),
        (pa.array([5, -1]), Field("c", INET), "row 2: its c -1 is not a valid INET"),
        (pa.array([0, 2**60], pa.timestamp("s")), Field("c", TIMESTAMP), "row 2: its c is not a valid TIMESTAMP"),
    ],
)
def test_values_that_do_not_fit(values: pa.Array, field: Field, reason: str) -> None:
    with pytest.raises(SourceError, match=f"table 't' cannot be read at table 't', {reason}") as error:
        table(pa.table({"c": values}), (field,))
    assert error.value.hint == "correct the record, or declare another type: c STRING"
    many = pa.table({"c": pa.concat_arrays([values.slice(0, 1)] * 70_000 + [values])})
    with pytest.raises(SourceError, match=f"row {70_000 + int(reason[4])}: its c"):
        table(many, (field,))


def test_records_of_text_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("low,n\n10.0.0.1,1\n10.0.0.2,x\n10.0.0.3\n")
    fields = (Field("low", INET), Field("n", BIGINT))
    with pytest.raises(SourceError, match=r"t\.csv, record 2, byte 17: its n is not a valid BIGINT"):
        read_table(open_source(f"csv:{path}", {}, fields), fields, "t")
    path.write_text("low,n\n10.0.0.1,1\n10.0.0.3\n10.0.0.2,x\n")
    with pytest.raises(SourceError, match=r"t\.csv, record 2, byte 17: wrong number of fields"):
        read_table(open_source(f"csv:{path}", {}, fields), fields, "t")
    path.write_text("low,n\n")
    with pytest.raises(SourceError, match="table 'whois' is empty"):
        read_table(open_source(f"csv:{path}", {}, fields), fields, "whois")


def test_columns_that_the_source_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="column 'low' is not in table 't'"):
        table(pa.table({"n": [1]}), (Field("low", INET),))
    with pytest.raises(SourceError, match="column 'n' of table 't' is int64, which cannot be read as STRING"):
        table(pa.table({"n": [1]}), (Field("n", STRING),))


def test_a_checkpoint_keeps_each_content_once(tmp_path: Path) -> None:
    found = table(arrow(NARROW))
    keep_table(tmp_path, found)
    (path,) = (tmp_path / "tables").iterdir()
    before = path.stat().st_mtime_ns
    keep_table(tmp_path, table(arrow(WIDE)))
    assert path.stat().st_mtime_ns == before
    loaded = load_table(tmp_path, found.digest)
    assert loaded.equals(found.data)
    assert loaded.schema.equals(found.data.schema, check_metadata=True)
    path.write_bytes(path.read_bytes().replace("größe".encode(), b"groesse"))
    with pytest.raises(StateError, match=f"table {path} is damaged") as error:
        load_table(tmp_path, found.digest)
    assert "restore the checkpoint from a copy" in error.value.hint
    path.unlink()
    with pytest.raises(StateError, match=f"table {path} is missing"):
        load_table(tmp_path, found.digest)
