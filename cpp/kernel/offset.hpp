// The free intercept b of a machine: the multiplier of sum_i sign_i alpha_i = 0.
//
// At a fixed b the variables have no constraint but their bounds, b is a linear term of the box
// problem, and moving it costs one addition per variable.  The dual objective as a function of b is
// concave with slope sum_i sign_i alpha_i, so while a descent is far from its end, b follows the
// secants of that sum, and clusters of rows do not feel each other through it.  Near the end, a few
// variables meet the constraint once, working sets keep it from there on (`is_kept`), and b is
// where the loss is least.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "kernel/problem.hpp"

namespace widemargin {

// From the least place of an intercept that a variable holds from above to the largest that one
// holds from below.  Where the constraint is met, the loss is least within.
struct Band {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  bool is_finite() const { return std::isfinite(low) && std::isfinite(high); }
  double middle() const { return 0.5 * (low + high); }

  void add(const VariablesArg& v, std::int64_t i) {
    const double s = v.sign[i];
    if (s > 0 ? v.rises(i) : v.falls(i))
      high = std::max(high, -s * (s > 0 ? v.slope_up(i) : v.slope_down(i)));
    if (s > 0 ? v.falls(i) : v.rises(i))
      low = std::min(low, -s * (s > 0 ? v.slope_down(i) : v.slope_up(i)));
  }
};

class Offset {
 public:
  static constexpr double kNear = 10;     // times the tolerance: gap from which it is kept
  static constexpr int kMoves = 50;       // moves after which it is kept in any case
  static constexpr double kHalved = 0.5;  // of the gap since the last move: time for the next one
  static constexpr std::int64_t kSteps = 8;  // steps after which it is time in any case
  static constexpr double kBold = 4.0;       // a secant may be so many times the first answer
  static constexpr int kForgotten = 4;       // moves after which a bound on the root is doubted
  static constexpr double kSlack = 1e-2;  // of the tolerance: what rounding may cost a certificate

  Offset() = default;
  explicit Offset(double value) : present_(true), value_(value) {}

  bool present() const { return present_; }
  double value() const { return value_; }
  bool is_kept() const { return kept_; }
  void keep() { kept_ = present_; }

  // The sum of sign * alpha over variables that are not in the active set.
  void set_rest(double rest) {
    rest_ = rest;
    left_ = 0;
    last_value_ = last_sum_ = std::numeric_limits<double>::quiet_NaN();
    above_ = below_ = Side();
  }

  // By how much the variables miss the constraint.
  double missed(const VariablesArg& v) const {
    double sum = rest_;
    for (std::int64_t i = 0; i < v.n; ++i) sum += v.sign[i] * v.alpha[i];
    return present_ ? sum : 0;
  }

  // What a certificate loses if the constraint is missed.  P(b') >= D - (b' - b) sum for every b',
  // and at the optimum w of the primal P, |b'| <= 1 + |w| max |x| <= 1 + sqrt(2 P k).  Of two-sided
  // variables, b' is among the places where losses begin at the optimum, and the move from here to
  // there is no longer than sqrt(2 P).
  double slack(const VariablesArg& v, double primal) const {
    if (!present_) return 0;
    double most = 0, far = v.two_sided() ? 0 : 1 + std::abs(value_);
    for (std::int64_t i = 0; i < v.n; ++i) {
      const double g = v.gradient[i];
      most = std::max(most, v.diagonal[i]);
      if (v.two_sided()) far = std::max(far, std::max(std::abs(g), std::abs(v.turn - g)));
    }
    return std::abs(missed(v)) * (far + std::sqrt(2 * std::max(primal, 0.0) * most));
  }

  // Whether variables must meet the constraint now, near the end of a descent.
  bool must_be_met(const VariablesArg& v, double gap, double primal, double aim) {
    if (gap <= kNear * aim) keep();
    return kept_ && slack(v, primal) > kSlack * aim && std::abs(missed(v)) > 2 * left_;
  }

  // Tells how much of the constraint rounding has left: to meet it again would be in vain, and a
  // descent that did nothing else would not end.
  void have_met(const VariablesArg& v) { left_ = std::abs(missed(v)); }

  // What the aim leaves for the gap.
  double less_slack(double aim) const { return present_ ? (1 - kSlack) * aim : aim; }

  // Whether enough has happened since the last move; counts a step.
  bool is_due(double gap) {
    const bool due = present_ && !kept_ && (++steps_ > kSteps || gap <= kHalved * gap_);
    if (due) gap_ = gap, steps_ = 0;
    return due;
  }

  // Moves towards the root of the sum by the secant through the last two places, not much further
  // than the diagonal of Q would, nor beyond a place where the sum had the other sign.  Returns the
  // change of the dual objective.
  double move(const VariablesArg& v) {
    const double off = missed(v), first = diagonal_root(v), most = kBold * std::abs(first);
    Side &here = off > 0 ? above_ : below_, &other = off > 0 ? below_ : above_;
    if (off != 0) here = {value_, 0};  // zero variables say nothing
    other.age += 1;
    const double slope = (off - last_sum_) / (value_ - last_value_);
    double step = -off / slope;
    if (!(slope < 0)) step = first;  // also where there was no last time
    step = std::min(std::max(step, -most), most);
    const double room = other.value - value_;
    const bool bounded = other.age <= kForgotten && room * off > 0;
    if (bounded && (!(std::abs(step) < 0.9 * std::abs(room)) || other.age > 2)) step = 0.5 * room;
    if (++n_moves_ >= kMoves) keep();
    last_value_ = value_;
    last_sum_ = off;
    return by(v, step);
  }

  // Moves to where the largest violations of both signs are the same: working sets chosen there
  // have variables that can give and variables that can take.
  void centre(const VariablesArg& v) {
    const Band band = band_of(v);
    if (band.is_finite()) by(v, band.middle());
  }

  // Moves to where the loss is least, in the middle where many places are; the variables stay.
  // Returns the gap there.
  double settle(const VariablesArg& v) {
    const Band band = band_of(v);
    const double begin = std::min(band.low, band.high), end = std::max(band.low, band.high);
    constexpr double kFar = std::numeric_limits<double>::infinity();
    Edge before{-kFar, 0}, after{kFar, 0};  // the nearest ones outside the band
    std::vector<Edge> edges;
    double slope = -rest_, size = 0;  // of the loss, to the left of `edges`; of all slopes
    const auto take = [&](const Edge& edge, bool ends) {  // where a loss ends, or begins
      size += edge.second;
      slope += (edge.first < begin ? edge.second : 0) - (ends ? edge.second : 0);
      if (edge.first < begin)
        before = std::max(before, edge);
      else if (edge.first > end)
        after = std::min(after, edge);
      else
        edges.push_back(edge);
    };
    for (std::int64_t i = 0; i < v.n; ++i) {
      take({-v.gradient[i] * v.sign[i], v.upper[i]}, v.sign[i] > 0);
      if (v.two_sided()) take({(v.turn - v.gradient[i]) * v.sign[i], v.upper[i]}, v.sign[i] < 0);
    }
    slope -= before.second;
    for (const Edge& edge : {before, after})
      if (std::isfinite(edge.first)) edges.push_back(edge);
    const double enough = 1e-12 * size;
    const std::size_t k = first_rising(edges, slope, enough);
    if (k + 1 < edges.size() && slope <= enough)
      by(v, 0.5 * (edges[k].first + edges[k + 1].first));
    else if (k < edges.size())
      by(v, edges[k].first);
    double gap = 0;
    for (std::int64_t i = 0; i < v.n; ++i)
      gap += gap_term(v.alpha[i], v.gradient[i], v.upper[i], v.turn);
    return gap;
  }

 private:
  // A place where the sum was above or below zero, and moves since then.
  struct Side {
    double value = 0;
    int age = kForgotten + 1;
  };

  using Edge = std::pair<double, double>;  // where a row's loss begins or ends; its slope

  // The first edge, in ascending order, with which the slope is not below -enough; it and the next
  // one get their places, and the slope is that behind it.  A weighted median: linear in time.
  static std::size_t first_rising(std::vector<Edge>& edges, double& slope, double enough) {
    std::size_t begin = 0, end = edges.size();
    const auto at = [&](std::size_t k) { return edges.begin() + std::int64_t(k); };
    while (end - begin > 16) {
      const std::size_t middle = begin + (end - begin) / 2;
      std::nth_element(at(begin), at(middle), at(end));
      double left = slope;
      for (std::size_t k = begin; k < middle; ++k) left += edges[k].second;
      if (left < -enough)
        begin = middle, slope = left;
      else
        end = middle;
    }
    std::sort(at(begin), at(end));
    while (begin < end && (slope += edges[begin].second) < -enough) ++begin;
    if (begin + 1 >= end && begin + 1 < edges.size())
      std::iter_swap(at(begin + 1), std::min_element(at(begin + 1), edges.end()));
    return begin;
  }

  static Band band_of(const VariablesArg& v) {
    Band band;
    for (std::int64_t i = 0; i < v.n; ++i) band.add(v, i);
    return band;
  }

  double by(const VariablesArg& v, double step) {
    const double change = -step * missed(v);
    for (std::int64_t i = 0; i < v.n; ++i) v.gradient[i] += step * v.sign[i];
    value_ += step;
    return change;
  }

  // The step after which the constraint would hold, if every variable answered alone: a root of a
  // falling piecewise linear function, by Newton's method between bounds.
  double diagonal_root(const VariablesArg& v) const {
    constexpr double kFar = std::numeric_limits<double>::infinity();
    double low = -kFar, high = kFar, step = 0, reach = 1, enough = 0;
    for (int k = 0; k < 100; ++k) {
      double value = rest_, slope = 0;
      for (std::int64_t i = 0; i < v.n; ++i) {
        const double q = v.diagonal[i], u = v.upper[i];
        double a = v.alpha[i] - (v.gradient[i] + step * v.sign[i]) / q;
        if (a < 0 && v.two_sided()) a = std::min(a + v.turn / q, 0.0);
        const double least = v.lower(i), clipped = a < least ? least : a > u ? u : a;
        value += v.sign[i] * clipped;
        slope -= a == clipped && !(a == 0 && v.two_sided()) ? 1 / q : 0;
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

  bool present_ = false, kept_ = false;
  double value_ = 0, rest_ = 0, left_ = 0;
  double last_value_ = std::numeric_limits<double>::quiet_NaN(), last_sum_ = last_value_;
  Side above_, below_;
  double gap_ = std::numeric_limits<double>::infinity();
  std::int64_t steps_ = 0;
  int n_moves_ = 0;
};

// Changes of variables that meet the constraint: of free ones, those with the least slopes first;
// then of those at their upper bound; and of those at zero, which would be new support vectors.
struct Balancing {
  std::vector<std::int64_t> block;
  std::vector<double> coef;  // sign times change
  std::vector<double> kink;  // what a variable costs on its side of 0, per unit
};

inline Balancing balancing(const VariablesArg& v, double missed, std::int64_t most) {
  struct Candidate {
    int kind;
    double slope, room;
    std::int64_t i;
  };
  std::vector<Candidate> all;
  for (std::int64_t i = 0; i < v.n; ++i) {
    const bool rises = v.sign[i] * missed < 0;
    const double a = v.alpha[i], to = rises ? (a < 0 ? 0 : v.upper[i]) : (a > 0 ? 0 : v.lower(i));
    const double room = std::abs(to - a), slope = rises ? v.slope_up(i) : v.slope_down(i);
    const int kind = a == 0 ? 2 : v.is_free(i) ? 0 : 1;
    if (room > 0) all.push_back({kind, std::abs(slope), room, i});
  }
  std::sort(all.begin(), all.end(), [](const Candidate& x, const Candidate& y) {
    return std::tie(x.kind, x.slope, x.i) < std::tie(y.kind, y.slope, y.i);
  });
  double left = std::abs(missed), room = 0;
  std::size_t n = 0;  // as many of a kind as asked for, and of the next only where these lack room
  while (n < all.size() && (room < left || (std::int64_t(n) < most && all[n].kind == all[0].kind)))
    room += all[n++].room;
  std::sort(all.begin(), all.begin() + std::int64_t(n), [](const Candidate& x, const Candidate& y) {
    return std::tie(x.room, x.i) < std::tie(y.room, y.i);
  });
  Balancing found;
  for (std::size_t k = 0; k < n && left > 0; ++k) {  // those with little room give it all
    const double change = std::min(all[k].room, left / double(n - k));
    left -= change;
    found.block.push_back(all[k].i);
    found.coef.push_back(missed < 0 ? change : -change);
    const bool rises = v.sign[all[k].i] * missed < 0;
    const double slope = rises ? v.slope_up(all[k].i) : v.slope_down(all[k].i);
    found.kink.push_back(slope < v.gradient[all[k].i] ? v.turn : 0);
  }
  return found;
}

// Writes the variables; the gradient is left for the rows to be added.
inline void apply(const VariablesArg& v, const Balancing& moves) {
  for (std::size_t k = 0; k < moves.block.size(); ++k) {
    const std::int64_t i = moves.block[k];
    const double to = v.alpha[i] + v.sign[i] * moves.coef[k];
    v.alpha[i] = std::min(std::max(to, v.lower(i)), v.upper[i]);
  }
}

}  // namespace widemargin
