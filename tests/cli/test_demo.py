"""demo."""

import re

from widemargin import demo

from .helpers import (
    is_picture,
    run,
)


def test_demo_prints_a_table_and_draws_a_picture(monkeypatch):
    monkeypatch.setattr(demo, "ROWS", 1000)
    printed = run("demo").stdout
    for name in demo.MACHINES:
        learn, label, right = zip(
            *re.findall(rf"(?m)^  {name} +(\S+) +(\S+) +(\S+)$", printed), strict=True
        )
        assert len(right) == 2  # digits, and the larger problem
        assert min(map(float, learn + label)) >= 0
        assert 50 < min(map(float, right)) <= max(map(float, right)) <= 100
    assert is_picture("demo.png")


def test_the_demo_has_a_border_that_a_line_cannot_follow():
    X, y = demo.bent_borders(2000)
    assert X.shape == (2000, 8)
    assert set(y) == {0, 1, 2, 3}
    linear = demo.MACHINES["LinearSVC"]().fit(X[:1500], y[:1500]).score(X[1500:], y[1500:])
    additive = demo.MACHINES["AdditiveSVC"]().fit(X[:1500], y[:1500]).score(X[1500:], y[1500:])
    assert additive > linear + 0.1
