"""Random apps of joins by seed: streams with their files, tables, queries, and the engine's settings.

    seed ──► random_join_case ──► JoinCase ──► write(folder) ──► text of the app, ready to run
                                      └──► expected(log) ──► what it must give

One to three streams share one or two keys; a query has one to four sides (a stream under several aliases, too), joined
by one key or each by its own, up to
two tables, may read the results of another query, and ask some of all these in subqueries.  Streams are thinned until
the pairs are few enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from penstock.testing.apps.generators import Settings
from penstock.testing.apps.joins.keys import random_pool
from penstock.testing.apps.joins.places import Source, results_source, stream_source
from penstock.testing.apps.joins.queries import random_inner, random_query
from penstock.testing.apps.joins.sizes import small_enough
from penstock.testing.apps.joins.streams import DrawnStream, Frame, random_frame, random_stream, thinned
from penstock.testing.apps.joins.tables import DrawnTable, random_table
from penstock.testing.apps.joins.windows import random_slide
from penstock.testing.apps.random_files import write_file
from penstock.testing.apps.randomness import Dice
from penstock.testing.oracle.joins import ExpectedApp, expect_joins
from penstock.testing.oracle.joins.script import Manner, app_text
from penstock.testing.oracle.joins.spec import AppSpec, JoinSpec, RunLog

STREAMS = ("bids", "asks", "news")
SIDES = (1, 1, 2, 2, 2, 2, 3, 3, 4)


@dataclass(frozen=True)
class JoinCase:
    """One random app; `data` are its streams by name. `endless`: no stream has a watermark, so cuts decide nothing."""

    seed: int
    app: AppSpec
    data: Mapping[str, pa.Table]
    manners: Mapping[str, Manner]
    settings: Settings
    files: int

    @property
    def endless(self) -> bool:
        return all(stream.delay is None for stream in self.app.streams)

    @property
    def rows(self) -> dict[str, int]:
        return {name: table.num_rows for name, table in self.data.items()}

    @property
    def shown(self) -> tuple[JoinSpec, ...]:
        """The queries that have a sink."""
        return tuple(query for query in self.app.queries if not query.hidden)

    def write(self, folder: Path) -> str:
        """Write all files; the text of the app that reads them."""
        for name, data in self.data.items():
            self._write_stream(folder / name, data)
        for table in self.app.tables:
            write_file(table.data, folder / f"{table.name}.{table.format}", table.format, 1_000)
        return self.text(folder)

    def text(self, folder: Path | str = "in") -> str:
        """The app, if its files stand in this folder."""
        sources = {name: f"parquet:{folder}/{name}" for name in self.data}
        sources |= {t.name: f"{t.format}:{folder}/{t.name}.{t.format}" for t in self.app.tables}
        return app_text(self.app, sources, self.manners)

    def expected(self, log: RunLog) -> ExpectedApp:
        return expect_joins(self.app, self.data, log)

    def _write_stream(self, folder: Path, table: pa.Table) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        size = -(-table.num_rows // self.files) if table.num_rows else 1
        for i in range(self.files):
            part = table.slice(i * size, size)
            write_file(part, folder / f"part-{i:03d}.parquet", "parquet", max(1, size // 3))


def random_join_case(seed: int) -> JoinCase:
    """The app of this seed; the same on every machine."""
    dice = Dice(seed)
    pools = tuple(random_pool(dice, f"k{i}", few=i > 0) for i in range(dice.pick((1, 1, 1, 2, 2))))
    frame = random_frame(dice, pools)
    streams = tuple(random_stream(dice, frame, STREAMS[i], i) for i in range(dice.pick((1, 2, 2, 2, 3))))
    tables = tuple(random_table(dice, frame, streams, i) for i in range(dice.pick((0, 0, 0, 1, 1, 2))))
    queries = _queries(dice, frame, streams, tables)
    app = app_of(streams, tables, queries)
    used = tuple(stream for stream in streams if app.stream(stream.spec.name))
    while not small_enough(app, {stream.spec.name: stream.table for stream in used}):
        used = tuple(map(thinned, used))
    data = {stream.spec.name: stream.table for stream in used}
    manners = {query.name: random_manner(dice) for query in queries}
    return JoinCase(seed, app, data, manners, settings_of(dice, data), dice.pick((1, 1, 2)))


def _queries(
    dice: Dice, frame: Frame, streams: tuple[DrawnStream, ...], tables: tuple[DrawnTable, ...]
) -> list[JoinSpec]:
    """A join; then more of them, and plain queries on the same streams."""
    found: list[JoinSpec] = []
    sources = [stream_source(stream) for stream in streams]
    count = dice.pick(SIDES) if tables or dice.chance(0.4) else max(2, dice.pick(SIDES))
    if dice.chance(0.15):
        found += _on_results(dice, frame, streams, tables)
    else:
        found.append(random_query(dice, frame, "q0", _shuffled(dice, sources), tables, count))
    for number in range(1, dice.pick((1, 1, 2, 3))):
        plain = dice.chance(0.5)
        chosen, used = _shuffled(dice, sources), () if plain else tables
        sides = 1 if plain else dice.pick((2, 2, 3))
        found.append(random_query(dice, frame, f"q{number}", chosen, used, sides))
    return found


def _on_results(
    dice: Dice, frame: Frame, streams: tuple[DrawnStream, ...], tables: tuple[DrawnTable, ...]
) -> list[JoinSpec]:
    """A query over a stream and the results of another."""
    slide = random_slide(dice, frame.span)
    below, stream = dice.pick(streams), dice.pick(streams)
    hidden = dice.chance(0.6)
    inner = random_inner(dice, frame, "heavy", below, dice.pick((slide, slide, slide // 2, slide * 2)), hidden)
    keys = [column for column in below.columns if column.name in {pool.name for pool in frame.pools}]
    sides = [stream_source(stream), results_source(inner, keys)]
    return [inner, random_query(dice, frame, "q0", sides, tables if dice.chance(0.3) else (), 2, slide)]


def _shuffled(dice: Dice, sources: Sequence[Source]) -> list[Source]:
    return [sources[int(i)] for i in dice.rng.permutation(len(sources))]


def app_of(streams: Sequence[DrawnStream], tables: Sequence[DrawnTable], queries: Sequence[JoinSpec]) -> AppSpec:
    """Only what is read: an app knows no others."""
    read = {side.source for query in queries for side in query.streams}
    tied = {table.table for query in queries for table in query.tables}
    tied |= {ask.table for query in queries for ask in query.asks}
    return AppSpec(
        tuple(stream.spec for stream in streams if stream.spec.name in read),
        tuple(queries),
        tuple(table.spec for table in tables if table.spec.name in tied),
    )


def random_manner(dice: Dice) -> Manner:
    return Manner(dice.chance(0.5), dice.chance(0.5), dice.pick(("RANGE", "RANGE BY", "WINDOW")))


def settings_of(dice: Dice, data: Mapping[str, pa.Table]) -> Settings:
    rows = sum(table.num_rows for table in data.values())
    return Settings(
        batch_rows=max(1, -(-rows // dice.pick((1, 2, 4, 8, 8)))),
        parallelism=dice.between(1, 4),
        memory=dice.pick((0, 0, 512, 20_000, 1_000_000)),
        task_memory=dice.pick((20_000, 200_000, 256_000_000)),
        chunk_rows=dice.pick((3, 64, 999)) if rows <= 600 else dice.pick((100, 999, 65_536)),
        table_rows=dice.pick((2, 16, 1_024)),
        slots=dice.pick((1, 2, 7, 16)),
    )
