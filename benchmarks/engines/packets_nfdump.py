"""nfpcapd and nfdump: packets to flow records once, then one pass over the records for each query that it can answer.

Flows last over windows (expired after 300 s, or 60 s of silence: nfpcapd's defaults), so answers are of the whole
capture. Its bytes are those of IP packets; packets that are not IP are passed over. Results are printed and parsed;
parsing is not timed.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv

from benchmarks.measure.cpu import own_seconds
from benchmarks.measure.job import Answer, PacketJob, elapsed, serve_packets, timed
from benchmarks.packets.fields import canonical
from benchmarks.packets.queries import NFDUMP, QUERIES, Dialect, PacketQuery
from benchmarks.packets.reference import digest_answer

LENGTHS = {"nets24": 24, "nets16": 16}


def run(job: PacketJob) -> Answer:
    flows = Path(job.work) / "flows"
    flows.mkdir()
    before = own_seconds()
    decode, _ = timed(lambda: _quiet(["nfpcapd", "-r", job.file, "-l", str(flows), "-t", "300"]))
    decoded = own_seconds()
    asked = {query.name: NFDUMP[query.name] for query in QUERIES if query.name in NFDUMP}
    aggregate, _ = timed(lambda: _ask_all(flows, job, asked))
    used = own_seconds() - before
    cold = elapsed(job)
    digests = tuple(_digest(job, query) if query.name in asked else "" for query in QUERIES)
    extra = {
        "decode_seconds": decode,
        "decode_cpu_seconds": decoded - before,
        "aggregate_seconds": aggregate,
        "aggregate_cpu_seconds": used - (decoded - before),
    }
    return Answer(_version(), decode + aggregate, job.rows, cold, digests, "", extra, used)


def _quiet(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _ask_all(flows: Path, job: PacketJob, asked: dict[str, Dialect]) -> None:
    for name, dialect in asked.items():
        _ask(flows, job, name, dialect)


def _ask(flows: Path, job: PacketJob, name: str, dialect: Dialect) -> None:
    form = f"fmt:{dialect.fields},%pkt,%byt"
    command = ["nfdump", "-R", str(flows), "-A", dialect.aggregate, "-6", "-N", "-q", "-o", form]
    with _output(job, name).open("wb") as out:
        subprocess.run([*command, *filter(None, [dialect.filter])], check=True, stdout=out, stderr=subprocess.DEVNULL)


def _output(job: PacketJob, name: str) -> Path:
    return Path(job.work) / f"{name}.txt"


def _digest(job: PacketJob, query: PacketQuery) -> str:
    names = [*query.names, "packets", "bytes"]
    options = pc_csv.ConvertOptions(column_types={name: pa.string() for name in names})
    read: Any = pc_csv.read_csv(
        _output(job, query.name), read_options=pc_csv.ReadOptions(column_names=names), convert_options=options
    )
    columns = {name: pc.utf8_trim_whitespace(read[name]).combine_chunks() for name in names}
    keys = [_plain(columns[name], LENGTHS.get(query.name)) for name in query.names]
    return digest_answer(keys, None, columns["packets"].cast(pa.int64()), columns["bytes"].cast(pa.int64()))


def _plain(column: Any, length: int | None) -> Any:
    """Addresses and prefixes as penstock prints them; numbers stay as they are."""
    coded = column.dictionary_encode()
    texts = coded.dictionary.to_pylist()
    if any("." in text or ":" in text for text in texts):
        texts = canonical(texts)
        texts = [f"{text}/{length}" for text in texts] if length else texts
    return pa.DictionaryArray.from_arrays(coded.indices, pa.array(texts, pa.string()))


def _version() -> str:
    done = subprocess.run(["nfdump", "-V"], capture_output=True, text=True, check=False)
    return done.stdout.split()[-1].removeprefix("NSEL-NEL") if done.stdout else ""


if __name__ == "__main__":
    serve_packets(run)
