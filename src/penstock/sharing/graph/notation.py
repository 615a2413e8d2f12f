"""Configurations as text, in the papers' notation: `ABCD(AB BCD(BC BD CD))` (seed smap, Sec. 3.1).

A relation's name is followed by what it feeds, in parentheses; blanks separate the relations that the stream feeds.
Names are single letters put together unless another naming is given, e.g. `src.dst.dport` for an app's attributes.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.sharing.graph.configuration import Configuration
from penstock.sharing.graph.grain import Grain


def name_letters(grain: Grain) -> str:
    """ABC for a relation of the paper; a base of several letters or a prefix needs a naming of its own."""
    return "".join(sorted(base for base, _ in grain))


def text(configuration: Configuration, name: Callable[[Grain], str] = name_letters) -> str:
    """The configuration in the papers' notation.

    >>> from penstock.sharing.graph.configuration import STREAM, Node
    >>> ab, a, b = (frozenset((letter, 1) for letter in name) for name in ("AB", "A", "B"))
    >>> text(Configuration((Node(ab, STREAM, False), Node(a, 0, True), Node(b, 0, True))))
    'AB(A B)'
    """

    def write(i: int) -> str:
        fed = " ".join(map(write, configuration.children(i)))
        return name(configuration.nodes[i].grain) + (f"({fed})" if fed else "")

    return " ".join(map(write, configuration.roots))
