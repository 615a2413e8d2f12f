"""The commands of the command line, a module each.

| module | has |
| --- | --- |
| `commands` | where they are registered, and standard error |
| `environment` | options from the environment: `PENSTOCK_...` |
| `options` | options and arguments that several of them have |
| `loading`, `watching` | the app that is named; a run with its progress |
| `lines` | whether that is a bar, or lines of a log |
| `query`, `check`, `explain`, `run`, `generate`, `state`, `prepare` | the command of that name |
| `light` | keeps typer from loading what is not needed |
| `checkout` | `bench` and `reproduce`, which need a checkout |

May touch everything; loads nothing heavy before a command is called.
"""

from __future__ import annotations
