// The features of dense rows in slices, which depend on the problem and never on the threads.  Sums
// are taken over each slice and then added pairwise, so that every team of 1, 2, 4 .. threads, each
// with a branch of that tree, ends with the same bits.
#pragma once

#include "additive/problem.hpp"
#include "simd.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

// An exchange takes as long as some 270 vectors (0.3 us, measured): a row below this many gains
// nothing from two threads, and a thread below that many nothing from another.
constexpr std::int64_t kLeastRow = 1024, kLeastSlice = 256;
constexpr int kMostSlices = 16;

// Vectors of weights that a row of so many values reads, about.
inline std::int64_t row_cost(const TablesArg& t, std::int64_t n_values) {
  return n_values * (t.rank > 0 ? t.rank : t.n_codes);
}

inline int count_slices(const RowsArg& r, const TablesArg& t) {
  const std::int64_t cost = row_cost(t, r.n_features);
  if (r.index_type != IndexType::dense || t.lanes == 1 || cost < kLeastRow) return 1;
  int n = 1;
  while (n < kMostSlices && 2 * n <= r.n_features && 2 * n * kLeastSlice <= cost) n *= 2;
  return n;
}

// The slices of features that one thread has, one after another.
struct Share {
  int n_slices;
  std::int64_t bounds[kMostSlices + 1];  // each slice's first feature, and the end
  std::int64_t from() const { return bounds[0]; }
  std::int64_t to() const { return bounds[n_slices]; }
};

// Thread `who` of n, of features in so many slices (a multiple of n).
inline Share share_of(std::int64_t n_features, int n_slices, int who, int n) {
  Share share{n_slices / n, {}};
  for (int p = 0; p <= share.n_slices; ++p)
    share.bounds[p] = n_features * (who * share.n_slices + p) / n_slices;
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
