"""What drives micro-batches: Spark, or processes of penstock's own."""

from __future__ import annotations
