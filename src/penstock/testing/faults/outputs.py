"""What a run leaves for readers: rows of every query, files, leftovers, and whether that is what it should be.

`collect` reads the way users do, by a plain glob of each query's folder. `assert_same_output` compares with the
output of an undisturbed run.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.testing.asserts import assert_same_rows
from penstock.testing.faults.runs import Ended

NOISE = re.compile(
    r'Traceback \(most recent call last\):\n(?:  File ".*/pyspark/.*\n(?:    .*\n)*)+BrokenPipeError.*\n'
)


@dataclass(frozen=True)
class Output:
    """What a reader sees: rows per query, result files, and files that no reader should meet."""

    rows: dict[str, pa.Table]
    files: tuple[str, ...]
    leftovers: tuple[str, ...]

    def digests(self) -> dict[str, str]:
        return {name: digest(rows) for name, rows in self.rows.items()}


def collect(output: Path) -> Output:
    """Read every query's folder the way users do: a plain glob."""
    rows: dict[str, pa.Table] = {}
    files, leftovers = [], []
    for folder in sorted(path for path in output.iterdir() if path.is_dir()):
        tables = []
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(output))
            if path.parent == folder and path.suffix == ".parquet" and not path.name.startswith("."):
                files.append(name)
                tables.append(pq.read_table(path))
            elif path.is_file() and path.name != "_penstock.json":
                leftovers.append(name)
        rows[folder.name] = pa.concat_tables(tables) if tables else pa.table({})
    return Output(rows, tuple(files), tuple(leftovers))


def digest(rows: pa.Table) -> str:
    """The same for the same multiset of rows, in whatever order and files they come."""
    columns = [rows.column(name).to_pylist() for name in sorted(rows.column_names)]
    lines = sorted(map(repr, zip(*columns, strict=True)))
    return hashlib.blake2b("\n".join([*sorted(map(str, rows.schema)), *lines]).encode(), digest_size=16).hexdigest()


def assert_same_output(output: Path, reference: Output, story: str) -> None:
    """Every query has the rows of the reference, each once, and nothing else lies about."""
    found = collect(output)
    require(sorted(found.rows) == sorted(reference.rows), f"{story}\nqueries {sorted(found.rows)}")
    expected = reference.digests()
    for name, rows in found.rows.items():
        if digest(rows) != expected[name]:
            assert_same_rows(rows, reference.rows[name], f"{story}\nquery {name}")
            raise AssertionError(f"{story}\nquery {name}: digests differ")
    require(not found.leftovers, f"{story}\n{found.leftovers}")


def said(ended: Ended) -> str:
    """What a run told its user, without what PySpark's own daemons print if their JVM ends before them."""
    return NOISE.sub("", ended.messages)


def assert_one_message(ended: Ended, story: str) -> None:
    """A run that failed said so once, in a fact and a hint, with exit code 1 (2: it refused to start)."""
    story = f"{story}\nexit {ended.code}\n{ended.messages[-3000:]}"
    require(ended.code in (1, 2) and re.fullmatch(r"error: .+\n  hint: .+\n", said(ended)) is not None, story)


def assert_no_traceback(ended: Ended, story: str) -> None:
    """Whatever happened, a user sees no traceback through our code (PySpark's daemons may be noisy when they end)."""
    require(not re.search(r'File ".*/penstock/', ended.messages), f"{story}\n{ended.messages[-3000:]}")


def require(holds: bool, story: str) -> None:
    """`assert` that no option of Python's switches off."""
    if not holds:
        raise AssertionError(story)
