"""`penstock state`: what a checkpoint holds, read from its newest manifest; works beside a live run."""

from __future__ import annotations

from typing import Any

from penstock.errors import ConfigError
from penstock.monitor.progress import time_text
from penstock.sharing.explain import duration_text
from penstock.state import identity, lease
from penstock.state import manifest as manifests
from penstock.state.files import local_path
from penstock.state.manifest import Manifest, open_windows


def state_of(checkpoint: str) -> dict[str, Any]:
    path = local_path(checkpoint, "checkpoint")
    if not (path / identity.NAME).exists():
        raise ConfigError(f"{path} is not a checkpoint of penstock", "give the folder of run --checkpoint")
    known_as = identity.load(path)
    manifest = manifests.newest(path)
    owner = lease.holder(path)
    known: dict[str, Any] = {
        "checkpoint": str(path),
        "id": known_as["id"],
        "queries": known_as["queries"],
        "slots": known_as["slots"],
        "owner": None if owner is None else {"host": owner["host"], "process": owner["processes"][0][0]},
        "files": {"segments": len(list((path / "segments").glob("*.seg"))), "manifests": len(manifests.batches(path))},
    }
    return known | (_manifest_state(manifest) if manifest else {"batch": None})


def _manifest_state(manifest: Manifest) -> dict[str, Any]:
    sizes = sorted({int(size) for segment in manifest.segments for size in segment["windows"]})
    return {
        "batch": manifest.batch,
        "ended": manifest.ended,
        "watermark": manifest.watermark,
        "greatest_time": manifest.greatest,
        "plan_version": manifest.plan_version,
        "offset": manifest.offset,
        "segments": [{"path": s["path"], "bytes": s["bytes"]} for s in manifest.segments],
        "bytes": sum(segment["bytes"] for segment in manifest.segments),
        "panes": {str(size): open_windows(manifest, size) for size in sizes},
        "results": manifest.results,
        "accounting": manifest.account,
        "work": manifest.work,
    }


def state_text(found: dict[str, Any]) -> str:
    owner = found["owner"]
    holder = "none: free to run" if owner is None else f"process {owner['process']} on {owner['host']}"
    ended = " (the source has ended)" if found.get("ended") else ""
    lines = [
        f"checkpoint  {found['checkpoint']}",
        f"owner       {holder}",
        f"queries     {', '.join(found['queries'])}",
    ]
    if found["batch"] is None:
        return "\n".join([*lines, "no batch committed yet"])
    watermark = "none yet" if found["watermark"] is None else time_text(found["watermark"])
    lines += [
        f"batch       {found['batch']}{ended}, at row {found['offset']['row']:,}",
        f"watermark   {watermark}",
        f"segments    {len(found['segments'])} live, {found['bytes']:,} bytes; {found['files']['segments']} files",
        f"plan        version {found['plan_version']}, {found['slots']} slots",
    ]
    for size, windows in found["panes"].items():
        if windows:
            first, last = (time_text(int(size) * number) for number in (windows[0], windows[-1]))
            lines.append(f"panes       {len(windows)} open of {duration_text(int(size))}: {first} to {last}")
    stream = found["accounting"]["stream"]
    lines.append("account     " + ", ".join(f"{part} {count:,}" for part, count in stream.items()))
    for reason, count in found["accounting"]["malformed"].items():
        lines.append(f"            malformed: {reason}: {count:,}")
    return "\n".join(lines)
