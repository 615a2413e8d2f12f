"""Packet captures as streams: pcap and pcapng.

| module | what it does |
| --- | --- |
| `source` | opens a source; reads splits |
| `stored` | finds the captures in a file: plain, compressed, in an archive |
| `index` | counts the packets of a capture |
| `walk` | walks a capture record by record |
| `picked` | puts the picks of a walk side by side |
| `columns` | turns packets into Arrow columns |
"""

from __future__ import annotations
