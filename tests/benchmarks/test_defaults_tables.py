"""The tables behind the defaults: a set measured again leaves the rows of the others."""

import pytest
from benchmarks import additive_defaults, kernel_defaults, report


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    return tmp_path


def test_additive(results, monkeypatch):
    share = {"w8a": 99.0, "letter": 80.0}
    monkeypatch.setattr(additive_defaults, "SETS", share)
    monkeypatch.setattr(additive_defaults, "one_thread", lambda: None)
    monkeypatch.setattr(
        additive_defaults,
        "measured_row",
        lambda name: [f"{name}, 20,000 x 300", *[f"{share[name]:.2f} (0.1)"] * 10],
    )
    additive_defaults.main([])
    share |= {"w8a": 97.0, "letter": 60.0}
    additive_defaults.main(["w8a"])
    text = (results / "additive_defaults.md").read_text()
    assert "| w8a, 20,000 x 300 | 97.00 (0.1) |" in text
    assert "| letter, 20,000 x 300 | 80.00 (0.1) |" in text
    assert "Means: LinearSVC 88.50," in text


def test_kernel(results, monkeypatch):
    share = {"covtype": 71.0, "covtype, 2 classes": 76.0}
    monkeypatch.setattr(kernel_defaults, "SETS", {})
    monkeypatch.setattr(kernel_defaults, "MORE", share)
    monkeypatch.setattr(
        kernel_defaults,
        "accuracies",
        lambda name, load, C: [
            f"{name}, 6,000 rows", f"{C:g}", "70.00", f"{share[name]:.2f}", *["70.00"] * 3, "99.00",
        ],
    )  # fmt: skip
    kernel_defaults.main([])
    share |= {"covtype": 60.0, "covtype, 2 classes": 74.0}
    kernel_defaults.main(["covtype, 2 classes"])
    text = (results / "kernel_defaults.md").read_text()
    for C in (1, 10):
        assert f"| covtype, 6,000 rows | {C} | 70.00 | 71.00 |" in text
        assert f"| covtype, 2 classes, 6,000 rows | {C} | 70.00 | 74.00 |" in text
    assert "ovo, intercept: mean difference to SVC +2.50 points, worst +1.00." in text
