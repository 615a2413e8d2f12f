"""Parquet files as a source."""

from __future__ import annotations
