"""Configurations read from the papers' notation: `ABCD(AB BCD(BC BD CD))` (seed smap, Sec. 3.1).

`sharing.graph.notation` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from penstock.errors import QueryError, TextPlace
from penstock.sharing.graph.configuration import STREAM, Configuration, Node
from penstock.sharing.graph.grain import Grain, feeds, letters

TOKEN = re.compile(r"\s*(?:([()])|([^\s()]+)|$)")


def name_attributes(grain: Grain, whole: int = 129) -> str:
    """`dport.src/24`: bases in order, prefixes with their length unless they are as long as `whole` or 1.

    >>> name_attributes(frozenset({("src", 24), ("dport", 1), ("dst", 129)}))
    'dport.dst.src/24'
    """
    return ".".join(base if kept in (1, whole) else f"{base}/{kept}" for base, kept in sorted(grain)) or "*"


def parse(text: str, queries: Iterable[Grain] | None = None, read: Callable[[str], Grain] = letters) -> Configuration:
    """The configuration that a text describes; without `queries`, its leaves are the queries.

    `read` turns a name into a grain and raises `KeyError` or `ValueError` for one that it does not know.
    """
    nodes = _Reader(text, read).read()
    wanted = _leaves(nodes) if queries is None else frozenset(queries)
    missing = wanted - {grain for grain, _ in nodes}
    if missing:
        raise QueryError(
            f"configuration lacks {len(missing)} of {len(wanted)} queries", text=text, place=TextPlace(1, 1)
        )
    return Configuration(tuple(Node(grain, parent, grain in wanted) for grain, parent in nodes))


def _leaves(nodes: list[tuple[Grain, int]]) -> frozenset[Grain]:
    feeding = {parent for _, parent in nodes}
    return frozenset(grain for i, (grain, _) in enumerate(nodes) if i not in feeding)


class _Reader:
    """One pass over a text; nodes come out in the order in which they are written."""

    def __init__(self, text: str, name: Callable[[str], Grain]) -> None:
        self.text = text
        self.name = name

    def read(self) -> list[tuple[Grain, int]]:
        nodes: list[tuple[Grain, int]] = []
        open_at: list[tuple[int, int]] = []  # (node that feeds, where its parenthesis stands)
        last, place = STREAM, 0
        while (token := TOKEN.match(self.text, place)) and token.end() > place and token.lastindex:
            start, place = token.start(token.lastindex), token.end()
            if token.group(2):
                nodes.append((self._grain(token.group(2), start, nodes), open_at[-1][0] if open_at else STREAM))
                last = len(nodes) - 1
                self._check_fed(nodes, start)
            elif token.group(1) == "(":
                if last == STREAM:
                    raise self._wrong("'(' must follow a relation", start)
                open_at.append((last, start))
                last = STREAM
            else:
                if not open_at:
                    raise self._wrong("')' without '('", start)
                feeding = open_at.pop()[0]
                if feeding == len(nodes) - 1:
                    raise self._wrong("'()' feeds nothing", start)
                last = STREAM
        if open_at:
            raise self._wrong("'(' is never closed", open_at[-1][1])
        if not nodes:
            raise self._wrong("configuration is empty", 0)
        return nodes

    def _grain(self, name: str, start: int, nodes: list[tuple[Grain, int]]) -> Grain:
        try:
            grain = self.name(name)
        except (KeyError, ValueError):
            raise self._wrong(f"'{name}' is no relation", start, len(name)) from None
        if any(grain == known for known, _ in nodes):
            raise self._wrong(f"'{name}' stands here twice", start, len(name))
        return grain

    def _check_fed(self, nodes: list[tuple[Grain, int]], start: int) -> None:
        grain, parent = nodes[-1]
        if parent != STREAM and not feeds(nodes[parent][0], grain):
            raise self._wrong("relation is not a part of the one that feeds it", start)

    def _wrong(self, fact: str, start: int, width: int = 1) -> QueryError:
        hint = "a configuration looks like ABCD(AB BCD(BC BD CD))"
        return QueryError(fact, hint, text=self.text, file="configuration", place=TextPlace(1, start + 1, width))
