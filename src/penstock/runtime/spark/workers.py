"""The Python that Spark starts its processes with, where they run on this machine.

Spark puts archives of its own Python sources first on their path. Nothing of an archive is kept compiled: each of the
five processes of a run took half a second for that. PySpark is installed here anyway; the launcher takes those archives
off the path again. Where Spark asks for its own daemon, the launcher starts one that ends quietly (`quiet`).
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyspark

from penstock.runtime.spark import launchers

NAME = "penstock-python"
# Spark's archives come first; what the user has on the path follows.
LAUNCHER = """#!/bin/sh
kept=
rest=$PYTHONPATH:
while [ -n "$rest" ]; do
  place=${{rest%%:*}}
  rest=${{rest#*:}}
  case "$place" in
    "{spark}"/*.zip | "{spark}"/*.jar | "") ;;
    *) kept=$kept${{kept:+:}}$place ;;
  esac
done
if [ -n "$kept" ]; then export PYTHONPATH="$kept"; else unset PYTHONPATH; fi
if [ "$1 $2" = "-m pyspark.daemon" ]; then
  shift 2
  set -- -m penstock.runtime.spark.quiet "$@"
fi
exec "{python}" "$@"
"""


def worker_python() -> str:
    """The path of that launcher; of Python itself, where a path could be misread by a shell."""
    spark = str(Path(pyspark.__file__).parent)
    if any(sign in spark + sys.executable for sign in '"$`\\*?['):
        return sys.executable
    try:
        home = launchers.install(NAME, LAUNCHER.format(spark=spark, python=sys.executable))
    except OSError:  # no place for it: slower, and nothing else
        return sys.executable
    return str(home / "bin" / NAME)
