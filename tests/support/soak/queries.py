"""What a soak runs: thirteen queries over an endless bursty stream, each with what DuckDB is asked instead.

Windows are minutes long, filters and LIMITs keep results few: checkpoint and memory are what a soak is about. Some
queries answer for others: `since` and `sliding` must be sums of `protos`, `busiest` follows from `rate`.
"""

from __future__ import annotations

from dataclasses import dataclass

RATE = 10_000  # records a second of stream time, on average
CYCLE = 30  # seconds of the stream in which the generator makes RATE · CYCLE records, one burst among them
ROWS = 1_000_000_000_000  # never read to its end
MINUTE = 60
COUNTED, COUNTED_SLIDE = 1_000_000, 500_000

ADDRESS = "concat_ws('.', {0} >> 24, ({0} >> 16) & 255, ({0} >> 8) & 255, {0} & 255)"
NET16 = "concat({0} >> 24, '.', ({0} >> 16) & 255, '.0.0/16')"


@dataclass(frozen=True)
class SoakQuery:
    """A query: its select list, window, and the rest; range and slide in seconds, 0 where it has none of time.

    `sampled`: its windows are computed again by DuckDB, from `duck_select` where the dialects differ.
    """

    name: str
    select: str
    window: str
    rest: str = ""
    range: int = 0
    slide: int = 0
    sampled: bool = True
    duck: tuple[str, str] | None = None  # select list and rest
    stream: str = "flows"

    def sql(self) -> str:
        return f"CREATE QUERY {self.name} AS SELECT {self.select} FROM {self.stream} [{self.window}] {self.rest};"

    def duck_sql(self) -> str:
        """The same over a table `w` that has the records of one window."""
        select, rest = self.duck or (self.select, self.rest)
        return f"SELECT {select} FROM w {rest}"


def _of_time(name: str, select: str, length: int, slide: int, rest: str, **more: object) -> SoakQuery:
    window = f"RANGE '{length} seconds' SLIDE '{slide} seconds'"
    return SoakQuery(name, select, window, rest, length, slide, **more)  # type: ignore[arg-type]


BY_PROTO = "proto, count(*) AS n, sum(bytes) AS total"
SYN = "WHERE proto = 6 AND flags = 2"
QUERIES = (
    _of_time("protos", BY_PROTO, 120, 120, "GROUP BY proto"),
    SoakQuery("since", BY_PROTO, "WINDOW UNTIL NOW", "GROUP BY proto EVERY 2 MINUTES", slide=120, sampled=False),
    _of_time("sliding", BY_PROTO, 600, 120, "GROUP BY proto", sampled=False),
    _of_time(
        "nets", "src/16 AS net, count(*) AS n, sum(bytes) AS total", 120, 120,
        "GROUP BY src/16 ORDER BY total DESC, net LIMIT 10",
        duck=(f"{NET16.format('src')} AS net, count(*) AS n, sum(bytes) AS total",
              "GROUP BY src >> 16, net ORDER BY total DESC, src >> 16 LIMIT 10"),
    ),
    _of_time("services", "dport, count(*) AS n, sum(bytes) AS total", 120, 120, "WHERE dport < 1024 GROUP BY dport"),
    _of_time(
        "scanned", "dst, dport, count(*) AS n", 120, 120,
        f"{SYN} GROUP BY dst, dport HAVING count(*) > 3 ORDER BY n DESC, dport, dst LIMIT 20",
        duck=(f"{ADDRESS.format('dst')} AS host, dport, count(*) AS n",
              f"{SYN} GROUP BY dst, dport HAVING count(*) > 3 ORDER BY n DESC, dport, dst LIMIT 20"),
    ),
    _of_time("sizes", "proto, avg(bytes) AS mean, min(bytes) AS low, max(bytes) AS high, stddev(bytes) AS spread",
             120, 120, "GROUP BY proto"),
    _of_time("systems", "src_as, sum(bytes) AS total", 240, 120, "GROUP BY src_as ORDER BY total DESC, src_as LIMIT 5"),
    _of_time("uneven", "flags, count(*) AS n, sum(packets) AS packets", 300, 180, "GROUP BY flags"),
    _of_time("gaps", "count(*) AS n, max(bytes) AS high", 30, 120, ""),
    _of_time("rate", "count(*) AS n", 30, 30, ""),
    _of_time("busiest", "max(n) AS most, count(*) AS windows, sum(n) AS n", 120, 120, "", stream="rate", sampled=False),
    SoakQuery("counted", "count(*) AS n, max(bytes) AS high", f"ROWS {COUNTED} SLIDE {COUNTED_SLIDE}", sampled=False),
)  # fmt: skip
KEYS = {
    "protos": ["proto"], "since": ["proto"], "sliding": ["proto"], "nets": ["net"], "services": ["dport"],
    "scanned": ["dst", "dport"], "sizes": ["proto"], "systems": ["src_as"], "uneven": ["flags"],
}  # fmt: skip
UNSURE = ("scanned",)  # HAVING may leave a window without rows


def options(seed: int) -> dict[str, str]:
    """Of the generator."""
    return {"rows": str(ROWS), "rate": str(RATE), "seed": str(seed), "clients": "20000", "servers": "5000"}


def app_text(seed: int) -> str:
    given = ", ".join(f"{name} = {value}" for name, value in options(seed).items())
    stream = f"CREATE STREAM flows FROM 'generate:bursty' WITH ({given}) WATERMARK ts DELAY '2 seconds';"
    return "\n".join([stream, *(query.sql() for query in QUERIES)])
