"""Text as a source: blocks, records, columns, CSV and JSON."""

from __future__ import annotations
