"""Spark itself, without anything of penstock's work.

| module | does |
| --- | --- |
| `java` | finds a Java runtime |
| `session` | starts Spark with the settings that matter |
| `gone` | tells that the JVM has ended under a run |
| `daemon` | the process that Spark's Python workers are forked from |

May touch the root of `runtime`.
"""

from __future__ import annotations
