"""How much of a parametrized test the quick suite runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def quick_and(quick: Iterable[Any], slow: Iterable[Any]) -> list[Any]:
    """Values for `parametrize`: those of `slow` are for `make test-all` only."""
    return [*quick, *(pytest.param(value, marks=pytest.mark.slow) for value in slow)]
