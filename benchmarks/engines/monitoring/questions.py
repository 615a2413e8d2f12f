"""The dozen of `examples/packets.sql` over the columns of generated packets (`benchmarks.data.files.packets`).

What a generated packet does not have is asked of what it has: IP versions fall away, `bytes` stand for both lengths,
and a router far away (a low time to live) for what ICMP would say. All count packets and add up bytes.

Expressions are SQL that penstock, DuckDB, Polars, ClickHouse and Spark all read. Prefixes of addresses are
`benchmarks.measure.keys`, which every engine spells in its own way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.measure.job import EngineJob
from benchmarks.measure.keys import Key, key

OPENED, CLOSED = "flags % 64 = 2", "flags % 2 = 1"


@dataclass(frozen=True)
class Question:
    """Groups by `keys` (a column, a prefix, or an expression and its name) and window. `having`: those of at least so
    many packets; `top`: those with most bytes of each window, the lesser key first; `flows`: also the first and last
    time, and how often they were opened and closed."""

    name: str
    seconds: int
    keys: tuple[str | tuple[str, str], ...]
    where: str = ""
    slide: int = 0  # seconds; 0: windows tumble
    having: int = 0
    top: int = 0
    flows: bool = False

    @property
    def window(self) -> int:
        """Microseconds."""
        return self.seconds * 1_000_000

    @property
    def pane(self) -> int:
        """Microseconds that windows move on by."""
        return (self.slide or self.seconds) * 1_000_000

    @property
    def panes(self) -> int:
        """Of a window."""
        return self.window // self.pane

    @property
    def names(self) -> tuple[str, ...]:
        """Of the keys in results."""
        return tuple(one[1] if isinstance(one, tuple) else key(one).name for one in self.keys)

    @property
    def columns(self) -> tuple[str, ...]:
        """Of results, in the order in which they are compared."""
        rest = ("first", "last", "opened", "closed") if self.flows else ()
        return (*self.names, "window_start", "packets", "total", *rest)

    def parts(self) -> list[tuple[Key | str, str]]:
        """Each key as a column or prefix, or as an expression; and its name."""
        return [one if isinstance(one, tuple) else (key(one), key(one).name) for one in self.keys]

    def select(self, stream: str) -> str:
        """As penstock's language has it."""
        keys = [(one[0], one[1]) if isinstance(one, tuple) else (one, key(one).name) for one in self.keys]
        select = [expression if expression == name else f"{expression} AS {name}" for expression, name in keys]
        select += ["count(*) AS packets", "sum(bytes) AS total"]
        if self.flows:
            select += ["min(ts) AS first", "max(ts) AS last"]
            select += [
                f"count(*) FILTER (WHERE {what}) AS {name}" for what, name in ((OPENED, "opened"), (CLOSED, "closed"))
            ]
        text = f"SELECT {', '.join(select)} FROM {stream} [RANGE '{self.seconds} seconds'"
        text += f" SLIDE '{self.slide} seconds']" if self.slide else "]"
        text += f" WHERE {self.where}" if self.where else ""
        text += f" GROUP BY {', '.join(expression for expression, _ in keys)}"
        text += f" HAVING count(*) >= {self.having}" if self.having else ""
        return text + (f" ORDER BY total DESC LIMIT {self.top}" if self.top else "")


FIVE = ("src", "dst", "sport", "dport", "proto")
QUESTIONS = (
    Question("protocols", 10, ("proto",)),
    Question("sizes", 10, (("bytes - bytes % 64", "at_least"),)),
    Question("flags", 10, ("flags",), where="proto = 6"),
    Question("talkers", 60, ("src",), top=10),
    Question("listeners", 60, ("dst",), top=10),
    Question("scanned", 60, ("dst", "dport"), where=f"proto = 6 AND {OPENED}", slide=10, having=3),
    Question("nets24", 60, ("src/24",)),
    Question("nets16", 300, ("src/16", "dst/16")),
    Question("pairs", 60, ("src", "dst")),
    Question("services", 300, ("proto", ("least(sport, dport)", "port"))),
    Question("flows", 300, FIVE, flows=True),
    Question("troubles", 60, ("src", "proto"), where="ttl <= 40 OR proto = 1"),
)
NAMED = {question.name: question for question in QUESTIONS}
NAMES = tuple((question.name,) for question in QUESTIONS)  # as queries of a job
ADDRESSES = ("src", "dst")
COLUMNS = ("ts", *FIVE, "flags", "ttl", "bytes")  # that any of them reads


def asked(job: EngineJob) -> Sequence[Question]:
    """The questions of a job; none, if its queries are keys."""
    names = [texts[0] for texts in job.queries]
    return [NAMED[name] for name in names] if all(name in NAMED for name in names) else []
