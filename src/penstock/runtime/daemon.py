"""spark.python.daemon.module: import and compile once, before the Python workers fork.

Every task then finds the kernels compiled and pyarrow loaded; a fresh worker costs a fork.
"""

from __future__ import annotations

from pyspark import daemon

import penstock.sources.registry  # noqa: F401

if __name__ == "__main__":
    daemon.manager()
