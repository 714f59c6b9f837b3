"""Tasks that stop together, and the shared limit on BLAS threads."""

import threading
import time

import pytest
from threadpoolctl import threadpool_info

from widemargin.engine import one_blas_thread, run_tasks


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


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_come_in_the_order_of_the_arguments(n_jobs):
    assert run_tasks(lambda k, stop: k * k, [(k,) for k in range(5)], n_jobs) == [0, 1, 4, 9, 16]


def test_a_failing_task_stops_the_others():
    seen, stopped = threading.Event(), threading.Event()

    def task(k, stop):
        if k == 0:
            seen.wait(timeout=10)
            raise ValueError("task 0 failed")
        seen.set()
        try:
            while True:
                stop.check()
        except InterruptedError:
            stopped.set()
            raise

    with pytest.raises(ValueError, match="task 0 failed"):
        run_tasks(task, [(0,), (1,)], 2)
    assert stopped.wait(timeout=10)


def test_no_thread_outlives_a_call_that_failed():
    under_way = []

    def task(k, stop):
        if k == 0:
            time.sleep(0.05)
            raise RuntimeError("task 0")
        under_way.append(k)
        try:
            for _ in range(200):
                time.sleep(0.01)
                stop.check()
        finally:
            under_way.remove(k)

    with pytest.raises(RuntimeError, match="task 0"):
        run_tasks(task, [(k,) for k in range(4)], 4)
    assert under_way == []
