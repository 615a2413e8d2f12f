"""What is known of data and machine: surveys, statistics, calibration."""

from __future__ import annotations
