"""The targets in fuzz/ work, without atheris, on their seeds and on a handful of other inputs."""

import importlib.util
import random
from pathlib import Path

import pytest

from widemargin.data import svmlight

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
