// Kernel rows in a buffer: entries gathered from them, sums of them, and moves in place when the
// active variables become fewer or more.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "kernel/problem.hpp"

namespace widemargin {

// out[j] += sign[j] * sum_k coef[k] rows[k][j], columns begin .. end; rows that count for nothing
// are left out.
template <class T>
void add_signed_rows(const KernelLoopsOf<T>& loops, std::vector<const T*> rows, const double* coef,
                     const double* sign, std::int64_t begin, std::int64_t end, double* out) {
  std::vector<double> c;
  for (std::size_t k = 0; k < rows.size(); ++k)
    if (coef[k] != 0) {
      rows[c.size()] = rows[k] + begin;
      c.push_back(coef[k]);
    }
  std::vector<double> sums(std::size_t(end - begin), 0.0);
  loops.add_rows(rows.data(), c.data(), std::int64_t(c.size()), end - begin, sums.data());
  for (std::int64_t j = begin; j < end; ++j) out[j] += sign[j] * sums[std::size_t(j - begin)];
}

// out[k][j] = rows[k][columns[j]]
template <class T>
void gather(const std::vector<const T*>& rows, const std::int64_t* columns,
            const MatrixArg<T>& out) {
  T* to = out.values;
  for (std::int64_t k = 0; k < out.n_rows; ++k, to += out.row_stride)
    for (std::int64_t j = 0; j < out.n_columns; ++j) to[j] = rows[std::size_t(k)][columns[j]];
}

// Row k of the new stride is row slots[k] of the old one, reduced to some columns.  Both lists
// ascend, so nothing is overwritten before it is read.
template <class T>
void compact_rows(T* buffer, const std::int64_t* slots, std::int64_t n_slots,
                  const std::int64_t* columns, std::int64_t n_columns, std::int64_t old_stride,
                  std::int64_t new_stride) {
  for (std::int64_t k = 0; k < n_slots; ++k) {
    const T* from = buffer + slots[k] * old_stride;
    T* to = buffer + k * new_stride;
    for (std::int64_t j = 0; j < n_columns; ++j) to[j] = from[columns[j]];
  }
}

// The first rows of a buffer, moved to a larger stride.
template <class T>
void widen_rows(T* buffer, std::int64_t n_rows, std::int64_t old_stride, std::int64_t new_stride) {
  for (std::int64_t k = n_rows; k-- > 0;)
    std::memmove(buffer + k * new_stride, buffer + k * old_stride,
                 std::size_t(old_stride) * sizeof(T));
}

}  // namespace widemargin
