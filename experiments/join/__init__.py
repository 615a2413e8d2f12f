"""Experiments of the aggregation-join paper: its operator, record at a time, and what the paper says of its cost."""

from __future__ import annotations
