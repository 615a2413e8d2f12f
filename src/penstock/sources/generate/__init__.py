"""Synthetic streams, made from a recipe and a seed.

| module | what it does |
| --- | --- |
| `source` | opens a source; one recipe for each kind of stream |
| `synthetic` | random numbers by block, clocks, plain attributes |
| `flows` | network records that belong to flows |
| `auction` | persons, auctions and bids |
"""

from __future__ import annotations
