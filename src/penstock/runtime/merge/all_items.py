"""All items of a batch: of queries on one stream, and of joins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from penstock.runtime.merge.items import Due, MergeItem, due_items
from penstock.runtime.merge.join.items import join_items
from penstock.runtime.merge.join.reading import JoinDue
from penstock.runtime.merge.rolling.items import rolled_items, rolled_up
from penstock.runtime.settings import TaskSettings
from penstock.sharing.model.closings import share_of
from penstock.state.protocol import Results

AnyDue = Due | JoinDue
NONE: Mapping[str, Results] = MappingProxyType({})


def items(
    dues: Iterable[AnyDue], settings: TaskSettings, parallelism: int, before: Mapping[str, Results] = NONE
) -> list[MergeItem]:
    """All items of a batch; `before` are the results of queries in the batches before it."""
    closed = list(dues)
    total = sum(int(one.rows.sum()) for one in closed)
    share = share_of(total, parallelism)

    def of(number: int, one: AnyDue) -> Iterator[MergeItem]:
        if isinstance(one, JoinDue):
            return join_items(number, one, settings, parallelism)
        if rolled_up(one):
            return rolled_items(number, one, settings, parallelism, before)
        return due_items(number, one, share, settings)

    return [item for number, one in enumerate(closed) for item in of(number, one)]
