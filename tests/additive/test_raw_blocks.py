"""Raw blocks: the numbers of the chunks, in few bytes, whole or refused."""

import threading
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from widemargin import BlockStore
from widemargin.additive import store_building
from widemargin.additive.block_files import Stacked, entry_of, read_ahead, read_arrays, write_arrays
from widemargin.additive.codes import encode
from widemargin.additive.encoder import fit_encoder
from widemargin.additive.manifest import Manifest
from widemargin.additive.raw_blocks import narrowed, raw_blocks
from widemargin.additive.source import Values
from widemargin.files import Folder

from .encoding import same
from .problems import histograms


def joined(array):
    return np.concatenate(array.parts) if isinstance(array, Stacked) else array


@given(
    st.lists(
        arrays.arrays(
            st.sampled_from([np.int8, np.uint16, np.int64, np.float32, np.float64]),
            st.integers(1, 5),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_narrowed_numbers_are_the_same_as_doubles(parts):
    """NaN too; what the core reads is always double(value)."""
    whole = np.concatenate([part.astype(np.float64) for part in parts])
    with np.errstate(invalid="ignore"):
        found = joined(narrowed(parts))
    np.testing.assert_array_equal(found.astype(np.float64), whole)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0.0, 255.0], "uint8"),
        ([0.0, 256.0], "uint16"),
        ([0.5, -3.0], "float32"),
        ([0.1], "float64"),
        ([np.nan, 1.0], "float64"),
        (np.array([1, 2], dtype=np.int64), "uint8"),
        (np.array([-1, 2], dtype=np.int8), "int8"),
    ],
)
def test_whole_numbers_take_a_byte_or_two(values, kind):
    assert narrowed([np.asarray(values)]).dtype == kind


def test_fractions_are_written_without_a_copy(tmp_path):
    parts = [np.random.default_rng(k).random(5) for k in range(3)]
    stacked = narrowed(parts)
    assert all(mine is theirs for mine, theirs in zip(stacked.parts, parts, strict=True))
    entry = entry_of("a", {"data": stacked, "label": np.arange(15)})
    write_arrays(Folder(tmp_path), entry, {"data": stacked, "label": np.arange(15)})
    found = read_arrays(Folder(tmp_path), entry, check=True)
    np.testing.assert_array_equal(found["data"], np.concatenate(parts))
    np.testing.assert_array_equal(found["label"], np.arange(15))


def raw_bytes(X, folder):
    """What raw blocks take before their codes are there."""
    y = np.arange(len(X)) % 2

    def told(step, rows, of):
        if step == "coding":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        BlockStore.build(folder, [(X, y)], told=told)
    return sum(path.stat().st_size for path in folder.glob("raw*"))


def test_raw_blocks_of_counts_are_an_eighth_of_those_of_fractions(tmp_path, monkeypatch):
    monkeypatch.setattr(store_building, "_SECONDS_BETWEEN", 1e9)
    X = np.random.default_rng(0).integers(0, 200, (400, 50)).astype(float)
    small, large = raw_bytes(X, tmp_path / "counts"), raw_bytes(X / 7, tmp_path / "fractions")
    assert 6 < large / small <= 8


@pytest.mark.parametrize(
    ("keep", "n_features", "kind"),
    [("codes", 65_536, "uint16"), ("codes", 65_537, "int32"), ("values", 9, "int32")],
)
def test_columns_of_raw_blocks_take_two_bytes_where_those_are_enough(keep, n_features, kind):
    index, start = np.array([0, n_features - 1], np.int32), np.array([0, 1, 2], np.int32)
    X = sp.csr_array(([1.0, 2.0], index, start), shape=(2, n_features))
    settings = {"keep": "values"} if keep == "values" else {}
    (block,) = raw_blocks([(X, [0, 1])], 10, Manifest(settings))
    arrays = block.arrays()
    assert arrays["index"].dtype == kind
    assert arrays["start"].dtype == "int32"
    assert arrays["index"].tolist() == [0, n_features - 1]


@pytest.mark.parametrize("least", [0.0, -1.0], ids=["sparse", "filled in"])
def test_columns_of_two_bytes_have_the_codes_of_four(least):
    X = sp.random_array((50, 30), density=0.3, rng=np.random.default_rng(0), format="csr")
    X.data += least
    four = Values.of(X)
    two = replace(four, index=X.indices.astype(np.uint16))
    encoder = fit_encoder(four, np.ones(50), scaling="minmax")
    same(fit_encoder(two, np.ones(50), scaling="minmax"), encoder)
    for found, expected in zip(
        vars(encode(two, encoder)).values(),
        vars(encode(four, encoder)).values(),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(two.ranges(), four.ranges())


def test_columns_of_two_bytes_are_checked():
    wrong = Values(np.ones(1), np.array([3], dtype=np.uint16), np.array([0, 1]), 1, 3)
    with pytest.raises(ValueError, match="an index is out of range"):
        wrong.core  # noqa: B018


def test_a_damaged_raw_block_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(store_building, "_SECONDS_BETWEEN", 0.0)
    X, y = histograms(3, 120)

    def interrupted(step, rows, of):
        if step == "coding":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        BlockStore.build(tmp_path / "s", [(X, y)], values_per_block=80, told=interrupted)
    path = tmp_path / "s" / "raw-000004.bin"
    content = bytearray(path.read_bytes())
    content[3] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"raw-000004.bin' is damaged: its checksum is not"):
        BlockStore.build(tmp_path / "s", [], values_per_block=80)


@pytest.mark.parametrize("sparse", [False, True])
def test_some_rows_are_those_of_the_matrix(sparse):
    from scipy.sparse import csr_array

    X = histograms(2, 20)[0]
    X[X < 2] = 0
    values = Values.of(csr_array(X) if sparse else X).rows(3, 9)
    found = values.csr().toarray() if sparse else values.data
    np.testing.assert_array_equal(found, X[3:9])


@pytest.mark.parametrize("n_threads", [1, 3])
def test_what_is_read_ahead_comes_in_order_and_is_bounded(n_threads):
    taken, lock, loading, most = [], threading.Lock(), 0, 0

    def keys():
        for key in range(20):
            taken.append(key)
            yield key

    def load(key):
        nonlocal loading, most
        with lock:
            loading += 1
            most = max(most, loading)
        threading.Event().wait(0.002)
        with lock:
            loading -= 1
        return key

    for position, value in enumerate(read_ahead(load, keys(), n_threads)):
        assert value == position
        assert len(taken) <= position + n_threads + 1
    assert len(taken) == 20
    assert most == n_threads


def test_an_error_ahead_comes_after_what_was_read_before_it():
    def load(key):
        if key == 3:
            raise ValueError("no such block")
        return key

    found: list[int] = []
    with pytest.raises(ValueError, match="no such block"):
        found.extend(read_ahead(load, range(10), 2))
    assert found == [0, 1, 2]
