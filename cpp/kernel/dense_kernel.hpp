// Dense rows laid out in strips, and a kernel on them of which the core computes values by itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernel/problem.hpp"

namespace widemargin {

template <class T>
class StripRows {
 public:
  StripRows(const T* data, std::int64_t n_rows, std::int64_t n_features,
            const KernelLoopsOf<T>& loops)
      : n_rows_(n_rows), n_features_(n_features), values_(data, data + n_rows * n_features) {
    const std::int64_t width = loops.strip_width, padded = (n_rows + width - 1) / width * width;
    strips_.resize(std::size_t(padded * n_features));
    norms_.resize(std::size_t(padded));
    for (std::int64_t i = 0; i < n_rows; ++i) {
      T* to = strips_.data() + i / width * width * n_features + i % width;
      for (std::int64_t d = 0; d < n_features; ++d) to[d * width] = data[i * n_features + d];
    }
    loops.dense_norms(arg(), norms_.data());
  }

  DenseArg<T> arg() const {
    return {values_.data(), strips_.data(), norms_.data(), n_rows_, n_features_};
  }

  std::int64_t n_rows() const { return n_rows_; }

 private:
  std::int64_t n_rows_, n_features_;
  std::vector<T> values_, strips_, norms_;
};

// With the values of a kernel among them.
template <class T>
struct DenseKernel {
  StripRows<T> rows;
  FinishArg<T> finish;

  // Of some rows with all of them.
  void fill(const KernelLoopsOf<T>& loops, const std::int64_t* numbers,
            const MatrixArg<T>& out) const {
    loops.fill_dense(rows.arg(), numbers, 0, finish, out);
  }

  // All values; the matrix is symmetric, and one half is computed.
  void fill_all(const KernelLoopsOf<T>& loops, const MatrixArg<T>& out) const {
    const std::int64_t n = rows.n_rows(), stride = out.row_stride;
    const std::int64_t tile = 2 * loops.strip_width;
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(tile));
    for (std::int64_t begin = 0; begin < n; begin += tile) {
      const std::int64_t end = std::min(begin + tile, n);
      for (std::int64_t i = begin; i < end; ++i) numbers[std::size_t(i - begin)] = i;
      T* values = out.values + begin * stride;
      loops.fill_dense(rows.arg(), numbers.data(), begin, finish,
                       MatrixArg<T>{values, end - begin, n, stride});
      for (std::int64_t j = end; j < n; ++j)
        for (std::int64_t i = begin; i < end; ++i)
          out.values[j * stride + i] = out.values[i * stride + j];
    }
  }
};

}  // namespace widemargin
