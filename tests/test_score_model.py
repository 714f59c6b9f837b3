"""A model of scores: what it expects, and where it would look next."""

import numpy as np
import pytest

from widemargin.score_model import CS, LOG_CS, WIDE_CS, Place, ScoreModel, Tried


def noted(tried, score, most=60):
    """Follow the proposals until they end; return them with their scores."""
    found = []
    while len(found) < most and (place := tried.next_place()) is not None:
        scores = [score(place.family, place.width, np.log10(C)) for C in place.Cs]
        tried.note(place, scores, [0.002] * len(scores))
        found += [(place.family, place.width, C, s) for C, s in zip(place.Cs, scores, strict=True)]
    return found


def test_every_family_is_tried_first():
    tried, first = Tried([True, False, True]), []
    for _ in range(5):
        first.append(tried.next_place())
        tried.note(first[-1], [0.5] * len(first[-1].Cs), [0.01] * len(first[-1].Cs))
    others = [Place(0, -1.0, WIDE_CS), Place(0, 1.0, WIDE_CS)]
    assert first == [
        Place(0, 0.0, WIDE_CS), *others, Place(1, 0.0, CS), Place(2, 0.0, WIDE_CS)
    ]  # fmt: skip


@pytest.mark.parametrize("best", [(0, 2.0, 0.0), (1, -1.5, 2.0), (1, 0.0, 3.0)])
def test_the_top_of_a_smooth_hill_is_found_and_the_search_ends(best):
    def score(family, width, log_C):
        off = (width - best[1]) ** 2 + (log_C - best[2]) ** 2
        return 0.95 - 0.01 * off - 0.03 * (family != best[0])

    found = noted(Tried([True, True]), score)
    assert len(found) < 100
    top = max(found, key=lambda place: place[3])
    assert top[0] == best[0]
    assert top[3] > 0.945


def test_nothing_is_proposed_twice():
    found = noted(Tried([True, False]), lambda f, w, c: 0.9 - 0.01 * (w**2 + c**2))
    places = [(f, w, C) for f, w, C, _ in found]
    assert len(places) == len(set(places))
    assert {w for f, w, _, _ in found if f == 1} == {0.0}  # it has no width


def test_a_family_that_is_left_out_is_not_proposed():
    tried = Tried([True, True])
    for _ in range(4):
        place = tried.next_place()
        tried.note(place, [0.8 + 0.1 * place.family] * 3, [0.01] * 3)
    tried.leave_out(1)
    assert {f for f, *_ in noted(tried, lambda *_: 0.8)} <= {0}


def test_expectations_are_those_of_what_is_known():
    places = np.array([[0, 0.0, log_C] for log_C in LOG_CS[::2]])
    scores = 0.9 - 0.01 * np.square(places[:, 2] - 1)
    model = ScoreModel(places, scores, np.full(len(scores), 1e-4))
    between = np.array([[0, 0.0, log_C] for log_C in LOG_CS[1:-1:2]])
    mean, spread = model.at(between)
    np.testing.assert_allclose(mean, 0.9 - 0.01 * np.square(between[:, 2] - 1), atol=0.005)
    far, more = model.at(np.array([[0, 4.0, 1.0], [1, 0.0, 1.0]]))
    assert min(more) > max(spread)
    assert max(far) < 0.9
