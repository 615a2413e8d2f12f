"""`penstock state`: what a checkpoint holds, read from its newest manifest; works beside a live run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.errors import ConfigError
from penstock.logical.query import Query
from penstock.logical.window import TIME, Panes
from penstock.monitor.account import time_text
from penstock.relations.relation import Relation
from penstock.runtime.batch.close import open_floor
from penstock.runtime.merge.items import FOREVER
from penstock.runtime.run.summary import shown_watermark
from penstock.sharing.explain import window_text
from penstock.state import identity, lease, versions
from penstock.state import manifest as manifests
from penstock.state.data import to_data
from penstock.state.files import local_path
from penstock.state.manifest import Manifest
from penstock.state.protocol import Results
from penstock.state.versions import Version
from penstock.state.windows import accounted, listed, overdue

WINDOWS = 100  # closed windows of a query that are listed


def state_of(checkpoint: str, most: int = WINDOWS) -> dict[str, Any]:
    """What `penstock state --json` prints; `most` is the number of closed windows to list of each query."""
    path = local_path(checkpoint, "checkpoint")
    if not (path / identity.NAME).exists():
        raise ConfigError(f"{path} is not a checkpoint of penstock", "give the folder of run --checkpoint")
    known_as = identity.load(path)
    manifest = manifests.newest(path)
    owner = lease.holder(path)
    number = versions.newest(path)
    version = versions.load(path, number) if number is not None else None
    known: dict[str, Any] = {
        "checkpoint": str(path),
        "id": known_as.id,
        "queries": [query.name for query in version.app.queries if not query.hidden] if version else [],
        "slots": known_as.slots,
        "plan_version": number,
        "owner": None if owner is None else {"host": owner.host, "process": owner.processes[0][0]},
        "files": {"segments": len(list((path / "segments").glob("*.seg"))), "manifests": len(manifests.batches(path))},
    }
    return known | (_manifest_state(path, manifest, most) if manifest else {"batch": None})


def _manifest_state(path: Path, manifest: Manifest, most: int) -> dict[str, Any]:
    version = versions.load(path, manifest.offset.plan)
    shown = to_data(manifest)
    return {
        "batch": manifest.batch,
        "ended": manifest.ended,
        "watermark": shown_watermark(manifest.watermarks),
        "streams": shown["streams"],
        "offset": shown["offset"],
        "segments": [{name: one[name] for name in ("path", "bytes", "panes")} for one in shown["segments"]],
        "bytes": manifest.kept_bytes,
        "manifest_bytes": manifests.path_of(path, manifest.batch).stat().st_size,
        "volume": shown["volume"],
        "bytes_read_per_window": manifest.volume.read // manifest.windows if manifest.windows else 0,
        "panes": {query.name: _open_panes(query, version, manifest) for query in version.app.queries},
        "results": shown["results"],
        "accounting": shown["account"],
        "windows": _windows(path, manifest, version, most),
        "work": shown["work"],
    }


def _windows(path: Path, manifest: Manifest, version: Version, most: int) -> dict[str, Any]:
    """The account of closed windows, by query, those that were dropped at the end."""
    names = [query.name for query in version.app.queries if not query.hidden]
    names += sorted(accounted(path) & manifest.results.keys() - set(names))
    closed = {name: manifest.results.get(name, Results()).windows for name in names}
    found = {}
    for name, count in closed.items():
        late = overdue(path, name, count)
        told = {"closed": count} | ({} if late is None else {"overdue": late})
        found[name] = {**told, "kept": listed(path, name, count, most)}
    return found


def _open_panes(query: Query, version: Version, manifest: Manifest) -> dict[str, Any] | None:
    """First and last pane that an open window of a query holds; None: there is none."""
    reads, panes = version.reads(query), query.window.panes
    # What is stored in shorter panes is told of in those of the query.
    floor = min(_longer(panes, one, open_floor(version.app, query, window, manifest.streams)) for one, window in reads)
    stored = {relation.name: relation for relation, _ in reads}
    held = [(stored[name], ends) for s in manifest.segments for name, ends in s.panes.items() if name in stored]
    found = [(_longer(panes, one, low), _longer(panes, one, high)) for one, (low, high) in held]
    if not found or max(high for _, high in found) < floor:
        return None
    first, last = max(floor, min(low for low, _ in found)), max(high for _, high in found)
    return {
        "window": window_text(query.window),
        "axis": panes.axis,
        "first": first,
        "last": last,
        "from": panes.start(first),
        "to": panes.start(last + 1),
    }


def _longer(panes: Panes, relation: Relation, number: int) -> int:
    finer = relation.panes
    return panes.of(finer, number) if panes.made_of(finer) and abs(number) < FOREVER else number


def state_text(found: dict[str, Any]) -> str:
    owner = found["owner"]
    holder = "none: free to run" if owner is None else f"process {owner['process']} on {owner['host']}"
    ended = " (the sources have ended)" if found.get("ended") else ""
    lines = [
        f"checkpoint  {found['checkpoint']}",
        f"owner       {holder}",
        f"queries     {', '.join(found['queries'])}",
    ]
    if found["batch"] is None:
        return "\n".join([*lines, "no batch committed yet"])
    volume = found["volume"]
    lines += [f"batch       {found['batch']}{ended}", *_stream_lines(found)]
    lines += [
        f"segments    {len(found['segments'])} live, {found['bytes']:,} bytes; {found['files']['segments']} files",
        f"written     {volume['written']:,} bytes by tasks",
        f"compacted   {volume['compacted']:,} bytes written by {volume['compactions']:,} compactions",
        f"read        {volume['read']:,} bytes to close windows, {found['bytes_read_per_window']:,} a window",
        f"results     {volume['results']:,} bytes given to sinks",
        f"manifest    {found['manifest_bytes']:,} bytes",
        f"plan        version {found['plan_version']}, {found['slots']} slots",
    ]
    for name, panes in found["panes"].items():
        if panes:
            lines.append(f"panes       {name}, {panes['window']}: {_panes_text(panes)}")
    for name, entry in found["accounting"]["streams"].items():
        lines.append(f"account     {name}: " + ", ".join(f"{part} {count:,}" for part, count in entry.items()))
        for reason, count in found["accounting"]["malformed"].get(name, {}).items():
            places = "; ".join(found["accounting"]["places"].get(name, {}).get(reason, []))
            lines.append(f"            malformed: {reason}: {count:,}" + (f" (first: {places})" if places else ""))
    lines += [f"windows     {name}: {_windows_text(windows)}" for name, windows in found["windows"].items()]
    return "\n".join(lines)


def _stream_lines(found: dict[str, Any]) -> list[str]:
    lines = []
    for name in found["offset"]["streams"]:
        state = found["streams"][name]
        watermark = "none yet" if state["watermark"] is None else time_text(state["watermark"])
        lines.append(f"stream      {name}: at row {state['row']:,}, watermark {watermark}{_waiting(found, name)}")
    return lines


def _waiting(found: dict[str, Any], name: str) -> str:
    """What waited in a live stream when the newest batch was decided."""
    offset = found["offset"]["streams"][name]
    if "arrived" not in offset:
        return ""
    queued = max(0, offset["arrived"] - offset["row"])
    return f", {queued:,} records waiting, {offset.get('rate', 0.0):,.0f} a second arriving"


def _windows_text(windows: dict[str, Any]) -> str:
    closed = f"{windows['closed']:,} closed"
    if not windows["kept"]:
        return closed
    last = windows["kept"][-1]
    counts = ", ".join(f"{part} {last[part]:,}" for part in ("exact", "triaged", "rows"))
    if "delay" in last:
        counts += f", {last['delay'] / 1e6:.2f} s after its end"
    late = windows.get("overdue", 0)
    closed += f" ({late:,} later than promised)" if late else ""
    return f"{closed}, the newest from {time_text(last['start'])} to {time_text(last['end'])}: {counts}"


def _panes_text(panes: dict[str, Any]) -> str:
    places = (panes["from"], panes["to"])
    first, last = (time_text(place) if panes["axis"] == TIME else f"row {place:,}" for place in places)
    return f"{panes['last'] - panes['first'] + 1:,} open, from {first} to {last}"
