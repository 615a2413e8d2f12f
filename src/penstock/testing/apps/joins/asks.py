"""Random subqueries of WHERE: EXISTS and IN, with and without NOT, over streams, results and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.testing.apps.joins import clauses
from penstock.testing.apps.joins.places import Place, join_key, ties_of
from penstock.testing.apps.joins.tables import DrawnTable
from penstock.testing.apps.joins.values import Value, value
from penstock.testing.apps.randomness import Dice
from penstock.testing.oracle.joins.spec import Ask, TableSide
from penstock.testing.oracle.joins.terms import Term, compare

Pair = tuple[Term, Term]


def ask_streams(
    dice: Dice, keys: Sequence[str], places: Sequence[Place], asked: Sequence[Place], rows: Mapping[str, Term]
) -> list[Ask]:
    """One for each stream that is asked; `rows` are columns of tables' rows that are called as a key, by that."""
    return [_of_stream(dice, keys, places, one, rows) for one in asked]


def _of_stream(dice: Dice, keys: Sequence[str], places: Sequence[Place], inner: Place, rows: Mapping[str, Term]) -> Ask:
    if dice.chance(0.3):  # names inside are the subquery's own first
        bare = tuple(replace(one, term=replace(one.term, text=one.column)) for one in inner.values)
        inner = replace(inner, values=bare)
    place, negated = dice.pick(places), dice.chance(0.5)
    used = list(keys) if dice.chance(0.6) else [dice.pick(keys)]
    if dice.chance(0.08):  # not correlated
        used = []
    pairs = [_pair(dice, dice.pick(places) if dice.chance(0.25) else place, inner, name, rows) for name in used]
    member = pairs.pop(dice.between(0, len(pairs) - 1)) if pairs and dice.chance(0.45) else None
    conditions = _conditions(dice, place, inner, bool(pairs) or (member is not None and not negated))
    return Ask(inner.alias, negated, inner.side, "", member, tuple(pairs), tuple(conditions))


def _pair(dice: Dice, place: Place, inner: Place, name: str, rows: Mapping[str, Term]) -> Pair:
    computed = dice.between(2, 6) if dice.chance(0.1) else None
    one, other = join_key(place, name, computed), join_key(inner, name, computed)
    if computed is None and name in rows and dice.chance(0.3):
        return rows[name], other
    return one, other


def _conditions(dice: Dice, place: Place, inner: Place, equal: bool) -> list[Term]:
    found: list[Term | None] = []
    if dice.chance(0.35):
        found.append(clauses.predicate(dice, inner.values))
    if equal and dice.chance(0.35):
        found.append(clauses.pair_condition(dice, place.values, inner.values))
    if dice.chance(0.15):
        found.append(clauses.predicate(dice, place.values))
    return [term for term in found if term is not None]


def ask_table(dice: Dice, places: Sequence[Place], table: DrawnTable, alias: str) -> Ask | None:
    """A table that some side has what it is tied to."""
    fitting = [p for p in places if table.stream in (None, p.source.name) and p.has(table.ties)]
    if not fitting or table.spec.longest:
        return None
    place, negated = dice.pick(fitting), dice.chance(0.5)
    ties = [tie for one in table.ties for tie in ties_of(dice, place, alias, table, one)]
    values: tuple[Value, ...] = tuple(value(alias, column, True) for column in table.columns)
    conditions = [compare(tie.operator, tie.record, tie.row) for tie in ties if tie.operator != "="]
    pairs: list[Pair] = [(tie.record, tie.row) for tie in ties if tie.operator == "="]
    member = pairs.pop() if pairs and dice.chance(0.45) else None
    if dice.chance(0.4):
        own = clauses.predicate(dice, values)
        conditions += [] if own is None else [own]
    if dice.chance(0.15):
        mine = clauses.predicate(dice, place.values)
        conditions += [] if mine is None else [mine]
    return Ask(alias, negated, None, table.spec.name, member, tuple(pairs), tuple(conditions))


def key_columns(tied: Sequence[TableSide]) -> dict[str, Term]:
    """Columns of rows that records are tied to by an equality, by the name of the record's."""
    found = {}
    for table in tied:
        for tie in table.ties:
            if tie.operator == "=":
                (use,) = tie.record.uses
                found[use.column] = tie.row
    return found
