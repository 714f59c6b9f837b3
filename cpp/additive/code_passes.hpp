// Passes over rows of codes: checks, sums and counts; and a random order of rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "additive/problem.hpp"
#include "require.hpp"

namespace widemargin {

template <class T>
bool all_below(const T* values, std::int64_t n, std::uint64_t bound) {
  if (bound > std::numeric_limits<T>::max()) return true;
  T top = 0;
  for (std::int64_t k = 0; k < n; ++k) top = std::max(top, values[k]);
  return n == 0 || top < bound;
}

inline bool all_within(const std::int32_t* values, std::int64_t n, std::int64_t bound) {
  std::uint32_t top = 0;  // negative numbers wrap to very large ones
  for (std::int64_t k = 0; k < n; ++k) top = std::max(top, std::uint32_t(values[k]));
  return n <= 0 || top < bound;
}

// Whether the numbers are distinct and below the bound.
inline bool all_distinct(const std::int32_t* values, std::int64_t n, std::int64_t bound) {
  std::vector<bool> met(std::size_t(bound), false);
  bool distinct = true;
  for (std::int64_t k = 0; k < n; ++k) {
    distinct = distinct && !met[std::size_t(values[k])];
    met[std::size_t(values[k])] = true;
  }
  return distinct;
}

// f(codes) with the type of the codes.
template <class F>
auto with_codes(const RowsArg& rows, F&& f) {
  if (rows.code_type == CodeType::u8) return f(static_cast<const std::uint8_t*>(rows.codes));
  if (rows.code_type == CodeType::u16) return f(static_cast<const std::uint16_t*>(rows.codes));
  return f(static_cast<const std::uint32_t*>(rows.codes));
}

// Row pointers ascend from 0 to `n_stored`, and every index and code is in range.
inline void check_rows(const RowsArg& rows, std::int64_t n_stored, std::int64_t n_codes) {
  if (rows.index_type != IndexType::dense) {
    require(rows.start[0] == 0 && rows.start[rows.n_rows] == n_stored,
            "start must run from 0 to the number of codes");
    for (std::int64_t i = 0; i < rows.n_rows; ++i)
      require(rows.start[i] <= rows.start[i + 1], "start must not descend");
    const auto bound = std::uint64_t(rows.n_features);
    require(rows.index_type == IndexType::u16
                ? all_below(static_cast<const std::uint16_t*>(rows.index), n_stored, bound)
                : all_below(static_cast<const std::uint32_t*>(rows.index), n_stored, bound),
            "an index is out of range");
  }
  require(
      with_codes(rows,
                 [&](auto* codes) { return all_below(codes, n_stored, std::uint64_t(n_codes)); }),
      "a code is out of range");
}

// f(row, size, feature, codes) for every row: feature(k) is that of the row's value k.
template <class F>
void for_each_row(const RowsArg& rows, F&& f) {
  const auto sparse = [&](const auto* index, const auto* codes) {
    for (std::int64_t i = 0; i < rows.n_rows; ++i) {
      const auto* features = index + rows.start[i];
      f(
          i, rows.start[i + 1] - rows.start[i],
          [features](std::int64_t k) { return std::int64_t(features[k]); }, codes + rows.start[i]);
    }
  };
  with_codes(rows, [&](const auto* codes) {
    if (rows.index_type == IndexType::u16)
      return sparse(static_cast<const std::uint16_t*>(rows.index), codes);
    if (rows.index_type == IndexType::u32)
      return sparse(static_cast<const std::uint32_t*>(rows.index), codes);
    for (std::int64_t i = 0; i < rows.n_rows; ++i)
      f(i, rows.n_features, [](std::int64_t k) { return k; }, codes + i * rows.n_features);
  });
}

// Sums of the table's entries over each row's codes.
inline std::vector<double> row_sums(const RowsArg& rows, const double* table) {
  std::vector<double> out(std::size_t(rows.n_rows));
  for_each_row(rows, [&](std::int64_t i, std::int64_t size, auto, const auto* code) {
    double sums[4] = {};  // independent chains
    std::int64_t k = 0;
    for (; k + 4 <= size; k += 4)
      for (int u = 0; u < 4; ++u) sums[u] += table[code[k + u]];
    for (; k < size; ++k) sums[0] += table[code[k]];
    out[std::size_t(i)] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  });
  return out;
}

// Total weight of the rows with each code.
inline std::vector<double> count_codes(const RowsArg& rows, std::int64_t n_codes,
                                       const double* row_weight) {
  const auto n = std::size_t(n_codes);
  // Images repeat codes: four books avoid chains of dependent additions.
  std::vector<double> books(4 * n);
  for_each_row(rows, [&](std::int64_t i, std::int64_t size, auto, const auto* code) {
    std::int64_t k = 0;
    for (; k + 4 <= size; k += 4)
      for (int u = 0; u < 4; ++u) books[n * u + code[k + u]] += row_weight[i];
    for (; k < size; ++k) books[code[k]] += row_weight[i];
  });
  for (std::size_t b = 1; b < 4; ++b)
    for (std::size_t k = 0; k < n; ++k) books[k] += books[b * n + k];
  books.resize(n);
  return books;
}

// Total weight of the rows with each nonzero code of each feature.  The codes of feature j,
// ascending, are those from start[j] to start[j + 1].
struct CellCounts {
  std::vector<std::int64_t> start;
  std::vector<std::uint32_t> code;
  std::vector<double> weight;
};

// Move the book's codes with a weight to the next feature and empty the book.
inline void close_book(double* book, std::int64_t n_codes, CellCounts& out) {
  for (std::int64_t code = 1; code < n_codes; ++code)
    if (book[code] > 0) {
      out.code.push_back(std::uint32_t(code));
      out.weight.push_back(book[code]);
    }
  std::fill(book, book + n_codes, 0.0);
  out.start.push_back(std::int64_t(out.code.size()));
}

// A book for every feature, if books have fewer pages than there are values.
inline CellCounts count_in_books(const RowsArg& rows, std::int64_t n_codes,
                                 const double* row_weight) {
  const std::int64_t apart =
      n_codes + 8;  // a power of two would map all books to the same cache lines
  std::vector<double> books(std::size_t(rows.n_features * apart));
  for_each_row(rows, [&](std::int64_t i, std::int64_t size, auto feature, const auto* code) {
    for (std::int64_t k = 0; k < size; ++k)
      books[std::size_t(feature(k) * apart + code[k])] += row_weight[i];
  });
  CellCounts out{{0}, {}, {}};
  for (std::int64_t j = 0; j < rows.n_features; ++j)
    close_book(books.data() + j * apart, n_codes, out);
  return out;
}

// Sort values by feature, then by code, if features have few values each.
inline CellCounts count_sorted(const RowsArg& rows, const double* row_weight) {
  struct Value {
    std::uint32_t code;
    double weight;
  };
  std::vector<std::int64_t> end(std::size_t(rows.n_features) + 1);
  const auto each = [&](auto&& f) {
    for_each_row(rows, [&](std::int64_t i, std::int64_t size, auto feature, const auto* code) {
      for (std::int64_t k = 0; k < size; ++k)
        if (code[k] > 0) f(std::size_t(feature(k)), Value{std::uint32_t(code[k]), row_weight[i]});
    });
  };
  each([&](std::size_t feature, Value) { ++end[feature + 1]; });
  for (std::size_t j = 1; j < end.size(); ++j) end[j] += end[j - 1];
  std::vector<Value> values(std::size_t(end.back()));
  each([&](std::size_t feature, Value value) { values[std::size_t(end[feature]++)] = value; });
  CellCounts out{{0}, {}, {}};
  auto value = values.begin();
  for (std::int64_t j = 0; j < rows.n_features; ++j) {
    const auto last = values.begin() + end[std::size_t(j)];
    // Stable, so weights of a code are added in the order of rows, as in the books.
    std::stable_sort(value, last, [](Value a, Value b) { return a.code < b.code; });
    for (; value != last; ++value) {
      const bool more = std::int64_t(out.code.size()) > out.start.back();
      if (more && out.code.back() == value->code) {
        out.weight.back() += value->weight;
      } else {
        out.code.push_back(value->code);
        out.weight.push_back(value->weight);
      }
    }
    out.start.push_back(std::int64_t(out.code.size()));
  }
  return out;
}

inline CellCounts count_cells(const RowsArg& rows, std::int64_t n_codes, const double* row_weight) {
  const std::int64_t n_values =
      rows.index_type == IndexType::dense ? rows.n_rows * rows.n_features : rows.start[rows.n_rows];
  const bool few_pages = n_codes <= n_values / std::max<std::int64_t>(rows.n_features, 1);
  return few_pages ? count_in_books(rows, n_codes, row_weight) : count_sorted(rows, row_weight);
}

inline std::vector<std::int64_t> largest_codes(const RowsArg& rows) {  // of each feature
  std::vector<std::int64_t> out(std::size_t(rows.n_features));
  for_each_row(rows, [&](std::int64_t, std::int64_t size, auto feature, const auto* code) {
    for (std::int64_t k = 0; k < size; ++k) {
      auto& largest = out[std::size_t(feature(k))];
      largest = std::max(largest, std::int64_t(code[k]));
    }
  });
  return out;
}

// A random order (Fisher-Yates), the same on every platform.
inline void shuffle(std::vector<std::int32_t>& rows, std::uint64_t seed) {
  for (std::size_t k = rows.size(); k > 1; --k) {
    seed += 0x9e3779b97f4a7c15u;  // splitmix64
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    const std::uint64_t bits = (z ^ (z >> 31)) >> 32;
    std::swap(rows[k - 1], rows[(bits * k) >> 32]);  // k < 2^31, so the product fits
  }
}

}  // namespace widemargin
