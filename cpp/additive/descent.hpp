// Dual coordinate descent for hinge and squared hinge (Hsieh et al. 2008; Algorithm 1 of ICD,
// PmSVM and PmSVM-LUT), every class of a batch in its own lane.
#pragma once

#include "additive/cells.hpp"
#include "additive/problem.hpp"
#include "additive/rows.hpp"
#include "clock.hpp"
#include "simd.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

// Passes are cut by the clock only after a multiple of this many rows, so that sums do not
// depend on where they were cut.
constexpr int kRowsPerSum = 32;

// Sums in T over a few rows, then in double: fast and exact enough to certify.
template <class Lanes, class T>
class Accountant {
 public:
  Accountant(Account* out) : out_(out) {}
  ~Accountant() { flush(); }

  void add(Lanes loss, Lanes quadratic, Lanes gap, Lanes pg) {
    loss_ += loss;
    quadratic_ += quadratic;
    gap_ += gap;
    pg_max_ = vmax(pg_max_, pg);
    pg_min_ = vmin(pg_min_, pg);
    if (++rows_ == kRowsPerSum) flush();
  }

 private:
  void flush() {
    for (std::size_t l = 0; l < sizeof(Lanes) / sizeof(T); ++l) {
      out_->loss[l] += at(loss_, l);
      out_->quadratic[l] += at(quadratic_, l);
      out_->gap[l] += at(gap_, l);
      if (at(pg_max_, l) > out_->pg_max[l]) out_->pg_max[l] = at(pg_max_, l);
      if (at(pg_min_, l) < out_->pg_min[l]) out_->pg_min[l] = at(pg_min_, l);
    }
    loss_ = quadratic_ = gap_ = pg_max_ = pg_min_ = Lanes{};
    rows_ = 0;
  }
  static double at(const Lanes& v, std::size_t l) {
    if constexpr (std::is_arithmetic_v<Lanes>)
      return v;
    else
      return v[l];
  }
  Account* out_;
  Lanes loss_{}, quadratic_{}, gap_{}, pg_max_{}, pg_min_{};
  int rows_ = 0;
};

// One sample of the box-constrained dual  min 1/2 a'(Q + D)a - e'a,  0 <= a <= U:
// hinge has D = 0, U = C; squared hinge D = 1/(2C), U = infinity.
template <class Cells>
struct BoxDual {
  using T = typename Cells::Number;
  using Lanes = typename Cells::Lanes;
  static constexpr int kWidth = sizeof(Lanes) / sizeof(T);
  static constexpr T kInfinity = __builtin_huge_val();

  const std::int32_t* label;
  const T *sign, *c, *diagonal;
  T *alpha, *bias;
  T bias_value;
  bool squared;

  explicit BoxDual(const ProblemArg& p)
      : label(p.label),
        sign(static_cast<const T*>(p.sign)),
        c(static_cast<const T*>(p.c)),
        diagonal(static_cast<const T*>(p.diagonal)),
        alpha(static_cast<T*>(p.alpha)),
        bias(static_cast<T*>(p.bias)),
        bias_value(T(p.bias_value)),
        squared(p.squared) {}

  struct Sample {
    Lanes y, alpha, margin, gradient, projected, upper;
    T ridge, diagonal, c;
  };

  Sample at(std::int64_t i, Lanes decision) const {
    Sample s;
    s.y = load<Lanes>(sign + label[i] * kWidth);
    s.alpha = load<Lanes>(alpha + i * kWidth);
    s.c = c[i];
    s.diagonal = diagonal[i];
    s.ridge = squared ? T(0.5) / s.c : T(0);
    s.upper = Lanes{} + (squared ? kInfinity : s.c);
    s.margin = s.y * (decision + bias_value * load<Lanes>(bias));
    s.gradient = s.margin - s.y * s.y + s.ridge * s.alpha;  // y*y is 0 in an empty lane
    const Lanes zero{};
    const Lanes low = vmin(s.gradient, zero), high = vmax(s.gradient, zero);
    s.projected = s.alpha <= zero ? low : (s.alpha >= s.upper ? high : s.gradient);
    return s;
  }

  // The exact minimiser along one coordinate.  A row of zeros has no curvature under the hinge:
  // a huge step sends it to its bound, as dividing by zero would.
  Lanes minimiser(const Sample& s) const {
    const T curvature = s.diagonal + s.ridge;
    const T step = curvature > 0 ? T(1) / curvature : T(1e30);
    return vmin(vmax(s.alpha - s.gradient * step, Lanes{}), s.upper);
  }

  // The gap of one sample, C loss(m) + ridge a^2/2 - a (1 - m), in forms without cancellation:
  //   squared hinge  C (slack - a/2C)^2     below the margin,  ridge a^2/2 + a (m - 1) above it
  //   hinge          (C - a) slack          below the margin,  a (m - 1)               above it
  void account(Accountant<Lanes, T>& book, const Sample& s) const {
    const Lanes slack = vmax(s.y * s.y - s.margin, Lanes{});
    const Lanes excess = vmax(s.margin - s.y * s.y, Lanes{});
    Lanes loss, gap;
    if (squared) {
      const Lanes short_of = slack - s.ridge * s.alpha;
      loss = s.c * slack * slack;
      gap = excess > Lanes{} ? s.alpha * (T(0.5) * s.ridge * s.alpha + excess)
                             : s.c * short_of * short_of;
    } else {
      loss = s.c * slack;
      gap = s.y * s.y * (s.c - s.alpha) * slack + s.alpha * excess;
    }
    book.add(loss, s.alpha * s.margin, gap, s.projected);
  }

  // LIBLINEAR's rule, in every lane: at a bound, and pushed outwards by more than the largest
  // violation of the last sweep.
  bool at_rest(const Sample& s, const double* shrink_max, const double* shrink_min) const {
    for (int l = 0; l < kWidth; ++l) {
      const T a = lane(s.alpha, l), g = lane(s.gradient, l), u = lane(s.upper, l);
      const bool rests = (a <= 0 && g > shrink_max[l]) || (a >= u && g < shrink_min[l]);
      if (!rests) return false;
    }
    return true;
  }
  static T lane(const Lanes& v, int l) {
    if constexpr (std::is_arithmetic_v<Lanes>)
      return v;
    else
      return v[l];
  }
};

// Visit order[begin, end) once.  Returns the position reached: `end`, or earlier when the time
// is up, and calling again from there continues the sweep as if it had not been cut.
template <class Rows, class Cells>
std::int64_t descend(const Rows& rows, Cells cells, const ProblemArg& p, const Sweep& sweep) {
  using Dual = BoxDual<Cells>;
  using Lanes = typename Cells::Lanes;
  const Dual dual(p);
  Accountant<Lanes, typename Cells::Number> book(sweep.account);
  Clock clock(sweep.seconds);

  constexpr bool fused = Rows::dense && Dual::kWidth > 1 && Cells::kFused;
  typename Rows::Row pending{};  // fused only: the row whose update is still to be written
  Lanes pending_delta{};

  std::int64_t at = sweep.begin;
  for (; at < sweep.end; ++at) {
    const std::int64_t i = sweep.order[at];
    const auto row = rows[i];
    if (at + 2 < sweep.end) rows[sweep.order[at + 2]].prefetch();
    if (at + 1 < sweep.end) cells.prefetch(rows[sweep.order[at + 1]]);

    Lanes decision;
    if constexpr (fused) {
      decision = pending.size ? cells.update_dot(pending, pending_delta, row) : cells.dot(row);
      pending.size = 0;
    } else {
      decision = cells.dot(row);
    }

    const auto s = dual.at(i, decision);
    const Lanes next = dual.minimiser(s);
    const Lanes step = next - s.alpha;
    if (any(step != Lanes{})) {
      store(dual.alpha + i * Dual::kWidth, next);
      const Lanes delta = step * s.y;
      store(dual.bias, load<Lanes>(dual.bias) + dual.bias_value * delta);
      if constexpr (fused) {
        pending = row;
        pending_delta = delta;
      } else {
        cells.update(row, delta);
      }
    } else if (dual.at_rest(s, sweep.shrink_max, sweep.shrink_min)) {
      sweep.shrunk[i] = 1;
    }
    dual.account(book, s);  // as found: an estimate of the gap that certify() will confirm
    clock.count(row.size * cells.cost());
    if ((at + 1 - sweep.begin) % kRowsPerSum == 0 && clock.is_up()) {
      ++at;
      break;
    }
  }
  if constexpr (fused)
    if (pending.size) cells.update(pending, pending_delta);
  return at;
}

// The same sums at fixed weights, for every row: what the duality gap is computed from.
template <class Rows, class Cells>
std::int64_t certify(const Rows& rows, const Cells& cells, const ProblemArg& p,
                     const Sweep& sweep) {
  using Dual = BoxDual<Cells>;
  const Dual dual(p);
  Accountant<typename Cells::Lanes, typename Cells::Number> book(sweep.account);
  Clock clock(sweep.seconds);
  std::int64_t i = sweep.begin;
  for (; i < sweep.end; ++i) {
    if (i > sweep.begin && (i - sweep.begin) % kRowsPerSum == 0 && clock.is_up()) break;
    if (i + 1 < sweep.end) cells.prefetch(rows[i + 1]);
    const auto s = dual.at(i, cells.dot(rows[i]));
    dual.account(book, s);
    clock.count(rows[i].size * cells.cost());
  }
  return i;
}

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
