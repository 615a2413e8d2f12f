"""Live streams, batch by batch: what has arrived, which windows it closes, what of it is read (`penstock.triage`).

| module | does |
| --- | --- |
| `dues` | which windows of a stream are to close, from which instant on and until when |
| `decide` | asks the scheduler for the next batch, and says in the offset all that a replay must know |
| `given_up` | which records have waited longer than their source keeps them |
| `timings` | what batches took, for the scheduler's costs |
| `unread` | the account of records that nobody looks at, and of those that were dropped |
| `patience` | what of the driver's own work waits in a burst |
| `arrivals` | how much waits, and how late results come, for observers |
| `delays` | how long after the end of its windows a query's results came |
"""

from __future__ import annotations
