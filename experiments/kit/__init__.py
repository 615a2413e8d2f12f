"""What experiments share: streams, measured tables, reports, pictures."""

from __future__ import annotations
