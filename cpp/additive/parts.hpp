// The features of dense rows in parts: a function of the problem alone, never of the threads.  Sums
// are taken over each part and then added pairwise, so that every team of 1, 2, 4 .. threads, each
// with a branch of that tree, ends with the same bits.
#pragma once

#include "additive/problem.hpp"
#include "simd.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

// An exchange takes as long as some 270 vectors (0.3 us, measured): a row below this many gains
// nothing from two threads, and a thread below that many nothing from another.
constexpr std::int64_t kLeastRow = 1024, kLeastPart = 256;
constexpr int kMostParts = 16;

// Vectors of weights that a row of so many values reads, about.
inline std::int64_t row_cost(const TablesArg& t, std::int64_t n_values) {
  return n_values * (t.rank > 0 ? t.rank : t.n_codes);
}

inline int count_parts(const RowsArg& r, const TablesArg& t) {
  const std::int64_t cost = row_cost(t, r.n_features);
  if (r.index_type != IndexType::dense || t.lanes == 1 || cost < kLeastRow) return 1;
  int n = 1;
  while (n < kMostParts && 2 * n <= r.n_features && 2 * n * kLeastPart <= cost) n *= 2;
  return n;
}

// The parts of all features that one thread has, one after another.
struct Share {
  int n_parts;
  std::int64_t bounds[kMostParts + 1];  // each part's first feature, and the end
  std::int64_t from() const { return bounds[0]; }
  std::int64_t to() const { return bounds[n_parts]; }
};

// Thread `who` of n, of features in so many parts (a multiple of n).
inline Share share_of(std::int64_t n_features, int n_parts, int who, int n) {
  Share share{n_parts / n, {}};
  for (int p = 0; p <= share.n_parts; ++p)
    share.bounds[p] = n_features * (who * share.n_parts + p) / n_parts;
  return share;
}

// ((0 + 1) + (2 + 3)) + ..., of a power of two of them, which are overwritten.
template <class Lanes>
WIDEMARGIN_INLINE Lanes add_pairwise(Lanes* sums, int n) {
  for (; n > 1; n /= 2)
    for (int k = 0; k < n / 2; ++k) sums[k] = sums[2 * k] + sums[2 * k + 1];
  return sums[0];
}

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
