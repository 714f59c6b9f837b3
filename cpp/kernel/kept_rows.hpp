// Kernel rows over all variables of a problem on few of them, each kept from when it is first asked
// for; and working sets, one after another and without Python, as long as rows can be had.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "kernel/dense_kernel.hpp"
#include "kernel/offset.hpp"
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

struct Measured {
  double dual, gap, slack;            // what the dual objective is less for sure
  std::vector<std::int64_t> missing;  // rows without which nothing was measured
};

// Working sets, one after another, on rows that are kept.
template <class T>
class Descent {
 public:
  // `last` is the last working set.
  Descent(const VariablesArg& v, const KernelLoopsOf<T>& loops, KeptRows<T>& kept, Offset& offset,
          std::vector<std::int64_t>& last)
      : v_(v), loops_(loops), kept_(kept), offset_(offset), last_(last) {}

  // From a dual objective that belongs to the variables, until the gap is within the tolerance and
  // the constraint of the intercept is met, the steps are used up, nothing is gained any more, or a
  // row is missing.
  Descended run(double dual, const Limits& limits) {
    for (std::int64_t step = 0;; ++step) {
      const bool kept = offset_.is_kept();  // a block that was chosen before may gain nothing
      Selection chosen = select(limits.size);
      if (offset_.is_due(chosen.gap)) {
        dual += offset_.move(v_);
        chosen = select(limits.size);
      }
      dual += offset_.take_drift();
      Descended found{dual, chosen.gap, step, {}};
      const double primal = std::max(dual + chosen.gap, std::numeric_limits<double>::min());
      const double aim = limits.tol * primal;
      const bool missed = offset_.must_be_met(v_, chosen.gap, primal, aim);
      const bool close = chosen.gap <= offset_.less_slack(aim) && !missed;
      if (close && offset_.present()) {
        offset_.settle(v_);
        found.dual += offset_.take_drift();
      }
      if (close || step == limits.max_steps) return found;
      double gain = 0;
      if (missed) {
        found.missing = meet_constraint(limits.size, &gain);
      } else {
        found.missing = kept_.ask(chosen.block, loops_);
        if (found.missing.empty()) {
          last_ = std::move(chosen.block);
          gain = minimise(limits.inner_tol * chosen.violation);
          if (!(gain > 0) && (!offset_.present() || kept)) return found;
          if (!(gain > 0)) offset_.keep();
        }
      }
      if (!found.missing.empty()) return found;
      dual += gain;
    }
  }

  // Meets the constraint of the intercept by a few variables.  Returns rows that are missing,
  // without which nothing is done.
  std::vector<std::int64_t> meet_constraint(std::int64_t size, double* gain) {
    offset_.keep();
    const Balancing moves = balancing(v_, offset_.missed(v_), size);
    std::vector<std::int64_t> missing = kept_.ask(moves.block, loops_);
    if (!missing.empty()) return missing;
    apply(v_, moves);
    offset_.have_met(v_);
    *gain -= 0.5 * slope_along(moves);
    add(moves.block, moves.coef.data());
    *gain -= 0.5 * slope_along(moves);
    return {};
  }

  // The gradient from the variables themselves, without what many sums have rounded; and what it
  // says of the objectives, on the safe side.
  Measured refresh(const double* linear) {
    std::vector<std::int64_t> support;
    std::vector<double> coef;
    for (std::int64_t i = 0; i < v_.n; ++i)
      if (v_.alpha[i] != 0) {
        support.push_back(i);
        coef.push_back(v_.alpha[i] * v_.sign[i]);
      }
    Measured found{0, 0, 0, kept_.ask(support, loops_)};
    if (!found.missing.empty()) return found;
    offset_.take_drift();  // it is in the new objective
    const double b = offset_.value();
    for (std::int64_t i = 0; i < v_.n; ++i) v_.gradient[i] = linear[i] + b * v_.sign[i];
    add(support, coef.data());
    for (std::int64_t i = 0; i < v_.n; ++i) {
      const double a = v_.alpha[i], slope = v_.gradient[i], p = linear[i] + b * v_.sign[i];
      found.dual -= p * a + 0.5 * a * (slope - p) - (a < 0 ? v_.turn * a : 0);
      found.gap += gap_term(a, slope, v_.upper[i], v_.turn);
    }
    found.slack = offset_.slack(v_, found.dual + found.gap);
    return found;
  }

 private:
  Selection select(std::int64_t size) {
    return select_working_sets(v_, {}, offset_, last_.data(), std::int64_t(last_.size()), size);
  }

  double slope_along(const Balancing& moves) const {
    double sum = 0;
    for (std::size_t k = 0; k < moves.block.size(); ++k)
      sum +=
          moves.coef[k] * v_.sign[moves.block[k]] * (v_.gradient[moves.block[k]] - moves.kink[k]);
    return sum;
  }

  double minimise(double tol) {
    const auto n = std::int64_t(last_.size()), size = padded_size(n);
    if (size > room_) q_.reset(new T[std::size_t((room_ = size) * size)]);
    coef_.resize(std::size_t(n));
    rows_.clear();
    for (const auto i : last_) rows_.push_back(kept_.row(i));
    const double gain = minimise_working_set(v_, loops_, rows_.data(), last_.data(), n, tol,
                                             offset_.is_kept(), q_.get(), coef_.data());
    add_signed_rows(loops_, rows_, coef_.data(), v_.sign, 0, v_.n, v_.gradient);
    return gain;
  }

  void add(const std::vector<std::int64_t>& block, const double* coef) {
    rows_.clear();
    for (const auto i : block) rows_.push_back(kept_.row(i));
    add_signed_rows(loops_, rows_, coef, v_.sign, 0, v_.n, v_.gradient);
  }

  const VariablesArg& v_;
  const KernelLoopsOf<T>& loops_;
  KeptRows<T>& kept_;
  Offset& offset_;
  std::vector<std::int64_t>& last_;
  std::vector<const T*> rows_;
  std::unique_ptr<T[]> q_;  // a vector would fill it with zeros first
  std::vector<double> coef_;
  std::int64_t room_ = 0;
};

}  // namespace widemargin
