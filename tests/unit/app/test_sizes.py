"""Sizes and counts, as people write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.app.api import App
from penstock.app.sizes import count, size, sized
from penstock.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("262144", 1 << 18), ("256 kib", 1 << 18), ("256K", 1 << 18), ("1.5GiB", 3 << 29), ("2TB", 2 * 10**12)],
)
def test_size(text: str, expected: int) -> None:
    assert size(text, "--memory") == expected


@pytest.mark.parametrize("text", ["", "-1", "1.5", "12 parrots", "KiB", "1e6", "0x10", "1 2", "٣٣ parrots"])
def test_no_size(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--memory .*is no size"):
        size(text, "--memory")


def test_count() -> None:
    assert [count(text, "--rows") for text in ("10", "1_000", "2k", "0.5m", "1G")] == [10, 1000, 2000, 500_000, 10**9]
    with pytest.raises(ConfigError, match="500KiB is no whole number"):
        count("500KiB", "--rows")


@pytest.mark.parametrize("value", ["many", 2.5, True, object(), [1]])
def test_settings_that_are_no_numbers(value: Any) -> None:
    with pytest.raises(ConfigError, match="batch_rows must be a whole number"):
        sized({"batch_rows": value})


def test_settings_of_python() -> None:
    given = {"memory": "256KiB", "batch_rows": np.int64(7), "slots": 2.0, "task_memory": None, "until": "end"}
    expected = {"memory": 1 << 18, "batch_rows": 7, "slots": 2, "task_memory": None, "until": "end"}
    assert sized(given) == expected


def test_an_app_takes_sizes() -> None:
    app = App(master="process").stream("s", "generate:uniform", options={"rows": "1000"})
    app.query("q", "SELECT a, count(*) AS n FROM s [RANGE '1 minute'] GROUP BY a")
    app.check(memory="64KiB", batch_rows="500k", task_memory="1GiB")
    with pytest.raises(ConfigError, match="task_memory must be a size"):
        app.check(task_memory="lots")
    with pytest.raises(ConfigError, match="batch_rows must be a whole number"):
        app.start(batch_rows="many")
