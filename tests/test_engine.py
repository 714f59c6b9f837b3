"""Tasks that stop together, in threads and in other processes."""

import multiprocessing
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from widemargin.engine import Control, Threads, run_tasks


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_come_in_the_order_of_the_arguments(n_jobs):
    assert run_tasks(lambda k, control: k * k, range(5), Threads(n_jobs)) == [0, 1, 4, 9, 16]


def test_a_failing_task_stops_the_others():
    seen, stopped = threading.Event(), threading.Event()

    def task(k, control):
        if k == 0:
            seen.wait(timeout=10)
            raise ValueError("task 0 failed")
        seen.set()
        try:
            while True:
                control.check()
        except InterruptedError:
            stopped.set()
            raise

    with pytest.raises(ValueError, match=r"task \d failed"):
        run_tasks(task, [0, 1], Threads(2))
    assert stopped.wait(timeout=10)


def test_no_thread_outlives_a_call_that_failed():
    under_way = []

    def task(k, control):
        if k == 0:
            time.sleep(0.05)
            raise RuntimeError("task 0")
        under_way.append(k)
        try:
            for _ in range(200):
                time.sleep(0.01)
                control.check()
        finally:
            under_way.remove(k)

    with pytest.raises(RuntimeError, match="task 0"):
        run_tasks(task, range(4), Threads(4))
    assert under_way == []


@pytest.mark.parametrize("n_tasks", [1, 3])
def test_a_watch_hears_of_every_epoch_and_of_the_end(n_tasks):
    heard = []

    class Ear:
        def __init__(self, task):
            self.task = task

        def epoch(self, state=None, gap=None):
            heard.append((self.task, state))
            return state == 2

        def end(self):
            heard.append((self.task, "end"))

    def count(task, control):
        return next(k for k in range(10) if control.epoch(k))

    assert run_tasks(count, range(n_tasks), Threads(2), watch=Ear) == [2] * n_tasks
    for task in range(n_tasks):
        assert [state for t, state in heard if t == task] == [0, 1, 2, "end"]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_are_handed_over_with_their_tasks(n_jobs):
    handed = {}
    run_tasks(_square, range(4), Threads(n_jobs), on_result=handed.__setitem__)
    assert handed == {0: 0, 1: 1, 2: 4, 3: 9}


def _square(k, control):
    control.check()
    assert control.epoch() is False
    return k * k


def _refuse(k, control):
    raise ValueError(f"task {k} failed")


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool


def test_other_processes_do_the_same(processes):
    handed = {}
    found = run_tasks(_square, range(4), processes, on_result=handed.__setitem__)
    assert found == [0, 1, 4, 9]
    assert handed == {0: 0, 1: 1, 2: 4, 3: 9}


def test_a_failure_in_another_process_is_raised_here(processes):
    with pytest.raises(ValueError, match=r"task \d failed"):
        run_tasks(_refuse, range(3), processes)


def test_a_control_of_its_own_never_stops():
    control = Control()
    control.check()
    assert control.epoch("anything") is False


def test_a_result_from_elsewhere_is_handed_over_before_the_others_end():
    """So that what a checkpoint has of a cluster's fit does not wait for its slowest task."""
    handed = threading.Event()

    def task(k, control):
        return k if k == 1 else handed.wait(timeout=30)

    def on_result(k, result):
        if k == 1:
            handed.set()

    with ThreadPoolExecutor(2) as pool:
        assert run_tasks(task, [0, 1], pool, on_result=on_result) == [True, 1]
