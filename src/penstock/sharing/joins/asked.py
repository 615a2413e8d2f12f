"""What a user asks the plans of joins to be: `--joins auto`, `early`, `late`, or bits as in the paper's EAP10."""

from __future__ import annotations

from penstock.errors import ConfigError
from penstock.logical.query import Join, Query, QuerySet
from penstock.relations.sides import is_counted
from penstock.sharing.joins.choice import ASKED, UNKNOWN, JoinChoice
from penstock.sharing.joins.plans import Early, all_early, joins_of

AUTO, EARLY, LATE = "auto", "early", "late"
KNOWN = (AUTO, EARLY, LATE)


def check_word(asked: str) -> None:
    """Refuse what is neither a word nor bits."""
    if asked not in KNOWN and not _is_bits(asked):
        raise ConfigError(
            f"unknown joins '{asked}'",
            f"use one of {', '.join(KNOWN)}, or a bit for each stream of a join in the order of FROM, 1 for early: 10",
        )


def check_asked(asked: str, app: QuerySet) -> None:
    """Refuse bits that fit no join of the app."""
    if not _is_bits(asked):
        return
    joins = joins_of(app)
    if not joins:
        raise ConfigError(f"--joins {asked}: the app has no join", "leave it out")
    if not any(len(join.sides) == len(asked) for _, join in joins):
        each = ", ".join(f"{query.name} joins {_streams(len(join.sides))}" for query, join in joins)
        raise ConfigError(
            f"--joins {asked} is for joins of {_streams(len(asked))}, and there is none",
            f"give a bit for each stream in the order of FROM: {each}",
        )
    for query, join in joins:
        if len(join.sides) == len(asked):
            _check_counted(asked, query, join)


def _check_counted(asked: str, query: Query, join: Join) -> None:
    for bit, side in zip(asked, join.sides, strict=True):
        if bit == "1" and is_counted(side):
            raise ConfigError(
                f"--joins {asked}: {side.alias} of query '{query.name}' is the last records of its stream, which are "
                "stored one by one",
                "give 0 for it",
            )


def _streams(count: int) -> str:
    return "1 stream" if count == 1 else f"{count} streams"


def _is_bits(asked: str) -> bool:
    return bool(asked) and set(asked) <= set("01")


def asked_plan(asked: str, join: Join) -> Early | None:
    """The plan that is asked for; None: it is to be chosen."""
    if asked == EARLY:
        return all_early(join)
    if asked == LATE:
        return (False,) * len(join.sides)
    return tuple(bit == "1" for bit in asked) if _is_bits(asked) and len(asked) == len(join.sides) else None


def unpriced_choices(asked: str, app: QuerySet) -> dict[str, JoinChoice]:
    """By query: the plan that is asked for, else what can be aggregated early is. That never takes much more than
    another plan, which cannot be said of a late one."""
    found = {}
    for query, join in joins_of(app):
        plan, aliases = asked_plan(asked, join), tuple(side.alias for side in join.sides)
        why = UNKNOWN if plan is None else ASKED
        found[query.name] = JoinChoice(query.name, aliases, all_early(join) if plan is None else plan, why)
    return found
