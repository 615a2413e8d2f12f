"""Direct-mapped tables: one bucket for each hash, as in seed smap.

What collides with a resident takes its place (`EVICT`), or is passed on itself while the resident was met more often
(`KEEP`).  The second is better where flows are short.
"""

from __future__ import annotations

from penstock.sharing.model.kinds.kind import Replacement, TableKind
from penstock.sharing.model.unit_costs import Costs

EVICT, KEEP = "evict", "keep"
KEEP_BELOW = 1.3  # flow length under which the more frequent resident is kept (models.md, replacement by depth)


def _replacement(length: float) -> str:
    return KEEP if length < KEEP_BELOW else EVICT


DIRECT = TableKind(
    "direct",
    replacements=(
        Replacement(EVICT, "what collides takes the resident's place"),
        Replacement(KEEP, "a resident stays while it is met more often than what collides with it"),
    ),
    replacement=_replacement,
    links=0,
    probe=Costs.probe_at,
    curve=None,
    fills=False,
)
