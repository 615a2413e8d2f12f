"""Random SELECTs: grouped, DISTINCT, one row per record; over a stream or over the results of another SELECT.

Input (columns, time, extent) ──► random_select ──► Made (text, columns of the result) ──► as_input ──► Input
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.logical.types import Kind
from penstock.testing.apps.random_terms import LITERALS, PREFIX_LENGTHS, RandomTerm, random_exact
from penstock.testing.apps.random_text import random_aggregate, random_having, random_output, random_where
from penstock.testing.apps.random_windows import Extent, WindowText, random_window
from penstock.testing.apps.randomness import Dice

MOST_RESULTS = 20_000  # rows of a query that another one reads
MOST_SHOWN = 40_000  # rows of a query with one row per record
LIMITS = (1, 1, 2, 3, 10, 100)


@dataclass(frozen=True)
class RandomInput:
    """What a SELECT reads: `terms` are its columns, `whole` those that are only aggregated as they stand."""

    name: str
    terms: tuple[RandomTerm, ...]
    time: str
    extent: Extent
    whole: tuple[RandomTerm, ...] = ()
    mark: str = ""  # before the names of a result's columns, so that each level of queries has its own

    @property
    def timed(self) -> tuple[RandomTerm, ...]:
        """The columns and the time, which results of a query also call ts."""
        if any(term.text == "ts" for term in self.terms):
            return self.terms
        return (*self.terms, RandomTerm("ts", Kind.TIMESTAMP, LITERALS[Kind.TIMESTAMP], plain=True))


@dataclass(frozen=True)
class Made:
    """A SELECT: its text, the columns of its result, and how many rows that can have."""

    text: str
    outputs: tuple[RandomTerm, ...]
    window: WindowText
    rows: int


@dataclass(frozen=True)
class _Key:
    """How GROUP BY, the select list and other clauses write a grouping attribute."""

    group: str
    select: str
    name: str
    term: RandomTerm | None
    shown: bool = False  # must be selected


def random_select(dice: Dice, source: RandomInput) -> Made:
    if dice.chance(0.12):
        made = _ungrouped(dice, source)
        if made is not None:
            return made
    return _grouped(dice, source)


def as_input(made: Made, name: str, source: RandomInput) -> RandomInput:
    """The result of a SELECT from `source` as a stream."""
    extent = source.extent
    reach = extent.reach + 2 * made.window.length  # windows end after their records
    derived = Extent(made.rows, reach, max(made.rows, extent.pairs), of_rows=False)
    return RandomInput(name, made.outputs, "window_end", derived, mark=f"{source.mark}x")


# -- one row per group


def _grouped(dice: Dice, source: RandomInput) -> Made:
    window = random_window(dice, source.extent, source.time, f"{source.mark}tb")
    keys = _keys(dice, source)
    plain = [replace(key.term, text=key.name) for key in keys if key.term is not None and key.term.literals]
    # Sums over blocks of the wide column only fit where no window cuts a block.
    whole = () if window.of_rows else source.whole
    aggregates = [random_aggregate(dice, source.timed, whole) for _ in range(dice.between(0, 4))]
    shown = [(key.select, key.name, key.term) for key in keys if key.shown or dice.chance(0.8)]
    columns = [_column(text, name, term) for text, name, term in shown]
    if window.bucket and dice.chance(0.7):
        columns.append((window.bucket, RandomTerm(window.bucket, Kind.INTEGER, LITERALS[Kind.INTEGER], plain=True)))
    others = list(aggregates)
    if dice.chance(0.3) or not (columns or others):
        others.append(random_output(dice, aggregates, [key for key in plain if key.plain]))
    columns += [_output(o, f"{source.mark}o{i}", window) for i, o in enumerate(others)]
    having = random_having(dice, aggregates, plain)
    groups = [*([window.group] if window.group else []), *(key.group for key in keys)]
    ordered, limit = _ordered(dice, [*(term for _, term in columns), *aggregates, *plain])
    clauses = [
        f"SELECT {', '.join(text for text, _ in columns)}",
        f"FROM {source.name}{window.bracket}",
        _clause("WHERE", random_where(dice, (*source.terms, *source.timed))),
        f"GROUP BY {', '.join(groups)}" if groups else "",
        _clause("HAVING", having),
        window.every,
        ordered,
    ]
    return _made(clauses, [term for _, term in columns], window, limit)


def _keys(dice: Dice, source: RandomInput) -> list[_Key]:
    """Up to five attributes; an address may come whole and by several prefixes, any column inside expressions."""
    candidates: list[_Key] = []
    for term in source.timed if dice.chance(0.1) else source.terms:
        if not term.exact:
            continue
        candidates.append(_plain_key(term))
        if term.kind is Kind.INET:
            for length in dice.some(PREFIX_LENGTHS, 2):
                alias = f"{source.mark}{term.text}_{length}"
                candidates.append(_Key(f"{term.text}/{length} AS {alias}", alias, alias, None))
    if any(term.exact for term in source.terms):
        terms = {term.text: term for term in (random_exact(dice, source.timed) for _ in range(dice.between(0, 3)))}
        candidates += [_computed_key(dice, f"{source.mark}k{i}", term) for i, term in enumerate(terms.values())]
    return dice.some(candidates, 5)


def _plain_key(term: RandomTerm) -> _Key:
    return _Key(term.text, term.text, term.text, term)


def _computed_key(dice: Dice, name: str, term: RandomTerm) -> _Key:
    """An expression named in GROUP BY, named in the select list, or written twice."""
    match dice.between(0, 2):
        case 0:
            return _Key(f"{term.text} AS {name}", name, name, replace(term, text=name, plain=True))
        case 1:
            return _Key(name, term.text, name, replace(term, text=term.text), shown=True)
        case _:
            return _Key(term.text, term.text, name, term, shown=True)


def _column(text: str, name: str, term: RandomTerm | None) -> tuple[str, RandomTerm]:
    """An entry of the select list, and the column that it makes of the result; of a prefix that is text."""
    column = term or RandomTerm(name, Kind.STRING, ("'10.0.0.0/24'", "'::/0'"))
    return (text if text == name else f"{text} AS {name}"), replace(column, text=name, plain=True)


def _output(term: RandomTerm, name: str, window: WindowText) -> tuple[str, RandomTerm]:
    """Sums over landmark windows hold a record many times: summed again they might not fit."""
    again = term.summable and not (window.landmark and term.text.startswith("sum"))
    column = replace(term, text=name, plain=True, summable=again, tame=term.tame and again, small=False)
    return f"{term.text} AS {name}", column


# -- one row per record, or per distinct one


def _ungrouped(dice: Dice, source: RandomInput) -> Made | None:
    distinct = dice.chance(0.5)
    usable = [term for term in source.timed if term.exact]
    window = random_window(dice, source.extent, source.time)
    if window.bucket or window.pairs > MOST_SHOWN:
        return None
    if not distinct and not source.mark and dice.chance(0.3):
        columns = [(t.text, t) for t in (*source.timed, *source.whole)]
        chosen = "*"
    else:
        terms = [_attribute(dice, usable) for _ in range(dice.between(1, 4))]
        names = [f"{source.mark}o{i}" for i in range(len(terms))]
        columns = [_column(t.text, name, t) for t, name in zip(terms, names, strict=True)]
        chosen = ", ".join(text for text, _ in columns)
    ordered, limit = _ordered(dice, [term for _, term in columns])
    clauses = [
        f"SELECT {'DISTINCT ' if distinct else ''}{chosen}",
        f"FROM {source.name}{window.bracket}",
        _clause("WHERE", random_where(dice, source.timed)),
        window.every,
        ordered,
    ]
    outputs = [replace(t, summable=t.summable and t.tame) for _, t in columns]
    return _made(clauses, outputs, window, limit)


def _attribute(dice: Dice, terms: Sequence[RandomTerm]) -> RandomTerm:
    return dice.pick(terms) if dice.chance(0.6) else random_exact(dice, terms)


# -- clauses


def _made(clauses: list[str], outputs: list[RandomTerm], window: WindowText, limit: int | None) -> Made:
    rows = window.pairs if limit is None else min(window.pairs, limit * window.windows)
    return Made("\n  ".join(clause for clause in clauses if clause), tuple(outputs), window, rows)


def _clause(word: str, text: str | None) -> str:
    return f"{word} {text}" if text else ""


def _ordered(dice: Dice, terms: Sequence[RandomTerm]) -> tuple[str, int | None]:
    """ORDER BY and LIMIT; with a limit only what all engines compute alike decides."""
    limit = dice.pick(LIMITS) if dice.chance(0.15) else None
    usable = [term.text for term in terms if term.exact or limit is None]
    entries = [f"{text}{dice.pick(('', ' ASC', ' DESC', ' DESC'))}" for text in dice.some(usable, 3)]
    order = f"ORDER BY {', '.join(entries)}" if entries and (limit is not None or dice.chance(0.05)) else ""
    return " ".join(part for part in (order, "" if limit is None else f"LIMIT {limit}") if part), limit
