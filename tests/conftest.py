"""Settings shared by all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("kernel.helpers")  # its asserts say what they saw, like tests'

settings.register_profile(
    "widemargin", deadline=None, derandomize=True, database=None, max_examples=50
)
settings.load_profile("widemargin")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data, from the environment; tests that need it are skipped without."""
    folder = os.environ.get("WIDEMARGIN_DATA")
    if not folder:
        pytest.skip("WIDEMARGIN_DATA does not name a folder with the real data")
    return Path(folder)
