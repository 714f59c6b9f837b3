// One view per layout of the codes; the loops are templates over the view.
#pragma once

#include "additive/problem.hpp"
#include "simd.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

template <class Code>
struct DenseRows {
  static constexpr bool dense = true, wide = sizeof(Code) > 1;
  struct Row {
    const Code* codes;
    std::int64_t size, first = 0;  // the feature of value 0
    std::int64_t feature(std::int64_t k) const { return first + k; }
    std::int64_t code(std::int64_t k) const { return codes[k]; }
    void prefetch() const {
      const char* p = reinterpret_cast<const char*>(codes);
      for (std::int64_t b = 0; b < size * std::int64_t(sizeof(Code)); b += 64)
        __builtin_prefetch(p + b);
    }
    Row slice(std::int64_t from, std::int64_t to) const { return {codes + from, to - from, from}; }
  };
  const Code* codes;
  std::int64_t n_features;
  explicit DenseRows(const RowsArg& a)
      : codes(static_cast<const Code*>(a.codes)), n_features(a.n_features) {}
  Row operator[](std::int64_t i) const { return {codes + i * n_features, n_features, 0}; }
  void prefetch_place(std::int64_t) const {}
};

template <class Index, class Code>
struct SparseRows {
  static constexpr bool dense = false, wide = sizeof(Code) > 1;
  struct Row {
    const Index* index;
    const Code* codes;
    std::int64_t size;
    std::int64_t feature(std::int64_t k) const { return index[k]; }
    std::int64_t code(std::int64_t k) const { return codes[k]; }
    // Always the first cache line: most rows have only one.
    void prefetch() const {
      const char* p = reinterpret_cast<const char*>(index);
      __builtin_prefetch(p);
      for (std::int64_t b = 64; b < size * std::int64_t(sizeof(Index)); b += 64)
        __builtin_prefetch(p + b);
      p = reinterpret_cast<const char*>(codes);
      __builtin_prefetch(p);
      for (std::int64_t b = 64; b < size * std::int64_t(sizeof(Code)); b += 64)
        __builtin_prefetch(p + b);
    }
  };
  const Index* index;
  const Code* codes;
  const std::int64_t* start;
  explicit SparseRows(const RowsArg& a)
      : index(static_cast<const Index*>(a.index)),
        codes(static_cast<const Code*>(a.codes)),
        start(a.start) {}
  Row operator[](std::int64_t i) const {
    return {index + start[i], codes + start[i], start[i + 1] - start[i]};
  }
  void prefetch_place(std::int64_t i) const { __builtin_prefetch(start + i); }
};

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
