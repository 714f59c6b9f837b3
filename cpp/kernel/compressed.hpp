// Compressed rows: their check, some of them packed, and their layout in panels.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/problem.hpp"
#include "require.hpp"

namespace widemargin {

// Only what `start` spans is looked at: a slice of rows shares index and value with all of them.
template <class T>
void check_compressed(const CompressedArg<T>& rows, std::int64_t n_stored) {
  const std::int64_t begin = rows.start[0], end = rows.start[rows.n_rows];
  require(0 <= begin && begin <= end && end <= n_stored, "start is out of range");
  for (std::int64_t i = 0; i < rows.n_rows; ++i)
    require(rows.start[i] <= rows.start[i + 1], "start must not descend");
  std::int32_t low = 0, high = -1;
  for (std::int64_t p = begin; p < end; ++p) {
    low = rows.index[p] < low ? rows.index[p] : low;
    high = rows.index[p] > high ? rows.index[p] : high;
  }
  require(low >= 0 && high < rows.n_features, "a feature is out of range");
}

template <class T>
struct PackedRows {
  std::vector<std::int64_t> start{0};
  std::vector<std::int32_t> index;
  std::vector<T> value;
};

// Those values of dense rows that are not zero as T.
template <class T, class From>
PackedRows<T> compress(const From* values, std::int64_t n_rows, std::int64_t n_features) {
  PackedRows<T> out;
  for (std::int64_t i = 0; i < n_rows; ++i) {
    const From* row = values + i * n_features;
    std::int64_t n = 0;
    for (std::int64_t j = 0; j < n_features; ++j) n += T(row[j]) != 0;
    out.start.push_back(out.start.back() + n);
  }
  const auto n_stored = std::size_t(out.start.back());
  out.index.resize(n_stored + 1);  // one more, so that each value is written before it is judged
  out.value.resize(n_stored + 1);
  std::size_t p = 0;
  for (std::int64_t i = 0; i < n_rows; ++i)
    for (std::int64_t j = 0; j < n_features; ++j) {
      const T value = T(values[i * n_features + j]);
      out.index[p] = std::int32_t(j);
      out.value[p] = value;
      p += value != 0;
    }
  out.index.resize(n_stored);
  out.value.resize(n_stored);
  return out;
}

// The rows that `numbers` names, one after the other.  Only these are checked, of a matrix of which
// they may be few.
template <class T>
PackedRows<T> take_rows(const CompressedArg<T>& rows, std::int64_t n_stored,
                        const std::int64_t* numbers, std::int64_t n) {
  PackedRows<T> out;
  for (std::int64_t k = 0; k < n; ++k) {
    require(numbers[k] >= 0 && numbers[k] < rows.n_rows, "a row is out of range");
    const std::int64_t begin = rows.start[numbers[k]], end = rows.start[numbers[k] + 1];
    require(0 <= begin && begin <= end && end <= n_stored, "start is out of range");
    out.index.insert(out.index.end(), rows.index + begin, rows.index + end);
    out.value.insert(out.value.end(), rows.value + begin, rows.value + end);
    out.start.push_back(std::int64_t(out.index.size()));
  }
  return out;
}

// Checked rows as panels of n_features, zeros written out; `place` as in PanelsArg.
template <class T>
std::vector<T> make_panels(const CompressedArg<T>& rows, const std::int32_t* place,
                           std::int64_t n_features) {
  const std::int64_t n_panels = (rows.n_rows + kPanel - 1) / kPanel;
  std::vector<T> panels(std::size_t(n_panels * n_features * kPanel), T(0));
  for (std::int64_t r = 0; r < rows.n_rows; ++r) {
    T* panel = panels.data() + (r / kPanel) * n_features * kPanel + r % kPanel;
    for (std::int64_t p = rows.start[r]; p < rows.start[r + 1]; ++p) {
      const std::int64_t at = place ? place[rows.index[p]] : rows.index[p];
      require(at < n_features, "a place is out of range");
      if (at >= 0) panel[at * kPanel] = rows.value[p];
    }
  }
  return panels;
}

}  // namespace widemargin
