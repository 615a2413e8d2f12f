"""The task: records of one split through columns, selection, keys and tables into one segment."""

from __future__ import annotations
