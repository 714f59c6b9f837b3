"""One fit on shards of the rows (CoCoA+): the optimum of the whole, whatever the shards."""

from itertools import pairwise

import numpy as np
import pytest
from benchmarks.parts import ShardsHere
from sklearn.datasets import load_digits, make_classification

from widemargin import AdditiveSVC, BlockStore
from widemargin.additive import rounds
from widemargin.additive.rounds import Shard, Weights, minimise_in_rounds
from widemargin.additive.solver import Stopping
from widemargin.engine import Control


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Two classes and ten, in blocks; and blocks that are all the same."""
    two = make_classification(900, n_features=12, n_informative=6, random_state=0)
    ten = load_digits(return_X_y=True)
    copies = tuple(np.concatenate([shard[:200]] * 4) for shard in two)
    made = {}
    for name, (X, y) in {"two": two, "ten": ten, "copies": copies}.items():
        chunks = [(X[a : a + 200], y[a : a + 200]) for a in range(0, len(y), 200)]
        folder = tmp_path_factory.mktemp(name)
        made[name] = BlockStore.build(folder, chunks, values_per_block=200 * X.shape[1])
    return made


def solve(store, n_shards, tol=1e-3, max_iter=3000, **parameters):
    machine = AdditiveSVC("chi2", tol=tol, random_state=0, **parameters)
    training = machine._prepare_stored(store, None, None)
    _, shared = machine._shared_problem(training)
    targets = training.targets.coding.targets
    ends = np.linspace(0, len(shared.codes.cuts) - 1, n_shards + 1).astype(int)
    shards = [
        Shard(shared.of_rows(*shared.codes.of_blocks(a, b)), targets)
        for a, b in pairwise(ends.tolist())
    ]
    stopping = Stopping(tol, max_iter)
    here = ShardsHere(shards)
    return here, *minimise_in_rounds(here, shared, targets.shape[1], stopping, 0, Control())


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("n_shards", [1, 3])
@pytest.mark.parametrize("name", ["two", "ten"])
def test_shards_reach_the_optimum_of_the_whole(stores, name, n_shards, loss):
    _, _, outcome = solve(stores[name], n_shards, tol=1e-2, loss=loss)
    assert outcome.converged
    assert outcome.certificate.relative_gap.max() <= 1e-2
    whole = AdditiveSVC("chi2", tol=1e-6, random_state=0, loss=loss).fit(stores[name])
    above = outcome.certificate.primal.sum() / whole.objective_ - 1
    assert -1e-6 < above < 1e-2


@pytest.mark.parametrize("name", ["ten", "copies"])
def test_every_round_raises_the_dual_objective(stores, name):
    duals = []
    for max_iter in (1, 2, 3, 5, 8):
        _, _, outcome = solve(stores[name], 4, tol=1e-9, max_iter=max_iter)
        duals.append(outcome.certificate.dual.sum())
    assert np.all(np.diff(duals) > 0)


def test_a_round_that_went_too_far_is_taken_back(stores, monkeypatch):
    """Parts with the same rows correct exactly the same errors."""
    told, descend = [], rounds.descend

    def spy(shard, state, what):
        told.append(what.damping)
        return descend(shard, state, what)

    monkeypatch.setattr(rounds, "descend", spy)
    monkeypatch.setattr(rounds, "BOLD", 0.3)
    _, _, outcome = solve(stores["copies"], 4, tol=1e-2, max_iter=200)
    assert outcome.converged
    bold, safe = told.index(4.0), len(told) - told.index(4.0)
    assert told == [1.2] * bold + [4.0] * safe
    assert bold > 0
    assert len(told) == 4 * (outcome.n_iter + 1)  # one round twice
    monkeypatch.setattr(rounds, "_is_too_far", lambda weights, moves: False)
    with np.errstate(all="ignore"):
        _, _, outcome = solve(stores["copies"], 4, tol=1e-2, max_iter=200)
    assert not outcome.converged


def test_fewer_rounds_than_steps_that_are_safe_for_any_data(stores, monkeypatch):
    _, _, bold = solve(stores["ten"], 4, tol=1e-2)
    monkeypatch.setattr(rounds, "BOLD", 1.0)
    _, _, safe = solve(stores["ten"], 4, tol=1e-2)
    assert bold.n_iter < 0.9 * safe.n_iter


def test_tables_whose_weights_have_no_norm_take_safe_steps(stores, monkeypatch):
    monkeypatch.setattr(rounds, "BOLD", 0.01)
    _, _, outcome = solve(stores["two"], 3, tol=1e-2, approximation="unary")
    assert outcome.converged


def test_gains_are_those_of_the_dual_objective(stores):
    """Of one shard the objective must rise by what `_is_too_far` reckons with."""
    here, weights, outcome = solve(stores["ten"], 1, tol=1e-9, max_iter=3)
    (shard,), (state,) = here._shards, here.states
    half = 0.5 * np.square(weights.cells).sum(axis=(0, 1, 2)) + 0.5 * np.square(weights.bias[0])
    dual = shard.linear_terms(state.coef) - half[:10]
    np.testing.assert_allclose(dual, outcome.certificate.dual, rtol=1e-6)


def test_weights_are_those_of_the_variables(stores):
    """Made afresh in double precision: the model is what was certified."""
    here, weights, _ = solve(stores["two"], 3)
    store = stores["two"]
    machine = AdditiveSVC("chi2", tol=1e-3, random_state=0)
    training = machine._prepare_stored(store, None, None)
    _, shared = machine._shared_problem(training)
    exact = Shard(shared, training.targets.coding.targets).in_double()
    coef = np.vstack([state.coef for state in here.states])
    fresh = Weights.zeros(exact.shared, 1)
    ((_, problem),) = exact.problems(np.zeros_like(coef), fresh)
    problem.start(coef, Control())
    np.testing.assert_allclose(problem.weights, weights.cells[0], rtol=1e-9, atol=1e-12)


def test_a_damping_that_is_none_is_refused(stores):
    machine = AdditiveSVC("chi2", random_state=0)
    training = machine._prepare_stored(stores["two"], None, None)
    _, shared = machine._shared_problem(training)
    shard = Shard(shared, training.targets.coding.targets)
    zeros = Weights.zeros(shared, 1)
    ((_, problem),) = shard.problems(shard.first_state.coef, zeros, damping=0.5)
    with pytest.raises(ValueError, match="damping"):
        problem.start(shard.first_state.coef, Control())
