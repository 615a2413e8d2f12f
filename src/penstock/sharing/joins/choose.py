"""The cheapest plan of a join: all plans are priced up to four streams; beyond, one stream after the other becomes
early, the one that saves most first, while it saves anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from penstock.sharing.joins.choice import CHEAPEST, ESTIMATED, JoinChoice
from penstock.sharing.joins.cost import JoinCosts, PricedPlan, priced
from penstock.sharing.joins.plans import Early
from penstock.sharing.joins.statistics import FREE, JoinStatistics
from penstock.sharing.model.unit_costs import Costs

MOST = 4  # streams of which any may be early or late, up to which all plans are priced


def considered(plans: Sequence[Early], known: JoinStatistics, costs: JoinCosts, units: Costs) -> tuple[PricedPlan, ...]:
    """The plans that were priced, by their cost. A side whose groups are stored anyway is early in all of them."""
    free = [side.stored == FREE for side in known.sides]
    possible = [plan for plan in plans if all(early or not given for early, given in zip(plan, free, strict=True))]

    def price(plan: Early) -> PricedPlan:
        return priced(plan, known, costs, units)

    chosen = possible if len(possible) <= 1 << MOST else _greedily(possible, price)
    return tuple(sorted(map(price, chosen), key=lambda one: one.cost))


def _greedily(plans: Sequence[Early], price: Callable[[Early], PricedPlan]) -> list[Early]:
    """The steps from the plan with the fewest early sides on, and all that were looked at for the last one."""
    possible, now = set(plans), min(plans, key=sum)
    seen = {now}
    while True:
        steps = [(*now[:n], True, *now[n + 1 :]) for n, early in enumerate(now) if not early]
        steps = [step for step in steps if step in possible]
        seen.update(steps)
        best = min(steps, key=lambda step: price(step).cost, default=now)
        if price(best).cost >= price(now).cost:
            return sorted(seen)
        now = best


def cheapest(
    choice: JoinChoice, plans: Sequence[Early], known: JoinStatistics, costs: JoinCosts, units: Costs
) -> JoinChoice:
    """The same join with its cheapest plan."""
    found = considered(plans, known, costs, units)
    why = CHEAPEST if known.measured else ESTIMATED
    return replace(choice, early=found[0].early, why=why, considered=found, statistics=known)


def repriced(
    choice: JoinChoice, plans: Sequence[Early], known: JoinStatistics, costs: JoinCosts, units: Costs
) -> JoinChoice:
    """The same plan with its alternatives, by newer figures."""
    return replace(choice, considered=considered(plans, known, costs, units), statistics=known)
