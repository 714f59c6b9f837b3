"""`max_bytes`: one default, one error."""

import pytest

from widemargin import budget as budgets
from widemargin.budget import Budget
from widemargin.errors import TooLargeError


def test_what_is_held_counts():
    budget = Budget(1000, "file")
    budget.check(1000, "its rows take")
    budget.hold(600, "its text takes")
    budget.check(400, "its rows take")
    with pytest.raises(TooLargeError, match=r"^file: its rows take 1 kB or more, but max_bytes"):
        budget.check(401, "its rows take")


@pytest.mark.parametrize(
    ("n_bytes", "said"), [(2000, "2 kB"), (3.5e6, "3.5 MB"), (4.2e9, "4.2 GB"), (8e15, "8e+06 GB")]
)
def test_sizes_are_readable(n_bytes, said):
    with pytest.raises(TooLargeError, match=f"take {said}".replace("+", r"\+")):
        Budget(1, "file").check(n_bytes, "its rows take")


def test_the_default_is_a_share_of_what_is_free(monkeypatch):
    monkeypatch.setattr(budgets, "free_memory", lambda: 1e9)
    assert Budget(None, "file").max_bytes == 800_000_000
    assert Budget(None, "file", at_most=5).max_bytes == 5
    assert Budget(7, "file", at_most=5).max_bytes == 7


def test_no_room_at_all_is_the_same_error():
    with pytest.raises(TooLargeError, match=r"^file: .*max_bytes=9 \(Unable to allocate\)"):  # noqa: SIM117
        with Budget(9, "file"):
            raise MemoryError("Unable\nto allocate")
    with pytest.raises(KeyError), Budget(9, "file"):
        raise KeyError


def test_a_budget_is_handed_on():
    budget = Budget(9, "file")
    assert Budget.of(budget, "other") is budget
    assert Budget.of(5, "other").max_bytes == 5


@pytest.mark.parametrize(("value", "kind"), [(0, ValueError), (-1, ValueError), ("2G", TypeError)])
def test_values_that_are_none(value, kind):
    with pytest.raises(kind, match="max_bytes"):
        Budget(value, "file")
