"""The cache of a problem's kernel rows, under any sequence of operations."""

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from widemargin import _core
from widemargin.kernel import cache as cache_module
from widemargin.kernel.backend import Host
from widemargin.kernel.cache import LEAST_SLOTS, RowCache
from widemargin.kernel.kernels import TILE
from widemargin.kernel.tiles import Memory

from .helpers import RELATIVE, each_dtype, each_layout, laid_out


class Checked:
    """A cache under random operations, compared to the matrix after each of them."""

    def __init__(self, layout, n, most, max_bytes, host, dtype=np.float32, seed=0):
        self.rng = np.random.default_rng(seed)
        kernel, self.all, self.K = laid_out(layout, most, dtype)
        self.rtol = 0 if layout == "matrix" else RELATIVE[dtype]
        self.ids = np.sort(self.rng.choice(most, n, replace=False))
        self.cache = RowCache(kernel, self.all[self.ids], most, max_bytes, host, Memory())
        self.held: set = set()  # the rows that a cache without limits would hold
        self.n_needed = 0

    @property
    def active(self):
        return self.K[np.ix_(self.ids, self.ids)]

    def some(self, least=1, most=None):
        n = len(self.ids)
        size = self.rng.integers(least, min(n, most or n) + 1)
        return self.rng.permutation(n)[:size]

    def want(self, wanted=None):
        wanted = self.some(most=self.cache.n_slots) if wanted is None else wanted
        slots = self.cache.slots(wanted)
        assert len(np.unique(slots)) == len(wanted)
        found = self.cache.pool[slots, : len(self.ids)]
        assert_allclose(found, self.active[wanted], rtol=self.rtol, atol=self.rtol)
        ids = set(self.ids[wanted])
        self.n_needed += len(ids - self.held)
        self.held |= ids
        return slots

    def add(self):
        wanted = self.some(most=self.cache.n_slots)
        coef = self.rng.normal(size=len(wanted)) * (self.rng.random(len(wanted)) < 0.8)
        sign = self.rng.choice([-1.0, 1.0], len(self.ids))
        out = self.rng.normal(size=len(self.ids))
        expected = out + sign * (coef @ self.active[wanted])
        ones = np.ones(len(out))
        active = _core.WorkingSet(np.zeros(len(out)), out, sign, ones, ones, False, 0.0, np.inf)
        self.cache.add(self.want(wanted), coef, active)
        scale = 1 + np.abs(coef) @ np.abs(self.active[wanted]) + np.abs(coef).sum()
        assert np.all(np.abs(out - expected) <= (self.rtol + 1e-14) * scale)

    def shrink(self):
        keep = np.sort(self.some())
        self.cache.shrink(keep)
        self.ids = self.ids[keep]
        self.held &= set(self.ids)

    def extend(self):
        out = np.setdiff1d(np.arange(len(self.K)), self.ids)
        if len(out):
            new = self.rng.permutation(out)[: self.rng.integers(1, len(out) + 1)]
            self.ids = np.concatenate([self.ids, new])
            self.cache.extend(self.all[self.ids], self.all[new])

    def run(self, n_operations):
        operations = (self.want, self.add, self.shrink, self.extend)
        for which in self.rng.choice(4, n_operations, p=[0.45, 0.2, 0.15, 0.2]):
            operations[which]()
            assert len(self.cache.rows) == len(self.ids)
            self.check_what_is_held()

    def check_what_is_held(self):
        """Whatever the cache would answer with without computing is right."""
        slot = self.cache._slot_of
        numbers = np.flatnonzero(slot >= 0)
        found = self.cache.pool[slot[numbers], : len(self.ids)]
        assert_allclose(found, self.active[numbers], rtol=self.rtol, atol=self.rtol)
        assert_array_equal(self.cache._row_in[slot[numbers]], numbers)


# ------------------------------------------------------------------ any operations


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("least", [1, 4, 13])
def test_a_small_cache_returns_the_rows_of_the_matrix_after_any_operations(
    least, seed, monkeypatch
):
    monkeypatch.setattr(cache_module, "LEAST_SLOTS", least)
    monkeypatch.setattr(cache_module, "TILE_ROWS", 5)
    with Host(1) as host:
        checked = Checked("matrix", 25, 60, 1.0, host, seed=seed)
        checked.run(60)
    assert checked.cache.n_computed >= checked.n_needed > 0


@pytest.mark.parametrize("seed", range(8))
def test_a_cache_of_the_whole_matrix_never_computes_a_row_twice(seed, monkeypatch):
    monkeypatch.setattr(cache_module, "TILE_ROWS", 5)
    with Host(1) as host:
        checked = Checked("matrix", 25, 60, 1e9, host, seed=seed)
        checked.run(60)
    assert checked.cache.n_computed == checked.n_needed > 0


@each_dtype
@each_layout
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_cache_works_for_every_layout_of_rows(share, layout, dtype, monkeypatch):
    monkeypatch.setattr(cache_module, "LEAST_SLOTS", 3)
    with Host(1) as host:
        n_bytes = share * 60**2 * np.dtype(dtype).itemsize
        Checked(layout, 40, 60, n_bytes, host, dtype).run(40)


def test_the_cache_fills_tiles_in_several_threads(monkeypatch):
    monkeypatch.setattr(cache_module, "LEAST_SLOTS", 40)
    most = TILE + 300
    with Host(2) as host:
        checked = Checked("matrix", TILE + 100, most, 1.0, host)
        for operation in (checked.want, checked.add, checked.extend, checked.want,
                          checked.shrink, checked.add):  # fmt: skip
            operation()
            checked.check_what_is_held()


# ------------------------------------------------------------------ which rows are held


@given(requests=st.lists(st.integers(0, 11), min_size=1, max_size=60), slots=st.integers(1, 12))
def test_the_row_unused_for_longest_makes_room(requests, slots):
    with pytest.MonkeyPatch.context() as patch, Host(1) as host:
        patch.setattr(cache_module, "LEAST_SLOTS", slots)
        kernel, rows, _ = laid_out("matrix", 12)
        cache = RowCache(kernel, rows, 12, 1.0, host, Memory())
        assert cache.n_slots == slots
        held, n_missed = OrderedDict(), 0
        for row in requests:
            n_missed += row not in held
            held[row] = True
            held.move_to_end(row)
            if len(held) > slots:
                held.popitem(last=False)
            cache.slots(np.array([row]))
            assert cache.n_computed == n_missed


def test_rows_wanted_together_do_not_push_each_other_out(monkeypatch):
    monkeypatch.setattr(cache_module, "LEAST_SLOTS", 6)
    with Host(1) as host:
        checked = Checked("matrix", 30, 30, 1.0, host)
        for _ in range(50):
            before = checked.rng.permutation(30)[:6]
            checked.want(before)
            half = np.concatenate([before[:3], np.setdiff1d(np.arange(30), before)[:3]])
            checked.want(half)  # values of all six are checked
            computed = checked.cache.n_computed
            checked.want(half[::-1])
            assert checked.cache.n_computed == computed


def test_rows_that_no_longer_fit_after_an_extension_are_the_oldest(monkeypatch):
    monkeypatch.setattr(cache_module, "LEAST_SLOTS", 4)
    with Host(1) as host:
        kernel, rows, K = laid_out("matrix", 100)
        cache = RowCache(kernel, rows[:20], 100, 1.0, host, Memory())
        n_slots = cache.n_slots
        assert n_slots > 4
        order = np.random.default_rng(0).permutation(20)[:n_slots]
        for row in order:
            cache.slots(np.array([row]))
        cache.extend(rows, rows[20:])
        assert cache.n_slots == 4
        assert cache.n_computed == n_slots
        slots = cache.slots(order[-4:])
        assert cache.n_computed == n_slots
        assert_array_equal(cache.pool[slots, :100], K[order[-4:]])
        cache.slots(order[-5:-4])
        assert cache.n_computed == n_slots + 1


def test_a_smaller_active_set_has_more_slots(monkeypatch):
    monkeypatch.setattr(cache_module, "LEAST_SLOTS", 4)
    with Host(1) as host:
        kernel, rows, _ = laid_out("matrix", 100)
        cache = RowCache(kernel, rows, 100, 1.0, host, Memory())
        assert cache.n_slots == 4
        cache.shrink(np.arange(0, 100, 4))
        assert 400 // 27 <= cache.n_slots <= 400 // 25
        cache.shrink(np.arange(3))
        assert cache.n_slots == 3


@pytest.mark.parametrize("most", [1, 50, LEAST_SLOTS, 300])
@pytest.mark.parametrize("max_bytes", [0.0, 1.0, 4 * 200 * 300, 1e12])
@each_dtype
def test_a_cache_has_slots_for_its_least_number_of_rows_and_never_more_than_rows(
    dtype, max_bytes, most
):
    kernel, rows, _ = laid_out("function", most, dtype)
    fitting = int(max_bytes // np.dtype(dtype).itemsize) // (-(-most // 16) * 16)
    with Host(1) as host:
        n_slots = RowCache(kernel, rows, most, max_bytes, host, Memory()).n_slots
    assert n_slots == min(max(LEAST_SLOTS, fitting), most)
