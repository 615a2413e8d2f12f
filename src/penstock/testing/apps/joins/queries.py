"""Random queries over the streams and tables of an app: joins of one to four sides, per record or grouped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.logical.types import TIMESTAMP, Kind
from penstock.testing.apps.joins import clauses
from penstock.testing.apps.joins.asks import ask_streams, ask_table, key_columns
from penstock.testing.apps.joins.places import Place, Source, join_key, stream_source, ties_of
from penstock.testing.apps.joins.streams import WIDE, DrawnStream, Frame
from penstock.testing.apps.joins.tables import DrawnTable
from penstock.testing.apps.joins.values import Drawn, Value, count_value, value
from penstock.testing.apps.joins.windows import random_slide, random_windows
from penstock.testing.apps.randomness import Dice
from penstock.testing.oracle.joins import terms
from penstock.testing.oracle.joins.spec import (
    ROWS,
    Ask,
    JoinSpec,
    KeySpec,
    OrderSpec,
    OutputSpec,
    Side,
    TableSide,
    WindowSpec,
)
from penstock.testing.oracle.joins.terms import Term

ALIASES = ("A", "B", "C", "D")
ASKED = ("E", "F")
LIMITS = (1, 2, 3, 10)


def random_query(
    dice: Dice,
    frame: Frame,
    name: str,
    sources: Sequence[Source],
    tables: Sequence[DrawnTable],
    count: int,
    slide: int | None = None,
) -> JoinSpec:
    """Over `count` sides: the first sources, and then any of them again. Subqueries may ask others."""
    slide = slide or random_slide(dice, frame.span)
    chosen = [*sources[:count], *(dice.pick(sources) for _ in range(count - len(sources)))]
    chosen += [dice.pick(sources) for _ in range(dice.pick((0, 1, 1, 1, 2) if count == 1 else (0, 0, 0, 1, 1, 2)))]
    every = _places(dice, frame, chosen, slide, bool(tables), count)
    places, asked = every[:count], every[count:]
    tied = _tables(dice, places, tables)
    by_alias = {side.alias: next(t for t in tables if t.spec.name == side.table) for side in tied}
    rows = {alias: _values(alias, table.columns, True) for alias, table in by_alias.items()}
    query = JoinSpec(
        name,
        tuple(place.side for place in places),
        slide,
        (),
        tables=tuple(tied),
        equalities=_equalities(dice, frame, places),
        conditions=tuple(_conditions(dice, places, rows, tied)),
        asks=tuple(_asks(dice, frame, places, asked, tables, tied)),
    )
    if count == 1 and query.asks and dice.chance(0.2):
        return _per_record(dice, query, places, by_alias)
    if tied and (count == 1 or dice.chance(0.05)) and dice.chance(0.7):
        return _per_record(dice, query, places, by_alias)
    if count == 2 and dice.chance(0.05):
        return _per_record(dice, query, places, by_alias)
    return _grouped(dice, query, places, rows)


def random_inner(dice: Dice, frame: Frame, name: str, stream: DrawnStream, slide: int, hidden: bool) -> JoinSpec:
    """The groups of a stream by its keys that have many records, as in the query of elephants."""
    source = stream_source(stream)
    window = WindowSpec("range", slide * dice.pick((1, 1, 2)))
    side = Side("P", source.name, window)
    columns = [column for column in stream.columns if column.name in {pool.name for pool in frame.pools}]
    keys = [value("P", column) for column in columns]
    count = terms.aggregate("count")
    having = terms.compare(">", count, terms.number(dice.pick((0, 1, 1, 2)))) if dice.chance(0.8) else None
    outputs = [OutputSpec(c.name, terms.grouped(k.term), k.term.text) for c, k in zip(columns, keys, strict=True)]
    outputs.append(OutputSpec("n", count))
    entries = tuple(KeySpec(key.term) for key in keys)
    return JoinSpec(name, (side,), slide, tuple(outputs), entries, having=having, hidden=hidden)


# -- sides


def _places(dice: Dice, frame: Frame, sources: Sequence[Source], slide: int, tabled: bool, count: int) -> list[Place]:
    fine = [len(sources) > 1 and not s.results and frame.sums != WIDE for s in sources]
    results = any(source.results for source in sources)
    windows = random_windows(dice, slide, fine, landmarks=not results)
    if results and all(window.kind == ROWS for window in windows[:count]):
        windows[0] = WindowSpec("range", slide)
    names = [column.name for source in sources for column in source.columns]
    short = not tabled and dice.chance(0.3)  # unique names alone
    found = []
    for alias, source, window in zip((*ALIASES[:count], *ASKED), sources, windows, strict=False):
        values = []
        for column in source.columns:
            bare = short and names.count(column.name) == 1
            values.append(value(alias, column, qualified=not bare))
        found.append(Place(Side(alias, source.name, window), source, tuple(values)))
    return found


def _values(alias: str, columns: Sequence[Drawn], qualified: bool) -> tuple[Value, ...]:
    return tuple(value(alias, column, qualified) for column in columns)


def _equalities(dice: Dice, frame: Frame, places: Sequence[Place]) -> tuple[tuple[Term, Term], ...]:
    """Every side by the same keys, in a chain or all to the first; or each by its own keys to one before it."""
    names = [pool.name for pool in frame.pools]
    if len(places) > 2 and len(names) > 1 and dice.chance(0.6):
        return _linked(dice, names, places)
    used = names if dice.chance(0.6) else [dice.pick(names)]
    star, found = dice.chance(0.5), []
    for name in used:
        computed = dice.between(2, 6) if dice.chance(0.08) else None
        sides = [join_key(place, name, computed) for place in places]
        for i in range(1, len(sides)):
            pair = (sides[0 if star else i - 1], sides[i])
            found.append(pair if dice.chance(0.7) else (pair[1], pair[0]))
    return tuple(found)


def _linked(dice: Dice, names: Sequence[str], places: Sequence[Place]) -> tuple[tuple[Term, Term], ...]:
    """Each side to one before it, by any keys; sometimes to another one as well, so that there is a ring."""
    found = []
    for number in range(1, len(places)):
        near = [dice.between(0, number - 1) for _ in range(2 if dice.chance(0.25) else 1)]
        for other in dict.fromkeys(near):
            for name in names if dice.chance(0.15) else [dice.pick(names)]:
                computed = dice.between(2, 6) if dice.chance(0.08) else None
                pair = join_key(places[other], name, computed), join_key(places[number], name, computed)
                found.append(pair if dice.chance(0.7) else (pair[1], pair[0]))
    return tuple(found)


def _tables(dice: Dice, places: Sequence[Place], tables: Sequence[DrawnTable]) -> list[TableSide]:
    """Each table, if some side has what it is tied to."""
    found = []
    for number, table in enumerate(tables):
        fitting = [p for p in places if table.stream in (None, p.source.name) and p.has(table.ties)]
        if not fitting:
            continue
        place, alias = dice.pick(fitting), "TU"[number]
        ties = [tie for one in table.ties for tie in ties_of(dice, place, alias, table, one)]
        own = clauses.predicate(dice, _values(alias, table.columns, True)) if dice.chance(0.3) else None
        found.append(
            TableSide(alias, table.spec.name, tuple(ties), () if own is None else (own,), outer=dice.chance(0.25))
        )
    return found


def _asks(
    dice: Dice,
    frame: Frame,
    places: Sequence[Place],
    asked: Sequence[Place],
    tables: Sequence[DrawnTable],
    tied: Sequence[TableSide],
) -> list[Ask]:
    """What subqueries ask, of streams and of tables."""
    names = [pool.name for pool in frame.pools]
    found: list[Ask | None] = [*ask_streams(dice, names, places, asked, key_columns(tied))]
    found += [ask_table(dice, places, table, "VW"[number]) for number, table in enumerate(tables) if dice.chance(0.25)]
    return [ask for ask in found if ask is not None]


# -- clauses


def _conditions(
    dice: Dice, places: Sequence[Place], rows: dict[str, tuple[Value, ...]], tied: Sequence[TableSide]
) -> list[Term]:
    found: list[Term | None] = []
    for place in places:
        if dice.chance(0.25):
            found.append(clauses.predicate(dice, place.values))
    if len(places) > 1 and dice.chance(0.3):
        one, other = (places[int(i)] for i in dice.rng.permutation(len(places))[:2])
        found.append(clauses.pair_condition(dice, one.values, other.values))
    for table in tied:
        if not table.outer and dice.chance(0.06):
            place = next(place for place in places if place.alias == table.to)
            found.append(_apart(dice, place.values, rows[table.alias]))
    return [term for term in found if term is not None]


def _apart(dice: Dice, record: Sequence[Value], row: Sequence[Value]) -> Term | None:
    """A condition of a record and its row of a table that is neither an equality nor a bound."""
    numbers = [[v for v in side if v.kind is Kind.INTEGER and not v.whole] for side in (record, row)]
    if not all(numbers):
        return None
    one, other = (dice.pick(side) for side in numbers)
    return terms.compare("<>", one.term, other.term)


def _grouped(dice: Dice, query: JoinSpec, places: Sequence[Place], rows: dict[str, tuple[Value, ...]]) -> JoinSpec:
    sides = [place.values for place in places]
    values = [one for side in (*sides, *rows.values()) for one in side]
    keys = clauses.keys(dice, values, sides)
    found = clauses.aggregates(dice, values, sides, [place.alias for place in places])
    specs = [KeySpec(key.term, f"g{i}" if dice.chance(0.3) or _awkward(key) else None) for i, key in enumerate(keys)]
    groups = [replace(key, term=terms.grouped(key.term, spec.name)) for key, spec in zip(keys, specs, strict=True)]
    shown = [i for i in range(len(groups)) if dice.chance(0.85)]
    outputs = [_key_output(dice, i, groups[i], keys[i], specs[i]) for i in shown]
    outputs = list({output.name: output for output in outputs}.values())
    outputs += [OutputSpec(f"o{i}", one.term) for i, one in enumerate(found)]
    if not keys and dice.chance(0.1):
        outputs.append(OutputSpec("ts", terms.window_end(f"{places[0].alias}.ts"), f"{places[0].alias}.ts"))
    order, limit = _ordered(dice, groups, found)
    having = clauses.having(dice, [g for g in groups if g.literals], found)
    return replace(query, outputs=tuple(outputs), keys=tuple(specs), having=having, order=order, limit=limit)


def _awkward(key: Value) -> bool:
    """A prefix is called by a name: select list and GROUP BY may not both spell it out."""
    return not key.literals


def _key_output(dice: Dice, number: int, group: Value, key: Value, spec: KeySpec) -> OutputSpec:
    if spec.name is not None:
        return OutputSpec(spec.name, group.term, spec.name)
    if key.column and dice.chance(0.3):
        return OutputSpec(key.column, group.term, key.term.text)
    return OutputSpec(f"x{number}", group.term)


def _ordered(dice: Dice, groups: Sequence[Value], found: Sequence[Value]) -> tuple[tuple[OrderSpec, ...], int | None]:
    """With a limit only what all engines compute alike decides."""
    if not dice.chance(0.25):
        return (), None
    usable = [one for one in (*groups, *found) if not (one.term.aggregates and (one.odd or not one.literals))]
    usable = usable or [count_value(terms.aggregate("count"))]
    order = tuple(OrderSpec(one.term, dice.chance(0.6)) for one in dice.some(usable, 2))
    return order, dice.pick(LIMITS)


# -- one row per pair


def _per_record(dice: Dice, query: JoinSpec, places: Sequence[Place], tables: dict[str, DrawnTable]) -> JoinSpec:
    if len(places) == 1 and dice.chance(0.6):
        return replace(query, keys=None, outputs=_star(places, tables), star=True)
    values = [one for place in places for one in place.values]
    values += [one for alias, table in tables.items() for one in _values(alias, table.columns, True)]
    chosen = dice.some([one for one in values if not one.whole], 4) or values[:1]
    outputs = tuple(OutputSpec(f"x{i}", one.term) for i, one in enumerate(chosen))
    limit = dice.pick(LIMITS) if dice.chance(0.15) else None
    return replace(query, keys=None, outputs=outputs, limit=limit)


def _star(places: Sequence[Place], tables: dict[str, DrawnTable]) -> tuple[OutputSpec, ...]:
    """Sides in the order of FROM; a repeated name becomes alias.name."""
    sides: list[tuple[str, str, Term]] = []
    for place in places:
        sides.append((place.alias, "ts", terms.column(place.alias, "ts", TIMESTAMP)))
        sides += [(place.alias, c.name, terms.column(place.alias, c.name, c.type)) for c in place.source.columns]
    for alias, table in tables.items():
        sides += [(alias, c.name, terms.column(alias, c.name, c.type)) for c in table.columns]
    names = [name for _, name, _ in sides]
    return tuple(OutputSpec(f"{alias}.{name}" if names.count(name) > 1 else name, term) for alias, name, term in sides)
