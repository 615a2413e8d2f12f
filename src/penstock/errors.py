"""Every error a user can meet, with one root.

`lang` raises `QueryError` with a place in the text; sources, sinks and state raise the others.  `app.cli`
turns the first three kinds into exit code 2 and `RunError` into exit code 1; anything else that escapes is
a bug of ours and keeps its traceback.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

LONGEST_SHOWN = 120  # letters of a file's line


class PenstockError(Exception):
    """Root of all errors meant for users: a lower-case fact, then a hint that says what to do."""

    def __init__(self, fact: str, hint: str = "") -> None:
        super().__init__(fact)
        self.fact = fact
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.fact}\n  hint: {self.hint}" if self.hint else self.fact


@dataclass(frozen=True)
class TextPlace:
    """Where in an app's text: 1-based line and column, and how many characters the caret underlines."""

    line: int
    column: int
    width: int = 1


class QueryError(PenstockError):
    """The app's text is wrong: syntax, names, types, or something not executable yet."""

    def __init__(
        self, fact: str, hint: str = "", *, text: str = "", file: str = "", place: TextPlace | None = None
    ) -> None:
        super().__init__(fact, hint)
        self.text = text
        self.file = file
        self.place = place

    def __str__(self) -> str:
        if self.place is None or not self.text:
            head = f"{self.file}: {self.fact}" if self.file else self.fact
            return f"{head}\n  hint: {self.hint}" if self.hint else head
        lines = self.text.splitlines() or [""]
        line = lines[min(self.place.line, len(lines)) - 1]
        head = f"{self.file or 'app'}:{self.place.line}:{self.place.column}: {self.fact}"
        shown = f"{head}\n{pointed(line, self.place)}"
        return f"{shown}\n  hint: {self.hint}" if self.hint else shown


def pointed(line: str, place: TextPlace) -> str:
    """A line with its number, and carets under a part of it."""
    number = str(place.line)
    # Tabs keep their width in the caret line, so the caret stands under the word in any terminal.
    lead = "".join("\t" if c == "\t" else " " for c in line[: place.column - 1])
    caret = "^" * max(1, min(place.width, len(line) - place.column + 1))
    return f"  {number} | {line}\n  {' ' * len(number)} | {lead}{caret}"


def why(error: OSError) -> str:
    """What the system says about a file or folder, in words that tell what is wrong."""
    if isinstance(error, FileExistsError):  # of mkdir
        return f"'{error.filename}' is not a folder"
    # Arrow puts sentences of its own around what the system says.
    return os.strerror(error.errno) if error.errno else str(error).strip().partition("\n")[0]


class ConfigError(PenstockError):
    """An option, environment or folder that cannot work: Java, memory, checkpoint, output."""


class SourceError(PenstockError):
    """A source cannot be opened or does not fit its stream: missing file, wrong column, wrong type.

    `line` is one of a file, with the place in it that is wrong.
    """

    def __init__(self, fact: str, hint: str = "", *, line: str = "", place: TextPlace | None = None) -> None:
        super().__init__(fact, hint)
        self.line, self.place = line, place

    def __str__(self) -> str:
        if self.place is None:
            return super().__str__()
        shown, place = self.line, self.place
        if len(shown) > LONGEST_SHOWN:
            cut = max(0, place.column - 1 - LONGEST_SHOWN // 4)
            shown = f"...{shown[cut : cut + LONGEST_SHOWN]}..."
            place = TextPlace(place.line, place.column - cut + 3, min(place.width, LONGEST_SHOWN))
        shown = "".join(c if c.isprintable() or c == "\t" else "?" for c in shown)
        return f"{self.fact}\n{pointed(shown, place)}\n  hint: {self.hint}"


class StateError(PenstockError):
    """A checkpoint is damaged, held by another run, or belongs to another app."""


class RunError(PenstockError):
    """The run failed while running: overflow, full disk, a killed worker, a corrupt segment."""
