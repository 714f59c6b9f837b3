"""One fit on shards of the rows that share no memory (CoCoA+, Ma et al. 2015).

Each shard descends on its rows from common weights, and the moves of all shards are added.  As all
correct the same errors, the sum would overshoot; so each shard multiplies its curvature, and the
move of the weights that it sees, by a damping.  With the number of shards as damping (CoCoA+) the
dual objective grows in every round.  Most data needs less, so rounds begin with ``BOLD`` of it,
which saves a quarter of them (benchmarks/results/parts.md).  A round in which the dual objective
falls is undone, and later rounds use CoCoA+'s damping.

A round sends weights to every shard and back, and nothing else that grows with the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from widemargin.additive.problem import BoxProblem, SharedProblem
from widemargin.additive.solver import ActiveSamples, Outcome, Stopping, measured_sums
from widemargin.engine import Control
from widemargin.losses import N_SUMS, PG_MAX, PG_MIN, Certificate

BOLD = 0.7  # share of the safe damping
_ROUNDING = 1e-5  # relative rounding of a sum's terms in single precision
_REOPEN = 20  # rounds between visits of shrunk samples


class Weights(NamedTuple):
    """Weights of all outputs, in blocks of 16, and of the constant feature."""

    cells: np.ndarray  # (n_blocks, *block_shape)
    bias: np.ndarray  # (n_blocks, lanes)

    @classmethod
    def zeros(cls, shared: SharedProblem, n_outputs: int) -> Weights:
        cells = shared.tables.weights(n_outputs)
        return cls(cells, np.zeros((len(cells), shared.layout.lanes), cells.dtype))

    def like(self, other: Weights) -> Weights:
        """Return the weights in the precision of ``other``."""
        return Weights(self.cells.astype(other.cells.dtype), self.bias.astype(other.bias.dtype))


def added(moves: Sequence[Weights]) -> Weights:
    """Add the moves, in a fixed order."""
    return Weights(sum(m.cells for m in moves), sum(m.bias for m in moves))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Shard:
    """Some rows of a fit, which never travel."""

    shared: SharedProblem
    targets: np.ndarray  # (n_classes, n_outputs)

    @property
    def first_state(self) -> ShardState:
        shape = (self.shared.codes.n_rows, self.targets.shape[1])
        zeros: np.ndarray = np.zeros(shape, self.shared.layout.dtype)
        return ShardState(zeros, [])

    def in_double(self) -> Shard:
        assert self.shared.exact is not None
        return replace(self, shared=self.shared.exact)

    def linear_terms(self, coef: np.ndarray) -> np.ndarray:
        """Return t'b - 1/2 sum_i rho_i b_i^2 of every output (see losses.py)."""
        ridge = self.shared.loss.ridge(self.shared.c)
        linear = np.einsum("ij,ij->j", coef, self.targets[self.shared.label], dtype=np.float64)
        return linear - 0.5 * (ridge @ np.square(coef, dtype=np.float64))

    def problems(
        self, coef: np.ndarray, weights: Weights, damping: float = 1.0
    ) -> Iterator[tuple[slice, BoxProblem]]:
        """Yield a `BoxProblem` per 16 outputs, at common weights and this shard's variables."""
        lanes = self.shared.layout.lanes
        for block in range(len(weights.bias)):
            columns = slice(block * lanes, (block + 1) * lanes)
            problem = BoxProblem(
                self.shared, self.targets[:, columns], self.shared.tables.weights(1)
            )
            problem.weights[...], problem.bias[...] = weights.cells[block], weights.bias[block]
            problem.coef[...], problem.damping = coef[:, columns], damping
            yield columns, problem


@dataclass(frozen=True)
class ShardState:
    """Dual variables and active samples of a shard."""

    coef: np.ndarray  # dual variables, (n_rows, n_outputs)
    samples: list[tuple[np.ndarray, np.ndarray]]  # `ActiveSamples` of every block


class Round(NamedTuple):
    """What a round sends to every shard."""

    weights: Weights
    damping: float  # factor of curvature and moves
    seed: int
    reopen: bool  # visit all samples again


class Move(NamedTuple):
    """A shard's move of the weights, and the sums of its sweep.

    ``gains`` are those of the dual objectives without 1/2 |w|^2, which the shards share.
    """

    weights: Weights
    accounts: np.ndarray  # (n_blocks, N_SUMS, LANES)
    gains: np.ndarray  # (n_outputs,)


# ------------------------------------------------------------------ what is done where rows are


def descend(shard: Shard, state: ShardState, plan: Round) -> tuple[ShardState, Move]:
    """Sweep once over the active rows of a shard."""
    coef, weights, control = state.coef.copy(), plan.weights, Control()
    move = Weights.zeros(shard.shared, coef.shape[1])
    rng, accounts, left = np.random.default_rng(plan.seed), [], []
    for block, (columns, problem) in enumerate(shard.problems(coef, weights, plan.damping)):
        samples = ActiveSamples(problem)
        if state.samples and not plan.reopen:
            samples.resume(state.samples[block])
        accounts.append(samples.sweep(rng, control))
        samples.shrink(accounts[-1])
        left.append(samples.state)
        coef[:, columns] = problem.coef
        move.cells[block] = (problem.weights - weights.cells[block]) / plan.damping
        move.bias[block] = (problem.bias - weights.bias[block]) / plan.damping
    gains = shard.linear_terms(coef) - shard.linear_terms(state.coef)
    return ShardState(coef, left), Move(move, np.stack(accounts), gains)


def refresh(shard: Shard, state: ShardState) -> tuple[ShardState, Weights]:
    """Recompute this shard's share of the weights in double precision."""
    exact, coef = shard.in_double(), state.coef
    fresh = Weights.zeros(exact.shared, coef.shape[1])
    for block, (columns, problem) in enumerate(exact.problems(np.zeros_like(coef), fresh)):
        problem.start(coef[:, columns], Control())
        fresh.cells[block], fresh.bias[block] = problem.weights, problem.bias
    return state, fresh


def certify(shard: Shard, state: ShardState, weights: Weights) -> tuple[ShardState, np.ndarray]:
    """Return this shard's sums for a certificate, in double precision."""
    problems = shard.in_double().problems(state.coef, weights)
    return state, np.stack([measured_sums([problem], Control()) for _, problem in problems])


# ------------------------------------------------------------------ what is done where shards meet


def minimise_in_rounds(
    shards: Any,
    shared: SharedProblem,
    n_outputs: int,
    stopping: Stopping,
    seed: int,
    control: Control,
) -> tuple[Weights, Outcome]:
    """Run rounds until every output is within ``tol``; return weights in double, and the outcome.

    ``shards`` are all of them and their states, local or remote (`dask.ShardsOnCluster`).  The sums
    of the sweeps tell when to compute a certificate, as in `solver.minimise`.
    """
    seeds = np.random.default_rng(seed)
    start = weights = Weights.zeros(shared, n_outputs)
    worthwhile, reopen = stopping.tol, True
    safe = float(len(shards))
    damping = max(1.0, BOLD * safe) if shared.tables.left is not None else safe
    history: list[dict] = []
    for epoch in range(1, stopping.max_iter + 1):
        plan = Round(weights, damping, int(seeds.integers(1 << 31)), reopen)
        moves = shards.each(descend, plan)
        if damping < safe and _is_too_far(weights, moves):
            shards.take_back()
            damping = safe
            moves = shards.each(descend, plan._replace(damping=safe, reopen=True))
        weights = added([weights, *(move.weights for move in moves)])
        estimate = float(_certificate([m.accounts for m in moves], n_outputs).relative_gap.max())
        history.append({"epoch": epoch, "estimate": estimate})
        halted = control.epoch(None, estimate) or epoch == stopping.max_iter
        reopen = epoch % _REOPEN == 0
        if estimate > worthwhile and not halted:
            continue
        fresh = added(shards.each(refresh))
        certificate = _certificate(shards.each(certify, fresh), n_outputs)
        measured = float(certificate.relative_gap.max())
        primal, dual = float(certificate.primal.sum()), float(certificate.dual.sum())
        history[-1].update(measured=measured, primal=primal, dual=dual)
        if measured <= stopping.tol or halted:
            return fresh, Outcome(certificate, epoch, measured <= stopping.tol, history)
        weights = fresh.like(start)
        worthwhile, reopen = 0.8 * min(worthwhile, estimate), True
    raise AssertionError("max_iter is positive")  # pragma: no cover


def _is_too_far(weights: Weights, moves: Sequence[Move]) -> bool:
    """Whether the sum of all moves lowers a dual objective by more than rounding."""
    gain = np.sum([move.gains for move in moves], axis=0)
    step = added([move.weights for move in moves])
    paid = np.zeros(step.bias.shape)  # increase of 1/2 |w|^2
    for w, d in zip(weights, step, strict=True):
        rows = (len(w), -1, w.shape[-1])
        middle = (w + 0.5 * d).reshape(rows)
        paid += np.einsum("bkl,bkl->bl", d.reshape(rows), middle, dtype=np.float64)
    lost = paid.ravel()[: len(gain)] - gain
    return not np.all(lost <= _ROUNDING * (np.abs(gain) + np.abs(lost + gain)))


def _certificate(accounts: Sequence[np.ndarray], n_outputs: int) -> Certificate:
    """Return the certificate of all shards together."""
    total = np.sum(accounts, axis=0)
    total[:, PG_MAX] = np.max([a[:, PG_MAX] for a in accounts], axis=0)
    total[:, PG_MIN] = np.min([a[:, PG_MIN] for a in accounts], axis=0)
    lanes = np.moveaxis(total, 1, 0)  # blocks side by side
    return Certificate.from_account(lanes.reshape(N_SUMS, -1), n_outputs)
