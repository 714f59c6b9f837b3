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
      const auto add = [&](const T* a, const T* b, const T* c, const T* d, double* sum) {
        store(sum, load<Doubles>(sum) + (c0 * widened(a) + c1 * widened(b)) +
                       (c2 * widened(c) + c3 * widened(d)));
      };
      std::int64_t j = from;
      for (; j + kDoubles <= to; j += kDoubles) add(r0 + j, r1 + j, r2 + j, r3 + j, out + j);
      if (j == to) continue;
      // The last columns are a vector too: a column has the same bits wherever the range begins.
      T last[4][kDoubles] = {};
      double sums[kDoubles] = {};
      for (std::int64_t c = j; c < to; ++c) {
        sums[c - j] = out[c];
        for (int k = 0; k < 4; ++k) last[k][c - j] = rows[i + k][c];
      }
      add(last[0], last[1], last[2], last[3], sums);
      for (std::int64_t c = j; c < to; ++c) out[c] = sums[c - j];
    }
    for (; i < n_rows; ++i)
      for (std::int64_t j = from; j < to; ++j) out[j] += coef[i] * double(rows[i][j]);
  }
}

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
