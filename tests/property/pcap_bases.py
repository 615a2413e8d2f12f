"""Small captures to damage: those beside the repository (`../shared/data`), 64 packets of each, and ones built here."""

from __future__ import annotations

import gzip
import lzma
import random
from pathlib import Path

from support.captures import Packet, block, enhanced, interface, obsolete, pcap, section, simple
from support.mutations import FILE_MAGICS, first_packets
from support.packet_samples import SAMPLES

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
PACKETS, ENOUGH = 64, 1 << 20


def real() -> dict[str, bytes]:
    """Captures that are there, unpacked, the beginning of each."""
    found = {}
    for folder in (DATA / "packets", DATA / "parser" / "misc"):
        for file in sorted(folder.iterdir()) if folder.is_dir() else []:
            with {".gz": gzip.open, ".xz": lzma.open}.get(file.suffix, open)(file, "rb") as opened:
                data: bytes = opened.read(ENOUGH)
            if data[:4] in (*FILE_MAGICS, b"\n\r\r\n"):
                found[file.name] = first_packets(data, PACKETS)
    return found


def built() -> dict[str, bytes]:
    """All sample packets, by link type, in files of every form."""
    rng, files = random.Random(1), {}
    links = sorted({sample.link for sample in SAMPLES.values()})
    forms = [(order, nano, modified) for order in "<>" for nano, modified in ((0, 0), (1, 0), (0, 1))]
    for number, link in enumerate(links):
        packets = [Packet(sample.data) for sample in SAMPLES.values() if sample.link == link]
        for start in range(0, len(packets), PACKETS):
            order, nano, modified = forms[(number + start) % len(forms)]
            some = packets[start : start + PACKETS]
            files[f"link-{link}-{start}"] = pcap(some, order, bool(nano), bool(modified), link)
    tunnels = [Packet(sample.data) for sample in SAMPLES.values() if sample.inner is not None]
    files["tunnels"] = pcap(tunnels)
    for order in "<>":
        units = [[(9, b"\x09")], [(9, b"\xa0"), (14, b"\0" * 8)], []]
        blocks = [section(order), *(interface(order, link, 0, units[link % 3]) for link in links)]
        samples = rng.sample(list(SAMPLES.values()), PACKETS)
        blocks += [enhanced(order, links.index(one.link), 1 << 50, one.data) for one in samples[: PACKETS // 2]]
        blocks += [block(order, 5, bytes(20)), section(order), interface(order, 1, 96)]
        ethernet = [one.data for one in samples if one.link == 1]
        blocks += [simple(order, data[:96], len(data)) for data in ethernet[:10]]
        blocks += [obsolete(order, 0, 1 << 50, data) for data in ethernet[10:20]]
        files[f"blocks-{'little' if order == '<' else 'big'}"] = b"".join(blocks)
    return files


def write_bases(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in {**real(), **built()}.items():
        (folder / name).write_bytes(data)
    return folder
