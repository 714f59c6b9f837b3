"""One fit on shards of the rows that share no memory (CoCoA+, Ma et al. 2015).

Each shard descends on its own rows from common weights, and what the shards have found is added.
They all correct the same errors; so that their sum does not go too far, each takes every step of
its own for several: its curvature, and the move of the weights that it sees, are multiplied.  By
the number of shards, as CoCoA+ has it, the dual objective grows in every round whatever the rows
are.  Shards of most data agree on less than that, so rounds begin with ``BOLD`` of it, which saves
a quarter of them (benchmarks/results/parts.md); one in which the dual objective falls is taken
back, and those that follow are CoCoA+'s.

Per round, weights travel to every shard and back, and nothing else that grows with the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from widemargin.additive.problem import BoxProblem, SharedProblem
from widemargin.additive.solver import ActiveSamples, Outcome, Stopping, measured_sums
from widemargin.duality import N_SUMS, PG_MAX, PG_MIN, Certificate
from widemargin.engine import Control

BOLD = 0.7  # of the damping that is safe
_ROUNDING = 1e-5  # of the terms of a sum in single precision
_REOPEN = 20  # rounds after which shrunk samples are looked at again


class Weights(NamedTuple):
    """Of all outputs, in blocks of 16, and of the constant feature."""

    cells: np.ndarray  # (n_blocks, *block_shape)
    bias: np.ndarray  # (n_blocks, lanes)

    @classmethod
    def zeros(cls, shared: SharedProblem, n_outputs: int) -> Weights:
        cells = shared.tables.weights(n_outputs)
        return cls(cells, np.zeros((len(cells), shared.layout.lanes), cells.dtype))

    def like(self, other: Weights) -> Weights:
        """In another's precision."""
        return Weights(self.cells.astype(other.cells.dtype), self.bias.astype(other.bias.dtype))


def added(moves: Sequence[Weights]) -> Weights:
    """The sum, always in the same order."""
    return Weights(sum(m.cells for m in moves), sum(m.bias for m in moves))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Shard:
    """Some rows of a fit, which stay where they are."""

    shared: SharedProblem
    targets: np.ndarray  # of each class, in every output

    @property
    def first_state(self) -> ShardState:
        shape = (self.shared.codes.n_rows, self.targets.shape[1])
        zeros: np.ndarray = np.zeros(shape, self.shared.layout.dtype)
        return ShardState(zeros, [])

    def in_double(self) -> Shard:
        assert self.shared.exact is not None
        return replace(self, shared=self.shared.exact)

    def linear_terms(self, coef: np.ndarray) -> np.ndarray:
        """t'b - 1/2 sum_i rho_i b_i^2 of every output (see losses.py)."""
        ridge = self.shared.loss.ridge(self.shared.c)
        linear = np.einsum("ij,ij->j", coef, self.targets[self.shared.label], dtype=np.float64)
        return linear - 0.5 * (ridge @ np.square(coef, dtype=np.float64))

    def problems(
        self, coef: np.ndarray, weights: Weights, damping: float = 1.0
    ) -> Iterator[tuple[slice, BoxProblem]]:
        """A `BoxProblem` for every 16 outputs, at common weights and these rows' variables."""
        lanes = self.shared.layout.lanes
        for block in range(len(weights.bias)):
            mine = slice(block * lanes, (block + 1) * lanes)
            problem = BoxProblem(self.shared, self.targets[:, mine], self.shared.tables.weights(1))
            problem.weights[...], problem.bias[...] = weights.cells[block], weights.bias[block]
            problem.coef[...], problem.damping = coef[:, mine], damping
            yield mine, problem


@dataclass(frozen=True)
class ShardState:
    """Where a shard stands."""

    coef: np.ndarray  # its dual variables, (n_rows, n_outputs)
    samples: list[tuple[np.ndarray, np.ndarray]]  # `ActiveSamples` of every block


class Round(NamedTuple):
    """What every shard is told."""

    weights: Weights
    damping: float  # how many steps each one stands for
    seed: int
    reopen: bool  # look at all samples again


class Move(NamedTuple):
    """What a shard adds to the weights, and the sums that its sweep has met.

    ``gains`` are of the dual objectives, but for 1/2 |w|^2, which shards have in common.
    """

    weights: Weights
    accounts: np.ndarray  # (n_blocks, N_SUMS, LANES)
    gains: np.ndarray  # of every output


# ------------------------------------------------------------------ what is done where rows are


def descend(shard: Shard, state: ShardState, told: Round) -> tuple[ShardState, Move]:
    """One sweep over the active rows of a shard."""
    coef, weights, control = state.coef.copy(), told.weights, Control()
    move = Weights.zeros(shard.shared, coef.shape[1])
    rng, accounts, left = np.random.default_rng(told.seed), [], []
    for block, (mine, problem) in enumerate(shard.problems(coef, weights, told.damping)):
        samples = ActiveSamples(problem)
        if state.samples and not told.reopen:
            samples.resume(state.samples[block])
        accounts.append(samples.sweep(rng, control))
        samples.shrink(accounts[-1])
        left.append(samples.state)
        coef[:, mine] = problem.coef
        move.cells[block] = (problem.weights - weights.cells[block]) / told.damping
        move.bias[block] = (problem.bias - weights.bias[block]) / told.damping
    gains = shard.linear_terms(coef) - shard.linear_terms(state.coef)
    return ShardState(coef, left), Move(move, np.stack(accounts), gains)


def refresh(shard: Shard, state: ShardState) -> tuple[ShardState, Weights]:
    """The share of these rows in the weights, made afresh in double precision."""
    exact, coef = shard.in_double(), state.coef
    fresh = Weights.zeros(exact.shared, coef.shape[1])
    for block, (mine, problem) in enumerate(exact.problems(np.zeros_like(coef), fresh)):
        problem.start(coef[:, mine], Control())
        fresh.cells[block], fresh.bias[block] = problem.weights, problem.bias
    return state, fresh


def certify(shard: Shard, state: ShardState, weights: Weights) -> tuple[ShardState, np.ndarray]:
    """These rows' sums of a certificate, in double precision."""
    problems = shard.in_double().problems(state.coef, weights)
    return state, np.stack([measured_sums([problem], Control()) for _, problem in problems])


# ------------------------------------------------------------------ what is done where shards meet


class Shards(Protocol):
    """Rows in shards, wherever they are, and where each of them stands."""

    def __len__(self) -> int: ...

    def each(self, function: Callable, *told: Any) -> list:
        """``function(shard, state, *told)`` for every shard: states are kept, results returned."""
        ...

    def take_back(self) -> None:
        """Be in the states before the last call of `each`."""
        ...


def minimise_in_rounds(
    shards: Shards,
    shared: SharedProblem,
    n_outputs: int,
    stopping: Stopping,
    seed: int,
    control: Control,
) -> tuple[Weights, Outcome]:
    """Rounds until every output is within ``tol``; the weights, in double precision, and how.

    The sweeps' own sums say when a certificate is worth its time, as in `solver.minimise`.
    """
    seeds = np.random.default_rng(seed)
    start = weights = Weights.zeros(shared, n_outputs)
    worthwhile, reopen = stopping.tol, True
    safe = float(len(shards))
    damping = max(1.0, BOLD * safe) if shared.tables.left is not None else safe
    history: list[dict] = []
    for epoch in range(1, stopping.max_iter + 1):
        told = Round(weights, damping, int(seeds.integers(1 << 31)), reopen)
        moves = shards.each(descend, told)
        if damping < safe and _is_too_far(weights, moves):
            shards.take_back()
            damping = safe
            moves = shards.each(descend, told._replace(damping=safe, reopen=True))
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
    """Whether a dual objective falls when all shards have moved, by more than rounding."""
    gain = np.sum([move.gains for move in moves], axis=0)
    step = added([move.weights for move in moves])
    paid = np.zeros(step.bias.shape)  # 1/2 |w|^2 after the step, less that before
    for w, d in zip(weights, step, strict=True):
        rows = (len(w), -1, w.shape[-1])
        middle = (w + 0.5 * d).reshape(rows)
        paid += np.einsum("bkl,bkl->bl", d.reshape(rows), middle, dtype=np.float64)
    lost = paid.ravel()[: len(gain)] - gain
    return not np.all(lost <= _ROUNDING * (np.abs(gain) + np.abs(lost + gain)))


def _certificate(accounts: Sequence[np.ndarray], n_outputs: int) -> Certificate:
    """Of all shards together."""
    total = np.sum(accounts, axis=0)
    total[:, PG_MAX] = np.max([a[:, PG_MAX] for a in accounts], axis=0)
    total[:, PG_MIN] = np.min([a[:, PG_MIN] for a in accounts], axis=0)
    lanes = np.moveaxis(total, 1, 0)  # blocks side by side
    return Certificate.from_account(lanes.reshape(N_SUMS, -1), n_outputs)
