"""Windows and panes: which windows hold a record, which panes make up a window, what a watermark closes.

A window slides along an *axis*: the stream's time in microseconds, or the position of a record in the stream. A third
axis has one place, where all records are: a query without a window is one window there, which ends with the stream.
Window k is [k·slide, k·slide + range). A landmark window starts at a fixed place and ends at (k + 1)·slide.

A *pane* is the finest piece of the axis that no window cuts: one per slide where the slide divides the
range, else two, [k·slide, k·slide + range mod slide) and the rest. Records are aggregated by pane; a window is
made of the panes [k·n, k·n + m), so that overlapping windows, and queries with the same panes, share the work.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

TIME, ROWS, ALL, LAST = "time", "rows", "all", "last"
Places = TypeVar("Places", int, Any)  # one place on an axis, or an array of them


@dataclass(frozen=True)
class Panes:
    """Where an axis is cut: at k·slide and, unless `cut` is 0, at k·slide + cut."""

    axis: str
    slide: int
    cut: int = 0

    @cached_property
    def per_slide(self) -> int:
        return 2 if self.cut else 1

    def made_of(self, finer: Panes) -> bool:
        """Whether each of these is made of some whole ones of others, or is one of them."""
        if self == finer:
            return True
        return self.axis == finer.axis and not self.cut and not finer.cut and self.slide % finer.slide == 0

    def of(self, finer: Panes, panes: Places) -> Places:
        """Which of these hold finer ones."""
        return panes if self == finer else panes // (self.slide // finer.slide)

    def number(self, place: int) -> int:
        """The pane of one place on the axis (`kernels.tables.pack.pane_number` does whole columns)."""
        if not self.cut:
            return place // self.slide
        return 2 * (place // self.slide) + int(place % self.slide >= self.cut)

    def start(self, pane: int) -> int:
        """Where a pane begins."""
        if not self.cut:
            return pane * self.slide
        return pane // 2 * self.slide + (self.cut if pane % 2 else 0)


@dataclass(frozen=True)
class Window:
    """`range` is None for a landmark window, [first, (k + 1)·slide).

    On the axis LAST, of joins, a window is the last `range` records before an instant, k·slide + `cut`: it has no
    length, and reaches back as far as need be.
    """

    range: int | None
    slide: int
    axis: str = TIME
    cut: int = 0

    @cached_property
    def landmark(self) -> bool:
        return self.range is None

    @cached_property
    def whole(self) -> bool:
        """Whether it holds all records: results have no columns of the window then."""
        return self.axis == ALL

    @cached_property
    def counted(self) -> bool:
        """Whether it is a number of records that are the last at an instant."""
        return self.axis == LAST

    @cached_property
    def tumbling(self) -> bool:
        return self.range == self.slide and not self.counted

    @cached_property
    def length(self) -> int:
        """From k·slide to the end of window k."""
        if self.counted:
            return self.slide + self.cut
        return self.slide if self.range is None else self.range

    @cached_property
    def single(self) -> bool:
        """Whether each window is one pane, of the same number."""
        return self.tumbling and self.per_slide == 1

    @cached_property
    def gaps(self) -> bool:
        """Whether some places lie in no window."""
        return self.length < self.slide

    @cached_property
    def panes(self) -> Panes:
        return Panes(TIME if self.counted else self.axis, self.slide, self.length % self.slide)

    @cached_property
    def per_slide(self) -> int:
        """How many panes there are for each slide."""
        return self.panes.per_slide

    def over(self, panes: Panes) -> Window:
        """The same windows, made of other panes, which may be finer than need be."""
        if panes == self.panes:
            return self
        if not self.panes.made_of(panes) or self.landmark or self.counted:
            raise ValueError(f"{self} cannot be made of {panes}")
        return FinerWindow(self.range, self.slide, self.axis, self.cut, panes.slide)

    def end(self, window: int) -> int:
        return window * self.slide + self.length

    def first_open(self, watermark: int | None) -> int | None:
        """The first window that ends after the watermark; None: all are open."""
        return None if watermark is None else (watermark - self.length) // self.slide + 1

    def first_pane(self, window: int) -> int:
        """The first pane of a window that is not a landmark."""
        return window * self.per_slide

    def beyond_pane(self, window: int) -> int:
        """The pane after a window's last one."""
        whole, rest = divmod(self.length, self.slide)
        return (window + whole) * self.per_slide + (1 if rest else 0)

    @cached_property
    def reach(self) -> int:
        """How many panes a window is made of; a landmark window of any number."""
        return 1 << 62 if self.landmark or self.counted else self.beyond_pane(0) - self.first_pane(0)

    def first_window(self, pane: Places) -> Places:
        """The first window that holds a pane, given that one does; also of many panes at once."""
        whole, rest = divmod(self.length, self.slide)
        slide, second = pane // self.per_slide, pane % self.per_slide
        return slide - whole + (1 if not rest else second)

    def last_window(self, pane: Places) -> Places:
        """The last window that holds a pane, given that one does and that it is not a landmark."""
        return pane // self.per_slide


@dataclass(frozen=True)
class FinerWindow(Window):
    """Windows whose slide and range are some whole panes of another query's, each so long."""

    pane: int = 1

    @cached_property
    def panes(self) -> Panes:
        return Panes(self.axis, self.pane)

    @cached_property
    def per_slide(self) -> int:
        return self.slide // self.pane

    def beyond_pane(self, window: int) -> int:
        return (window * self.slide + self.length) // self.pane

    def first_window(self, pane: Places) -> Places:
        return (pane - self.length // self.pane) // self.per_slide + 1


ALL_RECORDS = Window(1, 1, ALL)
