// Working sets, one after another and without Python, as long as their kernel rows are at hand.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "kernel/row_buffer.hpp"
#include "kernel/working_set.hpp"

namespace widemargin {

// Kernel rows over all variables; slot[i] is where that of variable i lies in the pool (-1:
// nowhere).
template <class T>
struct KeptRowsArg {
  const T* pool;
  std::int64_t stride;
  const std::int64_t* slot;
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
Descended descend(const VariablesArg& v, const KernelLoopsOf<T>& loops, const KeptRowsArg<T>& k,
                  double dual, const Limits& limits, std::vector<std::int64_t>& last) {
  std::vector<const T*> rows;
  std::vector<T> q;
  std::vector<double> coef, sign;
  for (std::int64_t step = 0;; ++step) {
    Selection chosen = select_working_set(v, last.data(), std::int64_t(last.size()), limits.size);
    const double primal = std::max(dual + chosen.gap, std::numeric_limits<double>::min());
    Descended found{dual, chosen.gap, step, {}};
    if (chosen.gap <= limits.tol * primal || step == limits.max_steps) return found;
    for (const auto i : chosen.block)
      if (k.slot[i] < 0) found.missing.push_back(i);
    if (!found.missing.empty()) return found;
    last = std::move(chosen.block);
    const auto n = std::int64_t(last.size()), size = padded_size(n);
    q.resize(std::size_t(size * size));
    coef.resize(std::size_t(n));
    sign.clear();
    rows.clear();
    for (const auto i : last) {
      rows.push_back(k.pool + k.slot[i] * k.stride);
      sign.push_back(v.sign[i]);
    }
    gather(rows, last.data(), sign.data(), sign.data(), MatrixArg<T>{q.data(), n, n, size});
    const double tol = limits.inner_tol * chosen.violation;
    const double gain = minimise_working_set(v, loops, q.data(), last.data(), n, tol, coef.data());
    if (!(gain > 0)) return found;
    dual += gain;
    add_signed_rows(loops, rows, coef.data(), v.sign, 0, v.n, v.gradient);
  }
}

}  // namespace widemargin
