"""Compiled loops over captures.

| module | what it does |
| --- | --- |
| `capture` | finds the records of pcap and pcapng files |
| `capture_times` | turns ticks of pcapng into times |
| `layers` | finds a packet's headers, by the next three |
| `link` | from a frame to an ethertype |
| `ip` | IP headers, and the transport header that follows |
| `tunnel` | packets inside packets |
| `layout` | the numbers that describe a packet's layers |
| `fields` | takes values out of packets |
| `picked` | puts some packets side by side |
"""

from __future__ import annotations
