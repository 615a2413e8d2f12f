"""Plans of joins while an app runs: chosen by a first sample, and again by what merge tasks count.

samples of the streams ──► estimated ──► first choice ─┐
each batch: merge tasks, tasks ──► measured ──► cheaper by enough? ──► next version
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.logical.query import Join, Query, QuerySet
from penstock.runtime.profile.joined import Sampled, estimated_join, measured_join
from penstock.sharing.joins.asked import unpriced_choices
from penstock.sharing.joins.choice import ASKED, JoinChoice
from penstock.sharing.joins.choose import cheapest, repriced
from penstock.sharing.joins.cost import JoinCosts
from penstock.sharing.joins.plans import joins_of, plans_of, side_tables
from penstock.sharing.joins.statistics import JoinStatistics
from penstock.sharing.joins.stored import stored_anyway
from penstock.sharing.model.unit_costs import Costs
from penstock.state.protocol import JoinCounts, TaskReport

GAIN = 0.9  # of the old cost: what a new plan must promise to stay below
SWITCH = 5e6  # ns that a change may cost: a file, and windows that are made of rows of both kinds
LASTS = 8  # batches that a plan is expected to last
Known = Callable[[Query, Join, tuple[str, ...]], JoinStatistics | None]


@dataclass
class JoinPlanner:
    """`asked` is what `--joins` says; `samples` are those of the streams before the first batch, `chosen` the newest
    plans by query, and `costs` gives the unit costs of this machine."""

    asked: str
    costs: Callable[[], tuple[JoinCosts, Costs]]
    samples: dict[str, Sampled] = field(default_factory=dict)
    parallelism: int = 1
    chosen: dict[str, JoinChoice] = field(default_factory=dict)

    def choices(self, app: QuerySet) -> dict[str, JoinChoice]:
        """The plans of an app's joins: those that run, and of others the cheapest by the samples."""
        first = unpriced_choices(self.asked, app)
        self.chosen = self._priced(app, first | {name: self.chosen[name] for name in first if name in self.chosen})
        return self.chosen

    def _priced(self, app: QuerySet, choices: dict[str, JoinChoice]) -> dict[str, JoinChoice]:
        for query, join in joins_of(app):
            choice = choices[query.name]
            if choice.statistics is None:
                known = self._known(app, query, join, choices, self._estimated)
                if known is not None:
                    chosen = repriced if choice.why == ASKED else cheapest
                    choices[query.name] = chosen(choice, plans_of(join), known, *self.costs())
        return choices

    def _estimated(self, query: Query, join: Join, stored: tuple[str, ...]) -> JoinStatistics | None:
        return estimated_join(query, join, stored, self.samples, self.parallelism)

    def _known(
        self, app: QuerySet, query: Query, join: Join, choices: Mapping[str, JoinChoice], known: Known
    ) -> JoinStatistics | None:
        others = side_tables(choice for name, choice in choices.items() if name != query.name)
        return known(query, join, stored_anyway(app, query, join, others))

    def next(
        self,
        app: QuerySet,
        now: Mapping[str, JoinChoice],
        tasks: Sequence[TaskReport],
        counts: Sequence[JoinCounts],
    ) -> dict[str, JoinChoice]:
        """The joins with other plans from now on: cheaper ones, by what a batch has counted; and those that run."""
        choices = dict(now)
        for query, join in joins_of(app):
            mine = [one for one in counts if one.query == query.name]
            found = next((one for one in mine if one.held is not None), None)
            if found is not None and choices[query.name].why != ASKED:
                choices[query.name] = self._better(app, query, join, choices, tasks, mine, found)
        self.chosen = choices
        return choices

    def _better(
        self,
        app: QuerySet,
        query: Query,
        join: Join,
        choices: Mapping[str, JoinChoice],
        tasks: Sequence[TaskReport],
        mine: Sequence[JoinCounts],
        found: JoinCounts,
    ) -> JoinChoice:
        """The cheapest plan, if it is worth a change; else the one that runs, with what it costs now."""

        old = choices[query.name]

        def counted(query: Query, join: Join, stored: tuple[str, ...]) -> JoinStatistics | None:
            return measured_join(query, join, stored, found, tasks, old.early)

        known = self._known(app, query, join, choices, counted)
        assert known is not None
        best = cheapest(old, plans_of(join), known, *self.costs())
        stays = replace(best, early=old.early)
        if best.early == old.early or stays.priced is None or best.priced is None:
            return best
        slides = sum(one.instants for one in mine)
        gain = (stays.priced.cost - best.priced.cost) * slides
        worth = best.priced.cost <= GAIN * stays.priced.cost and gain * LASTS >= SWITCH
        return best if worth else stays
