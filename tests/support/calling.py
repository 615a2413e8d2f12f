"""The command line in this process, on the session of the tests: all of it but the start of Spark."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class Caller:
    spark: SparkSession

    def run(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        from penstock.app import cli

        before = {number: signal.getsignal(number) for number in SIGNALS}
        out, err, code = StringIO(), StringIO(), 0
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr("penstock.runtime.spark.session.build_session", lambda *_: self.spark)
            patch.setattr("penstock.app.api.App.close", lambda self, wait=True: None)
            patch.setattr(sys, "argv", ["penstock", *arguments])
            if cwd is not None:
                patch.chdir(cwd)
            try:
                cli.main()
            except SystemExit as end:
                code = int(end.code or 0)
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())
