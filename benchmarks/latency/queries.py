"""A dozen queries over flow records, with windows of ten seconds, that promise their results after `${promise}`.

`totals` and `ports` are those whose errors are measured.
"""

from __future__ import annotations

WINDOW = 10  # seconds
TOTALS, GROUPS, KEY = "totals", "ports", "dport"

SELECTS = {
    TOTALS: ("count(*) AS records, sum({bytes}) AS bytes", "", ""),
    GROUPS: ("dport, count(*) AS records, sum({bytes}) AS bytes", "", "dport"),
    "protocols": ("proto, count(*) AS records, sum({bytes}) AS bytes", "", "proto"),
    "sizes": ("proto, avg({bytes}) AS mean, min({bytes}) AS least, max({bytes}) AS greatest", "", "proto"),
    "services": ("dport, proto, count(*) AS records", "proto IN (6, 17) AND dport < 1024", "dport, proto"),
    "senders": ("src, count(*) AS records, sum({bytes}) AS bytes", "", "src"),
    "receivers": ("dst, count(*) AS records, sum({bytes}) AS bytes", "", "dst"),
    "nets16": ("src/16 AS net, count(*) AS records, sum({bytes}) AS bytes", "", "src/16"),
    "nets8": ("src/8 AS net, count(*) AS records, sum({bytes}) AS bytes", "", "src/8"),
    "peers8": ("src/8 AS net, dst/8 AS peer, count(*) AS records", "", "src/8, dst/8"),
    "replies": ("sport, count(*) AS records", "sport < 1024", "sport"),
    "large": ("dst/16 AS net, count(*) AS records, sum({bytes}) AS bytes", "{bytes} > 1000", "dst/16"),
}


def app_text(size: str = "bytes") -> str:
    """The app, over a `${stream}` at a `${speed}`; `size` is the column that is summed up."""
    stream = (
        "CREATE STREAM flows FROM 'replay:${stream}' WITH (speed = ${speed})\n  WATERMARK ts DELAY '100 milliseconds';"
    )
    return "\n\n".join([stream, *(_query(name, size, *parts) for name, parts in SELECTS.items())]) + "\n"


def _query(name: str, size: str, select: str, where: str, groups: str) -> str:
    lines = [
        f"CREATE QUERY {name} AS",
        f"  SELECT {select.format(bytes=size)}",
        f"  FROM flows [RANGE '{WINDOW} seconds']",
        f"  WHERE {where.format(bytes=size)}" if where else "",
        f"  GROUP BY {groups}" if groups else "",
        "  LIMIT DELAY TO '${promise} seconds';",
    ]
    return "\n".join(line for line in lines if line)
