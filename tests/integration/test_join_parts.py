"""Instants that several tasks share: by slot, or by rows of the largest side where a key is hot. Results are those of
plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.runtime.merge.items import Cut
from penstock.runtime.merge.join import items, reading

START = 1_767_225_600 * 1_000_000
SECONDS, ROWS, KEYS = 12, 3_000, 200
JOIN = "SELECT a.g, b.h, count(*) AS n, sum(a.x) AS total, max(b.y) AS most FROM a {w} JOIN b {w} ON a.k = b.k {more}"
Groups = dict[tuple[int, int, int], tuple[int, int, int]]


def streams(folder: Path, hot: bool) -> list[dict[str, np.ndarray]]:
    """Two streams with few groups; of a hot key, every second record has it."""
    rng, made = np.random.default_rng(7), []
    for name, group, value in (("a", "g", "x"), ("b", "h", "y")):
        keys = rng.integers(0, KEYS, ROWS)
        columns = {
            "ts": START + np.sort(rng.integers(0, SECONDS * 1_000_000, ROWS)),
            "k": np.where(rng.random(ROWS) < 0.5, 3, keys) if hot else keys,
            group: rng.integers(0, 5, ROWS),
            value: rng.integers(0, 100, ROWS),
        }
        table = pa.table({**columns, "ts": pa.array(columns["ts"], pa.timestamp("us"))})
        pq.write_table(table, folder / f"{name}.parquet")
        made.append(columns)
    return made


def expected(one: dict[str, np.ndarray], other: dict[str, np.ndarray], length: int, slide: int) -> Groups:
    """(end in seconds, g, h): count, sum and greatest value of all pairs."""
    found: Groups = {}
    for end in range(slide, SECONDS + length, slide):
        low, high = START + (end - length) * 1_000_000, START + end * 1_000_000
        a, b = (np.flatnonzero((side["ts"] >= low) & (side["ts"] < high)) for side in (one, other))
        i, j = np.nonzero(one["k"][a][:, None] == other["k"][b])
        counts: Counter[tuple[int, int]] = Counter()
        totals: Counter[tuple[int, int]] = Counter()
        most: dict[tuple[int, int], int] = {}
        for g, h, x, y in zip(one["g"][a[i]], other["h"][b[j]], one["x"][a[i]], other["y"][b[j]], strict=True):
            group = int(g), int(h)
            counts[group] += 1
            totals[group] += int(x)
            most[group] = max(most.get(group, -1), int(y))
        found |= {(end, *group): (n, totals[group], most[group]) for group, n in counts.items()}
    return found


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> list[Cut]:
    """What instants are cut into: even small ones are, here."""
    for module, name in ((items, "ALONE"), (items, "LEAST_ROWS"), (reading, "LARGE")):
        monkeypatch.setattr(module, name, 0)
    seen: list[Cut] = []
    parts = items._parts

    def listened(*given: Any) -> Iterator[Cut]:
        for cut in parts(*given):
            seen.append(cut)
            yield cut

    monkeypatch.setattr(items, "_parts", listened)
    return seen


@pytest.mark.parametrize(("hot", "joins"), [(False, "early"), (True, "early"), (True, "late")])
def test_parts_of_an_instant_add_up(hot: bool, joins: str, tmp_path: Path, cuts: list[Cut]) -> None:
    sides = streams(tmp_path, hot)
    length, slide = 4, 4
    app = ps.App(master="process")
    for name in "ab":
        app.stream(name, f"parquet:{tmp_path}/{name}.parquet", time="ts", delay="0 seconds")
    text = JOIN.format(w=f"[RANGE '{length} seconds' SLIDE '{slide} seconds']", more="GROUP BY a.g, b.h")
    app.query("joined", text, sink=f"parquet:{tmp_path}/out")
    run = app.start(str(tmp_path / "checkpoint"), batch_rows=ROWS // 3, parallelism=4, joins=joins)
    run.await_end()
    rows = pa.concat_tables([pq.read_table(path) for path in (tmp_path / "out").glob("*.parquet")]).to_pylist()
    ends = [round(row["window_end"].timestamp()) - START // 1_000_000 for row in rows]
    found = {
        (end, row["g"], row["h"]): (row["n"], row["total"], row["most"]) for end, row in zip(ends, rows, strict=True)
    }
    assert len(found) == len(rows)
    assert found == expected(*sides, length, slide)
    assert cuts
    assert all(cut.slices > 1 for cut in cuts) if hot else any(cut.low > 0 for cut in cuts)
