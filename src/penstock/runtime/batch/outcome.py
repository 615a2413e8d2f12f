"""What a task tells the driver: its report, or the error that ended it, as text.

Errors meant for users travel as data: an engine would wrap them in traces of its own.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable
from typing import TypeVar

import pyarrow as pa

from penstock.errors import PenstockError, RunError
from penstock.state.data import from_data, to_data

T = TypeVar("T")


def told(task: int, run: Callable[[], object], failed: Callable[[OSError], str]) -> str:
    """Run a task; `failed` says in a sentence what an error of the system kept it from."""
    try:
        said = {"report": to_data(run())}
    except PenstockError as error:
        said = {"error": {"fact": error.fact, "hint": error.hint}}
    except OSError as error:
        said = {"error": {"fact": failed(error), "hint": "make room or mend the disk, then run again"}}
    return json.dumps({"task": task, **said})


def told_batch(column: str, text: str) -> pa.RecordBatch:
    """A row with what a task tells. From buffers: to make an array of Python's text, pyarrow first loads pandas."""
    raw = text.encode()
    ends = pa.py_buffer(struct.pack("=2i", 0, len(raw)))
    return pa.RecordBatch.from_arrays([pa.StringArray.from_buffers(1, ends, pa.py_buffer(raw))], names=[column])


def heard(texts: Iterable[str], kind: type[T]) -> list[T]:
    """The reports in the order of their tasks; an error that a task told of is raised here."""
    said = sorted((json.loads(text) for text in texts), key=lambda one: int(one["task"]))
    for one in said:
        if "error" in one:
            raise RunError(one["error"]["fact"], one["error"]["hint"])
    return [from_data(kind, one["report"], f"the report of task {one['task']}") for one in said]
