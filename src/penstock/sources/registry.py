"""URI scheme → source: the one line a new source adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.errors import SourceError
from penstock.sources.base import Source
from penstock.sources.generate import open_generate
from penstock.sources.parquet import open_parquet

SCHEMES: dict[str, Callable[[str, Mapping[str, str]], Source]] = {
    "parquet": open_parquet,
    "generate": open_generate,
}


def open_source(uri: str, options: Mapping[str, str]) -> Source:
    """Open the source that `uri` names (`parquet:trace/*.parquet`, `generate:zipf`), with its WITH options."""
    scheme, colon, rest = uri.partition(":")
    if not colon or scheme.lower() not in SCHEMES:
        known = ", ".join(f"{s}:" for s in sorted(SCHEMES))
        raise SourceError(f"unknown source '{uri}'", f"a source starts with one of {known}")
    return SCHEMES[scheme.lower()](rest, options)
