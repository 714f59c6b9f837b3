// Crammer and Singer's multi-class SVM with the same tables (ICD, sec. 3.4; the sub-problem as in
// Keerthi et al. 2008, its squared-hinge form as in Lee and Lin 2013):
//
//     min  1/2 sum_m |w_m|^2 + sum_i sum_m e_im a_im  [+ sum_i a_iy^2 / 4C]
//     s.t. sum_m a_im = 0,  a_im <= 0 for m != y_i,  a_iy <= C (hinge) or free (squared hinge)
//
// with w_m = sum_i a_im phi(x_i) and e_im = 1 unless m = y_i.  One sample's classes move together.
#pragma once

#include <cstdlib>

#include "additive/cells.hpp"
#include "additive/losses.hpp"
#include "additive/problem.hpp"
#include "additive/rows.hpp"
#include "clock.hpp"
#include "simd.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

class Buffer {  // doubles, freed with the scope (no std containers in files compiled per ISA)
 public:
  explicit Buffer(std::int64_t n) : data_(static_cast<double*>(std::calloc(n, sizeof(double)))) {}
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  double& operator[](std::int64_t i) { return data_[i]; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  double* data_;
};

template <class Rows, class Cells>
class SimplexDual {
 public:
  using T = typename Cells::Number;
  using Lanes = typename Cells::Lanes;

  SimplexDual(const Rows& rows, const SharedArg& shared, const SimplexArg& p)
      : rows_(rows),
        shared_(shared),
        p_(p),
        loss_{shared.loss},
        gradient_(p.n_blocks * kLanes),
        next_(p.n_blocks * kLanes),
        free_(p.n_blocks * kLanes) {}

  bool allocated() const { return gradient_ && next_ && free_; }

  std::int64_t cost() const { return p_.n_blocks * cells(0).cost(); }  // of one value

  // gradient_[m] = w_m . x_i + e_im (+ the squared hinge's term for the sample's class).
  void read(std::int64_t i) {
    label_ = shared_.label[i];
    c_ = static_cast<const T*>(shared_.c)[i];
    ridge_ = loss_.ridge(c_);
    diagonal_ = static_cast<const T*>(shared_.diagonal)[i];
    coef_ = static_cast<T*>(p_.coef) + i * p_.n_blocks * kLanes;
    quadratic_ = 0;
    for (int b = 0; b < p_.n_blocks; ++b) {
      const Lanes bias = load<Lanes>(static_cast<const T*>(p_.bias) + b * kLanes);
      const Lanes decision = cells(b).dot(rows_[i]) + T(shared_.bias_value) * bias;
      T numbers[kLanes];
      store(numbers, decision);
      for (int l = 0; l < kLanes; ++l) gradient_[b * kLanes + l] = numbers[l];
    }
    for (int m = 0; m < p_.n_classes; ++m) quadratic_ += coef_[m] * gradient_[m];
    double others = -__builtin_huge_val();
    for (int m = 0; m < p_.n_classes; ++m) {
      if (m == label_) continue;
      gradient_[m] += 1;
      if (gradient_[m] > others) others = gradient_[m];
    }
    slack_ = others - gradient_[label_];
    gradient_[label_] += ridge_ * coef_[label_];
  }

  // Largest violation of the optimality conditions: max_m G_m - min {G_m : a_m < U_m}.
  double violation() {
    double high = gradient_[label_], low = __builtin_huge_val();
    for (int m = 0; m < p_.n_classes; ++m) {
      if (gradient_[m] > high) high = gradient_[m];
      if (coef_[m] < upper(m) && gradient_[m] < low) low = gradient_[m];
    }
    return high > low ? high - low : 0;
  }

  // a_m = min(U_m, (beta - B_m) / A_m) with beta such that they sum to zero: fix variables that
  // exceed their bound and solve for the rest, until none does (beta only grows).
  bool solve() {
    // A row without kernel values has only its loss's curvature; slightly more shortens its steps,
    // much less would lose them in rounding.
    const double least = 1e-6 * (ridge_ > 0 ? ridge_ : 1 / double(c_));
    const double a = diagonal_ > least ? diagonal_ : least;
    for (int m = 0; m < p_.n_classes; ++m) free_[m] = 1;
    for (bool changed = true; changed;) {
      double numerator = 0, denominator = 0;
      for (int m = 0; m < p_.n_classes; ++m) {
        const double am = curvature(m, a);
        if (free_[m] != 0) {
          numerator += linear(m, a) / am;
          denominator += 1 / am;
        } else {
          numerator -= upper(m);
        }
      }
      const double beta = numerator / denominator;
      changed = false;
      for (int m = 0; m < p_.n_classes; ++m) {
        if (free_[m] == 0) continue;
        next_[m] = (beta - linear(m, a)) / curvature(m, a);
        if (next_[m] > upper(m)) {
          next_[m] = upper(m);
          free_[m] = 0;
          changed = true;
        }
      }
    }
    double total = 0;  // zero up to rounding
    int largest = label_;
    for (int m = 0; m < p_.n_classes; ++m) {
      total += next_[m];
      if (next_[m] < next_[largest]) largest = m;
    }
    next_[free_[label_] != 0 ? label_ : largest] -= total;
    bool moved = false;
    for (int m = 0; m < p_.n_classes; ++m) {
      next_[m] = T(next_[m]) - coef_[m];  // from here on: the step
      moved = moved || next_[m] != 0;
    }
    return moved;
  }

  void write(std::int64_t i) {
    for (int b = 0; b < p_.n_blocks; ++b) {
      T step[kLanes];
      for (int l = 0; l < kLanes; ++l) step[l] = T(next_[b * kLanes + l]);
      const auto delta = load<Lanes>(step);
      if (!any(delta != Lanes{})) continue;
      T* a = coef_ + b * kLanes;
      T* bias = static_cast<T*>(p_.bias) + b * kLanes;
      store(a, load<Lanes>(a) + delta);
      store(bias, load<Lanes>(bias) + T(shared_.bias_value) * delta);
      cells(b).update(rows_[i], delta);
    }
  }

  // At zero, and satisfied by more than the largest violation of the last sweep.
  bool at_rest(double shrink_max) {
    for (int m = 0; m < p_.n_classes; ++m)
      if (coef_[m] != 0) return false;
    return -slack_ > shrink_max;
  }

  // The gap of one sample, again without cancellation: (C - a_y) slack, or its square for the
  // squared hinge, plus sum over the other classes of -a_m (max G - G_m).
  void account(Account* out, double violation) {
    const double slack = slack_ > 0 ? slack_ : 0, a = coef_[label_];
    const double pull = ridge_ * a, own = gradient_[label_] - pull, best = own + slack;
    double gap = loss_.gap(a, slack, 0.0, c_, pull);
    for (int m = 0; m < p_.n_classes; ++m)
      if (m != label_) gap -= coef_[m] * (best - gradient_[m]);
    out->loss[0] += loss_.value(slack, c_);
    out->quadratic[0] += quadratic_;
    out->gap[0] += gap;
    if (violation > out->pg_max[0]) out->pg_max[0] = violation;
  }

 private:
  Cells cells(int block) const {
    return Cells(shared_.tables, p_.weights[block], shared_.rows.n_features);
  }
  double upper(int m) const { return m != label_ ? 0 : loss_.largest(c_); }
  double curvature(int m, double a) const { return m == label_ ? a + ridge_ : a; }
  double linear(int m, double a) { return gradient_[m] - curvature(m, a) * coef_[m]; }

  const Rows& rows_;
  const SharedArg& shared_;
  const SimplexArg& p_;
  Loss<double> loss_;
  Buffer gradient_, next_, free_;
  std::int32_t label_ = 0;
  double c_ = 0, ridge_ = 0, diagonal_ = 0, slack_ = 0, quadratic_ = 0;
  T* coef_ = nullptr;
};

// One pass like descend() or certify() of descent.hpp: with steps along an order, or over every row
// at fixed weights.
template <class Rows, class Cells, bool kDescend>
std::int64_t pass_crammer_singer(const Rows& rows, const SharedArg& shared, const SimplexArg& p,
                                 const Sweep& sweep) {
  SimplexDual<Rows, Cells> dual(rows, shared, p);
  if (!dual.allocated()) return -1;
  Clock clock(sweep.seconds);
  std::int64_t at = sweep.begin;
  for (; at < sweep.end && !clock.is_up(); ++at) {
    const std::int64_t i = kDescend ? sweep.order[at] : at;
    clock.count(rows[i].size * dual.cost());
    dual.read(i);
    const double violation = dual.violation();
    dual.account(sweep.account, violation);
    if (!kDescend) continue;
    if (violation > 0) {
      if (dual.solve()) {
        dual.write(i);
        sweep.status[i] = kMoved;
      }
    } else if (dual.at_rest(sweep.shrink_max[0])) {
      sweep.status[i] = kRests;
    }
  }
  return at;
}

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
