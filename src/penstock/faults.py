"""Named points at which a test can disturb a process: `reach("manifest.write")` does nothing in production.

    PENSTOCK_FAULT=manifest.write:3               the third visit of that point in a process ends it, as `kill -9` would
    PENSTOCK_FAULT=source.read:2:raise=EIO        … raises that error of the system
    PENSTOCK_FAULT=sink.stage:1+:raise=ENOSPC     … every visit from the first on
    PENSTOCK_FAULT=source.read:1:stall=2.5        … sleeps for that many seconds

`PENSTOCK_FAULT_ONCE=FILE` disturbs only the first of several processes (the file marks that it happened). Tests use
this through `penstock.testing.faults`.

`PENSTOCK_DRAG=NS` has a task sleep so many nanoseconds for each record that it has read (`drag`): how much a run can do
is then known, whatever the machine, and overload can be tried.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import time
from dataclasses import dataclass

POINTS = (
    "driver.start",
    "source.read",
    "task.chunk",
    "segment.write",
    "segment.close",
    "batch.collected",
    "merge.block",
    "merge.write",
    "sink.stage",
    "compaction.start",
    "windows.write",
    "manifest.write",
    "manifest.written",
    "sink.publish",
    "sink.rename",
    "garbage.delete",
)
SELDOM = ("table.kept", "delays.write")  # points that few runs come to: random kills would miss
KILL, RAISE, STALL = "kill", "raise", "stall"
FORM = re.compile(r"(?P<point>[a-z.]+)(:(?P<visit>\d+)(?P<on>\+?))?(:(?P<action>kill|raise=[A-Z0-9]+|stall=[\d.]+))?")


@dataclass(frozen=True)
class FaultOrder:
    """What to do at which visit of a point; `onwards`: and at all later ones."""

    point: str
    visit: int = 1
    onwards: bool = False
    action: str = KILL
    argument: str = ""

    def due(self, visit: int) -> bool:
        return visit == self.visit or (self.onwards and visit > self.visit)


def parse_order(text: str) -> FaultOrder | None:
    """The order that PENSTOCK_FAULT gives; None if it gives none.

    >>> parse_order("source.read:3+:raise=EIO")
    FaultOrder(point='source.read', visit=3, onwards=True, action='raise', argument='EIO')
    """
    if not text:
        return None
    found = FORM.fullmatch(text)
    action, _, argument = ((found["action"] if found else None) or KILL).partition("=")
    known = found is not None and found["point"] in (*POINTS, *SELDOM)
    if found is None or not known or (action == RAISE and not hasattr(errno, argument)):
        raise ValueError(f"PENSTOCK_FAULT={text} is not of the form POINT[:VISIT[+]][:kill|raise=ERRNO|stall=SECONDS]")
    return FaultOrder(found["point"], int(found["visit"] or 1), bool(found["on"]), action, argument)


_order = parse_order(os.environ.get("PENSTOCK_FAULT", ""))
_visits = 0
_drag = float(os.environ.get("PENSTOCK_DRAG", "0")) / 1e9


def drag(records: int) -> None:
    """Take longer over these records, if that was asked for."""
    if _drag > 0:
        time.sleep(records * _drag)


def reach(point: str) -> None:
    """Be disturbed here if this visit was asked to."""
    global _visits
    if _order is None or point != _order.point:
        return
    _visits += 1
    if _order.due(_visits) and _first(os.environ.get("PENSTOCK_FAULT_ONCE", "")):
        _obey(_order)


def _obey(order: FaultOrder) -> None:
    if order.action == RAISE:
        number = getattr(errno, order.argument)
        raise OSError(number, os.strerror(number))
    if order.action == STALL:
        time.sleep(float(order.argument))
    else:
        os.kill(os.getpid(), signal.SIGKILL)


def _first(marker: str) -> bool:
    if not marker:
        return True
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True
