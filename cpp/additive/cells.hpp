// The weights of one feature are a "cell".  A pair of look-up tables defines how a code reads it
// (decision) and writes it (update):
//
//     decision   g(x) = sum_j  L[code(x_j)] . w_j
//     update     w_j += delta * R[code(x_j)]
//
// Three shapes of cell: factors of rank r for 16 classes at once (one vector per number), for
// one class (one vector per cell), and ICD's table T (L one-hot, R a row of the kernel matrix).
#pragma once

#include "additive/problem.hpp"
#include "simd.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

// Weights larger than this exceed the second-level cache: prefetch the next row's cells.
constexpr std::int64_t kPrefetchBytes = 512 << 10;
// Features whose weights stay in the first-level cache while several rows pass over them.
constexpr std::int64_t kNearBytes = 16 << 10;
inline std::int64_t near_features(const TablesArg& t) {
  const std::int64_t bytes = t.is_double ? sizeof(double) : sizeof(float);
  const std::int64_t cell = (t.rank > 0 ? t.rank : t.n_codes) * t.lanes * bytes;
  return cell < kNearBytes / 4 ? kNearBytes / cell : 4;
}
inline bool are_far(const TablesArg& t, std::int64_t n_features) {
  const std::int64_t bytes = t.is_double ? sizeof(double) : sizeof(float);
  return n_features * t.rank * t.lanes * bytes > kPrefetchBytes;  // a unary table has rank 0
}

// A block of rows that fits in the cache while all features pass, with a vector of coefficients for
// each row.
struct WeightedRows {
  static constexpr int kMost = 128;
  const std::int64_t* row;
  const void* coef;
  int n;
};

template <class T, int kRank>  // kRank == 0: a multiple of 4 known at run time only
struct FactorLanes {
  static constexpr bool kFused = true;
  using Number = T;
  using Lanes = LaneVector<T, kLanes>;
  const T *left, *right;
  T* weights;
  int runtime_rank;
  bool far;

  FactorLanes(const TablesArg& a, void* cell_weights, std::int64_t n_features)
      : left(static_cast<const T*>(a.left)),
        right(static_cast<const T*>(a.right)),
        weights(static_cast<T*>(cell_weights)),
        runtime_rank(a.rank),
        far(are_far(a, n_features)) {}

  static constexpr int kPart = kRank ? kRank : 4;  // vectors handled in one unrolled step
  // Code 0 is absent, and its numbers are zero.  Skipping it by a branch costs more than it saves.
  static constexpr bool kSkips = kRank == 0 || kRank >= 8;
  int rank() const { return kRank ? kRank : runtime_rank; }
  T* cell(std::int64_t feature) const { return weights + feature * rank() * kLanes; }

  std::int64_t cost() const { return rank(); }  // of one value, for the clock

  // Two chains of additions that hide each other's latency: the sum so far, and the next values.
  struct Chains {
    Lanes even{}, odd{};
    Lanes sum() const { return even + odd; }
  };
  template <class Row>
  WIDEMARGIN_INLINE void add_dot(const Row& row, Chains& chains) const {
    const int r = rank();
    Chains sums = chains;
    for (std::int64_t k = 0; k < row.size; ++k) {
      if (kSkips && row.code(k) == 0) continue;
      const T* l = left + row.code(k) * r;
      const T* w = cell(row.feature(k));
      for (int part = 0; part < r; part += kPart)
        for (int m = 0; m < kPart; ++m) {
          Lanes& sum = (m & 1) ? sums.odd : sums.even;
          sum += l[part + m] * load<Lanes>(w + (part + m) * kLanes);
        }
    }
    chains = sums;
  }
  template <class Row>
  Lanes dot(const Row& row) const {
    Chains chains;
    add_dot(row, chains);
    return chains.sum();
  }

  template <class Row>
  void update(const Row& row, Lanes delta) {
    const int r = rank();
    for (std::int64_t k = 0; k < row.size; ++k) {
      if (kSkips && row.code(k) == 0) continue;
      const T* t = right + row.code(k) * r;
      T* w = cell(row.feature(k));
      for (int part = 0; part < r; part += kPart)
        for (int m = part; m < part + kPart; ++m) {
          T* p = w + m * kLanes;
          store(p, load<Lanes>(p) + t[m] * delta);
        }
    }
  }

  // update() of several dense rows at once: a feature's weights stay in registers while all rows
  // with that feature are added.
  template <class Rows>
  void add(const Rows& rows, std::int64_t from, std::int64_t to, const WeightedRows& w) {
    const T* coef = static_cast<const T*>(w.coef);
    const int r = rank();
    Term terms[WeightedRows::kMost];
    for (std::int64_t j = from; j < to; ++j) {
      int n = 0;
      for (int k = 0; k < w.n; ++k) {
        const std::int64_t code = rows[w.row[k]].code(j);
        terms[n] = {right + code * r, coef + k * kLanes};
        n += code != 0;  // which is absent, and zero
      }
      int m = 0;
      for (; m + kHeld <= r; m += kHeld) add_held<kHeld>(terms, n, j, m);
      for (; m + 2 <= r; m += 2) add_held<2>(terms, n, j, m);
      for (; m < r; ++m) add_held<1>(terms, n, j, m);
    }
  }

  // Write one dense row and read the next in one pass, so that weights pass through the cache once;
  // the result equals update() followed by dot().
  template <class Row>
  Lanes update_dot(const Row& row, Lanes delta, const Row& next) {
    const int r = rank();
    Lanes even{}, odd{};
    for (std::int64_t k = 0; k < row.size; ++k) {
      if (kSkips && (row.code(k) | next.code(k)) == 0) continue;
      const T* t = right + row.code(k) * r;
      const T* l = left + next.code(k) * r;
      T* w = cell(row.feature(k));
      for (int part = 0; part < r; part += kPart)
        for (int m = 0; m < kPart; ++m) {
          T* p = w + (part + m) * kLanes;
          const Lanes moved = load<Lanes>(p) + t[part + m] * delta;
          store(p, moved);
          Lanes& sum = (m & 1) ? odd : even;
          sum += l[part + m] * moved;
        }
    }
    return even + odd;
  }

  template <class Row>
  void prefetch(const Row& row) const {
    if (!far) return;
    for (std::int64_t k = 0; k < row.size; ++k) {
      const T* w = cell(row.feature(k));
      for (int m = 0; m < rank(); ++m) __builtin_prefetch(w + m * kLanes, 1);
    }
  }

 private:
  // Half of AVX2's 16 registers: vectors of coefficients need room too.
  static constexpr int kHeld = 8 * kVectorBytes / (kLanes * int(sizeof(T))) > 2 ? 4 : 2;

  struct Term {  // of a sum over rows: a row of the table and its coefficients
    const T *values, *coef;
  };

  // Numbers m .. m + kN of the weights of feature j.
  template <int kN>
  void add_held(const Term* terms, int n, std::int64_t j, int m) {
    T* w = cell(j) + m * kLanes;
    Lanes held[kN];
    for (int u = 0; u < kN; ++u) held[u] = load<Lanes>(w + u * kLanes);
    for (int k = 0; k < n; ++k) {
      const Lanes delta = load<Lanes>(terms[k].coef);
      for (int u = 0; u < kN; ++u) held[u] += terms[k].values[m + u] * delta;
    }
    for (int u = 0; u < kN; ++u) store(w + u * kLanes, held[u]);
  }
};

template <class T, int kRank>  // one class; kRank is 1, 4, 8, or 0 for a multiple of 8
struct FactorSingle {
  static constexpr bool kFused = false;
  using Number = T;
  using Lanes = T;
  static constexpr int kWidth = kRank ? kRank : 8;
  using Part = LaneVector<T, kWidth>;
  const T *left, *right;
  T* weights;
  int runtime_rank;
  bool far;

  FactorSingle(const TablesArg& a, void* cell_weights, std::int64_t n_features)
      : left(static_cast<const T*>(a.left)),
        right(static_cast<const T*>(a.right)),
        weights(static_cast<T*>(cell_weights)),
        runtime_rank(a.rank),
        far(are_far(a, n_features)) {}

  int rank() const { return kRank ? kRank : runtime_rank; }

  std::int64_t cost() const { return 1; }

  template <class Row>
  T dot(const Row& row) const {
    const int r = rank();
    Part sums[4] = {};
    std::int64_t k = 0;
    for (; k + 4 <= row.size; k += 4)
      for (int u = 0; u < 4; ++u) add_product(sums[u], row, k + u, r);
    for (; k < row.size; ++k) add_product(sums[0], row, k, r);
    return sum_of<Part, T>((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }

  template <class Row>
  void update(const Row& row, T delta) {
    const int r = rank();
    for (std::int64_t k = 0; k < row.size; ++k) {
      const T* t = right + row.code(k) * r;
      T* w = weights + row.feature(k) * r;
      for (int m = 0; m < r; m += kWidth)
        store(w + m, load<Part>(w + m) + load<Part>(t + m) * delta);
    }
  }

  template <class Row>
  void prefetch(const Row& row) const {
    if (!far) return;
    for (std::int64_t k = 0; k < row.size; ++k)
      __builtin_prefetch(weights + row.feature(k) * rank(), 1);
  }

 private:
  template <class Row>
  void add_product(Part& sum, const Row& row, std::int64_t k, int r) const {
    const T* l = left + row.code(k) * r;
    const T* w = weights + row.feature(k) * r;
    for (int m = 0; m < r; m += kWidth) sum += load<Part>(l + m) * load<Part>(w + m);
  }
};

// ICD (Wu 2010, Algorithm 2): T_{j,k} is g_j at code k.  Line 4' reads one number per value,
// line 9' adds delta * k(x_ij, .) to the whole table of feature j.  A code above the largest
// that training saw reads the last entry, which is exact for the intersection kernel.
template <class T, int kWidth>
struct Unary {
  static constexpr bool kFused = false;
  using Number = T;
  using Lanes = LaneVector<T, kWidth>;
  const T* kernel;
  T* weights;
  const std::int64_t* offset;
  std::int64_t n_codes;

  Unary(const TablesArg& a, void* cell_weights, std::int64_t)
      : kernel(static_cast<const T*>(a.right)),
        weights(static_cast<T*>(cell_weights)),
        offset(a.offset),
        n_codes(a.n_codes) {}

  std::int64_t cost() const { return n_codes * kWidth / 16 + 1; }

  template <class Row>
  Lanes dot(const Row& row) const {
    Lanes sum{};
    for (std::int64_t k = 0; k < row.size; ++k) {
      const std::int64_t from = offset[row.feature(k)], last = offset[row.feature(k) + 1] - 1;
      const std::int64_t at = from + row.code(k);
      if (last >= from) sum += load<Lanes>(weights + (at < last ? at : last) * kWidth);
    }
    return sum;
  }

  template <class Row>
  void update(const Row& row, Lanes delta) {
    for (std::int64_t k = 0; k < row.size; ++k) {
      const std::int64_t from = offset[row.feature(k)], to = offset[row.feature(k) + 1];
      const T* values = kernel + row.code(k) * n_codes;
      T* table = weights + from * kWidth;
      for (std::int64_t v = 0; v < to - from; ++v)
        store(table + v * kWidth, load<Lanes>(table + v * kWidth) + values[v] * delta);
    }
  }

  template <class Row>
  void prefetch(const Row&) const {}
};

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
