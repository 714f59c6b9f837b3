import pytest

for name in ("damage", "sameness"):  # their asserts say what they saw, like tests'
    pytest.register_assert_rewrite(f"persistence.{name}")
