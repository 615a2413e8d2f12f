"""Addresses against Python's ipaddress module, right and wrong ones, and prefixes."""

from __future__ import annotations

import ipaddress
import itertools
import random

import numpy as np

from penstock.kernels import inet

ODD = [
    "", "::", "::1", ":::", "1::2::3", "1:2:3:4:5:6:7:8:", "1.2.3", "1.2.3.4.5", "01.2.3.4", "256.1.1.1", "::1.2.3.4",
    "::ffff:1.2.3.4", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1:2:3:4:5:6:1.2.3.4", ":1", "1:", ":", "12345::",
    "1:2:3:4:5:6:7:1.2.3.4", "::ffff:1.2.3.04", "fe80::1%eth0", " 1.2.3.4", "1.2.3.4 ", "-", "::g", "1.2.3.-4",
]  # fmt: skip


def columns(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    encoded = [text.encode() for text in texts]
    return np.cumsum([0, *map(len, encoded)]), np.frombuffer(b"".join(encoded) or b"\0", np.uint8)


def printed(start: np.ndarray, data: np.ndarray) -> list[str]:
    raw = data.tobytes()
    return [raw[a:b].decode() for a, b in itertools.pairwise(start)]


def canonical(text: str) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return ""
    if "%" in text:
        return ""
    mapped = getattr(address, "ipv4_mapped", None)
    return f"::ffff:{mapped}" if mapped else str(address)


def some_texts(count: int, seed: int) -> list[str]:
    rng, texts = random.Random(seed), list(ODD)
    for _ in range(count):
        number = rng.getrandbits(128)
        for group in range(8):
            if rng.random() < 0.5:
                number &= ~(0xFFFF << (16 * group))
        address = ipaddress.IPv6Address(number if rng.random() < 0.9 else (0xFFFF << 32) | rng.getrandbits(32))
        four = str(ipaddress.IPv4Address(rng.getrandbits(32)))
        text = rng.choice([str(address), address.exploded, str(address).upper(), four])
        if rng.random() < 0.2:
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice([":", "::", "g", "", ".", "1.2.3.4", "0"]) + text[at + rng.randrange(2) :]
        texts.append(text)
    return texts


def test_text_to_address_and_back_as_ipaddress_does() -> None:
    texts = some_texts(5000, 7)
    version, high, low = inet.parse(*columns(texts))
    assert printed(*inet.to_text(version, high, low)) == [canonical(text) for text in texts]


def test_prefixes_cut_and_print() -> None:
    texts = [str(ipaddress.ip_address(text)) for text in some_texts(500, 8) if canonical(text) and ":" in text]
    version, high, low = inet.parse(*columns(texts))
    for length in (0, 1, 24, 32, 63, 64, 65, 100, 128):
        cut = inet.cut(high, low, length)
        got = printed(*inet.to_text(version, *cut, length))
        networks = [ipaddress.ip_network(f"{text}/{length}", strict=False) for text in texts]
        assert got == [f"{canonical(str(network.network_address))}/{length}" for network in networks]


def test_network_order_round_trip() -> None:
    _, high, low = inet.parse(*columns(["2001:db8::1", "::", "ff02::fb"]))
    _, data = inet.network_order(high, low)
    again = inet.from_network_order(data)
    assert (again[0] == high).all()
    assert (again[1] == low).all()
