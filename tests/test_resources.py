"""The shared limit on BLAS threads."""

import threading

import pytest
from threadpoolctl import threadpool_info

from widemargin.resources import one_blas_thread


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_the_blas_limit_holds_until_the_last_one_leaves():
    before = blas_threads()
    first_may_leave, second_may_leave = threading.Event(), threading.Event()
    together = threading.Barrier(3)

    def hold(until):
        with one_blas_thread:
            together.wait(timeout=10)  # broken if the two cannot be inside at once
            until.wait(timeout=10)

    first = threading.Thread(target=hold, args=(first_may_leave,))
    second = threading.Thread(target=hold, args=(second_may_leave,))
    first.start()
    second.start()
    together.wait(timeout=10)
    first_may_leave.set()
    first.join()
    while_one_is_left = blas_threads()
    second_may_leave.set()
    second.join()
    assert while_one_is_left == [1] * len(before)
    assert blas_threads() == before


def test_the_blas_limit_is_lifted_after_an_error():
    before = blas_threads()
    with pytest.raises(RuntimeError), one_blas_thread:
        raise RuntimeError
    assert blas_threads() == before
