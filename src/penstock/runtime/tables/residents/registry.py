"""Residents by kind of table. The kinds themselves (`sharing.model.kinds.registry`) know nothing of compiled code."""

from __future__ import annotations

from penstock.runtime.tables.residents.direct import DirectResidents
from penstock.runtime.tables.residents.recent import RecentResidents
from penstock.runtime.tables.residents.residents import Residents
from penstock.runtime.tables.rows import Format
from penstock.sharing.model.kinds.direct import DIRECT
from penstock.sharing.model.kinds.lru import LRU
from penstock.sharing.plan import Table

RESIDENTS: dict[str, type[Residents]] = {DIRECT.name: DirectResidents, LRU.name: RecentResidents}


def residents(table: Table, form: Format) -> Residents:
    """Those of an empty table of the plan."""
    return RESIDENTS[table.kind](table, form)
