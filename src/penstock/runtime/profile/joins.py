"""What joining costs on this machine (`sharing.joins.cost.JoinCosts`)."""

from __future__ import annotations

from penstock.sharing.joins.cost import USUAL, JoinCosts


def calibrated_joins() -> JoinCosts:
    """The unit costs of joins."""
    return USUAL
