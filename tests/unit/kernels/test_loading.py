"""Kernels are compiled when they are first called, once, whoever calls first."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from penstock.kernels.jit import I64, kernel, kernel_for, ro


@kernel(I64, ro(I64))
def added(values):  # type: ignore[no-untyped-def]
    total = 0
    for value in values:
        total += value
    return total


@kernel(I64, ro(I64))
def added_twice(values):  # type: ignore[no-untyped-def]
    return 2 * added(values)


def test_a_kernel_calls_another_that_was_never_called() -> None:
    assert added_twice(np.arange(4)) == 12


def test_what_fits_no_signature_is_refused() -> None:
    assert added(np.arange(3)) == 3
    with pytest.raises(TypeError):
        added(np.arange(3).astype(np.float32))
    assert added(np.arange(3)) == 3


def test_threads_that_call_first_all_get_an_answer() -> None:
    for _ in range(5):

        @kernel_for((I64, ro(I64)))
        def first(values):  # type: ignore[no-untyped-def]
            return len(values)

        gate, answers = threading.Barrier(8), []

        def call(first=first, gate=gate, answers=answers) -> None:  # type: ignore[no-untyped-def]
            gate.wait()
            answers.append(first(np.arange(7)))

        threads = [threading.Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == [7] * 8
