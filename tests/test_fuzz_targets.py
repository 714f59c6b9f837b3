"""The targets in fuzz/ work, without atheris, on their seeds and on a handful of other inputs."""

import gc
import importlib.util
import os
import random
import sys
from pathlib import Path

import numpy as np
import pytest

from widemargin.data import svmlight

pytestmark = pytest.mark.slow

FUZZ = Path(__file__).parents[1] / "fuzz"
SEEDS = sorted((FUZZ / "seeds" / "svmlight").iterdir())


def target(name: str):
    spec = importlib.util.spec_from_file_location(name, FUZZ / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def of_text():
    return target("fuzz_svmlight")


@pytest.fixture(scope="module")
def of_models():
    return target("fuzz_model")


# ------------------------------------------------------------------ svmlight


@pytest.mark.parametrize("whole", [True, False, None])
@pytest.mark.parametrize("seed", SEEDS, ids=lambda p: p.name)
def test_text(of_text, seed, whole):
    before = svmlight.PART
    data = seed.read_bytes()
    for options in range(0, 128, 5):
        of_text.TestOneInput(bytes([options]) + data[1:], whole)
        of_text.TestOneInput(bytes([options]) + data[1 : options + 2], whole)
    assert before == svmlight.PART


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\n", b"\xff\xff\0", b"\x30" + b"1 1:1 " * 99])
def test_text_that_is_none(of_text, data):
    for whole in (True, False):
        of_text.TestOneInput(data, whole)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda p: p.name)
def test_seeds_are_read(of_text, seed, monkeypatch):
    """Each reaches the end of the reader; a seed that fails at once would teach nothing."""
    seen = []
    monkeypatch.setattr(of_text, "check", lambda *arguments: seen.append(arguments))
    of_text.TestOneInput(seed.read_bytes(), whole=True)
    assert seen


def test_a_text_that_is_read_wrongly_is_noticed(of_text, monkeypatch):
    def wrong(self, *arguments, **options):
        dataset = real(self, *arguments, **options)
        dataset.X.indices[-1] = dataset.X.shape[1]
        return dataset

    real = svmlight._GrowingRows.dataset
    monkeypatch.setattr(svmlight._GrowingRows, "dataset", wrong)
    with pytest.raises(AssertionError):
        of_text.TestOneInput(b"\0+1 1:1 2:2\n", whole=True)


def test_another_exception_is_noticed(of_text, monkeypatch):
    monkeypatch.setattr(svmlight._GrowingRows, "dataset", lambda *a, **k: {}["x"])
    with pytest.raises(KeyError):
        of_text.TestOneInput(b"\0+1 1:1\n", whole=True)


# ------------------------------------------------------------------ models


def test_models_that_are_not_changed(of_models, monkeypatch, tmp_path):
    monkeypatch.setattr(of_models, "PATH", str(tmp_path / "model"))
    loaded = []
    monkeypatch.setattr(of_models, "load", lambda path: loaded.append(real(path)) or loaded[-1])
    real = target("fuzz_model").load
    for base in range(len(of_models.MODELS)):
        of_models.TestOneInput(bytes([base]))
    assert len(loaded) == len(of_models.MODELS) > 7


def test_models_that_are_changed(of_models, monkeypatch, tmp_path):
    monkeypatch.setattr(of_models, "PATH", str(tmp_path / "model"))
    outcomes = {"loaded": 0, "refused": 0}

    def load(path):
        outcomes["refused"] += 1
        model = real(path)
        outcomes["refused"] -= 1
        outcomes["loaded"] += 1
        return model

    real = target("fuzz_model").load
    monkeypatch.setattr(of_models, "load", load)
    rng = random.Random(0)
    for k in range(300):
        base = bytes([k % len(of_models.MODELS)])
        of_models.TestOneInput(base + rng.randbytes(rng.choice([3, 5, 8, 13])))
    assert outcomes["loaded"] > 30
    assert outcomes["refused"] > 100


def test_a_model_that_fails_otherwise_is_noticed(of_models, monkeypatch, tmp_path):
    monkeypatch.setattr(of_models, "PATH", str(tmp_path / "model"))

    class Broken:
        def decision_function(self, X):
            raise IndexError("out of range")

    monkeypatch.setattr(of_models, "load", lambda path: Broken())
    with pytest.raises(IndexError):
        of_models.TestOneInput(b"\0")


# ------------------------------------------------------------------ hostile files


@pytest.fixture(scope="module")
def hostile():
    pytest.importorskip("pyarrow")
    if sys.platform != "linux":
        pytest.skip("its limits on memory are Linux's")
    sys.path.insert(0, str(FUZZ.parent))
    try:
        return importlib.import_module("fuzz.hostile")
    finally:
        sys.path.pop(0)


@pytest.fixture
def memory_file(hostile, monkeypatch):
    """A file in memory; and what makes small files quick to read, until the test is over."""
    monkeypatch.setattr(hostile.svmlight, "PART", 1 << 14)
    monkeypatch.setattr(hostile.table_files, "BLOCK", 1 << 14)
    file = os.memfd_create("hostile")
    yield f"/proc/self/fd/{file}"
    os.close(file)


@pytest.mark.filterwarnings("ignore")
def test_hostile_files(hostile, memory_file, monkeypatch):
    monkeypatch.setattr(sys.modules["fuzz.hostile_files"], "BOMBS", 10**9)  # long to make
    results = set()
    for number in range(3000):
        with np.errstate(all="ignore"):
            kind, result, said = hostile.attempt(7, number, memory_file)
        assert result != "failed", f"--seed 7 --only {number} ({kind}): {said}"
        results.add((kind, result))
    assert {kind for kind, result in results if result == "read"} == set(hostile.KINDS)
    assert {kind for kind, result in results if result == "refused"} == set(hostile.KINDS)


@pytest.mark.slow
def test_hostile_commands(hostile, tmp_path):
    commands = importlib.import_module("fuzz.hostile_commands")
    commands.prepare(tmp_path)
    outcomes = [commands.attempt(7, number, tmp_path) for number in range(40)]
    assert [(k, *found) for k, found in enumerate(outcomes) if found[1] == "failed"] == []
    assert {result for _, result, _ in outcomes} >= {"done", "refused"}


def test_the_same_numbers_make_the_same_file(hostile):
    for number in range(100):
        assert hostile.hostile_file(3, number)[:2] == hostile.hostile_file(3, number)[:2]


@pytest.mark.parametrize(
    "kind", ["npy", "npz", "arrow", "parquet", "gz", "bz2", "xz", "model", "libsvm"]
)
def test_small_files_that_are_large(hostile, memory_file, kind):
    for content in sys.modules["fuzz.hostile_files"].bombs(kind):
        result = hostile.outcome(kind, content, random.Random(0), memory_file)
        assert result in ("too large", "refused"), len(content)


@pytest.mark.parametrize("said", ["two\nlines of {}", "which file?", "{}: " + "long " * 999])
def test_messages_that_are_not_one_line_are_noticed(hostile, memory_file, monkeypatch, said):
    def read(path, **options):
        raise ValueError(said.format(path))

    monkeypatch.setattr(hostile, "read", read)
    monkeypatch.setattr(hostile, "stream", read)
    numbers = [n for n in range(300) if hostile.kind_of(n) == "npy"]
    for number in numbers:
        assert hostile.attempt(0, number, memory_file)[1] == "failed"


def test_memory_that_is_not_given_back_is_noticed(hostile, memory_file, monkeypatch):
    for name in ("read", "stream"):
        monkeypatch.setattr(hostile, name, lambda path, **options: bytearray(600 << 20).index(1))
    numbers = [n for n in range(60) if hostile.kind_of(n) == "npy"]
    gc.collect()  # what other tests have left must not go meanwhile
    assert [n for n, _, _ in hostile.large(0, numbers[:2], memory_file)] == numbers[:2]


def test_a_worker_goes_on_where_the_one_before_it_ended(hostile):
    board = hostile.Board(jobs=2)
    first = board.taken(0, count=2500)
    assert [next(first) for _ in range(3)] == [0, 1, 2]  # and then it ends, of file 2
    assert board.at[0] == 2
    rest = [*board.taken(0, count=2500)]
    assert rest == [*range(3, 2500)]
    assert [*board.taken(1, count=2500)] == []


@pytest.mark.parametrize(
    ("kind", "seed", "number"),
    [
        ("arrow", 33, 27537),  # read as a stream, it ended the process
        ("arrow", 33, 40082),
        ("store", 1, 1557),  # a category that there is not
        ("checkpoint", 34, 10913),  # a gap that overflows
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_files_that_were_read_wrongly_once(hostile, memory_file, kind, seed, number):
    with np.errstate(all="ignore"):
        _, result, said = hostile.attempt(seed, number, memory_file, (kind,))
    assert result != "failed", said
