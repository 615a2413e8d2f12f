"""The Spark peers give pyarrow's answers; slow, because each starts a session of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.bench import multiquery


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spark_streaming", "spark_grouping_sets"])
def test_spark_peers_agree(tmp_path: Path, name: str) -> None:
    (line,) = multiquery.run(work=tmp_path, rows=100_000, quick=True, engines=[name])["results"]
    assert line["same_answer"], line["note"]
    assert line["rows_per_second"] > 0
