// Sums of kernel rows: the update of the gradient.
#pragma once

#include "kernel/vectors.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

// In double precision, a tile of sums at a time so that they stay in the first-level cache.
template <class T>
void add_rows(const T* const* rows, const double* coef, std::int64_t n_rows, std::int64_t n_columns,
              double* out) {
  constexpr std::int64_t kTile = 1024;
  for (std::int64_t from = 0; from < n_columns; from += kTile) {
    const std::int64_t to = from + kTile < n_columns ? from + kTile : n_columns;
    std::int64_t i = 0;
    for (; i + 4 <= n_rows; i += 4) {
      const T *r0 = rows[i], *r1 = rows[i + 1], *r2 = rows[i + 2], *r3 = rows[i + 3];
      const double c0 = coef[i], c1 = coef[i + 1], c2 = coef[i + 2], c3 = coef[i + 3];
      std::int64_t j = from;
      for (; j + kDoubles <= to; j += kDoubles)
        store(out + j, load<Doubles>(out + j) + (c0 * widened(r0 + j) + c1 * widened(r1 + j)) +
                           (c2 * widened(r2 + j) + c3 * widened(r3 + j)));
      for (; j < to; ++j) out[j] += (c0 * r0[j] + c1 * r1[j]) + (c2 * r2[j] + c3 * r3[j]);
    }
    for (; i < n_rows; ++i)
      for (std::int64_t j = from; j < to; ++j) out[j] += coef[i] * double(rows[i][j]);
  }
}

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
