"""Packet captures as a source: pcap and pcapng."""

from __future__ import annotations
