"""The benchmark `packets` without penstock's own decoder: captures repeated, reference answers, peers, the report."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from benchmarks import command
from benchmarks.comparisons import packets
from benchmarks.data import captures, frames, traces
from benchmarks.engines import packets_pmacct, packets_tshark
from benchmarks.measure import table
from benchmarks.measure.job import Answer, PacketJob
from benchmarks.packets import fields as packet_fields
from benchmarks.packets.queries import NFDUMP, PMACCT, QUERIES, PacketScope, app_text
from benchmarks.packets.reference import NOTHING, Reference, digest_answer
from penstock.errors import ConfigError, SourceError
from penstock.logical.query import Field
from penstock.logical.resolve.app import resolve_app
from penstock.logical.types import TYPE_NAMES
from penstock.sharing.plan import unshared_plan

DATA = Path(__file__).parents[4] / "shared" / "data" / "packets"
COLUMNS = {
    "ts": "TIMESTAMP", "length": "INT", "version": "INT", "src": "INET", "dst": "INET", "proto": "INT",
    "ip_length": "INT", "sport": "INT", "dport": "INT", "tcp_flags": "INT",
}  # fmt: skip
ADDRESS = "concat_ws('.', {0} >> 24, ({0} >> 16) & 255, ({0} >> 8) & 255, {0} & 255)"
KEYS = {
    "length - length % 64": "length // 64 * 64",
    "src": ADDRESS.format("src"),
    "dst": ADDRESS.format("dst"),
    "src/24": f"concat({ADDRESS.format('(src >> 8 << 8)')}, '/24')",
    "dst/16": f"concat({ADDRESS.format('(dst >> 16 << 16)')}, '/16')",
}


def silent(text: str) -> None:
    pass


def small_capture(path: Path, times: list[int]) -> captures.Capture:
    """Packets of 0, 1, 2, ... bytes, numbered by their content."""
    with path.open("wb") as file:
        file.write(captures.file_header(1))
        for number, time in enumerate(times):
            stamp = np.array([time // 10**6, time % 10**6, number, number + 100], "<u4")
            file.write(stamp.tobytes() + bytes([number] * number))
    return captures.read_capture(path)


def records(path: Path) -> tuple[captures.Capture, list[bytes]]:
    """A file's packets: everything of each but its time."""
    capture = captures.read_capture(path)
    edges = [*capture.starts.tolist(), len(capture.data)]
    return capture, [capture.data[begin + 8 : end].tobytes() for begin, end in pairwise(edges)]


def test_repeated_capture_differs_in_times_only(tmp_path: Path) -> None:
    day = 86_400_000_000
    times = [10, 20, 19, 500, day, day + 400]  # one a microsecond back, one after a day of silence
    capture = small_capture(tmp_path / "once.pcap", times)
    assert capture.times.tolist() == times
    told = captures.replicate(capture, 15, tmp_path / "more.pcap")
    more, contents = records(tmp_path / "more.pcap")
    assert more.packets == len(told) == 15
    assert more.times.tolist() == told.tolist()
    once = records(tmp_path / "once.pcap")[1]
    assert contents == (once * 3)[:15]
    gaps = np.diff(told)
    assert gaps.tolist()[:5] == [10, -1, 481, captures.LONGEST_GAP, 400]
    assert gaps.tolist()[5] == captures.LONGEST_GAP
    assert np.array_equal(gaps[:5], gaps[6:11])
    assert (more.times[0], more.link) == (10, 1)


def test_prefix_of_a_capture(tmp_path: Path) -> None:
    capture = small_capture(tmp_path / "once.pcap", list(range(9)))
    captures.prefix(tmp_path / "once.pcap", 4, tmp_path / "first.pcap")
    first, contents = records(tmp_path / "first.pcap")
    assert first.times.tolist() == [0, 1, 2, 3]
    assert contents == records(tmp_path / "once.pcap")[1][:4]
    assert captures.prefix(tmp_path / "once.pcap", 99, tmp_path / "all.pcap").stat().st_size == 24 + len(capture.data)


def test_a_record_that_is_cut_off_is_left_out(tmp_path: Path) -> None:
    small_capture(tmp_path / "once.pcap", [1, 2, 3, 4])
    whole = (tmp_path / "once.pcap").read_bytes()
    (tmp_path / "cut.pcap").write_bytes(whole[:-1])
    assert captures.read_capture(tmp_path / "cut.pcap").packets == 3


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "some.pcap").write_bytes(b"\x0a\x0d\x0d\x0a" + bytes(40))
    with pytest.raises(SourceError, match="not a pcap file"):
        captures.read_capture(tmp_path / "some.pcap")
    (tmp_path / "some.pcap").write_bytes(b"")
    with pytest.raises(SourceError, match="not a pcap file"):
        captures.read_capture(tmp_path / "some.pcap")


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> traces.Trace:
    return traces.generated(tmp_path_factory.mktemp("packets"), 20_000, silent)


def test_generated_frames(generated: traces.Trace) -> None:
    capture = captures.read_capture(generated.file)
    made = capture.data.view(frames.FRAME)
    fields = generated.reference().fields
    assert capture.packets == len(fields) == 20_000
    assert np.array_equal(capture.times, fields["ts"].to_numpy())
    assert np.array_equal(made["src"], fields["src"].to_numpy())
    assert np.array_equal(made["length"], made["ip_length"] + frames.ETHERNET_BYTES)
    assert made["length"].min() >= made["captured"].max() == frames.SNAP
    header = np.ascontiguousarray(made.view(np.uint8).reshape(len(made), -1)[:, 30:50]).view(">u2").astype(int)
    total = header.sum(axis=1)
    assert set(((total & 0xFFFF) + (total >> 16)).tolist()) == {0xFFFF}
    assert set(fields["proto"].to_pylist()) == {1, 6, 17}
    assert fields["tcp_flags"].null_count == int((made["proto"] != 6).sum())


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_reference_is_what_duckdb_says(query: Any, generated: traces.Trace) -> None:
    """The same SELECT in DuckDB: keys as text, windows of the query."""
    reference = generated.reference()
    packets_table = reference.fields.append_column("w", pa.array(reference.times // (query.seconds * 10**6)))
    connection = duckdb.connect()
    connection.register("t", packets_table)
    keys = [f"{KEYS.get(key, key)} AS k{number}" for number, key in enumerate(query.keys)]
    text = f"SELECT {', '.join(keys)}, w, count(*) AS n, sum({query.value}) AS total"
    numbers = ", ".join(str(number + 1) for number in range(len(keys) + 1))
    text += f" FROM t {'WHERE ' + query.where if query.where else ''} GROUP BY {numbers}"
    if query.top:
        rank = "row_number() OVER (PARTITION BY w ORDER BY total DESC, min(src))"
        text += f" QUALIFY {rank} <= {query.top}"
    found = connection.sql(text).to_arrow_table()
    windows = found["w"].to_numpy() * query.seconds * 10**6
    columns = [found[f"k{number}"] for number in range(len(keys))]
    assert len(found) > 0
    expected = digest_answer(columns, windows, found["n"], found["total"].cast(pa.int64()))
    assert reference.digest(query, PacketScope(), 20_000) == expected


def tiny() -> Reference:
    """Four packets, twice: two of TCP (one opens), one of IPv6 without ports, one that is no IP."""
    fields = pa.table(
        {
            "version": [4, 4, 6, None], "src": ["1.2.3.4", "1.2.3.5", "::1", None],
            "dst": ["9.9.9.9", "9.9.9.9", "::", None],
            "proto": [6, 6, 58, None], "length": [60, 130, 90, 42], "ip_length": [46, 116, 76, None],
            "sport": [1, 2, None, None], "dport": [80, 80, None, None], "tcp_flags": [2, 0xC2, None, None],
        }
    )  # fmt: skip
    return Reference(fields, np.arange(8) * 10_000_000)


def test_scopes_of_answers() -> None:
    by_name = {query.name: query for query in QUERIES}
    reference = tiny()

    def rows(name: str, scope: PacketScope, count: int = 8) -> int:
        return int(reference.digest(by_name[name], scope, count).partition(":")[0])

    assert rows("talkers", PacketScope()) == 4 + 2  # six packets in the first minute, two in the second
    assert rows("talkers", PacketScope("ip", 0)) == 3
    assert rows("talkers", PacketScope("ipv4", 0)) == 2
    assert rows("talkers", PacketScope(), count=1) == 1
    assert rows("flows", PacketScope("transport", 0)) == rows("flows", PacketScope("ports", 0)) == 2
    assert rows("nets24", PacketScope()) == 3 + 2
    assert rows("scanned", PacketScope("all", 0)) == 1
    expected = digest_answer([pa.array(["1.2.3.4", "1.2.3.5"])], None, pa.array([2, 2]), pa.array([2, 2]))
    assert reference.digest(by_name["talkers"], PacketScope("ipv4", 0, bytes=False), 8) == expected
    nothing = digest_answer([pa.array([None, 6, 58])], None, pa.array([2, 4, 2]), pa.array([None, 324, 152]))
    assert reference.digest(by_name["protocols"], PacketScope("all", 0), 8) == nothing
    assert NOTHING == -1


def test_own_fields_stand_in_for_those_of_tshark(generated: traces.Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tshark is not installed only the grouping is checked, and the note says so."""
    monkeypatch.setattr(traces.shutil, "which", lambda command: None)
    trace = traces.repeated(generated.file.parent, generated.file, 25_000, silent)
    assert "those of penstock itself" in trace.note
    reference, expected = trace.reference(), generated.reference()
    for query in QUERIES:
        assert reference.digest(query, PacketScope("all", 0), 20_000) == expected.digest(
            query, PacketScope("all", 0), 20_000
        )


def test_app_is_resolved() -> None:
    fields = tuple(Field(name, TYPE_NAMES[kind]) for name, kind in COLUMNS.items())
    app = resolve_app(app_text("some.pcap"), "app", lambda uri, options: fields)
    assert [query.name for query in app.queries] == [query.name for query in QUERIES]
    assert len(QUERIES) == 12
    assert {query.seconds for query in QUERIES} == {10, 60, 300}
    plan = unshared_plan(app, "packets")
    assert [reader.query for reader in plan.readers] == [query.name for query in QUERIES]
    assert len(plan.relations) == 11  # two of the queries have the same groups


def test_dialects_are_of_known_queries() -> None:
    names = {query.name for query in QUERIES}
    assert set(NFDUMP) < names
    assert set(PMACCT) < names
    lines = packets_pmacct.configuration(PacketJob("some.pcap", 1, "work", 1, 0.0))
    assert "pcap_savefile: some.pcap" in lines
    assert "print_history[flows]: 5m" in lines
    assert sum(line.startswith("aggregate[") for line in lines) == len(PMACCT)


def test_fields_of_tshark() -> None:
    """An ICMP error quotes another packet's ports; an IPv6 packet's protocol stands in its last header."""
    known = dict.fromkeys(packet_fields.FIELDS, "")
    lines = [
        known | {"ip.version": "4", "ip.src": "1.1.1.1", "ip.proto": "1", "ip.len": "56", "tcp.srcport": "5"},
        known | {"ip.version": "4", "ip.src": "1.1.1.1", "ip.proto": "6", "ip.len": "40", "tcp.flags": "0x0012"},
        known | {"ipv6.version": "6", "ipv6.src": "::1", "ipv6.nxt": "0", "ipv6.hopopts.nxt": "58", "ipv6.plen": "8"},
        known,
    ]
    text = "\n".join(",".join((line | {"frame.time_epoch": "1.000002999"}).values()) for line in lines)
    found = packet_fields.parse(io.BytesIO(text.encode())).to_pydict()
    assert found["ts"] == [1_000_002] * 4
    assert found["version"] == [4, 4, 6, None]
    assert found["src"] == ["1.1.1.1", "1.1.1.1", "::1", None]
    assert found["proto"] == [1, 6, 58, None]
    assert found["ip_length"] == [56, 40, 48, None]
    assert found["sport"] == [None] * 4
    assert found["tcp_flags"] == [None, 0x12, None, None]


def test_endpoints_of_tshark() -> None:
    head = "=====\nIPv4 Endpoints\nFilter:<No Filter>\n   | Packets | | Bytes | |\n"
    text = head + "10.0.0.1   5  500  3 300  2 200\n10.0.0.2  2 200 0 0 2 200\n=====\nIPv6 Endpoints\n::1 1 1 1 1 1 1\n"
    assert packets_tshark._sent(text) == {"10.0.0.1": 3}


def fake_run(digests: dict[str, tuple[str, ...]]) -> Any:
    def run_engine(module: str, package: str, job: PacketJob, timeout: float) -> Answer | str:
        if job.mode.startswith("run"):
            return Answer("1", 2.0, job.rows, 9.0, digests["penstock"], cpu_seconds=4.0)
        if job.mode.startswith("whole"):
            return Answer("1", 4.0, job.rows, 9.0, digests["nfdump"], cpu_seconds=2.0)
        if module == "packets_nfdump":
            return Answer("1.7", 3.0, job.rows, 9.0, digests["nfdump"], cpu_seconds=2.0)
        if module == "packets_tshark":
            return "failed: no room"
        return Answer("1", 1.0, job.rows, 3.0, cpu_seconds=1.0)

    return run_engine


def test_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = traces.generated(tmp_path, 5000, silent).reference()
    right = tuple(reference.digest(query, PacketScope(), 5000) for query in QUERIES)
    monkeypatch.setattr(packets, "run_engine", fake_run({"penstock": right, "nfdump": ("wrong",) * 12}))
    there = {"nfpcapd", "nfdump", "tshark"}
    monkeypatch.setattr(packets.shutil, "which", lambda command: command if command in there else None)
    told: list[str] = []
    report = packets.run(work=tmp_path, rows=5000, quick=True, progress=told.append)
    lines = {line["engine"]: line for line in report["results"]}
    assert (report["name"], report["rows"]) == ("packets", 5000)
    assert list(lines) == [contender.name for contender in packets.CONTENDERS]
    for line in lines.values():
        assert {"engine", "version", "work", "seconds", "ratio_to_penstock", "same_answer", "note"} <= set(line)
    assert lines["penstock"]["same_answer"] is True
    assert lines["penstock"]["rows_per_core_second"] == 1250
    assert lines["nfdump"]["same_answer"] is False
    assert "these differ: protocols" in lines["nfdump"]["note"]
    assert (lines["nfdump"]["ratio_to_penstock"], lines["nfdump"]["core_ratio_to_penstock"]) == (1.5, 0.5)
    assert lines["penstock_decode"]["same_answer"] is None
    assert lines["tshark"]["note"] == "failed: no room"
    assert lines["pmacct"]["note"] == "not installed: apt install tshark nfdump pmacct"
    assert lines["pmacct"]["ratio_to_penstock"] is None
    assert any("20,000" in text or "5,000" in text for text in told)
    out = io.StringIO()
    table.show(report, Console(file=out, width=110))
    for text in ("generated: 12 queries", "/s/core", "1.2k", "1.50x", "DIFFERS", "same", "not installed"):
        assert text in out.getvalue()
    with pytest.raises(ConfigError, match=r"unknown engine 'ntop'\n.*nfdump"):
        packets.run(work=tmp_path, engines=["ntop"])


def test_command_hands_captures_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(command.WHAT) == set(command.BENCHMARKS)
    capture = small_capture(tmp_path / "mine.pcap", list(range(50)))
    assert capture.packets == 50
    monkeypatch.setattr(packets, "run_engine", lambda *_: "failed: not asked")
    out = io.StringIO()
    given = (["packets"], 120, True, ["penstock_decode"], tmp_path, Console(file=out, width=80))
    (report,) = command.run_benchmarks(*given, [tmp_path / "mine.pcap"])
    assert [line["work"] for line in report["results"]] == ["mine: 12 queries"]
    assert captures.read_capture(tmp_path / "mine-120.pcap").packets == 120


def test_processor_time_of_children(tmp_path: Path) -> None:
    """What outlives its parent is adopted, waited for and counted; in a process of its own, which may adopt."""
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    leaves = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {busy!r}])"
    code = (
        "import subprocess, sys; from benchmarks.measure import cpu\n"
        "cpu.adopt(); before = cpu.own_seconds()\n"
        f"subprocess.run([sys.executable, '-c', {leaves!r}], check=True); cpu.wait_for_all()\n"
        "print(cpu.own_seconds() - before, cpu.session_seconds())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, start_new_session=True
    )
    own, session = map(float, done.stdout.split())
    assert own >= 0.3
    assert session >= 0.3


@pytest.mark.parametrize("name", ["nfdump", "tshark", "tshark_tables"])
def test_tools_agree(tmp_path: Path, name: str) -> None:
    contender = next(c for c in packets.CONTENDERS if c.name == name)
    if any(shutil.which(command) is None for command in contender.commands):
        pytest.skip(packets.HOW)
    (line,) = packets.run(work=tmp_path, rows=4000, quick=True, engines=[name])["results"]
    assert line["same_answer"], line["note"]
    assert line["cpu_seconds"] > 0


@pytest.mark.skipif(not DATA.exists(), reason="no captures beside the repository")
@pytest.mark.skipif(shutil.which("nfpcapd") is None or shutil.which("tshark") is None, reason=packets.HOW)
def test_nfdump_agrees_on_a_capture(tmp_path: Path) -> None:
    capture = DATA / "campus_dns_1min_2017.pcap"
    report = packets.run(work=tmp_path, rows=40_000, engines=["nfdump"], captures=[capture])
    (line,) = report["results"]
    assert line["same_answer"], line["note"]
    assert line["rows"] == 40_000
