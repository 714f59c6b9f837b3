"""What a fit borrows and gives back: memory, and the threads of other libraries."""

import gc
import sys
import threading
from contextlib import ExitStack

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from widemargin import AdditiveSVC, KernelSVC
from widemargin.resources import one_blas_thread, one_openmp_thread

OURS = ("resources.py", "tiles.py")  # where an interrupt meets the limit


def threads(user_api):
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == user_api]


def blas_threads():
    return threads("blas")


def test_the_blas_limit_holds_until_the_last_one_leaves():
    before = blas_threads()
    first_may_leave, second_may_leave = threading.Event(), threading.Event()
    together = threading.Barrier(3)

    def hold(until):
        with one_blas_thread():
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
    with pytest.raises(RuntimeError), one_blas_thread():
        raise RuntimeError
    assert blas_threads() == before


def small(n=60):
    rng = np.random.default_rng(0)
    return rng.random((n, 3)), np.arange(n) % 3


@pytest.mark.parametrize("held", [one_blas_thread, one_openmp_thread])
def test_limits_that_overlap_in_any_order_end_where_they_began(held):
    before = threads("blas") + threads("openmp")
    with ExitStack() as first, ExitStack() as second, ExitStack() as third:
        first.enter_context(held())
        second.enter_context(held())
        first.close()
        third.enter_context(held())
        second.close()
        third.close()
    assert threads("blas") + threads("openmp") == before


def test_a_limit_that_nobody_has_any_more_is_lifted():
    before = blas_threads()
    held = one_blas_thread()
    assert blas_threads() == [1] * len(before)
    del held
    assert blas_threads() == before


def test_no_python_code_runs_when_a_limit_that_has_ended_is_collected():
    """An interrupt that came in such code would be printed and forgotten."""
    held, ran = one_blas_thread(), []
    with held:
        pass
    sys.setprofile(lambda frame, event, arg: ran.append((event, frame.f_code.co_name)))
    del held
    sys.setprofile(None)
    assert [name for event, name in ran if event == "call"] == []


def test_concurrent_fits_leave_the_threads_of_other_libraries_as_they_were():
    before = threads("blas") + threads("openmp")
    X, y = small(200)

    def fits(k):
        for _ in range(3):
            KernelSVC(levels=k % 3, branching=2, random_state=k, n_jobs=1 + k % 2).fit(X, y)
            AdditiveSVC("chi2", random_state=k).fit(X, y)

    workers = [threading.Thread(target=fits, args=(k,)) for k in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert threads("blas") + threads("openmp") == before


@pytest.mark.parametrize(
    "model",
    [
        AdditiveSVC("chi2"),
        AdditiveSVC("chi2", multi_class="crammer_singer"),
        KernelSVC(),
        KernelSVC(levels=1, branching=2, early=True),
    ],
    ids=repr,
)
def test_the_memory_of_a_fit_does_not_wait_for_the_garbage_collector(model):
    X, y = small(200)
    model.set_params(random_state=0).fit(X, y).predict(X)  # imports and caches
    while gc.collect():  # what other tests have left, whose end may leave more
        pass
    gc.disable()
    try:
        model.fit(X, y).predict(X)
        assert gc.collect() == 0
    finally:
        gc.enable()


def interrupted_at(line, action):
    """Run it with a KeyboardInterrupt before the n-th line of ours; whether it got so far."""
    seen = 0

    def trace(frame, event, argument):
        nonlocal seen
        if not frame.f_code.co_filename.endswith(OURS):
            return None
        if event in ("line", "return"):
            seen += 1
            if seen == line:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        action()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return seen >= line


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in __del__
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_anywhere_in_a_small_fit_leaves_no_limit_on(n_jobs):
    X, y = small()
    before = threads("blas") + threads("openmp")

    def fit():
        KernelSVC(levels=1, branching=2, random_state=0, n_jobs=n_jobs).fit(X, y)

    line = 1
    while interrupted_at(line, fit):
        assert threads("blas") + threads("openmp") == before, f"interrupted at line {line}"
        line += 1 if line < 120 else 29
    assert line > 120
