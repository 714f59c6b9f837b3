"""A backend in plain NumPy and double precision: slow, without working sets, and the reference.

Its rows are of its own type, as those of a device would be, and slices stay of that type.
"""

import numpy as np

from widemargin import KernelSVC
from widemargin.engine import Control
from widemargin.kernel.coefficients import Coefficients
from widemargin.kernel.nearest import Nearest
from widemargin.kernel.problem import gap_terms


class PlainRows:
    """Rows of the plain backend."""

    def __init__(self, own):
        self.__dict__["own"] = own

    def __len__(self):
        return len(self.own)

    def __getitem__(self, which):
        return PlainRows(self.own[which])

    def __getattr__(self, name):
        return getattr(self.own, name)


def own(rows):
    return rows.own if isinstance(rows, PlainRows) else rows


def matrix(kernel, a, b):
    kernel = kernel.in_double()
    a, b = (own(rows).in_double() for rows in (a, b))
    out = np.empty((len(a), len(b)))
    kernel.fill(kernel.as_left(a), b, out)
    return out


class PlainBackend:
    """Solves every problem with the whole kernel matrix."""

    n_threads, memory = 1, None

    def __init__(self):
        self.n_sets = 0

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def are_few(self, n_rows):
        return False

    def rows(self, kernel, X, present):
        return PlainRows(kernel.training_rows(X, present))

    def solve_tasks(self, solve, tasks, at_once, run):
        return [solve(task, Control(), self) for task in tasks]

    def for_tasks(self, n_at_once):
        return self

    def copy(self):
        return self

    def share_rows(self, kernel, rows, cache_bytes):
        return kernel, rows

    def product(self, kernel, a, b, coef):
        coef = Coefficients.of(coef)
        return coef.applied(matrix(kernel, a, b))

    def bounded_product(self, kernel, a, b, coef):
        product = self.product(kernel, a, b, coef)
        return product, np.full(product.shape, np.inf)

    def nearest(self, router, rows, known=None, n_old=0):
        found, _ = router.scores(own(rows), slice(None), double=True).nearest(own(rows))
        return Nearest(found.label, found.score, found.error)

    def active_set(self, problem, ids, alpha, cache_bytes, offset=0.0):
        self.n_sets += 1
        return PlainActiveSet(problem, ids, alpha, offset)


class PlainActiveSet:
    """Variables in the order of ``ids``, changed two at a time, or one by one.

    Two at a time (SMO) keep the constraint of an intercept.
    """

    def __init__(self, problem, ids, alpha, offset):
        self.problem, self.ids, self.alpha = problem, ids, alpha[ids].copy()
        self.n_added, self.n_computed, self.violation = 0, len(ids), 0.0
        self.offset, self._rest = (
            offset,
            float(problem.sign @ alpha - problem.sign[ids] @ alpha[ids]),
        )
        self._bind()
        self.gradient = self.Q @ self.alpha + problem.linear_at(offset)[ids]

    def _bind(self):
        p = self.problem
        self.sign, self.upper = p.sign[self.ids], p.upper[self.ids]
        rows = p.rows[self.ids]
        self.Q = self.sign[:, None] * matrix(p.kernel, rows, rows) * self.sign

    def __len__(self):
        return len(self.ids)

    @property
    def missed(self):
        return self.sign @ self.alpha + self._rest if self.problem.has_offset else 0.0

    def must_be_met(self, gap, primal, aim):
        return abs(self.missed) > 1e-9

    def less_slack(self, aim):
        return aim

    def select(self):
        if self.problem.has_offset:  # the loss is least between the two that violate most
            place, raises, lowers = self._places()
            if raises.any() and lowers.any():
                self._move_offset((place[raises].max() + place[lowers].min()) / 2)
        g, a, u = self.gradient, self.alpha, self.upper
        free = np.where(a <= 0, np.minimum(g, 0), np.where(a >= u, np.maximum(g, 0), g))
        self.violation = np.abs(free).max(initial=0.0)
        return float(gap_terms(a, g, u).sum()), 0.0

    def _places(self):
        rises, falls = self.alpha < self.upper, self.alpha > 0
        raises = np.where(self.sign > 0, rises, falls)
        return -self.sign * self.gradient, raises, np.where(self.sign > 0, falls, rises)

    def _move_offset(self, step):
        self.gradient += step * self.sign
        self.offset += step

    def step(self):
        gain = sum(self._pair() if self.problem.has_offset else self._one() for _ in range(50))
        self.n_added += 50
        return gain

    def _change(self, k, change):
        gain = -change * self.gradient[k] - 0.5 * change**2 * self.Q[k, k]
        self.alpha[k] = np.clip(self.alpha[k] + change, 0, self.upper[k])
        self.gradient += change * self.Q[k]
        return gain

    def _one(self):
        g, a, u, d = self.gradient, self.alpha, self.upper, np.diag(self.Q)
        steps = np.clip(a - g / d, 0, u) - a
        k = int(np.argmax(-steps * g - 0.5 * steps**2 * d))
        return self._change(k, steps[k])

    def _pair(self):
        place, raises, lowers = self._places()
        i = int(np.where(raises, place, -np.inf).argmax())
        j = int(np.where(lowers, place, np.inf).argmin())
        if not place[i] > place[j]:
            return 0.0
        curved = self.Q[i, i] + self.Q[j, j] - 2 * self.sign[i] * self.sign[j] * self.Q[i, j]
        rooms = [self.upper[k] - self.alpha[k] if up else self.alpha[k]
                 for k, up in ((i, self.sign[i] > 0), (j, self.sign[j] < 0))]  # fmt: skip
        step = min((place[i] - place[j]) / max(curved, 1e-12), *rooms)
        return self._change(i, self.sign[i] * step) + self._change(j, -self.sign[j] * step)

    def meet_constraint(self):
        gain, left = 0.0, self.missed
        for k in np.argsort(np.abs(self.gradient), kind="stable"):
            falls = self.sign[k] * left > 0
            change = min(abs(left), self.alpha[k] if falls else self.upper[k] - self.alpha[k])
            change = -change if falls else change
            gain, left = gain + self._change(k, change), left + self.sign[k] * change
        return gain

    def at_rest(self, margin):
        low = (self.alpha <= 0) & (self.gradient > margin)
        return low | ((self.alpha >= self.upper) & (self.gradient < -margin))

    def keep(self, numbers, rest):
        self._rest = rest
        for name in ("ids", "alpha", "gradient"):
            setattr(self, name, getattr(self, name)[numbers])
        self._bind()

    def extend(self, ids, alpha, gradient, rest):
        self._rest = rest
        self.ids = np.concatenate([self.ids, ids])
        self.alpha = np.concatenate([self.alpha, alpha])
        self.gradient = np.concatenate([self.gradient, gradient])
        self._bind()

    def reset_gradient(self, gradient):
        self.gradient[:] = gradient

    def close(self):
        pass


class PlainSVC(KernelSVC):
    """A machine that computes there."""

    def _host(self, executor):
        self.backend = PlainBackend()
        return self.backend
