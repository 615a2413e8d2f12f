"""The queries of the benchmark `packets`, how peers are asked, reference answers."""

from __future__ import annotations
