// Kernel values among dense rows (see kernel/problem.hpp): inner products and finish in registers.
#pragma once

#include "kernel/finish.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

template <class T>
constexpr std::int64_t kStrip = 2 * Lanes<T>::n;

// Of `n` rows with a strip of columns, of which the first `width` count.
template <FinishKind kind, int n, class T>
inline void fill_tile(const DenseArg<T>& dense, const std::int64_t* numbers, std::int64_t column,
                      std::int64_t width, const FinishArg<T>& finish, T* out, std::int64_t stride) {
  using V = typename Lanes<T>::Values;
  constexpr int lanes = Lanes<T>::n;
  const T* strip = dense.strips + column * dense.n_features;
  const T* row[n];
  V low[n], high[n];
#pragma GCC unroll 4
  for (int r = 0; r < n; ++r) {
    row[r] = dense.values + numbers[r] * dense.n_features;
    low[r] = high[r] = V{};
  }
  for (std::int64_t d = 0; d < dense.n_features; ++d, strip += kStrip<T>) {
    const V left = load<V>(strip), right = load<V>(strip + lanes);
#pragma GCC unroll 4
    for (int r = 0; r < n; ++r) {
      low[r] += row[r][d] * left;
      high[r] += row[r][d] * right;
    }
  }
  const V left = load<V>(dense.norms + column), right = load<V>(dense.norms + column + lanes);
#pragma GCC unroll 4
  for (int r = 0; r < n; ++r) {
    const T own = dense.norms[numbers[r]];
    low[r] = finished<kind>(finish, low[r], V(own + left));
    high[r] = finished<kind>(finish, high[r], V(own + right));
  }
#pragma GCC unroll 4
  for (int r = 0; r < n; ++r) {
    T* to = out + r * stride + column;
    if (width >= kStrip<T>) {
      store(to, low[r]);
      store(to + lanes, high[r]);
    } else {
      const V both[2] = {low[r], high[r]};
      __builtin_memcpy(to, both, std::size_t(width) * sizeof(T));
    }
  }
}

// As many columns at a time as the first-level cache holds, for all rows.
template <FinishKind kind, class T>
void fill_dense_rows(const DenseArg<T>& dense, const std::int64_t* numbers, std::int64_t begin,
                     const FinishArg<T>& finish, const MatrixArg<T>& out) {
  constexpr std::int64_t kCached = 16 << 10, kRows = 4, columns = kStrip<T>;
  const std::int64_t fitting = kCached / (std::int64_t(sizeof(T)) * (dense.n_features + 1));
  const std::int64_t block = (fitting / columns + 1) * columns;
  for (std::int64_t from = begin; from < out.n_columns; from += block) {
    const std::int64_t to = from + block < out.n_columns ? from + block : out.n_columns;
    std::int64_t k = 0;
    for (; k + kRows <= out.n_rows; k += kRows)
      for (std::int64_t j = from; j < to; j += columns)
        fill_tile<kind, kRows>(dense, numbers + k, j, to - j, finish,
                               out.values + k * out.row_stride, out.row_stride);
    for (; k < out.n_rows; ++k)
      for (std::int64_t j = from; j < to; j += columns)
        fill_tile<kind, 1>(dense, numbers + k, j, to - j, finish, out.values + k * out.row_stride,
                           out.row_stride);
  }
}

template <class T>
void fill_dense(const DenseArg<T>& dense, const std::int64_t* numbers, std::int64_t begin,
                const FinishArg<T>& finish, const MatrixArg<T>& out) {
  if (finish.kind == FinishKind::none)
    fill_dense_rows<FinishKind::none>(dense, numbers, begin, finish, out);
  if (finish.kind == FinishKind::rbf)
    fill_dense_rows<FinishKind::rbf>(dense, numbers, begin, finish, out);
  if (finish.kind == FinishKind::polynomial)
    fill_dense_rows<FinishKind::polynomial>(dense, numbers, begin, finish, out);
  if (finish.kind == FinishKind::sigmoid)
    fill_dense_rows<FinishKind::sigmoid>(dense, numbers, begin, finish, out);
}

// Padded to whole strips.
template <class T>
void dense_norms(const DenseArg<T>& dense, T* norms) {
  using V = typename Lanes<T>::Values;
  constexpr int lanes = Lanes<T>::n;
  const T* strip = dense.strips;
  for (std::int64_t i = 0; i < dense.n_rows; i += kStrip<T>) {
    V low{}, high{};
    for (std::int64_t d = 0; d < dense.n_features; ++d, strip += kStrip<T>) {
      const V left = load<V>(strip), right = load<V>(strip + lanes);
      low += left * left;
      high += right * right;
    }
    store(norms + i, low);
    store(norms + i + lanes, high);
  }
}

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
