"""tshark printing fields, grouped by pyarrow: exact and slow. Mode `statistics`: its own tables of endpoints and pairs.

Reassembly and what is above TCP and UDP are off. The grouping takes a few percent of the time. In mode `statistics`
packets per IPv4 source are compared; it counts bytes of frames.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyarrow as pa

from benchmarks.measure.cpu import own_seconds
from benchmarks.measure.job import Answer, PacketJob, elapsed, serve_packets, timed
from benchmarks.packets.fields import OPTIONS, export
from benchmarks.packets.queries import QUERIES, PacketScope
from benchmarks.packets.reference import Reference, digest_answer

TABLES = ("endpoints,ip", "conv,ip", "endpoints,ipv6", "conv,ipv6", "plen,tree", "io,phs")


def run(job: PacketJob) -> Answer:
    before = own_seconds()
    seconds, digests = timed(lambda: _statistics(job) if job.mode == "statistics" else _fields(job))
    return Answer(_version(), seconds, job.rows, elapsed(job), digests, cpu_seconds=own_seconds() - before)


def _fields(job: PacketJob) -> tuple[str, ...]:
    fields = export(Path(job.file))
    answers = Reference(fields, fields["ts"].to_numpy())
    return tuple(answers.digest(query, PacketScope(), len(fields)) for query in QUERIES)


def _statistics(job: PacketJob) -> tuple[str, ...]:
    tables = [part for name in TABLES for part in ("-z", name)]
    command = ["tshark", "-r", job.file, *OPTIONS, "-q", *tables]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    sent = _sent(done.stdout)
    packets = pa.array(list(sent.values()), pa.int64())
    digest = digest_answer([pa.array(list(sent), pa.string())], None, packets, packets)
    return tuple(digest if query.name == "talkers" else "" for query in QUERIES)


def _sent(text: str) -> dict[str, int]:
    """Packets that each IPv4 address has sent, from the table of endpoints: address, packets, bytes, sent, ..."""
    part = text.partition("IPv4 Endpoints")[2].partition("=====")[0]
    rows = (line.split() for line in part.splitlines())
    return {row[0]: int(row[3]) for row in rows if len(row) == 7 and row[0][0].isdigit() and row[3] != "0"}


def _version() -> str:
    done = subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=False)
    return done.stdout.split()[2].rstrip(".") if done.stdout else ""


if __name__ == "__main__":
    serve_packets(run)
