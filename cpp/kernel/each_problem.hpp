// Small problems on the same rows, one after another and without Python: pairs of classes of which
// there may be tens of thousands.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "kernel/kept_rows.hpp"
#include "kernel/row_buffer.hpp"

namespace widemargin {

constexpr std::int64_t kStepsBetweenLooks = 16;

// Tells a descent that gets nowhere: in so many working sets neither did the gap halve nor the dual
// objective gain a share of it.  kernel/problem.py has the same for a single problem.
class Patience {
 public:
  static constexpr std::int64_t kStalled = 500;
  static constexpr double kHalf = 0.5, kShare = 0.05;

  bool is_over(std::int64_t step, double dual, double gap) {
    if (!(gap >= kHalf * gap_) || !(dual <= dual_ + kShare * gap)) {
      gap_ = gap;
      dual_ = dual;
      step_ = step;
    }
    return step - step_ >= kStalled;
  }

 private:
  double gap_ = std::numeric_limits<double>::infinity(), dual_ = -gap_;
  std::int64_t step_ = 0;
};

struct EachFound {
  double dual, gap, steps, offset;
};

// The variables of all problems, one problem behind the other.
struct EachArg {
  const std::int64_t *row, *start;  // of a variable; of a problem, and the end of the last
  std::int64_t n_problems;
  double* alpha;
  const double *sign, *linear, *upper;
  const double* diagonal;  // of a row
  Offset offset;           // that every problem begins with
};

// Where the problem that is being solved stands, from one call to the next.
struct EachState {
  std::int64_t number = -1, steps = 0;
  std::vector<std::int64_t> last;  // working set
  Offset offset;
  Patience patience;
};

// Solves them, each on its own kernel values, which are gathered from those of all rows.
template <class T>
class EachProblem {
 public:
  EachProblem(const EachArg& all, const KernelLoopsOf<T>& loops, const KeptRows<T>& kept)
      : all_(all), loops_(loops), kept_(kept) {}

  // Writes what was found; false if time was up before the end, of which `is_up` tells.
  template <class IsUp>
  bool solve(std::int64_t number, const Limits& limits, EachState& state, EachFound& found,
             IsUp&& is_up) {
    if (state.number != number) state = {number, 0, {}, all_.offset, {}};
    const std::int64_t begin = all_.start[number], n = all_.start[number + 1] - begin;
    const auto room = std::size_t(n);
    if (pool_.size() < room * room) pool_.resize(room * room);
    gradient_.resize(room);
    diagonal_.resize(room);
    rows_.clear();
    numbers_.clear();
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t row = all_.row[begin + k];
      rows_.push_back(kept_.row(row));
      diagonal_[std::size_t(k)] = all_.diagonal[row];
      numbers_.push_back(k);
    }
    gather(rows_, all_.row + begin, MatrixArg<T>{pool_.data(), n, n, n});
    KeptRows<T> own(pool_.data(), n, nullptr);
    own.add(numbers_);
    const VariablesArg v{n,
                         all_.alpha + begin,
                         gradient_.data(),
                         all_.sign + begin,
                         all_.upper + begin,
                         diagonal_.data()};
    return minimise(v, own, all_.linear + begin, limits, state, found, is_up);
  }

 private:
  // The gradient is made afresh every so many steps, whenever time is up, so that this changes no
  // bit, and before the gap is believed.
  template <class IsUp>
  bool minimise(const VariablesArg& v, KeptRows<T>& own, const double* linear, const Limits& limits,
                EachState& state, EachFound& found, IsUp&& is_up) {
    Descent<T> descent(v, loops_, own, state.offset, state.last);
    Limits some = limits;
    bool ends = false;
    for (bool begun = false;; begun = true) {
      const Measured now = descent.refresh(linear);
      found = {now.dual - now.slack, now.gap + now.slack, double(state.steps),
               state.offset.value()};
      const double primal = std::max(now.dual + now.gap, std::numeric_limits<double>::min());
      if (ends || found.gap <= limits.tol * primal) return true;
      if (begun && is_up()) return false;
      some.max_steps = std::min(kStepsBetweenLooks, limits.max_steps - state.steps);
      const std::int64_t done = descent.run(now.dual, some).steps;
      state.steps += done;
      ends = done == 0 || state.patience.is_over(state.steps, now.dual, now.gap);
      double gain = 0;
      if (ends && state.offset.present()) descent.meet_constraint(v.n, &gain);
    }
  }

  const EachArg& all_;
  const KernelLoopsOf<T>& loops_;
  const KeptRows<T>& kept_;
  std::vector<T> pool_;
  std::vector<double> gradient_, diagonal_;
  std::vector<const T*> rows_;
  std::vector<std::int64_t> numbers_;
};

}  // namespace widemargin
