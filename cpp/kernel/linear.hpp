// Dual coordinate descent on the weights of a linear kernel (Hsieh et al., ICML 2008): a step costs
// as much as its row has values.  Variables at rest at a bound leave the order until all others are
// nearly solved.
#pragma once

#include "kernel/problem.hpp"
#include "kernel/vectors.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

// The rows and weights of one problem.
template <class T>
class LinearRows {
 public:
  explicit LinearRows(const LinearArg<T>& a) : a_(a), last_(a.weights + a.n_features) {}

  // <w, x>, the constant feature included.
  WIDEMARGIN_INLINE double dot(std::int64_t row) const {
    const double constant = a_.constant * *last_;
    return constant + (a_.start ? dot_compressed(row) : dot_dense(row));
  }

  // w += scale x
  WIDEMARGIN_INLINE void add(std::int64_t row, double scale) const {
    *last_ += scale * a_.constant;
    if (a_.start) {
      for (std::int64_t k = a_.start[row]; k < a_.start[row + 1]; ++k)
        a_.weights[a_.index[k]] += scale * double(a_.value[k]);
      return;
    }
    const T* x = a_.value + row * a_.n_features;
    for (std::int64_t j = 0; j < a_.n_features; ++j) a_.weights[j] += scale * double(x[j]);
  }

 private:
  WIDEMARGIN_INLINE double dot_compressed(std::int64_t row) const {
    double sum = 0, other = 0;
    const std::int64_t end = a_.start[row + 1];
    std::int64_t k = a_.start[row];
    for (; k + 1 < end; k += 2) {
      sum += double(a_.value[k]) * a_.weights[a_.index[k]];
      other += double(a_.value[k + 1]) * a_.weights[a_.index[k + 1]];
    }
    return sum + other + (k < end ? double(a_.value[k]) * a_.weights[a_.index[k]] : 0.0);
  }

  WIDEMARGIN_INLINE double dot_dense(std::int64_t row) const {
    const T* x = a_.value + row * a_.n_features;
    Doubles sums{};
    std::int64_t j = 0;
    for (; j + kDoubles <= a_.n_features; j += kDoubles)
      sums += widened(x + j) * load<Doubles>(a_.weights + j);
    double sum = 0;
    for (int lane = 0; lane < kDoubles; ++lane) sum += sums[lane];
    for (; j < a_.n_features; ++j) sum += double(x[j]) * a_.weights[j];
    return sum;
  }

  const LinearArg<T>& a_;
  double* last_;
};

// One pass over the variables that are in the order, shuffled.
template <class T>
LinearState sweep_linear(const LinearArg<T>& a, LinearState state) {
  constexpr double kStill = 1e-14;  // a projected gradient that moves nothing
  const LinearRows<T> rows(a);
  LinearState out{state.n_active, 0, 0, state.seed};
  for (std::int64_t s = 0; s < out.n_active; ++s) {
    const auto swap = [&](std::int64_t other) {
      const std::int64_t kept = a.order[s];
      a.order[s] = a.order[other];
      a.order[other] = kept;
    };
    out.seed ^= out.seed << 13, out.seed ^= out.seed >> 7, out.seed ^= out.seed << 17;
    swap(s + std::int64_t(out.seed % std::uint64_t(out.n_active - s)));
    const std::int64_t i = a.order[s];
    const double alpha = a.alpha[i], sign = a.sign[i], upper = a.upper[i];
    const double gradient = sign * rows.dot(a.row[i]) + a.linear[i] + a.ridge[i] * alpha;
    if ((alpha <= 0 && gradient > state.high) || (alpha >= upper && gradient < state.low)) {
      swap(--out.n_active);
      --s;
      continue;
    }
    const bool rests = (alpha <= 0 && gradient >= 0) || (alpha >= upper && gradient <= 0);
    const double projected = rests ? 0 : gradient;
    out.high = projected > out.high ? projected : out.high;
    out.low = projected < out.low ? projected : out.low;
    if (projected <= kStill && projected >= -kStill) continue;
    double moved = alpha - gradient / a.diagonal[i];
    moved = moved < 0 ? 0 : moved > upper ? upper : moved;
    a.alpha[i] = moved;
    rows.add(a.row[i], sign * (moved - alpha));
  }
  return out;
}

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
