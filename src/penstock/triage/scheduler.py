"""The scheduler: which records the next micro-batch takes, and of which of them one in 2^k is read.

Records are taken in the order of their deadlines (`deadlines`), as many as a batch may hold:

* its end leaves each later deadline the time that its records need at their greatest step;
* it is short enough that a burst that begins meanwhile can still be met (`span`);
* while a step is not forced yet, but will be if records go on coming like this, it is short, too: what is read in full
  then is paid for by what comes behind it.

Streams without promises get what time is left when all others are read in full. No engine, no clock: `now` comes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from penstock.triage.deadlines import Outlook, outlook
from penstock.triage.draft import filled
from penstock.triage.owed import shared
from penstock.triage.plan import Costs, Due, Mode, Plan, Queue, fixed_step
from penstock.triage.ranges import ranged

__all__ = ["Costs", "Due", "Mode", "Plan", "Queue", "fixed_step", "planned"]

LEAST = 2  # batches' worth of work that a batch waits for
CALM, FULL = 0.75, 0.9  # the share of the time that the unread records of a burst to come may take
GROWTH = 1.5  # how much more may come than now
FILLED = 0.9  # of the most that a batch may read: more would hardly go into it
SHORT = 3  # the same, of the span of a batch where a promise leaves less


def planned(
    now: float, queues: Sequence[Queue], costs: Costs, mode: Mode, batch_rows: int, fixed: int = 0
) -> Plan | None:
    """The next batch, or None: nothing is worth one yet, look again in some milliseconds.

    At most `batch_rows` records are read. `fixed` is the k of `summarise` (`fixed_step`).
    """
    promised = [queue for queue in queues if queue.promised]
    span = _span(now, promised, costs)
    view = outlook(now, promised, costs, mode, batch_rows, fixed, span)
    draft = filled(view, costs, span, batch_rows, sum(queue.rate for queue in promised))
    slack = min(draft.exact, default=inf)
    left = min(slack, span - costs.batch - draft.spent, LEAST * costs.batch if draft.closes else inf)
    owed = shared(now, [queue for queue in queues if not queue.promised], costs.sure, left, batch_rows - draft.read)
    worth = draft.spent + owed.spent
    if not draft.closes and any(now < one.ready < now + costs.batch for one in view.segments):
        return None  # a batch that waits for the windows that are about to end saves one
    enough = worth >= LEAST * costs.batch or draft.read + owed.read >= FILLED * batch_rows
    if not (draft.closes or owed.closes or enough or (worth > 0 and (_pressed(now, view, costs) or _overfull(view)))):
        return None
    steps = {**{q.stream: draft.taken.get(q.stream, []) for q in promised}, **owed.taken}
    ranges = {q.stream: ranged(q.start, steps[q.stream], mode is Mode.DROP) for q in queues if q.stream in steps}
    return Plan(ranges, slack - owed.spent, any(one < 0 for one in draft.least))


def _span(now: float, queues: Sequence[Queue], costs: Costs) -> float:
    """How long a batch may take: if a burst begins with it, the windows' records can still be left unread in time.

    The less time unread records leave, the longer it is all the same: batches must not take all of that.
    """
    load = costs.sure.skip * sum(queue.rate for queue in queues)
    ahead = [due for queue in queues for due in queue.dues if due.ready > now]
    free = 1 - min(max(GROWTH * load, CALM), FULL)
    longest = min((due.due - due.ready + free * (due.ready - now) for due in ahead), default=inf)
    needed = SHORT * costs.batch / max(1 - load, 1 - FULL)
    return max(needed, longest - costs.sure.batch - costs.sure.close)


def _overfull(view: Outlook) -> bool:
    """Whether windows could close, but for records that are too many for a batch: none of them leaves by waiting."""
    return any(one.closes and one.ready == -inf for one in view.segments)


def _pressed(now: float, view: Outlook, costs: Costs) -> bool:
    """Whether what waits cannot all be read once the windows can close: better now, while there is nothing to do."""
    work = 0.0
    for one in view.segments:
        work += (one.records + one.coming) * costs.sure.full
        if one.ready > now and work > one.due - one.ready - costs.sure.batch - costs.sure.close:
            return view.forced > 0 or work >= costs.batch / LEAST
    return False
