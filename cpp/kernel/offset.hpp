// The intercept b of a machine, moved between the steps of a descent.
//
// A free intercept is the multiplier of sum_i sign_i alpha_i = 0.  At a fixed b the variables have
// no constraint but their bounds, so b is a linear term of the box problem, and moving it costs one
// addition per variable.  The dual objective as a function of b is concave with slope
// sum_i sign_i alpha_i; its maximum is found by secants, begun with the answer that the diagonal of
// Q alone would give.  With a ridge > 0 the machine pays ridge b^2 / 2 for its intercept, and the
// root is that of sum_i sign_i alpha_i = ridge b.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "kernel/problem.hpp"

namespace widemargin {

class Offset {
 public:
  static constexpr double kHalved = 0.5;  // of the gap since the last move: time for the next one
  static constexpr std::int64_t kSteps = 8;  // steps after which it is time in any case
  static constexpr double kBold = 4.0;       // a secant may be so many times the first answer
  static constexpr double kShare = 0.3;      // of the aim: what changes of variables may cost
  static constexpr double kAlike = 0.25;  // typical kernel value of two variables, of the largest
  static constexpr int kTries = 6;        // settled moves after which working sets keep it
  static constexpr int kForgotten = 8;    // moves after which a bound on the root is doubted
  static constexpr double kSlack = 0.1;   // of the aim: what a certificate may lose to it

  Offset() = default;
  Offset(double ridge, double value) : present_(true), ridge_(ridge), value_(value) {}

  bool present() const { return present_; }
  double value() const { return value_; }
  bool is_free() const { return present_ && ridge_ == 0; }

  // Sum of sign * alpha over variables that are not in the active set.
  void set_rest(double rest) {
    rest_ = rest;
    forget();
  }

  // By how much the variables miss the constraint.
  double residual(const VariablesArg& v) const { return signed_sum(v) - ridge_ * value_; }

  // What an aim leaves for the gap.
  double less_slack(double aim) const { return present_ ? (1 - kSlack) * aim : aim; }

  // What a certificate loses if the constraint does not hold.  P(b') >= D - (b' - b) residual for
  // every b', and at the optimum w of the primal P, |b'| <= 1 + |w| max |x| <= 1 + sqrt(2 P k).
  // With a ridge the best b is residual / ridge away.
  double slack(const VariablesArg& v, double primal) const {
    if (!present_) return 0;
    const double off = std::abs(residual(v));
    if (ridge_ > 0) return off * off / (2 * ridge_);
    double most = 0;
    for (std::int64_t i = 0; i < v.n; ++i) most = std::max(most, v.diagonal[i]);
    return off * (1 + std::abs(value_) + std::sqrt(2 * std::max(primal, 0.0) * most));
  }

  // Whether the constraint holds as well as a gap of `aim` needs it.
  bool is_balanced(const VariablesArg& v, double primal, double aim) const {
    return !present_ || slack(v, primal) <= kSlack * aim;
  }

  // Whether working sets keep the constraint, in which case the intercept only follows.
  bool is_kept() const { return kept_; }

  // Whether variables must answer the last move before anything is made of a gap.
  bool awaits() const { return awaits_; }
  void answered() { awaits_ = false; }

  // Whether enough has happened since the last move; counts a step.
  bool is_due(double gap) {
    const bool due = present_ && !kept_ && (++steps_ > kSteps || gap <= kHalved * gap_);
    if (due) gap_ = gap, steps_ = 0;
    return due;
  }

  // What the intercept adds to the dual objective.
  double own_objective() const { return 0.5 * ridge_ * value_ * value_; }

  // Moves towards the root, by the secant through the last two places; not beyond a place where the
  // residual had the other sign, and into the middle where secants come no nearer.  While variables
  // are still on their way (not `settled`), no further than some times the answer of the diagonal.
  // Returns the change of the dual objective.
  double move(const VariablesArg& v, bool settled) {
    const double off = residual(v);
    awaits_ = settled;
    const double first = settled ? std::copysign(reach_, off) : diagonal_root(v);
    Side &here = off > 0 ? above_ : below_, &other = off > 0 ? below_ : above_;
    here = {value_, 0};
    other.age += 1;
    double step = secant(off);
    if (!(step * off > 0)) step = first;
    if (!settled)
      step = std::min(std::max(step, -kBold * std::abs(first)), kBold * std::abs(first));
    const double room = other.value - value_;
    if (other.age > kForgotten || !(room * off > 0)) {
      if (settled) reach_ = std::max(reach_, 2 * std::abs(step));
    } else if (!(std::abs(step) < 0.9 * std::abs(room)) || other.age > 2) {
      step = 0.5 * room;
      reach_ = std::abs(step);
    }
    return by(v, step);
  }

  // Keeps the constraint from now on if moves have not met it so often.
  bool gives_up() {
    kept_ = kept_ || ++n_settled_ > kTries;
    return kept_;
  }

  // Moves to where the loss of these decision values is least, in the middle where many places are;
  // the variables stay.  Returns the change of the dual objective.
  double settle(const VariablesArg& v) {
    if (!is_free()) return 0;
    std::vector<std::pair<double, double>>
        edges;              // where a row's loss begins or ends, and its size
    double slope = -rest_;  // of the loss, to the left of all edges
    for (std::int64_t i = 0; i < v.n; ++i) {
      edges.emplace_back(-v.gradient[i] * v.sign[i], v.upper[i]);
      if (v.sign[i] > 0) slope -= v.upper[i];
    }
    std::sort(edges.begin(), edges.end());
    const double enough = 1e-12 * std::abs(slope);
    for (std::size_t k = 0; k < edges.size(); ++k) {
      slope += edges[k].second;
      if (slope < -enough) continue;
      const bool flat = slope <= enough && k + 1 < edges.size();
      return by(v, flat ? 0.5 * (edges[k].first + edges[k + 1].first) : edges[k].first);
    }
    return 0;
  }

 private:
  double secant(double off) const {
    const double slope = (off - last_residual_) / (value_ - last_value_);
    return slope < 0 ? -off / slope : std::numeric_limits<double>::quiet_NaN();
  }

  double by(const VariablesArg& v, double step) {
    last_value_ = value_;
    last_residual_ = residual(v);
    const double change = ridge_ * step * (value_ + 0.5 * step) - step * signed_sum(v);
    for (std::int64_t i = 0; i < v.n; ++i) v.gradient[i] += step * v.sign[i];
    value_ += step;
    return change;
  }

  // A place where the residual was above or below zero, and moves since then.
  struct Side {
    double value = 0;
    int age = kForgotten + 1;
  };

  void forget() {
    last_value_ = last_residual_ = std::numeric_limits<double>::quiet_NaN();
    above_ = below_ = Side();
  }

  double signed_sum(const VariablesArg& v) const {
    double sum = rest_;
    for (std::int64_t i = 0; i < v.n; ++i) sum += v.sign[i] * v.alpha[i];
    return sum;
  }

  // The step after which the constraint would hold, if every variable answered alone: a root of a
  // falling piecewise linear function, by Newton's method between bounds.
  double diagonal_root(const VariablesArg& v) const {
    constexpr double kFar = std::numeric_limits<double>::infinity();
    double low = -kFar, high = kFar, step = 0, reach = 1, enough = 0;
    for (int k = 0; k < 100; ++k) {
      double value = rest_ - ridge_ * (value_ + step), slope = -ridge_;
      for (std::int64_t i = 0; i < v.n; ++i) {
        const double q = v.diagonal[i], u = v.upper[i];
        const double a = v.alpha[i] - (v.gradient[i] + step * v.sign[i]) / q;
        const double clipped = a < 0 ? 0 : a > u ? u : a;
        value += v.sign[i] * clipped;
        slope -= a == clipped ? 1 / q : 0;
      }
      if (k == 0) enough = 1e-3 * std::abs(value);
      if (!(std::abs(value) > enough)) break;
      (value > 0 ? low : high) = step;
      double next = slope < 0 ? step - value / slope : kFar;
      if (!(next > low && next < high)) {
        if (low > -kFar && high < kFar)
          next = 0.5 * (low + high);
        else
          next = step + (value > 0 ? reach : -reach), reach *= 4;
      }
      if (next == step) break;
      step = next;
    }
    return step;
  }

  bool present_ = false;
  double ridge_ = 0, value_ = 0, rest_ = 0;
  double last_value_ = std::numeric_limits<double>::quiet_NaN(), last_residual_ = last_value_;
  Side above_, below_;
  bool kept_ = false, awaits_ = false;
  int n_settled_ = 0;
  double reach_ = 1e-3;
  double gap_ = std::numeric_limits<double>::infinity();
  std::int64_t steps_ = 0;
};

// Changes of variables that meet the constraint of a free intercept, spread over those that hardly
// mind: those with the least slopes first.
struct Balancing {
  std::vector<std::int64_t> block;
  std::vector<double> coef;  // sign times change
  double gain = 0;           // of the dual objective, to first order
  double cost = 0;           // about
};

inline Balancing balancing(const VariablesArg& v, double residual, std::int64_t most) {
  struct Candidate {
    double slope, room;
    std::int64_t i;
  };
  std::vector<Candidate> all;
  for (std::int64_t i = 0; i < v.n; ++i) {
    const bool rises = v.sign[i] * residual < 0;
    const double room = rises ? v.upper[i] - v.alpha[i] : v.alpha[i];
    if (room > 0) all.push_back({std::abs(v.gradient[i]), room, i});
  }
  std::sort(all.begin(), all.end(), [](const Candidate& x, const Candidate& y) {
    return x.slope != y.slope ? x.slope < y.slope : x.i < y.i;
  });
  double left = std::abs(residual), room = 0;
  std::size_t n = 0;  // as many as asked for, and more only where these have no room
  while (n < all.size() && (std::int64_t(n) < most || room < left)) room += all[n++].room;
  std::sort(all.begin(), all.begin() + std::int64_t(n), [](const Candidate& x, const Candidate& y) {
    return x.room != y.room ? x.room < y.room : x.i < y.i;
  });
  Balancing found;
  for (std::size_t k = 0; k < n; ++k) {  // those with little room give it all
    const double change = std::min(all[k].room, left / double(n - k));
    left -= change;
    const std::int64_t i = all[k].i;
    found.block.push_back(i);
    found.coef.push_back(residual < 0 ? change : -change);
    found.gain -= found.coef.back() * v.sign[i] * v.gradient[i];
    found.cost += Offset::kAlike * 0.5 * residual * residual / double(n) * v.diagonal[i];
  }
  found.cost += std::max(-found.gain, 0.0);
  return found;
}

// Writes the variables; the gradient is left for the rows to be added.
inline void apply(const VariablesArg& v, const Balancing& moves) {
  for (std::size_t k = 0; k < moves.block.size(); ++k) {
    const std::int64_t i = moves.block[k];
    v.alpha[i] = std::min(std::max(v.alpha[i] + v.sign[i] * moves.coef[k], 0.0), v.upper[i]);
  }
}

// What meets the constraint: changes of variables where these cost little of the aim, else (with an
// empty block) a move of the intercept, which has been made.
inline Balancing meet_constraint(const VariablesArg& v, Offset& offset, double aim,
                                 std::int64_t most) {
  Balancing moves;
  if (!offset.is_free() && std::isinf(aim)) return moves;  // nothing needs to be met
  if (offset.is_free()) {
    moves = balancing(v, offset.residual(v), most);
    if (moves.cost <= Offset::kShare * aim || offset.gives_up()) return moves;
  }
  moves = Balancing();
  moves.gain = offset.move(v, true);
  return moves;
}

}  // namespace widemargin
