"""Random expressions as SQL text: WHERE, HAVING and select lists over a random stream's columns.

Only well-conditioned columns are summed (see `random_values`): a sum beyond BIGINT would end the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.logical.types import Kind
from penstock.testing.random_values import RandomColumn
from penstock.testing.randomness import Dice

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
PATTERNS = ("%", "a%", "%b", "_", "host-1%", "%.example", "%é%", "", "h_st-%2%", "%x", "\\", "\\%", "a_b", "_%_")
NUMERIC = (Kind.INTEGER, Kind.DOUBLE)
COUNTS = ("0", "1", "1", "2", "3", "40")


def random_where(dice: Dice, columns: Sequence[RandomColumn]) -> str | None:
    """A predicate on tuples of random depth, or none."""
    usable = [column for column in columns if column.literals]
    if not usable or dice.chance(0.5):
        return None
    return _logic(dice, dice.pick((0, 0, 1, 1, 2, 3)), lambda: _predicate(dice, dice.pick(usable), usable))


def random_having(dice: Dice, aggregates: Sequence[str], keys: Sequence[tuple[str, RandomColumn]]) -> str | None:
    """A predicate on groups, or none; `keys` are plain columns by the name they go by."""
    if dice.chance(0.7):
        return None
    return _logic(dice, dice.pick((0, 0, 1, 2)), lambda: _group_predicate(dice, aggregates, keys))


def random_aggregate(dice: Dice, columns: Sequence[RandomColumn]) -> str:
    column = dice.pick(columns)
    choices = ["count(*)", f"count({column.name})"]
    if column.kind is not Kind.INET:  # the language has no least or greatest address yet
        choices += [f"min({column.name})", f"max({column.name})"]
    if column.kind in NUMERIC:
        choices.append(f"avg({column.name})")
    if column.summable:
        choices += [f"sum({column.name})"] * 3
    return dice.pick(choices)


def random_output(dice: Dice, aggregates: Sequence[str], keys: Sequence[tuple[str, RandomColumn]]) -> str:
    """An expression over aggregates and keys."""
    small = [name for name, column in keys if column.small]
    counted = [a for a in aggregates if a.startswith(("count", "avg"))] or ["count(*)"]
    ratios = [a for a in aggregates if a.startswith(("count", "avg", "sum"))] or ["count(*)"]
    choices = [
        f"{dice.pick(counted)} * {dice.between(-3, 9)}",
        f"{dice.pick(ratios)} / {dice.pick(counted)}",
        f"count(*) % {dice.between(0, 4)}",
        f"({dice.pick(counted)} + 1) / (count(*) - {dice.between(1, 3)})",
        f"-{dice.pick(counted)}",
    ]
    choices += [f"{name} % {dice.between(-3, 7)} + 1" for name in small]
    return dice.pick(choices)


def _logic(dice: Dice, depth: int, leaf: Callable[[], str]) -> str:
    if depth == 0:
        return leaf()
    match dice.between(0, 4):
        case 0:
            return f"NOT ({_logic(dice, depth - 1, leaf)})"
        case 1 | 2:
            return " AND ".join(f"({_logic(dice, depth - 1, leaf)})" for _ in range(dice.between(2, 3)))
        case _:
            return " OR ".join(f"({_logic(dice, depth - 1, leaf)})" for _ in range(dice.between(2, 3)))


def _predicate(dice: Dice, column: RandomColumn, columns: Sequence[RandomColumn]) -> str:
    name, literal = column.name, dice.pick(column.literals)
    choices = [f"{name} {dice.pick(COMPARISONS)} {literal}"] * 4
    choices += [f"{name} IS NULL", f"{name} IS NOT NULL", _membership(dice, column)]
    if column.kind is Kind.BOOLEAN:
        choices += [name, f"NOT {name}"]
    else:
        choices.append(f"{name} BETWEEN {literal} AND {dice.pick(column.literals)}")
    if column.kind is Kind.STRING:
        choices += [f"{name} {dice.pick(('LIKE', 'NOT LIKE'))} '{dice.pick(PATTERNS)}'"] * 3
    if column.kind in NUMERIC:
        choices += [_calculation(dice, column)] * 2
    alike = [other.name for other in columns if other.kind is column.kind]
    choices += [f"{name} {dice.pick(COMPARISONS)} {dice.pick(alike)}"]
    return dice.pick(choices)


def _membership(dice: Dice, column: RandomColumn) -> str:
    items = [dice.pick(column.literals) for _ in range(dice.between(1, 4))]
    if dice.chance(0.2):
        items.append("NULL")
    return f"{column.name} {dice.pick(('IN', 'NOT IN'))} ({', '.join(items)})"


def _calculation(dice: Dice, column: RandomColumn) -> str:
    number = str(dice.between(-5, 50))
    left = dice.pick(
        (
            f"{column.name} + {number}",
            f"{column.name} - {column.name}",
            f"{column.name} * {number}",
            f"{column.name} / {number}",
            f"{column.name} % {number}",
            f"{number} / {column.name}",
            f"({column.name} + {number}) * 2",
        )
    )
    return f"{left} {dice.pick(COMPARISONS)} {dice.pick(column.literals)}"


def _group_predicate(dice: Dice, aggregates: Sequence[str], keys: Sequence[tuple[str, RandomColumn]]) -> str:
    plain = [(name, column) for name, column in keys if column.literals]
    if plain and dice.chance(0.3):
        name, column = dice.pick(plain)
        return f"{name} {dice.pick(COMPARISONS)} {dice.pick(column.literals)}"
    counts = [a for a in aggregates if a.startswith("count")] or ["count(*)"]
    if dice.chance(0.3):
        return f"{dice.pick(list(aggregates) or counts)} IS {dice.pick(('', 'NOT '))}NULL"
    return f"{dice.pick(counts)} {dice.pick((*COMPARISONS, '>', '>='))} {dice.pick(COUNTS)}"
