"""The models whose files are damaged, and where the damage is done."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from .damage import damaged


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def path():
    """Thousands of files are written there: in memory, where the system has such a folder."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder) / "damaged.safetensors"


@pytest.fixture
def parts(kind, folder):
    return damaged(kind, folder)[0].copy()


@pytest.fixture
def content(kind, folder):
    return damaged(kind, folder)[1]


@pytest.fixture
def X(kind, folder):
    return damaged(kind, folder)[2]
