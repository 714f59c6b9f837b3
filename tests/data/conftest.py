"""Settings of the readers that tests change."""

import pytest

from widemargin.data import svmlight


@pytest.fixture
def set_part(monkeypatch):
    """Sets how many bytes of text a thread gets at once."""
    return lambda size: monkeypatch.setattr(svmlight, "PART", size)
