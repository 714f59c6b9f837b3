// Dual coordinate descent (Hsieh et al. 2008; Algorithm 1 of ICD, PmSVM and PmSVM-LUT; with a tube
// Ho and Lin 2012), every class or target of a batch in its own lane.
#pragma once

#include "additive/cells.hpp"
#include "additive/exchange.hpp"
#include "additive/losses.hpp"
#include "additive/problem.hpp"
#include "additive/rows.hpp"
#include "clock.hpp"
#include "simd.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

// The clock interrupts passes only after a multiple of this many rows, so that sums do not depend
// on interruptions.
constexpr int kRowsPerSum = 32;

// Sums in T over a few rows, then in double: fast and exact enough to certify.
template <class Lanes, class T>
class Accountant {
 public:
  Accountant(Account* out) : out_(out) {}
  ~Accountant() {
    if (rows_ > 0) flush();
  }

  WIDEMARGIN_INLINE void add(Lanes loss, Lanes quadratic, Lanes gap, Lanes pg) {
    loss_ += loss;
    quadratic_ += quadratic;
    gap_ += gap;
    pg_max_ = vmax(pg_max_, pg);
    pg_min_ = vmin(pg_min_, pg);
    if (++rows_ == kRowsPerSum) flush();
  }

 private:
  void flush() {
    add_to(out_->loss, loss_);
    add_to(out_->quadratic, quadratic_);
    add_to(out_->gap, gap_);
    T high[kWidth], low[kWidth];
    store(high, pg_max_);
    store(low, pg_min_);
    for (int l = 0; l < kWidth; ++l) {
      if (high[l] > out_->pg_max[l]) out_->pg_max[l] = high[l];
      if (low[l] < out_->pg_min[l]) out_->pg_min[l] = low[l];
    }
    loss_ = quadratic_ = gap_ = pg_max_ = pg_min_ = Lanes{};
    rows_ = 0;
  }
  static void add_to(double* sums, Lanes v) {
    T numbers[kWidth];
    store(numbers, v);
    for (int l = 0; l < kWidth; ++l) sums[l] += numbers[l];
  }
  static constexpr int kWidth = sizeof(Lanes) / sizeof(T);
  Account* out_;
  Lanes loss_{}, quadratic_{}, gap_{}, pg_max_{}, pg_min_{};
  int rows_ = 0;
};

// One sample of the box-constrained duals of losses.hpp, a dual per lane, with a `Margin` or a
// `Tube`.
template <class Cells, template <class, class> class Goal>
struct BoxDual {
  using T = typename Cells::Number;
  using Lanes = typename Cells::Lanes;
  static constexpr int kWidth = sizeof(Lanes) / sizeof(T);

  const std::int32_t* label;
  const T *targets, *c, *diagonal;
  T* coef;
  Lanes bias;  // private: threads that take the same steps have the same value
  T bias_value, damping;
  Loss<T> loss;
  Goal<T, Lanes> goal;

  BoxDual(const SharedArg& shared, const BoxArg& box)
      : label(shared.label),
        targets(static_cast<const T*>(box.targets)),
        c(static_cast<const T*>(shared.c)),
        diagonal(static_cast<const T*>(shared.diagonal)),
        coef(static_cast<T*>(box.coef)),
        bias(load<Lanes>(static_cast<const T*>(box.bias))),
        bias_value(T(shared.bias_value)),
        damping(T(box.damping)),
        loss{shared.loss},
        goal(shared) {}

  struct Sample {
    Lanes target, coef, decision, pull, gradient;
    T ridge, diagonal, c;
  };

  // Start row i, before its features are summed.
  WIDEMARGIN_INLINE Sample at(std::int64_t i) const {
    Sample s;
    s.target = load<Lanes>(targets + label[i] * kWidth);
    s.coef = load<Lanes>(coef + i * kWidth);
    s.c = c[i];
    s.diagonal = diagonal[i];
    s.ridge = loss.ridge(s.c);
    s.pull = s.ridge * s.coef;
    return s;
  }

  WIDEMARGIN_INLINE void prefetch(std::int64_t i) const {
    __builtin_prefetch(label + i);
    __builtin_prefetch(coef + i * kWidth, 1);
    __builtin_prefetch(c + i);
    __builtin_prefetch(diagonal + i);
  }

  // The decision of the features, without the constant one.
  WIDEMARGIN_INLINE void decide(Sample& s, Lanes decision) const {
    s.decision = decision + bias_value * bias;
    s.gradient = s.decision - s.target + s.pull;
  }

  // The exact minimiser along one coordinate.  A row of zeros has no curvature unless the loss is
  // squared: a huge step sends it to its bound, like a division by zero.
  WIDEMARGIN_INLINE Lanes minimiser(const Sample& s) const {
    const T step = curvature(s) > 0 ? T(1) / curvature(s) : T(1e30);
    return goal.minimiser(Lanes(s.coef - s.gradient * step), step, s.target, loss.largest(s.c));
  }
  WIDEMARGIN_INLINE T curvature(const Sample& s) const { return damping * s.diagonal + s.ridge; }

  WIDEMARGIN_INLINE OneSided<Lanes> of(const Sample& s) const {
    return goal.of(s.target, s.coef, s.decision, s.gradient);
  }

  WIDEMARGIN_INLINE void account(Accountant<Lanes, T>& book, const Sample& s) const {
    const Lanes zero{}, largest = zero + loss.largest(s.c);
    const OneSided<Lanes> u = of(s);
    const Lanes low = vmin(u.gradient, zero), high = vmax(u.gradient, zero);
    const Lanes projected = select(u.a <= zero, low, select(u.a >= largest, high, u.gradient));
    const Lanes slack = vmax(u.ahead, zero), excess = vmax(-u.ahead, zero);
    Lanes value = loss.value(slack, s.c);
    Lanes gap = loss.gap(u.a, slack, excess, s.c, Lanes(s.ridge * u.a));
    if constexpr (Goal<T, Lanes>::kTwoSided) {
      const Lanes opposite = loss.value(goal.opposite(u.ahead), s.c);
      value += opposite;
      gap += opposite;
    }
    book.add(value, s.coef * s.decision, gap, projected);
  }

  // LIBLINEAR's shrinking rule in every lane: at a bound, and pushed outwards by more than the
  // largest violation of the last sweep.
  bool at_rest(const Sample& s, const double* shrink_max, const double* shrink_min) const {
    const OneSided<Lanes> u = of(s);
    const T largest = loss.largest(s.c);
    T a[kWidth], g[kWidth];
    store(a, u.a);
    store(g, u.gradient);
    for (int l = 0; l < kWidth; ++l) {
      const bool rests =
          (a[l] <= 0 && g[l] > shrink_max[l]) || (a[l] >= largest && g[l] < shrink_min[l]);
      if (!rests) return false;
    }
    return true;
  }
};

// A team of one thread.
template <class Lanes>
struct Alone {
  static constexpr bool leads() { return true; }
  static constexpr bool is_crowded() { return false; }
  WIDEMARGIN_INLINE Lanes total(Lanes whole, bool&) const { return whole; }
};

// Visit order[begin, end) once.  Return the position reached: `end`, or earlier when the time is
// up; calling again from there continues the sweep as if it had not stopped.
//
// In a team every member calls this with its own rows and cells.  A sample is read before the
// exchange and written after it, by the leader; no member reads it in between.
template <class Rows, class Cells, class Dual, class Team>
std::int64_t descend(const Rows& rows, Cells cells, const BoxArg& box, Dual dual,
                     const Sweep& sweep, Team&& team) {
  using Lanes = typename Cells::Lanes;
  Accountant<Lanes, typename Cells::Number> book(sweep.account);
  Clock clock(sweep.seconds);

  constexpr bool fused = Rows::dense && Dual::kWidth > 1 && Cells::kFused;
  typename Rows::Row pending{};  // fused only: the row whose update is still to be written
  Lanes pending_delta{};

  constexpr int ahead = Rows::dense ? 2 : 4;  // short rows take less time than memory
  std::int64_t at = sweep.begin;
  for (bool last = false; at < sweep.end && !last; ++at) {
    const std::int64_t i = sweep.order[at];
    const auto row = rows[i];
    // Prefetch for the next rows: their positions first, then values and samples, then the weights
    // of their features.
    if (at + 2 * ahead < sweep.end) rows.prefetch_place(sweep.order[at + 2 * ahead]);
    if (at + ahead < sweep.end) {
      rows[sweep.order[at + ahead]].prefetch();
      dual.prefetch(sweep.order[at + ahead]);
    }
    if (at + 1 < sweep.end) cells.prefetch(rows[sweep.order[at + 1]]);
    clock.count(row.size * cells.cost());
    last = (at + 1 - sweep.begin) % kRowsPerSum == 0 && (clock.is_up() || team.is_crowded());

    auto s = dual.at(i);
    Lanes decision;
    if constexpr (fused) {
      decision = pending.size ? cells.update_dot(pending, pending_delta, row) : cells.dot(row);
      pending.size = 0;
    } else {
      decision = cells.dot(row);
    }
    dual.decide(s, team.total(decision, last));

    const Lanes next = dual.minimiser(s);
    const Lanes delta = next - s.coef;
    if (any(delta != Lanes{})) {
      if (team.leads()) {
        store(dual.coef + i * Dual::kWidth, next);
        sweep.status[i] = kMoved;
      }
      const Lanes moved = dual.damping * delta;
      dual.bias += dual.bias_value * moved;
      if constexpr (fused) {
        pending = row;
        pending_delta = moved;
      } else {
        cells.update(row, moved);
      }
    } else if (team.leads() && dual.at_rest(s, sweep.shrink_max, sweep.shrink_min)) {
      sweep.status[i] = kRests;
    }
    // At the weights before the step: an estimate of the gap that certify() confirms.
    if (team.leads()) dual.account(book, s);
  }
  if constexpr (fused)
    if (pending.size) cells.update(pending, pending_delta);
  if (team.leads()) store(static_cast<typename Cells::Number*>(box.bias), dual.bias);
  return at;
}

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
