"""Files that FROM names: what their suffix says about the source that reads them.

| named | read as |
| --- | --- |
| `x.pcap.gz` | `pcap:x.pcap.gz` |
| `logs/*.tsv` | `csv:logs/*.tsv`, with a tab between values |
| `json:x` | as it is said |
| `-`, `csv:-` | standard input: `stdin:`, `stdin:csv` |
"""

from __future__ import annotations

import re
from dataclasses import dataclass

COMPRESSED = frozenset({"gz", "xz", "zst", "bz2"})
SUFFIXES = {
    "pcap": "pcap", "pcapng": "pcap", "cap": "pcap", "parquet": "parquet", "pq": "parquet",
    "arrow": "arrow", "arrows": "arrow", "feather": "arrow", "ipc": "arrow",
    "csv": "csv", "tsv": "csv", "json": "json", "jsonl": "json", "ndjson": "json",
}  # fmt: skip
SUFFIX_HINT = f"let it end in {', '.join('.' + suffix for suffix in SUFFIXES)}, or say what it is, like 'csv:path'"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+]+:")


@dataclass(frozen=True)
class Address:
    """A source and its options."""

    uri: str
    options: tuple[tuple[str, str], ...] = ()


def address_of(text: str) -> Address | None:
    """
    >>> address_of("day/x.PCAP.gz").uri, address_of("generate:zipf").uri, address_of("notes.txt")
    ('pcap:day/x.PCAP.gz', 'generate:zipf', None)
    """
    if text == "-" or text.endswith(":-"):
        return Address(f"stdin:{text[:-2]}")
    if _SCHEME.match(text):
        return Address(text)
    parts = text.rpartition("/")[2].lower().split(".")
    if len(parts) > 2 and parts[-1] in COMPRESSED:
        parts.pop()
    scheme = SUFFIXES.get(parts[-1]) if len(parts) > 1 else None
    if scheme is None:
        return None
    return Address(f"{scheme}:{text}", (("delimiter", "tab"),) if parts[-1] == "tsv" else ())
