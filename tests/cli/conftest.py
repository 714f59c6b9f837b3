"""Every test here has a folder of its own, with two data sets."""

import pytest

from .helpers import IRIS, SIGN, SPECIES, TWO, write


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current folder, and no defaults from elsewhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WIDEMARGIN_CONFIG", raising=False)
    return tmp_path


@pytest.fixture
def iris():
    return write("iris.txt", IRIS, SPECIES)


@pytest.fixture
def two():
    """Labels -1 and 1."""
    return write("two.txt", TWO, SIGN)
