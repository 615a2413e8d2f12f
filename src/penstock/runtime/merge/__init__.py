"""From stored relations to results: which windows close, merged from panes, finished, ordered, counted."""

from __future__ import annotations
