import pytest

pytest.register_assert_rewrite("persistence.helpers")  # its asserts say what they saw, like tests'
