// Kernel rows over all variables of a problem on few of them, each kept from when it is first asked
// for; and working sets, one after another and without Python, as long as rows can be had.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "kernel/dense_kernel.hpp"
#include "kernel/row_buffer.hpp"
#include "kernel/working_set.hpp"

namespace widemargin {

template <class T>
class KeptRows {
 public:
  // A pool for as many rows as there are variables, and what computes them (null: somebody else).
  KeptRows(T* pool, std::int64_t n, std::shared_ptr<const DenseKernel<T>> kernel)
      : pool_(pool), n_(n), slot_(std::size_t(n), -1), kernel_(std::move(kernel)) {}

  std::int64_t n() const { return n_; }
  std::int64_t n_used() const { return n_used_; }
  const T* row(std::int64_t i) const { return pool_ + slot_[std::size_t(i)] * n_; }

  std::vector<std::int64_t> missing(const std::vector<std::int64_t>& wanted) const {
    std::vector<std::int64_t> without;
    for (const auto i : wanted)
      if (slot_[std::size_t(i)] < 0) without.push_back(i);
    return without;
  }

  // Gives variables without a row the next places in the pool; returns the first of these.
  std::int64_t add(const std::vector<std::int64_t>& without) {
    const std::int64_t first = n_used_;
    for (const auto i : without) slot_[std::size_t(i)] = n_used_++;
    return first;
  }

  // Rows that were wanted and are still not there, after those that can be had are computed.
  std::vector<std::int64_t> ask(const std::vector<std::int64_t>& wanted,
                                const KernelLoopsOf<T>& loops) {
    std::vector<std::int64_t> without = missing(wanted);
    if (without.empty() || !kernel_) return without;
    T* to = pool_ + add(without) * n_;
    kernel_->fill(loops, without.data(), {to, std::int64_t(without.size()), n_, n_});
    return {};
  }

  // Whether the core has computed all of them.
  bool ask_all(const KernelLoopsOf<T>& loops) {
    if (!kernel_) return false;
    kernel_->fill_all(loops, {pool_, n_, n_, n_});
    for (std::int64_t i = 0; i < n_; ++i) slot_[std::size_t(i)] = i;
    n_used_ = n_;
    return true;
  }

 private:
  T* pool_;
  std::int64_t n_, n_used_ = 0;
  std::vector<std::int64_t> slot_;  // where the row of a variable lies in the pool (-1: nowhere)
  std::shared_ptr<const DenseKernel<T>> kernel_;
};

struct Limits {
  double tol, inner_tol;         // relative duality gap; of the violation, for a working set
  std::int64_t max_steps, size;  // working sets, and variables of each
};

struct Descended {
  double dual, gap;
  std::int64_t steps;
  std::vector<std::int64_t> missing;  // variables whose rows the next step needs
};

// From a dual objective that belongs to the variables, until the gap is within the tolerance, the
// steps are used up, nothing is gained any more, or a row is missing.  `last` is the last working
// set.
template <class T>
Descended descend(const VariablesArg& v, const KernelLoopsOf<T>& loops, KeptRows<T>& kept,
                  double dual, const Limits& limits, std::vector<std::int64_t>& last) {
  std::vector<const T*> rows;
  std::unique_ptr<T[]> q;  // a vector would fill it with zeros first
  std::vector<double> coef;
  for (std::int64_t step = 0, room = 0;; ++step) {
    Selection chosen = select_working_set(v, last.data(), std::int64_t(last.size()), limits.size);
    const double primal = std::max(dual + chosen.gap, std::numeric_limits<double>::min());
    Descended found{dual, chosen.gap, step, {}};
    if (chosen.gap <= limits.tol * primal || step == limits.max_steps) return found;
    found.missing = kept.ask(chosen.block, loops);
    if (!found.missing.empty()) return found;
    last = std::move(chosen.block);
    const auto n = std::int64_t(last.size()), size = padded_size(n);
    if (size > room) q.reset(new T[std::size_t((room = size) * size)]);
    coef.resize(std::size_t(n));
    rows.clear();
    for (const auto i : last) rows.push_back(kept.row(i));
    const double tol = limits.inner_tol * chosen.violation;
    const double gain =
        minimise_working_set(v, loops, rows, last.data(), tol, q.get(), coef.data());
    if (!(gain > 0)) return found;
    dual += gain;
    add_signed_rows(loops, rows, coef.data(), v.sign, 0, v.n, v.gradient);
  }
}

struct Measured {
  double dual, gap;
  std::vector<std::int64_t> missing;  // rows without which nothing was measured
};

// The gradient Qa + linear from the variables themselves, without what many sums have rounded; and
// what it says.
template <class T>
Measured refresh(const VariablesArg& v, const KernelLoopsOf<T>& loops, KeptRows<T>& kept,
                 const double* linear) {
  std::vector<std::int64_t> support;
  std::vector<double> coef;
  for (std::int64_t i = 0; i < v.n; ++i)
    if (v.alpha[i] != 0) {
      support.push_back(i);
      coef.push_back(v.alpha[i] * v.sign[i]);
    }
  Measured found{0, 0, kept.ask(support, loops)};
  if (!found.missing.empty()) return found;
  std::vector<const T*> rows;
  for (const auto i : support) rows.push_back(kept.row(i));
  std::copy(linear, linear + v.n, v.gradient);
  add_signed_rows(loops, rows, coef.data(), v.sign, 0, v.n, v.gradient);
  for (std::int64_t i = 0; i < v.n; ++i) {
    const double a = v.alpha[i], slope = v.gradient[i];
    found.dual -= linear[i] * a + 0.5 * a * (slope - linear[i]);
    found.gap += gap_term(a, slope, v.upper[i]);
  }
  return found;
}

}  // namespace widemargin
