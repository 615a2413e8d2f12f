"""Synthetic network records: long flows whose packets come in trains, with attributes that depend on each other.

A block of `synthetic.BLOCK` records holds whole flows. Their lengths are Pareto distributed; their packets come in
trains, spread over the block and interleaved with those of other flows. For each flow, `_endpoints` and `_services`
draw hosts and services from fixed populations, Zipf-like. All else follows from them as it does in a real network: the
autonomous system from the address prefix, the time to live from the host, interface and VLAN from the system, the
protocol from the port. Packets of one flow differ only in flags, packets and bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.sources.generate.synthetic import BLOCK, Columns, Words, mix, unit, zipf_ranks

TAIL = 1.5  # Pareto index of flow lengths: finite mean, infinite variance, as measured in networks
LONGEST = BLOCK // 4
TRAIN_GAP, TRAIN_PAUSE, TRAIN_LENGTH = 3.0, 1500.0, 6.0  # in records of the whole stream; packets of a train
SYSTEMS, PREFIXES = 2000, 4  # autonomous systems, and /16 prefixes of each
RETURNING = 0.4  # share of the flows in which a client goes to its favourite server
FIRST_OCTETS = np.array([i for i in range(1, 224) if i not in (10, 127)], dtype=np.uint64)
TCP, UDP, ICMP = 6, 17, 1
SYN, FIN_ACK, ACK, PSH_ACK = 2, 17, 16, 24
# port, protocol, share of the flows; the rest are flows between ephemeral ports.
SERVICES = (
    (443, TCP, 0.36), (80, TCP, 0.10), (53, UDP, 0.14), (443, UDP, 0.09), (22, TCP, 0.03), (25, TCP, 0.03),
    (123, UDP, 0.03), (993, TCP, 0.02), (8080, TCP, 0.02), (3389, TCP, 0.01), (5060, UDP, 0.01), (0, ICMP, 0.03),
)  # fmt: skip


@dataclass(frozen=True)
class Flows:
    """What a trace looks like: mean records of a flow, and how many hosts there are to draw from."""

    flow_length: float = 20.0
    clients: int = 400_000
    servers: int = 150_000
    exponent: float = 0.9

    def columns(self, rng: np.random.Generator) -> Columns:
        """One block of records, in order of arrival, without their times."""
        lengths = _flow_lengths(rng, self.flow_length)
        first = np.cumsum(lengths) - lengths
        flow = np.repeat(np.arange(len(lengths)), lengths)
        order = _arrival_order(rng, first, flow)
        flow = flow[order]
        per_flow = self._flows(rng, len(lengths))
        made = {name: values[flow] for name, values in per_flow.items()}
        made |= _packets(rng, made["proto"], order == first[flow], order == (first + lengths)[flow] - 1)
        return made

    def _flows(self, rng: np.random.Generator, count: int) -> Columns:
        client = zipf_ranks(rng.random(count), self.clients, self.exponent)
        favourite = rng.random(count) < RETURNING
        chance = np.where(favourite, unit(mix(client, 6)), rng.random(count))
        server = zipf_ranks(chance, self.servers, self.exponent)
        here = _endpoints(mix(client, 1))
        there = _endpoints(mix(server, 2))
        service_port, proto = _services(rng, server)
        own_port = np.where(proto == ICMP, 0, rng.integers(32768, 61000, count)).astype(np.uint16)
        reply = rng.random(count) < 0.45  # packets from the server to the client
        made: Columns = {
            "sport": np.where(reply, service_port, own_port),
            "dport": np.where(reply, own_port, service_port),
            "proto": proto,
        }
        for name in ("address", "system", "ttl", "interface", "vlan", "tos"):
            made[f"src_{name}"] = np.where(reply, there[name], here[name])
            made[f"dst_{name}"] = np.where(reply, here[name], there[name])
        marked = (proto == UDP) & (rng.random(count) < 0.1)  # voice and video carry their own class
        return {
            "src": made["src_address"],
            "dst": made["dst_address"],
            "sport": made["sport"],
            "dport": made["dport"],
            "proto": made["proto"],
            "tos": np.where(marked, np.uint8(0xB8), made["src_tos"]),
            "in_if": made["src_interface"],
            "out_if": made["dst_interface"],
            "ttl": made["src_ttl"],
            "vlan": made["src_vlan"],
            "src_as": made["src_system"],
            "dst_as": made["dst_system"],
        }


def _endpoints(host: Words) -> Columns:
    """Address of a host and what depends on where it is."""
    # A few systems have most of the hosts: the square of a uniform number leans to the first ones.
    system = (SYSTEMS * unit(host) ** 2).astype(np.uint64)
    prefix = system * np.uint64(PREFIXES) + (host & np.uint64(PREFIXES - 1))
    first = FIRST_OCTETS[(prefix % np.uint64(len(FIRST_OCTETS))).astype(np.intp)]
    second = (prefix // np.uint64(len(FIRST_OCTETS)) * np.uint64(37) + np.uint64(11)) % np.uint64(256)
    low = mix(host, 3) & np.uint64(0xFFFF)
    place = mix(system, 4)
    initial = np.array([64, 64, 64, 64, 64, 128, 128, 255], dtype=np.uint64)[(host >> np.uint64(8)).astype(np.intp) & 7]
    interface = place % np.uint64(24)
    return {
        "address": ((first << np.uint64(24)) | (second << np.uint64(16)) | low).astype(np.uint32),
        "system": (np.uint64(100) + system * np.uint64(31)).astype(np.uint16),
        "ttl": (initial - np.uint64(4) - (place >> np.uint64(8)) % np.uint64(24)).astype(np.uint8),
        "interface": interface.astype(np.uint16),
        "vlan": (np.uint64(100) + interface * np.uint64(4) + (prefix & np.uint64(3))).astype(np.uint16),
        "tos": np.array([0, 0, 0, 0, 0, 0, 8, 32], dtype=np.uint8)[(place >> np.uint64(16)).astype(np.intp) & 7],
    }


def _services(rng: np.random.Generator, server: NDArray[np.int64]) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Port and protocol: most servers offer one service, most of their flows are for it."""
    ports, protocols, shares = (np.array(column) for column in zip(*SERVICES, strict=True))
    usual = rng.random(len(server)) < 0.85
    chance = np.where(usual, unit(mix(server, 5)), rng.random(len(server)))
    kind = np.searchsorted(np.cumsum(shares), chance, side="right")
    known = kind < len(ports)
    kind = np.minimum(kind, len(ports) - 1)
    other_port = rng.integers(1024, 65536, len(server))
    other_protocol = np.where(chance > 0.95, UDP, TCP)
    port = np.where(known, ports[kind], other_port).astype(np.uint16)
    return port, np.where(known, protocols[kind], other_protocol).astype(np.uint8)


def _flow_lengths(rng: np.random.Generator, mean: float) -> NDArray[np.int64]:
    """Lengths of the flows of one block; they add up to the block."""
    count = int(2 * BLOCK / mean) + 64
    # Lomax with mean (mean - 1/2) rounded down, plus one: at least one record, `mean` of them on average.
    scale = (mean - 0.5) * (TAIL - 1)
    drawn = 1 + np.floor(scale * ((1 - rng.random(count)) ** (-1 / TAIL) - 1))
    lengths = np.minimum(drawn, LONGEST).astype(np.int64) if mean > 1 else np.ones(BLOCK, dtype=np.int64)
    total = np.cumsum(lengths)
    if total[-1] < BLOCK:
        lengths = np.tile(lengths, BLOCK // int(total[-1]) + 1)
        total = np.cumsum(lengths)
    last = int(np.searchsorted(total, BLOCK))
    lengths = lengths[: last + 1].copy()
    lengths[last] -= total[last] - BLOCK
    return lengths


def _arrival_order(rng: np.random.Generator, first: NDArray[np.int64], flow: NDArray[np.intp]) -> NDArray[np.int64]:
    """Order in which the records of all flows arrive, flows given one after the other."""
    gaps = -TRAIN_GAP * np.log1p(-rng.random(BLOCK))
    gaps[rng.random(BLOCK) < 1 / TRAIN_LENGTH] *= TRAIN_PAUSE / TRAIN_GAP
    passed = np.cumsum(gaps)
    begin = rng.random(len(first)) * BLOCK - passed[first]
    passed += begin[flow]
    # Position and row in one word: sorting words is fast, and without ties the order is the same everywhere.
    keys = (np.mod(passed, BLOCK) * 2.0**20).astype(np.uint64) << np.uint64(16)
    keys |= np.arange(BLOCK, dtype=np.uint64)
    keys.sort()
    return (keys & np.uint64(BLOCK - 1)).astype(np.int64)


def _packets(rng: np.random.Generator, proto: NDArray[Any], first: NDArray[Any], last: NDArray[Any]) -> Columns:
    """What differs from record to record of a flow."""
    tcp = proto == TCP
    chance = rng.integers(0, 2**32, BLOCK, dtype=np.uint32)
    flags = np.where(chance & 3 == 0, np.uint8(PSH_ACK), np.uint8(ACK))
    flags[last] = FIN_ACK
    flags[first] = SYN
    flags[~tcp] = 0
    packets = np.array([1, 1, 1, 1, 1, 2, 2, 3], dtype=np.int32)[(chance >> 2) & 7]
    full = (chance >> 5) & 7 < 4  # half of the records are full frames
    small = 40 + ((chance >> 8) & 255)
    size = np.where(full & ~first & (proto != ICMP), np.where(tcp, 1500, 1280), small)
    return {"flags": flags, "bytes": (size * packets).astype(np.int32), "packets": packets}
