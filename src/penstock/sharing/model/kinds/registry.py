"""All kinds of tables of bounded size, by name: what plans, options and `explain` know them by.

Leaves are no such kind: they have no bound.  They have a name of their own (`EXACT`), for what explains a plan.
"""

from __future__ import annotations

from penstock.errors import ConfigError
from penstock.sharing.model.kinds.direct import DIRECT
from penstock.sharing.model.kinds.kind import Replacement, TableKind
from penstock.sharing.model.kinds.lru import LRU

KINDS = (DIRECT, LRU)
EXACT = "exact"  # a leaf that finds or makes the group of every record

_KINDS = {kind.name: kind for kind in KINDS}
_REPLACEMENTS = {one.name: (kind, one) for kind in KINDS for one in kind.replacements}


def kind_named(name: str) -> TableKind:
    if name not in _KINDS:
        raise ConfigError(f"no kind of table is named '{name}'", f"use one of {', '.join(_KINDS)}")
    return _KINDS[name]


def kind_replacing(policy: str) -> TableKind:
    """The kind of table that replaces its entries so."""
    return _replacing(policy)[0]


def replacement_named(policy: str) -> Replacement:
    return _replacing(policy)[1]


def is_bounded(name: str) -> bool:
    """Whether tables of this name have a bound, or are leaves."""
    return name in _KINDS


def _replacing(policy: str) -> tuple[TableKind, Replacement]:
    if policy not in _REPLACEMENTS:
        raise ConfigError(f"no replacement is named '{policy}'", f"use one of {', '.join(_REPLACEMENTS)}")
    return _REPLACEMENTS[policy]
