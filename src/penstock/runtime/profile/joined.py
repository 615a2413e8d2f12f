"""What is known of joins: counted by merge tasks while they run, estimated of samples before.

Merge tasks tell what a window holds (`runtime.merge.counting`). What comes in a slide follows from the window's
range, and what a pane has of its groups from those of the window, as if each group were as likely in any record.

Before the first batch there are samples of the streams: the records of a pane, of how many keys and groups. How keys of
two streams meet is not known then, as samples have codes of their own; the stream with the fewest keys is taken to have
them in common with the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from penstock.logical.query import Join, Query, Side, side_name
from penstock.relations.component import Component, sieve_component
from penstock.relations.joining import key_relation
from penstock.relations.relation import Relation, wanted_of
from penstock.runtime.merge.items import TOGETHER
from penstock.runtime.profile.survey import CountedGroups, Survey
from penstock.sharing.joins.statistics import JoinStatistics, SideFigures, contained, distinct
from penstock.sharing.joins.stored import side_groups
from penstock.state.protocol import JoinCounts, TaskReport

COLUMN = 4.0  # bytes of a column in segments, about: integers stand there relative to the least
SO_FAR = 0.5  # of the stream: what a window until now holds on average
MOST_SIDES = 8  # of which the combinations of all plans are estimated


@dataclass(frozen=True)
class Sampled:
    """A sample of a stream with these relations, from a first batch of so many `rows`, of so many in `all`."""

    relations: tuple[Relation, ...]
    survey: Survey
    rows: float
    all: float


def measured_join(
    query: Query,
    join: Join,
    stored: Sequence[str],
    found: JoinCounts,
    tasks: Iterable[TaskReport],
    exact: Sequence[bool],
) -> JoinStatistics | None:
    """By what merge tasks found of a join, and the tasks of the same batch; `stored` as `SideFigures`, `exact` are the
    sides that are early now."""
    held, mine = found.held, [task for task in tasks if task.rows]
    if held is None:
        return None
    sides = []
    for side, relation, kept, counts, early in zip(
        join.sides, side_groups(query, join), stored, held.sides, exact, strict=True
    ):
        task = _task_records(side_name(query.name, side.alias), mine)
        made = _side(side, relation, kept, counts.records, counts.groups, counts.codes, task)
        known = early and found.living  # rows as they are stored were counted
        sides.append(replace(made, rows=max(counts.rows, counts.groups)) if known else made)
    together = max(1, found.instants)
    made_groups = max(1.0, found.made / together)
    return JoinStatistics(
        tuple(sides), held.pairs, held.keys, _states(query), made_groups, together, found.living, measured=True
    )


def _task_records(name: str, tasks: Iterable[TaskReport]) -> float:
    """Records of a task that a side takes."""
    counts = [task.account.queries[name].exact for task in tasks if name in task.account.queries]
    return sum(counts) / len(counts) if counts else 0.0


def _side(
    side: Side, relation: Relation, stored: str, held: float, groups: float, codes: float, task: float
) -> SideFigures:
    """Rows of an early side follow from its groups; a part of the window is a pane, or what a task has of one."""
    window = side.window
    endless = window.landmark or window.counted or window.whole
    slides = 1.0 if endless else window.length / window.slide
    panes = 1.0 if endless else float(window.reach)
    pane = held / panes
    part = max(1.0, min(pane, task) if task else pane)
    return SideFigures(
        records=min(held, task) if endless and task else held / slides,
        held=held,
        groups=groups,
        rows=min(held, max(groups, held / part * distinct(part, groups, held))),
        panes=panes,
        codes=codes,
        kept=len(relation.states),
        width=COLUMN * (1 + len(relation.attributes) + len(relation.states)),
        stored=stored,
    )


def _states(query: Query) -> int:
    """Of a joined group, and of finer ones for its details."""
    return sum(len(one.states) for one in wanted_of(query).relations)


# -- of samples


def estimated_join(
    query: Query, join: Join, stored: Sequence[str], samples: Mapping[str, Sampled], parallelism: int
) -> JoinStatistics | None:
    """By samples of the streams; None where there is none of some stream."""
    found, together = [], float(TOGETHER)
    for side, relation, kept in zip(join.sides, side_groups(query, join), stored, strict=True):
        sample = samples.get(side.stream)
        if sample is None or not _covers(sample.survey, relation):
            return None
        found.append(_sampled_side(side, relation, kept, sample, parallelism))
        together = min(together, max(1.0, sample.rows / max(1.0, found[-1][0].records) / parallelism))
    if any(not side.held for side, _ in found):
        return None
    sides, keys = [side for side, _ in found], [many for _, many in found]
    bits = product((False, True), repeat=len(sides)) if len(sides) <= MOST_SIDES else ()
    pairs = {
        "".join("01"[one] for one in early): contained(
            keys, [side.groups if one else side.held for one, side in zip(early, sides, strict=True)]
        )
        for early in bits
    }
    living = len(sides) == 2 and not join.tables and not join.tests and join.pairs is None
    return JoinStatistics(tuple(sides), pairs, min(keys), _states(query), together=together, living=living)


def _covers(survey: Survey, relation: Relation) -> bool:
    return {part.component for part in relation.parts} <= survey.layout.places.keys()


def _sampled_side(
    side: Side, relation: Relation, stored: str, sample: Sampled, parallelism: int
) -> tuple[SideFigures, float]:
    """The figures of a side, and the keys that its window has."""
    survey, window, sieve = sample.survey, side.window, _sieve(sample, relation)
    groups = survey.counted_by(relation.parts[1:], sieve)
    part = groups.tuples / max(1, survey.tuples)  # of the records are for it
    if window.counted:
        held = float(min(window.range or 0, sample.all * part))
    elif window.landmark or window.whole:
        held = sample.all * part * (SO_FAR if window.landmark else 1.0)
    else:
        held = min(sample.all * part, window.reach * sample.rows * part / max(1, survey.spread(relation.pane, sieve)))
    different = _extrapolated(groups, held)
    if not relation.attributes[: len(side.key)]:
        keys = 1.0
    else:
        keys = _extrapolated(survey.counted_by(key_relation(relation, side.key).parts[1:], sieve), held)
    rest = [attribute for attribute in relation.attributes if attribute not in side.key]
    codes = _extrapolated(survey.counted_by(key_relation(relation, rest).parts[1:], sieve), held) if rest else 1.0
    return _side(side, relation, stored, held, different, codes, sample.rows * part / parallelism), keys


def _extrapolated(counted: CountedGroups, records: float) -> float:
    return counted.extrapolated(records / counted.tuples) if counted.tuples else 0.0


def _sieve(sample: Sampled, relation: Relation) -> Component | None:
    """What says of the sample's records whether a side takes them; a sieve is called by a relation that takes the same
    ones."""
    choice = relation.choice.where, relation.choice.gap
    same = (sieve_component(one.name) for one in sample.relations if (one.choice.where, one.choice.gap) == choice)
    return next((name for name in same if name in sample.survey.layout.places), None)
