"""Windows and panes against brute force: every place, pane and window tried one by one."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.kernels.tables.pack import pane_number
from penstock.logical.window import ROWS, Panes, Window

SLIDES = range(1, 9)
RANGES = range(1, 26)
PLACES = range(-40, 40)
NUMBERS = range(-70, 50)  # of windows: all that can hold one of the places
WINDOWS = [Window(size, slide) for size in RANGES for slide in SLIDES] + [Window(None, slide) for slide in SLIDES]


def holds(window: Window, number: int, place: int) -> bool:
    """By definition; a landmark window holds everything before its end."""
    end = number * window.slide + window.length
    return place < end and (window.landmark or number * window.slide <= place)


def holders(window: Window, place: int) -> list[int]:
    return [number for number in NUMBERS if holds(window, number, place)]


@pytest.mark.parametrize("slide", SLIDES)
def test_no_window_cuts_a_pane(slide: int) -> None:
    """Places of one pane lie in the same windows; a pane begins where its first place is."""
    for size in (*RANGES, None):
        window = Window(size, slide)
        panes = window.panes
        by_pane: dict[int, list[int]] = {}
        for place in PLACES:
            by_pane.setdefault(panes.number(place), []).append(place)
        numbers = sorted(by_pane)
        assert numbers == list(range(numbers[0], numbers[-1] + 1))  # in order, none left out
        for number, places in by_pane.items():
            assert len({tuple(holders(window, place)) for place in places}) == 1
            assert places == list(range(places[0], places[-1] + 1))
            if places[0] > PLACES[0]:
                assert panes.start(number) == places[0]


def test_panes_are_no_finer_than_need_be() -> None:
    """One per slide where the slide divides the range, else two."""
    for window in WINDOWS:
        whole = window.length % window.slide == 0
        assert window.panes.per_slide == (1 if whole else 2)
        assert window.panes == Panes("time", window.slide, window.length % window.slide)
    assert Window(4, 2, ROWS).panes == Panes("rows", 2, 0)


@pytest.mark.parametrize("slide", SLIDES)
def test_windows_of_a_pane_and_panes_of_a_window(slide: int) -> None:
    for window in (w for w in WINDOWS if w.slide == slide):
        panes = window.panes
        for place in PLACES:
            held, pane = holders(window, place), panes.number(place)
            if not held:
                assert window.gaps
                continue
            if not window.landmark:
                assert (window.first_window(pane), window.last_window(pane)) == (held[0], held[-1])
            else:
                assert pane == held[0]  # the first window that ends after it
            for number in held:
                assert pane < window.beyond_pane(number)
                assert window.landmark or pane >= window.first_pane(number)
        for number in range(-5, 6):
            inside = [place for place in range(-200, 200) if holds(window, number, place)]
            assert window.beyond_pane(number) == panes.number(inside[-1]) + 1
            assert window.end(number) == inside[-1] + 1
            assert panes.start(window.beyond_pane(number)) == window.end(number)
            if not window.landmark:
                assert window.first_pane(number) == panes.number(inside[0])
                assert window.reach == len({panes.number(place) for place in inside})


@pytest.mark.parametrize("slide", SLIDES)
def test_a_watermark_closes_windows_that_end_at_or_before_it(slide: int) -> None:
    for window in (w for w in WINDOWS if w.slide == slide):
        assert window.first_open(None) is None
        for watermark in PLACES:
            first = window.first_open(watermark)
            assert first == next(number for number in NUMBERS if window.end(number) > watermark)


def test_kinds_of_windows() -> None:
    assert (Window(5, 5).tumbling, Window(5, 5).landmark, Window(5, 5).gaps) == (True, False, False)
    assert (Window(10, 5).tumbling, Window(10, 5).gaps) == (False, False)
    assert (Window(3, 5).tumbling, Window(3, 5).gaps) == (False, True)
    assert (Window(None, 5).tumbling, Window(None, 5).landmark, Window(None, 5).gaps) == (False, True, False)
    assert Window(None, 5).reach > 1 << 60


def test_first_windows_of_many_panes() -> None:
    for window in WINDOWS:
        if window.landmark:
            assert window.first_window(np.arange(-9, 9)).tolist() == list(range(-9, 9))
            continue
        panes = sorted({window.panes.number(place) for place in PLACES if holders(window, place)})
        found = window.first_window(np.array(panes)).tolist()
        assert found == [window.first_window(pane) for pane in panes]


# -- the kernel


def numbered(places: np.ndarray, panes: Panes) -> list[int]:
    numbers = np.empty(len(places), np.int64)
    pane_number(places, panes.slide, panes.cut, numbers)
    return numbers.tolist()


@pytest.mark.parametrize("seed", range(40))
def test_the_kernel_numbers_panes_alike(seed: int) -> None:
    """Sorted and shuffled, with and without cuts, near zero, near 10**15 and near the ends of time."""
    rng = np.random.default_rng(seed)
    slide = int(rng.choice([1, 2, 7, 60, 10**6, 86_400 * 10**6]))
    panes = Panes("time", slide, int(rng.integers(0, slide)) if seed % 2 else 0)
    far = int(rng.choice([0, 10**15, -(10**15), (1 << 62), -(1 << 62)]))
    places = rng.integers(-20 * slide, 20 * slide, 500) + far
    places = np.sort(places) if seed % 3 == 0 else places
    assert numbered(places, panes) == [panes.number(int(place)) for place in places]


def test_the_kernel_at_the_ends_of_time() -> None:
    least, greatest = -(1 << 63), (1 << 63) - 1
    places = np.array([greatest, greatest - 1, greatest, 0, least, least + 1, least, greatest, -1, 0], np.int64)
    for slide in (1, 2, 3, 1000, 1 << 40, 1 << 62):
        panes = Panes("time", slide)
        assert numbered(places, panes) == [panes.number(int(place)) for place in places]
