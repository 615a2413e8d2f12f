"""What a chooser hands back: a configuration with its memory, and the way to it (`choice`, `aggregate_tree`)."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.sharing.graph.configuration import Configuration
from penstock.sharing.graph.grain import Grain


@dataclass(frozen=True)
class Step:
    """One phantom added (None: the start, without any) or, in a tree, deleted, and the cost after it."""

    added: Grain | None
    cost: float


@dataclass(frozen=True)
class Choice:
    """A configuration, the space of each of its nodes (0: no table), its cost per tuple, and how it was found."""

    configuration: Configuration
    spaces: tuple[float, ...]
    cost: float
    steps: tuple[Step, ...]
