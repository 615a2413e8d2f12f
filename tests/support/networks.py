"""A table of networks and their owners, as registries have them: networks inside each other, of IPv4 and IPv6.

Registries give large blocks to providers; these give parts of them to customers, and customers to departments. Names
follow: a department of a customer is `eecs.berkeley.edu` inside `berkeley.edu`. Seeded, the same in every process.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path

import pyarrow as pa

Network = IPv4Network | IPv6Network
BERKELEY = "berkeley.edu"
PARTS = ("eecs", "math", "lib", "dorm", "wifi", "lab", "mail", "www", "vpn", "stat")
KINDS = ("edu", "com", "net", "org", "de", "jp")
# Lengths of what registries, providers and customers give away.
LENGTHS = {4: ((8, 12), (16, 20), (24, 28)), 6: ((20, 29), (32, 40), (48, 56))}
MULTICAST = 224  # and beyond: given to nobody


@dataclass(frozen=True)
class Owned:
    """A network and its owner."""

    network: Network
    name: str

    @property
    def first(self) -> str:
        return str(self.network.network_address)

    @property
    def last(self) -> str:
        """Its last address, which belongs to it."""
        return str(self.network.broadcast_address)


def networks(count: int = 12_000, seed: int = 7) -> list[Owned]:
    """So many networks, a fifth of them IPv6, in no order; no two are the same."""
    rng = random.Random(seed)
    found: dict[Network, str] = {ip_network("128.32.0.0/16"): BERKELEY, ip_network("2607:f140::/32"): BERKELEY}
    found |= {ip_network(f"128.32.{at}.0/24"): f"{part}.{BERKELEY}" for at, part in enumerate(PARTS)}
    waiting = _blocks(rng, found)
    while len(found) < count:
        found.setdefault(*next(waiting))
    listed = [Owned(network, name) for network, name in found.items()][:count]
    rng.shuffle(listed)
    return listed


def _blocks(rng: random.Random, known: dict[Network, str]) -> Iterator[tuple[Network, str]]:
    """A block, some customers in it, and some departments in each of these; and so on."""
    while True:
        version = 6 if rng.random() < 0.2 else 4
        block = _inside(rng, _top(rng, version), LENGTHS[version][0])
        provider = known.get(block) or f"net{rng.randrange(10**5)}.{rng.choice(KINDS)}"
        yield block, provider
        for _ in range(rng.randint(1, 8)):
            customer = _inside(rng, block, LENGTHS[version][1])
            name = f"site{rng.randrange(10**6)}.{rng.choice(KINDS)}" if rng.random() < 0.97 else f"ext.{BERKELEY}"
            yield customer, name
            for _ in range(rng.choice([0, 0, 1, 2, 6])):
                yield _inside(rng, customer, LENGTHS[version][2]), f"{rng.choice(PARTS)}.{name}"


def _top(rng: random.Random, version: int) -> Network:
    if version == 4:
        return ip_network(f"{rng.choice([n for n in range(1, MULTICAST) if n not in (10, 127)])}.0.0.0/8")
    return ip_network(f"{rng.choice(['2001', '2400', '2600', '2607', '2800', '2a00', '2a02', '2c0f'])}::/16")


def _inside(rng: random.Random, around: Network, lengths: tuple[int, int]) -> Network:
    """A network of one of these lengths inside another."""
    length = max(rng.randint(*lengths), around.prefixlen)
    steps = rng.randrange(1 << (length - around.prefixlen))
    number = int(around.network_address) + (steps << (around.max_prefixlen - length))
    return type(around)((number, length))


def table_of(owned: Sequence[Owned]) -> pa.Table:
    """min_addr, max_addr (which belongs to the network) and name, all text."""
    columns = {
        "min_addr": [one.first for one in owned],
        "max_addr": [one.last for one in owned],
        "name": [one.name for one in owned],
    }
    return pa.table(columns)


def write_csv(owned: Sequence[Owned], path: Path) -> Path:
    lines = ["min_addr,max_addr,name", *(f"{one.first},{one.last},{one.name}" for one in owned)]
    path.write_text("\n".join(lines) + "\n")
    return path
