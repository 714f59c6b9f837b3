"""Memory: how much is free, buffers that are used again, and what happens when there is little."""

import os
import pickle
import subprocess
import sys
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from widemargin import resources
from widemargin.kernel import tiles
from widemargin.kernel.backend import Host
from widemargin.kernel.cache import LEAST_SLOTS, RowCache
from widemargin.kernel.tiles import CommonMemory, Memory, allocate

from .helpers import assert_same_function, counting, laid_out, svc

pytestmark = pytest.mark.slow

SPARE = 16  # values by which a buffer is longer, so that it may begin where a cache line does

# ------------------------------------------------------------------ free memory


def meminfo(monkeypatch, files):
    """Let `free_memory` read these files only, or get the error that stands for one."""

    class Files:
        def __init__(self, name):
            self.name = str(name)

        def __truediv__(self, name):
            return Files(f"{self.name}/{name}")

        def read_text(self):
            content = files.get(self.name, FileNotFoundError)
            if not isinstance(content, str):
                raise content
            return content

    monkeypatch.setattr(resources, "Path", Files)


INFO = "MemTotal: 16000000 kB\nMemFree: 1 kB\nMemAvailable: 8000000 kB\n"
LIMIT, USED = "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"/proc/meminfo": INFO}, 8_000_000 * 1024),
        ({"/proc/meminfo": INFO, LIMIT: "max\n", USED: "5\n"}, 8_000_000 * 1024),
        ({"/proc/meminfo": INFO, LIMIT: "3000000000\n", USED: "1000000000\n"}, 2_000_000_000),
        ({"/proc/meminfo": INFO, LIMIT: "3000000000\n", USED: "2999999999\n"}, 1 << 28),
        ({}, 4 << 30),
        ({"/proc/meminfo": PermissionError, LIMIT: OSError}, 4 << 30),
    ],
    ids=["available", "no limit", "a container's limit", "the least", "unknown", "unreadable"],
)
def test_free_memory_is_what_is_available_within_the_containers_limit(files, expected, monkeypatch):
    meminfo(monkeypatch, files)
    assert resources.free_memory() == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"/proc/meminfo": INFO}, 16_000_000 * 1024),
        ({"/proc/meminfo": INFO, LIMIT: "max\n", USED: "5\n"}, 16_000_000 * 1024),
        ({"/proc/meminfo": INFO, LIMIT: "3000000000\n", USED: "1000000000\n"}, 3_000_000_000),
        ({}, 4 << 30),
    ],
    ids=["all", "no limit", "a container's limit", "unknown"],
)
def test_total_memory_does_not_depend_on_what_is_used(files, expected, monkeypatch):
    meminfo(monkeypatch, files)
    assert resources.total_memory() == expected


# ------------------------------------------------------------------ buffers


def test_a_buffer_that_was_given_back_is_taken_again():
    memory = Memory()
    first, second = (memory.take(100, 0, np.float32) for _ in range(2))
    assert not np.shares_memory(first, second)
    memory.give(first)
    third = memory.take(60, 0, np.float32)
    assert np.shares_memory(third, first)
    assert third.shape == (60,)
    memory.give(third)
    assert len(memory.take(100, 0, np.float32)) == 100  # the whole buffer came back, not a part


def test_tasks_that_have_travelled_hand_buffers_on_to_each_other(monkeypatch):
    monkeypatch.setattr(tiles, "IDLE", 600)
    one, other = (pickle.loads(pickle.dumps(Host(1))) for _ in range(2))
    buffer = one.memory.take(1000, 0, np.float32)
    one.memory.give(buffer)
    assert np.shares_memory(other.copy().memory.take(900, 0, np.float32), buffer)


def test_a_worker_without_tasks_gives_its_buffers_back(monkeypatch):
    monkeypatch.setattr(tiles, "IDLE", 0.05)
    memory = CommonMemory()
    buffer = memory.take(1000, 0, np.float32)
    gone = weakref.ref(buffer)
    memory.give(buffer)
    del buffer
    deadline = time.monotonic() + 20
    while gone() is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(("size", "dtype"), [(101, np.float32), (50, np.float64)])
def test_a_buffer_that_is_too_small_or_of_another_type_is_not_taken(size, dtype):
    memory = Memory()
    given = memory.take(100, 0, np.float32)
    memory.give(given)
    taken = memory.take(size, 0, dtype)
    assert not np.shares_memory(taken, given)
    assert (len(taken), taken.dtype) == (size, dtype)


def test_two_takers_never_share_a_buffer():
    memory = Memory()
    memory.give(memory.take(100, 0, np.float32))
    assert not np.shares_memory(memory.take(10, 0, np.float32), memory.take(10, 0, np.float32))


def test_a_cache_on_memory_that_another_one_used_returns_the_right_rows():
    memory = Memory()
    kernel, rows, K = laid_out("matrix", 60)
    with Host(1) as host:
        buffers = []
        for begin, end in [(0, 60), (20, 50), (0, 60)]:
            some = rows[begin:end]
            cache = RowCache(kernel, some, len(some), 1e6, host, memory)
            buffers.append(cache.pool)
            slots = cache.slots(np.arange(end - begin)[::-1])
            assert_array_equal(cache.pool[slots[::-1], : end - begin], K[begin:end, begin:end])
            cache.close()
    assert np.shares_memory(buffers[0], buffers[1])
    assert np.shares_memory(buffers[0], buffers[2])


# ------------------------------------------------------------------ too little memory


@pytest.fixture
def limit_memory(monkeypatch):
    """A function that makes `np.empty` refuse more than some values."""

    def limit(most):
        empty = np.empty

        def limited(shape, *arguments, **options):
            if np.prod(shape) > most:
                raise MemoryError(f"no room for {shape}")
            return empty(shape, *arguments, **options)

        monkeypatch.setattr(np, "empty", limited)

    return limit


def test_a_cache_that_cannot_be_allocated_is_cut_with_a_warning(limit_memory, monkeypatch):
    kernel, rows, K = laid_out("matrix", 400)
    limit_memory(100_000)
    message = r"cache of 1 MB .* using 0 MB. Set cache_size"
    monkeypatch.setattr("widemargin.kernel.cache.LEAST_SLOTS", 16)
    with Host(1) as host:
        with pytest.warns(UserWarning, match=message):
            cache = RowCache(kernel, rows, 400, 1e9, host, Memory())
        assert cache.n_slots == 40_000 // 400  # as much again is left for all else
        wanted = np.arange(150, 250)
        assert_array_equal(cache.pool[cache.slots(wanted)], K[wanted])


def test_a_cache_is_halved_no_further_than_its_least_size(limit_memory):
    kernel, rows, _ = laid_out("matrix", 400)
    limit_memory(LEAST_SLOTS * 400 + SPARE)
    with Host(1) as host, pytest.warns(UserWarning, match="could not be allocated"):
        assert RowCache(kernel, rows, 400, 1e9, host, Memory()).n_slots == LEAST_SLOTS


def test_a_cache_that_cannot_have_its_least_size_is_an_error(limit_memory):
    kernel, rows, _ = laid_out("matrix", 400)
    limit_memory(LEAST_SLOTS * 400 + SPARE - 1)
    with Host(1) as host, pytest.raises(MemoryError, match="no room for 51216"):
        RowCache(kernel, rows, 400, 1e9, host, Memory())


@pytest.mark.parametrize(("most", "got"), [(100, 30), (5_000_000, 2_000_000)])
def test_an_allocation_says_what_it_wanted_and_what_it_got(most, got, limit_memory):
    limit_memory(most)
    message = f"A cache of 128 MB .* using {got * 8 / 1e6:.0f} MB"
    with pytest.warns(UserWarning, match=message):
        buffer = allocate(16_000_000, 0, np.float64)
    assert len(buffer) == got


def test_a_buffer_that_was_cut_serves_the_next_problem_too(limit_memory):
    limit_memory(100)
    memory = Memory()
    with pytest.warns(UserWarning, match="could not be allocated"):
        first = memory.take(160, 8, np.float32)
    memory.give(first)
    second = memory.take(160, 8, np.float32)  # without a warning
    assert second.base is first.base or np.shares_memory(first, second)
    assert len(second) == len(first) == 40
    assert len(memory.take(160, 60, np.float32)) == 60  # no less than what is needed


def test_a_buffer_that_is_too_small_makes_room_for_a_larger_one():
    memory = Memory()
    first = memory.take(100, 0, np.float32)
    memory.give(first)
    gone = weakref.ref(first)
    del first
    memory.take(101, 0, np.float32)
    assert gone() is None


SHORT = """
import resource, sys, warnings
import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from widemargin import KernelSVC
from widemargin.kernel import backend
backend.MOST_ROWS = 0

n_classes, kernel, levels = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
rng = np.random.default_rng(0)
X = rng.random((2500, 5))
y = np.digitize(X[:, 0] + 0.2 * rng.random(2500), np.linspace(0.2, 1.0, n_classes + 1)[1:-1])
model = KernelSVC(rbf_kernel if kernel == "function" else kernel, levels=levels, sample_size=200,
                  branching=2, multi_class="ovr", random_state=0)
model.fit(X[:300], y[:300])  # what is needed once: BLAS's own buffers
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + 40 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    model.fit(X, y)
assert model.duality_gap_ <= 1e-3
print(*{str(w.message) for w in seen}, sep="; ")
"""


@pytest.mark.memory
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's account of pages")
@pytest.mark.parametrize("levels", [0, 1])
@pytest.mark.parametrize("kernel", ["rbf", "function"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fit_under_a_limit_of_memory_makes_do_with_less(n_classes, kernel, levels):
    command = [sys.executable, "-c", SHORT, str(n_classes), kernel, str(levels)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert "for kernel rows could not be allocated; using" in ended.stdout


def test_a_small_cache_gives_the_same_optimum(monkeypatch, three):
    monkeypatch.setattr("widemargin.kernel.cache.LEAST_SLOTS", 16)
    X, y = three
    kernel, computed, numbered = counting(X)
    large = svc(kernel, tol=1e-10).fit(numbered, y)
    few_rows = len(computed)
    computed.clear()
    small = svc(kernel, tol=1e-10, cache_size=1e-3).fit(numbered, y)
    assert len(computed) > 1.4 * few_rows  # the certificate's are the same in both
    assert_same_function(small, large, numbered)
