"""Random apps whose queries all promise a delay and join their stream with tables, by seed; parts as of `random_joins`.

The stream is replayed by the clock. Its tables have one row for a record, or several; some queries ask in subqueries
whether a table has one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from penstock.testing.apps.joins.keys import random_pool
from penstock.testing.apps.joins.places import stream_source
from penstock.testing.apps.joins.queries import random_query
from penstock.testing.apps.joins.sizes import small_enough
from penstock.testing.apps.joins.streams import DrawnStream, Frame, random_frame, random_stream, thinned
from penstock.testing.apps.joins.tables import DrawnTable, random_table
from penstock.testing.apps.joins.values import value
from penstock.testing.apps.random_joins import JoinCase, app_of, random_manner, settings_of
from penstock.testing.apps.random_promises import PROMISES, SPEEDS
from penstock.testing.apps.randomness import Dice
from penstock.testing.oracle.joins import terms
from penstock.testing.oracle.joins.spec import ROWS, JoinSpec, KeySpec, OutputSpec

STREAM = "bids"


@dataclass(frozen=True)
class PromisedJoins:
    """A case of joins with what makes its stream live, and its queries punctual."""

    case: JoinCase
    speed: float
    promise: str

    def write(self, folder: Path) -> str:
        """Write all files; the text of the app that reads them."""
        plain = self.case.write(folder)
        live = plain.replace(f"FROM 'parquet:{folder}/{STREAM}'", self._source(folder))
        statements = live.removesuffix(";\n").split(";\n")
        return "".join(f"{one}{self._promised(one)};\n" for one in statements)

    def _source(self, folder: Path) -> str:
        return f"FROM 'replay:parquet:{folder}/{STREAM}' WITH (speed = {self.speed:g})"

    def _promised(self, statement: str) -> str:
        return f"\n  LIMIT DELAY TO '{self.promise}'" if statement.startswith("CREATE QUERY") else ""


def random_promised_joins(seed: int) -> PromisedJoins:
    """The app of this seed; the same on every machine."""
    dice = Dice(seed)
    stream, frame = _replayed(dice)
    tables = tuple(random_table(dice, frame, (stream,), number) for number in range(dice.pick((1, 1, 2))))
    queries = [_query(dice, frame, stream, tables, f"q{number}") for number in range(dice.pick((1, 2, 3)))]
    app = app_of((stream,), tables, queries)
    while not small_enough(app, {STREAM: stream.table}):
        stream = thinned(stream)
    data = {STREAM: stream.table}
    manners = {query.name: random_manner(dice) for query in queries}
    case = JoinCase(seed, app, data, manners, settings_of(dice, data), dice.pick((1, 1, 2)))
    return PromisedJoins(case, dice.pick(SPEEDS), dice.pick(PROMISES))


def _replayed(dice: Dice) -> tuple[DrawnStream, Frame]:
    """A stream with a watermark, and with a time to begin at."""
    while True:
        pools = tuple(random_pool(dice, f"k{i}", few=i > 0) for i in range(dice.pick((1, 1, 2))))
        frame = random_frame(dice, pools)
        stream = random_stream(dice, frame, STREAM, 0)
        times = stream.table.column("ts")
        if stream.spec.delay is not None and times.null_count < len(times):
            return stream, frame


def _query(dice: Dice, frame: Frame, stream: DrawnStream, tables: tuple[DrawnTable, ...], name: str) -> JoinSpec:
    """Over one side, whose window is of time; what subqueries ask of streams is left out."""
    while True:
        found = random_query(dice, frame, name, [stream_source(stream)], tables, 1)
        found = replace(found, asks=tuple(ask for ask in found.asks if ask.side is None))
        distinct = any(one.distinct for term in found.group_level for one in term.aggregates)
        if found.sides[0].window.kind != ROWS and not distinct and (found.tables or dice.chance(0.2)):
            return _across(dice, stream, tables, found)


def _across(dice: Dice, stream: DrawnStream, tables: tuple[DrawnTable, ...], query: JoinSpec) -> JoinSpec:
    """With aggregates, and now and then a key, of what a record and its rows of a table have."""
    drawn = {table.spec.name: table for table in tables}
    rows = [value(one.alias, c) for one in query.tables for c in drawn[one.table].columns if c.small and c.tame]
    records = [value(query.sides[0].alias, column) for column in stream.columns if column.small and column.tame]
    if query.keys is None or not rows or not records:
        return query
    row, record = dice.pick(rows).term, dice.pick(records).term
    total, product = (terms.arithmetic(operator, record, row) for operator in "+*")
    asked = [("sum", product), ("avg", total), ("avg", record), ("avg", row), ("count", row), ("count", record)]
    outputs = [
        OutputSpec(f"m{number}", terms.aggregate(name, argument))
        for number, (name, argument) in enumerate(dice.some(asked, 4))
    ]
    if dice.chance(0.4):
        outputs.append(OutputSpec("added", _added_up(dice, record, row)))
    more = (KeySpec(total),) if query.keys and dice.chance(0.2) else ()
    return replace(query, outputs=(*query.outputs, *outputs), keys=(*query.keys, *more))


def _added_up(dice: Dice, record: terms.Term, row: terms.Term) -> terms.Term:
    """Constants times counts and sums, of one column or of two."""
    count, number = terms.aggregate("count"), terms.number(dice.pick((8, -3, 0.125)))
    one, other = (terms.aggregate("sum", of) for of in (record, row))
    added = dice.pick((count, one, terms.aggregate("count", record), other))
    scaled = terms.arithmetic(dice.pick(("*", "/")), one, number)
    return dice.pick((scaled, terms.arithmetic(dice.pick("+-"), scaled, added)))
