"""Records that waited longer than their source keeps them: the log says so once for each stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from logging import WARNING

from penstock.logical.owed import owing
from penstock.logs import tell
from penstock.runtime.batch.held import Held
from penstock.runtime.batch.report import BatchReport
from penstock.state.manifest import Manifest
from penstock.triage.picks import DROP


@dataclass
class TellGivenUp:
    """An observer of batches."""

    held: Held
    told: set[str] = field(default_factory=set)

    def __call__(self, report: BatchReport, manifest: Manifest) -> None:
        for name, offset in report.offset.streams.items():
            stop = next((stop for stop, k in offset.ranges if k == DROP), None)
            if stop is not None and name not in self.told:
                self._tell(name, stop)

    def _tell(self, name: str, stop: int) -> None:
        app = self.held.version.app
        readers = [query for query in app.queries if name in {root.name for root in app.roots(query)}]
        if any(query.promise is not None for query in readers):
            return  # --overload drop, which is no news
        self.told.add(name)
        declared = owing(name) or name
        kept = next((text for key, text in app.stream(name).options if key.lower() == "kept"), "")
        names = ", ".join(f"'{query.name}'" for query in readers)
        text = (
            f"records of the stream '{declared}' are given up, now those before record {stop:,}: they waited longer "
            f"than {kept} for {names}, which count them as triaged and lack them in their results"
        )
        hint = "; keep them longer (option 'kept'), run fewer queries, or give the run more cores"
        tell("given_up", text + hint, WARNING, stream=declared, before=stop, queries=[query.name for query in readers])
