"""Spark itself, without anything of penstock's work.

| module | does |
| --- | --- |
| `java`, `workers` | find a Java runtime, and the Python of Spark's processes |
| `launchers` | small programs in between, and where they are kept |
| `archive` | the classes of Spark in a form that starts faster |
| `conf` | settings and masters that users give |
| `session` | starts Spark with the settings that matter, or joins the one that is there |
| `master` | waits for a master and for workers, and not for ever |
| `probe` | looks at the workers before a run |
| `gone` | tells that the JVM has ended under a run |
| `quiet` | Spark's daemon without its last traceback |
| `daemon` | the process that Spark's Python workers are forked from |

May touch the root of `runtime`.
"""

from __future__ import annotations
