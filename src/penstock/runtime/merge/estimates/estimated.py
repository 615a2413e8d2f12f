"""What finishing a query needs where a burst may have left records unread: its groups twice, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.aggregates.base import FinishedValues
from penstock.logical.expressions import Aggregate
from penstock.runtime.merge.estimates.errors import Errors
from penstock.state.segments.groups import Groups


@dataclass(frozen=True)
class Estimated:
    """`read` are the groups of the records that were read, with their `details`; `whole` the same groups with each
    record as often as it stands for, the same object where all were read."""

    read: Groups
    details: Mapping[Aggregate, Callable[[], FinishedValues]]
    whole: Groups
    errors: Errors
