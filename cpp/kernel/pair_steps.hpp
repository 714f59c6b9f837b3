// The quadratic programme of one working set, by steps of two variables.
#pragma once

#include "kernel/problem.hpp"
#include "kernel/vectors.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

using Longs = Vector<std::int64_t, kDoubles>;

inline Longs first_indices() {
  Longs index{};
  for (int l = 0; l < kDoubles; ++l) index[l] = l;
  return index;
}

// Writes row i of Q, whose values lie far apart in memory.
template <class T>
void gather_row(const WorkingSetArg<T>& w, std::int64_t i) {
  T* q = w.q + i * w.size;
  const std::int64_t n = i < w.n ? w.n : 0;  // the padding is never chosen, but for NaN
  for (std::int64_t j = 0; j < n; ++j) q[j] = T(w.sign[i] * w.sign[j]) * w.rows[i][w.block[j]];
  for (std::int64_t j = n; j < w.size; ++j) q[j] = 0;
}

struct Best {
  double score;
  std::int64_t index;
};

// Lane-wise maxima to one; ties go to the smallest index, so that results do not depend on lanes.
inline Best reduce(Doubles score, Longs index) {
  Best best{score[0], index[0]};
  for (int l = 1; l < kDoubles; ++l)
    if (score[l] > best.score || (score[l] == best.score && index[l] < best.index))
      best = {score[l], index[l]};
  return best;
}

inline Doubles projected(Doubles a, Doubles g, Doubles upper) {
  const Doubles zero{};
  const Doubles low = vmin(g, zero), high = vmax(g, zero);
  return a <= zero ? low : (a >= upper ? high : g);
}

// Two-variable steps with a second-order partner on one block (Steinwart, Hush, Scovel 2011;
// without a bias there is no equality constraint, so the pair moves in a rectangle).
template <class T>
class PairSteps {
 public:
  explicit PairSteps(const WorkingSetArg<T>& w) : w_(w) {}

  std::int64_t solve() { return w_.balanced ? solve_balanced() : solve_free(); }

 private:
  // Steps that keep the sum of sign * alpha: one variable adds to it what its partner takes away
  // (Fan, Chen, Lin 2005).
  std::int64_t solve_balanced() {
    std::int64_t steps = 0;
    for (; steps < w_.max_steps; ++steps) {
      std::int64_t i = -1, j = -1;
      double highest = -__builtin_huge_val(), lowest = -highest, best = 0;
      for (std::int64_t k = 0; k < w_.n; ++k) {
        const double score = -w_.sign[k] * w_.gradient[k];
        if (room(k, w_.sign[k]) > 0 && score > highest) highest = score, i = k;
        if (room(k, -w_.sign[k]) > 0) lowest = vmin(lowest, score);
      }
      if (i < 0 || !(highest - lowest > 2 * w_.tol)) break;
      const T* qi = row(i);
      for (std::int64_t k = 0; k < w_.n; ++k) {
        const double ahead = highest + w_.sign[k] * w_.gradient[k];
        if (!(ahead > 0) || !(room(k, -w_.sign[k]) > 0)) continue;
        const double gain = ahead * ahead / curvature(i, k, qi);
        if (gain > best) best = gain, j = k;
      }
      if (j < 0) break;
      double step = (highest + w_.sign[j] * w_.gradient[j]) / curvature(i, j, qi);
      step = vmin(step, vmin(room(i, w_.sign[i]), room(j, -w_.sign[j])));
      if (!(step > 0)) break;
      const double di = w_.sign[i] * step, dj = -w_.sign[j] * step;
      w_.alpha[i] = clipped_to(i, w_.alpha[i] + di);
      w_.alpha[j] = clipped_to(j, w_.alpha[j] + dj);
      most_violating(i, di, j, dj);
    }
    return steps;
  }

  // How far variable k can go in a direction.
  double room(std::int64_t k, double direction) const {
    return direction > 0 ? w_.upper[k] - w_.alpha[k] : w_.alpha[k];
  }

  double clipped_to(std::int64_t k, double alpha) const {
    return vmin(vmax(alpha, 0.0), w_.upper[k]);
  }

  double curvature(std::int64_t i, std::int64_t j, const T* qi) const {
    const double sum = w_.diagonal[i] + w_.diagonal[j];
    return vmax(sum - 2 * w_.sign[i] * w_.sign[j] * double(qi[j]), 1e-12 * sum);
  }

  std::int64_t solve_free() {
    std::int64_t steps = 0;
    Best first = most_violating(0, 0, 0, 0);
    while (steps < w_.max_steps) {
      const std::int64_t i = first.index;
      if (first.score <= 0 || violation(i) <= w_.tol) break;
      const std::int64_t j = partner(i);
      double di = 0, dj = 0;
      minimise_pair(i, j, &di, &dj);
      ++steps;
      if (di == 0 && dj == 0) break;  // at the limit of the arithmetic
      w_.alpha[i] += di;
      if (j != i) w_.alpha[j] += dj;
      first = most_violating(i, di, j, j != i ? dj : 0);
    }
    return steps;
  }

  // Row i of Q, gathered when a step first asks for it: half of the variables never move.
  const T* row(std::int64_t i) {
    if (!w_.gathered[i]) gather_row(w_, i);
    w_.gathered[i] = true;
    return w_.q + i * w_.size;
  }

  double violation(std::int64_t i) const {
    const double g = w_.gradient[i];
    if (w_.alpha[i] <= 0) return g < 0 ? -g : 0;
    if (w_.alpha[i] >= w_.upper[i]) return g > 0 ? g : 0;
    return g < 0 ? -g : g;
  }

  // Updates the gradient by two rows and finds the largest projected gradient on the way.
  Best most_violating(std::int64_t i, double di, std::int64_t j, double dj) {
    const T *qi = row(i), *qj = row(j);
    Doubles best{};
    Longs at{}, index = first_indices();
    best = best - 1.0;
    for (std::int64_t k = 0; k < w_.size; k += kDoubles, index = index + kDoubles) {
      const Doubles g =
          load<Doubles>(w_.gradient + k) + di * widened(qi + k) + dj * widened(qj + k);
      store(w_.gradient + k, g);
      const Doubles pg = projected(load<Doubles>(w_.alpha + k), g, load<Doubles>(w_.upper + k));
      const Doubles score = pg * pg;
      const auto better = score > best;
      best = better ? score : best;
      at = better ? index : at;
    }
    return reduce(best, at);
  }

  // The partner with the largest decrease of the unconstrained two-variable step, among those
  // that may move in its direction; i itself stands for a step of one variable.
  std::int64_t partner(std::int64_t i) {
    const double qii = w_.diagonal[i], gi = w_.gradient[i];
    const T* qi = row(i);
    Doubles best{};
    Longs at{}, index = first_indices();
    best = best + gi * gi / qii;
    at = at + i;
    for (std::int64_t k = 0; k < w_.size; k += kDoubles, index = index + kDoubles) {
      const Doubles qij = widened(qi + k), g = load<Doubles>(w_.gradient + k);
      const Doubles a = load<Doubles>(w_.alpha + k), upper = load<Doubles>(w_.upper + k);
      const Doubles qjj = load<Doubles>(w_.diagonal + k);
      const Doubles determinant = vmax(qii * qjj - qij * qij, 1e-12 * qii * qjj);
      const Doubles towards = qij * gi - qii * g;  // sign of the partner's step
      const Doubles gain = (gi * gi * qjj - 2 * gi * g * qij + g * g * qii) / determinant;
      const Doubles zero{};
      const auto blocked = ((a <= zero) & (towards <= zero)) | ((a >= upper) & (towards >= zero));
      const Doubles score = blocked ? zero : gain;
      const auto better = score > best;
      best = better ? score : best;
      at = better ? index : at;
    }
    return reduce(best, at).index;
  }

  double clipped(std::int64_t i, double step) const {
    const double a = w_.alpha[i], to = a + step;
    return to < 0 ? -a : to > w_.upper[i] ? w_.upper[i] - a : step;
  }

  void minimise_pair(std::int64_t i, std::int64_t j, double* di, double* dj) {
    const double qii = w_.diagonal[i], gi = w_.gradient[i];
    if (i == j) {
      *di = clipped(i, -gi / qii);
      *dj = 0;
      return;
    }
    const double qjj = w_.diagonal[j], gj = w_.gradient[j], qij = row(i)[j];
    double determinant = qii * qjj - qij * qij;
    if (determinant < 1e-12 * qii * qjj) determinant = 1e-12 * qii * qjj;
    const double si = (qij * gj - qjj * gi) / determinant, sj = (qij * gi - qii * gj) / determinant;
    if (clipped(i, si) == si && clipped(j, sj) == sj) {
      *di = si;
      *dj = sj;
      return;
    }
    // The minimum lies on an edge: fix one variable at each bound it may reach, solve the other.
    // With a nearly singular pair every edge can be worse than moving the first one alone.
    *di = clipped(i, -gi / qii);
    *dj = 0;
    double best = *di * (gi + 0.5 * qii * *di);
    const auto try_edge = [&](double step, bool first) {
      const double g_other = (first ? gj : gi) + qij * step;
      const double other = clipped(first ? j : i, -g_other / (first ? qjj : qii));
      const double xi = first ? step : other, xj = first ? other : step;
      const double value =
          gi * xi + gj * xj + 0.5 * (qii * xi * xi + qjj * xj * xj) + qij * xi * xj;
      if (value < best) {
        best = value;
        *di = xi;
        *dj = xj;
      }
    };
    try_edge(-w_.alpha[i], true);
    try_edge(-w_.alpha[j], false);
    if (w_.upper[i] < __builtin_huge_val()) try_edge(w_.upper[i] - w_.alpha[i], true);
    if (w_.upper[j] < __builtin_huge_val()) try_edge(w_.upper[j] - w_.alpha[j], false);
  }

  const WorkingSetArg<T>& w_;
};

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
