"""Sizes and counts as people write them: `256KiB`, `2GiB`, `500k`; of options of commands and of settings in Python.

`sized` is what `app.api` gives all settings through, `size` and `count` read single options of the command line.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from penstock.errors import ConfigError
from penstock.lang.sizes import BYTES, DECIMAL, number_of

SIZES = ("memory", "task_memory")
COUNTS = ("batch_rows", "chunk_rows", "table_rows", "slots", "parallelism")
_ROWS = {"": 1, **DECIMAL}
_SIZE_HINT = "write bytes, or a unit with them: 262144, 256KiB, 64MiB, 2GiB"
_COUNT_HINT = "write a whole number, such as 500000, 500k or 2M"


def size(text: str, option: str) -> int:
    """Bytes that an option gives.

    >>> [size(text, "--memory") for text in ("262144", "256KiB", "2 GiB", "1.5MB", "2g")]
    [262144, 262144, 2147483648, 1500000, 2147483648]
    """
    found = number_of(text, BYTES)
    if found is None:
        raise ConfigError(f"{option} {text} is no size", _SIZE_HINT)
    return found


def count(text: str, option: str) -> int:
    """A number of rows or tasks that an option gives.

    >>> [count(text, "--batch-rows") for text in ("500000", "500_000", "500k", "1.5M")]
    [500000, 500000, 500000, 1500000]
    """
    found = number_of(text, _ROWS)
    if found is None:
        raise ConfigError(f"{option} {text} is no whole number", _COUNT_HINT)
    return found


def sized(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings from Python with all sizes and counts as whole numbers."""
    return {name: _setting(name, value) for name, value in settings.items()}


def _setting(name: str, value: Any) -> Any:
    if value is None or name not in (*SIZES, *COUNTS):
        return value
    whole = None
    if isinstance(value, str):
        whole = number_of(value, BYTES if name in SIZES else _ROWS)
    elif not isinstance(value, bool):
        with suppress(TypeError):
            whole = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)
    if whole is None:
        what, hint = ("a size", _SIZE_HINT) if name in SIZES else ("a whole number", _COUNT_HINT)
        raise ConfigError(f"{name} must be {what}, not {value!r}", hint)
    return whole
