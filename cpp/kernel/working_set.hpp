// The choice of a working set, and the step on it, of which pair_steps.hpp is the inner loop.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "kernel/offset.hpp"
#include "kernel/problem.hpp"
#include "team.hpp"

namespace widemargin {

struct Selection {
  std::vector<std::int64_t> block;  // working sets, one behind the other, each ascending
  std::vector<std::int64_t> start;  // where each begins, and where the last ends
  double violation, gap;            // largest projected gradient; duality gap of all variables
};

// A variable and the decrease that it promises alone.
struct Candidate {
  double score;
  std::int64_t i;
};

// Keeps those that promise most.  Of equals, those with the smallest scrambled number: neighbours,
// such as the rows of one class, are as good as one of them.
inline void keep_best(std::vector<Candidate>& from, std::int64_t most) {
  const auto scrambled = [](std::int64_t i) { return std::uint64_t(i) * 0x9E3779B97F4A7C15u; };
  if (std::int64_t(from.size()) <= most) return;
  std::nth_element(
      from.begin(), from.begin() + most, from.end(), [&](const Candidate& x, const Candidate& y) {
        return x.score > y.score || (x.score == y.score && scrambled(x.i) < scrambled(y.i));
      });
  from.resize(std::size_t(most));
}

// Which variables may form a working set together: all of them, or those of one cluster.
struct ClustersArg {
  const std::int64_t* number = nullptr;  // of every variable's cluster, or null: all are one
  std::int64_t n = 1;
};

// Every variable's projected gradient, and the block of each cluster that they choose: up to half
// of it the free variables of the last block with the steepest ones first, the rest the worst
// violators.  Without the retained half the method need not converge.  If `both`, the violators are
// half those that raise the sum of sign * alpha, half those that lower it.
inline Selection choose_working_sets(const VariablesArg& v, const ClustersArg& clusters, bool both,
                                     const std::int64_t* last, std::int64_t n_last,
                                     std::int64_t size) {
  Selection chosen{{}, {0}, 0, 0};
  const auto score = [&](std::int64_t i) {
    const double slope = v.violation(i), square = slope * slope;
    return both ? square : square / v.diagonal[i];
  };
  const auto cluster = [&](std::int64_t i) {
    return std::size_t(clusters.number ? clusters.number[i] : 0);
  };
  std::vector<std::vector<Candidate>> violators(std::size_t(clusters.n)), kept(violators);
  for (std::int64_t k = 0; k < n_last; ++k)
    if (v.is_free(last[k])) kept[cluster(last[k])].push_back({score(last[k]), last[k]});
  std::vector<bool> taken(std::size_t(v.n), false);
  const std::int64_t pair = both ? 2 : 0;  // has room in every block
  for (auto& block : kept) {
    keep_best(block, std::max(std::min(size / 2, size - pair), std::int64_t(0)));
    for (const Candidate& one : block) taken[std::size_t(one.i)] = true;
  }
  for (std::int64_t i = 0; i < v.n; ++i) {
    const double slope = v.violation(i);
    chosen.gap += gap_term(v.alpha[i], v.gradient[i], v.upper[i], v.turn);
    if (slope == 0) continue;
    chosen.violation = std::max(chosen.violation, std::abs(slope));
    if (!taken[std::size_t(i)]) violators[cluster(i)].push_back({score(i), i});
  }
  for (std::size_t c = 0; c < violators.size(); ++c) {
    std::vector<Candidate>&block = kept[c], &others = violators[c];
    const std::int64_t room = size - std::int64_t(block.size());
    if (both) {
      const auto middle = std::partition(others.begin(), others.end(), [&](const Candidate& one) {
        return v.sign[one.i] * v.violation(one.i) < 0;
      });
      std::vector<Candidate> lowering(middle, others.end());
      others.erase(middle, others.end());
      const auto n_up = std::int64_t(others.size()), n_down = std::int64_t(lowering.size());
      keep_best(others, std::max(room / 2, room - n_down));
      keep_best(lowering, std::max(room - room / 2, room - n_up));
      block.insert(block.end(), lowering.begin(), lowering.end());
    } else {
      keep_best(others, room);
    }
    block.insert(block.end(), others.begin(), others.end());
    const std::size_t first = chosen.block.size();
    for (const Candidate& one : block) chosen.block.push_back(one.i);
    std::sort(chosen.block.begin() + std::int64_t(first), chosen.block.end());
    if (!block.empty()) chosen.start.push_back(std::int64_t(chosen.block.size()));
  }
  return chosen;
}

// The same with an intercept: where it is kept, sets are chosen at its centre, and the gap is that
// of the best one, to which it moves.
inline Selection select_working_sets(const VariablesArg& v, const ClustersArg& clusters,
                                     Offset& offset, const std::int64_t* last, std::int64_t n_last,
                                     std::int64_t size) {
  if (offset.is_kept()) offset.centre(v);
  Selection chosen = choose_working_sets(v, clusters, offset.is_kept(), last, n_last, size);
  if (offset.is_kept()) chosen.gap = offset.settle(v);
  return chosen;
}

inline std::int64_t padded_size(std::int64_t n) { return (n + 7) / 8 * 8; }

// Variables of a block that are seen from their other side, in which they are not negative: those
// below 0, and those at 0 that are nearer to going there, at the centre of the block's offsets if
// they are `balanced`.
inline std::vector<bool> turned(const VariablesArg& v, const std::int64_t* block, std::int64_t n,
                                bool balanced) {
  std::vector<bool> found(std::size_t(n), false);
  if (!v.two_sided()) return found;
  double shift = 0;
  if (balanced) {
    Band band;
    for (std::int64_t k = 0; k < n; ++k) band.add(v, block[k]);
    if (band.is_finite()) shift = band.middle();
  }
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t i = block[k];
    const double slope = v.gradient[i] + shift * v.sign[i];
    found[std::size_t(k)] = v.alpha[i] < 0 || (v.alpha[i] == 0 && slope > 0.5 * v.turn);
  }
  return found;
}

// Minimises over a block of n variables: alpha changes, the gradient is left for the rows to be
// added, and coef becomes sign times change, whose sum is 0 if `balanced`.  rows are the block's
// kernel rows, q has room for Q of padded_size(n) variables.  A team gathers all of Q first.
// Returns by how much the objective fell: f(a + d) - f(a) = d'(g_before + g_after) / 2 for a
// quadratic function.
template <class T>
double minimise_working_set(const VariablesArg& v, const KernelLoopsOf<T>& loops,
                            const T* const* rows, const std::int64_t* block, std::int64_t n,
                            double tol, bool balanced, T* q, double* coef, Team* team = nullptr) {
  if (n == 0) return 0.0;
  const std::int64_t size = padded_size(n);
  const auto room = std::size_t(size);
  std::vector<double> alpha(room, 0.0), gradient(room, 1.0), upper(room, 0.0), diagonal(room, 1.0);
  std::vector<double> sign, before;
  const std::vector<bool> other_side = turned(v, block, n, balanced);
  const std::unique_ptr<bool[]> gathered(new bool[room]());
  for (std::int64_t k = 0; k < n; ++k) {
    const bool turn = other_side[std::size_t(k)];
    const double a = v.alpha[block[k]], g = v.gradient[block[k]], s = v.sign[block[k]];
    alpha[std::size_t(k)] = turn ? -a : a;
    gradient[std::size_t(k)] = turn ? v.turn - g : g;
    upper[std::size_t(k)] = v.upper[block[k]];
    diagonal[std::size_t(k)] = v.diagonal[block[k]];
    sign.push_back(turn ? -s : s);
    before.push_back(gradient[std::size_t(k)]);
  }
  WorkingSetArg<T> w{};
  w.n = n;
  w.size = size;
  w.rows = rows;
  w.block = block;
  w.q = q;
  w.gathered = gathered.get();
  w.sign = sign.data();
  w.diagonal = diagonal.data();
  w.upper = upper.data();
  w.alpha = alpha.data();
  w.gradient = gradient.data();
  w.tol = tol;
  w.balanced = balanced;
  w.max_steps = 100 * n;
  if (team) {
    run_parts(team, n, 8, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) loops.gather_row(w, i);
    });
    std::fill(gathered.get(), gathered.get() + n, true);
  }
  loops.solve_pairs(w);
  double gain = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t i = block[k];
    const double found = alpha[std::size_t(k)], to = other_side[std::size_t(k)] ? -found : found;
    const double moved = to - v.alpha[i],
                 slopes = before[std::size_t(k)] + gradient[std::size_t(k)];
    gain -= 0.5 * (other_side[std::size_t(k)] ? -moved : moved) * slopes;
    coef[k] = moved * v.sign[i];
    v.alpha[i] = to;
  }
  return gain;
}

constexpr std::int64_t kGathered = 256;  // variables of a single set whose Q a team gathers

// The same over blocks that follow each other, side by side; q has room for each.
template <class T>
double minimise_working_sets(const VariablesArg& v, const KernelLoopsOf<T>& loops,
                             const T* const* rows, const std::int64_t* block,
                             const std::int64_t* start, std::int64_t n_sets, double tol,
                             bool balanced, T* q, double* coef, Team* team) {
  if (n_sets == 1)
    return minimise_working_set(v, loops, rows, block, start[1], tol, balanced, q, coef,
                                start[1] >= kGathered ? team : nullptr);
  std::vector<T*> room{q};
  for (std::int64_t k = 0; k < n_sets; ++k) {
    const std::int64_t size = padded_size(start[k + 1] - start[k]);
    room.push_back(room.back() + size * size);
  }
  std::vector<double> gain(std::size_t(n_sets), 0.0);
  run(team, n_sets, [&](std::int64_t k) {
    const std::int64_t begin = start[k], n = start[k + 1] - begin;
    gain[std::size_t(k)] = minimise_working_set(v, loops, rows + begin, block + begin, n, tol,
                                                balanced, room[std::size_t(k)], coef + begin);
  });
  return std::accumulate(gain.begin(), gain.end(), 0.0);
}

}  // namespace widemargin
