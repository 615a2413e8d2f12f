"""The tables of a task: rows and states, tables that evict, exact leaves, the forest of them."""

from __future__ import annotations
