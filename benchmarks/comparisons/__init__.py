"""One module for each benchmark, and the engines that it compares."""

from __future__ import annotations
