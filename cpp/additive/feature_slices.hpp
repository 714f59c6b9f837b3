// Slices of the features of dense rows, which depend on the problem and not on the threads.  Sums
// over slices are added pairwise, so teams of 1, 2, 4 .. threads, each with a branch of that tree,
// end with the same bits.
#pragma once

#include "additive/problem.hpp"
#include "simd.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

// An exchange takes as long as some 270 vectors (0.3 us, measured).  Shorter rows gain nothing from
// two threads, and threads with fewer vectors gain nothing from another one.
constexpr std::int64_t kLeastRow = 1024, kLeastSlice = 256;
constexpr int kMostSlices = 16;

// Approximate number of vectors of weights that a row reads.
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

// ((0 + 1) + (2 + 3)) + ... for a power of two of sums; overwrites them.
template <class Lanes>
WIDEMARGIN_INLINE Lanes add_pairwise(Lanes* sums, int n) {
  for (; n > 1; n /= 2)
    for (int k = 0; k < n / 2; ++k) sums[k] = sums[2 * k] + sums[2 * k + 1];
  return sums[0];
}

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
