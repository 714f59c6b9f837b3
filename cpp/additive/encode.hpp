// Encode raw values of any dtype and layout as bin codes, without a float64 copy of the data.
//
//     t = (value - shift[feature]) * factor[feature],     code = #{k : threshold[k] <= t}
//
// Code 0 means "absent": it contributes nothing, so sparse rows omit it.  NaN is absent for every
// kernel, and passes that compute bins skip it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "additive/quantise.hpp"

namespace widemargin {

// Called every few million values to make long passes interruptible; throws to end them.  Set by
// the bindings.
inline void (*check_interrupt)() = [] {};

class InterruptCheck {
 public:
  void after(std::int64_t values) {
    if ((work_ += values) < (1 << 22)) return;
    work_ = 0;
    check_interrupt();
  }

 private:
  std::int64_t work_ = 0;
};

inline constexpr int kTogether = 256;  // values per step, which stay in the cache
inline int run_length(std::int64_t left) { return int(std::min<std::int64_t>(left, kTogether)); }

// A matrix of raw values: dense with strides (in elements), or CSR.
template <class V>
struct DenseValues {
  using Value = V;
  const V* data;
  std::int64_t n_rows, n_features, row_stride, column_stride;

  // f(n, value, row, feature) for n values at a time, each a function of k < n, in memory order.
  template <class F>
  void for_each_run(F&& f) const {
    const auto down = row_stride, right = column_stride;
    if (right <= down || n_rows == 1) {
      for (std::int64_t i = 0; i < n_rows; ++i)
        for (std::int64_t j = 0; j < n_features; j += kTogether) {
          const V* const from = data + i * down + j * right;
          f(
              run_length(n_features - j), [=](int k) { return from[k * right]; },
              [=](int) { return i; }, [=](int k) { return j + k; });
        }
      return;
    }
    for (std::int64_t j = 0; j < n_features; ++j)
      for (std::int64_t i = 0; i < n_rows; i += kTogether) {
        const V* const from = data + i * down + j * right;
        f(
            run_length(n_rows - i), [=](int k) { return from[k * down]; },
            [=](int k) { return i + k; }, [=](int) { return j; });
      }
  }
};

template <class V, class Index>
struct SparseValues {
  using Value = V;
  const V* data;
  const Index* index;
  const std::int64_t* start;
  std::int64_t n_rows, n_features;

  template <class F>
  void for_each_run(F&& f) const {
    InterruptCheck interrupt;
    for (std::int64_t i = 0; i < n_rows; ++i) {
      const std::int64_t end = start[i + 1];
      for (std::int64_t at = start[i]; at < end; at += kTogether) {
        const V* const v = data + at;
        const Index* const j = index + at;
        f(
            run_length(end - at), [=](int k) { return v[k]; }, [=](int) { return i; },
            [=](int k) { return std::int64_t(j[k]); });
      }
      interrupt.after(end - start[i]);
    }
  }
};

// f(row, feature, value) for one value at a time.
template <class Values, class F>
void for_each(const Values& values, F&& f) {
  values.for_each_run([&](int n, auto value, auto row, auto feature) {
    for (int k = 0; k < n; ++k) f(row(k), feature(k), value(k));
  });
}

template <class V>
bool is_missing(V v) {
  if constexpr (std::is_floating_point_v<V>) return v != v;
  return false;
}

// One factor for all features (per_feature false) or one per feature.
struct Scale {
  const double *shift, *factor;
  bool per_feature;
  template <class V>
  double operator()(V v, std::int64_t feature) const {
    const std::int64_t j = per_feature ? feature : 0;
    return factor[j] == 0 ? 0.0 : (double(v) - shift[j]) * factor[j];  // 0: a constant column
  }
};

// Codes of raw values, from a table if the dtype is small and the scale is shared.
template <class V>
class Encoder {
 public:
  Encoder(const Scale& scale, const double* thresholds, std::int64_t n)
      : scale_(scale), quantise_(thresholds, n) {
    if constexpr (kSmall)
      if (!scale.per_feature) {
        table_.resize(std::size_t(1) << (8 * sizeof(V)));
        for (std::size_t u = 0; u < table_.size(); ++u) {
          V v;
          const auto bits = static_cast<std::make_unsigned_t<V>>(u);
          std::memcpy(&v, &bits, sizeof v);
          table_[u] = quantise_(scale_(v, 0));
        }
      }
  }
  // The codes of up to kTogether values: value(k) of feature(k).
  template <class ValueOf, class FeatureOf>
  void run(int n, ValueOf&& value, FeatureOf&& feature, std::uint32_t* codes) const {
    if constexpr (kSmall)
      if (!table_.empty()) {
        for (int k = 0; k < n; ++k)
          codes[k] = table_[static_cast<std::make_unsigned_t<V>>(value(k))];
        return;
      }
    double t[kTogether];
    const Scale scale = scale_;
    for (int k = 0; k < n; ++k) t[k] = scale(value(k), feature(k));
    quantise_.run(t, n, codes);
    if constexpr (std::is_floating_point_v<V>)
      for (int k = 0; k < n; ++k) codes[k] = is_missing(value(k)) ? 0 : codes[k];
  }

 private:
  static constexpr bool kSmall = std::is_integral_v<V> && sizeof(V) <= 2;
  Scale scale_;
  Quantiser quantise_;
  std::vector<std::uint32_t> table_;
};

inline constexpr int kMetBits = 14;
inline constexpr std::size_t kMet = std::size_t(1) << kMetBits;

// The sorted distinct scaled values; stops as soon as there are more than `limit`.
template <class Values>
std::vector<double> distinct(const Values& values, const Scale& scale, std::size_t limit) {
  std::vector<double> seen, fresh;
  const auto merge = [&] {
    std::sort(fresh.begin(), fresh.end());
    fresh.erase(std::unique(fresh.begin(), fresh.end()), fresh.end());
    std::vector<double> both(seen.size() + fresh.size());
    both.erase(std::set_union(seen.begin(), seen.end(), fresh.begin(), fresh.end(), both.begin()),
               both.end());
    seen.swap(both);
    fresh.clear();
  };
  struct Full {};
  std::vector<double> met(kMet, NAN);  // recent values, by a hash of their bits
  try {
    for_each(values, [&](std::int64_t, std::int64_t j, auto v) {
      const double t = scale(v, j);
      std::uint64_t bits;
      std::memcpy(&bits, &t, sizeof bits);
      double& same = met[(bits * 0x9e3779b97f4a7c15u) >> (64 - kMetBits)];
      if (t == same || is_missing(v)) return;
      same = t;
      fresh.push_back(t);
      if (fresh.size() < std::max<std::size_t>(4096, seen.size())) return;
      merge();
      if (seen.size() > limit) throw Full{};
    });
  } catch (const Full&) {
  }
  merge();
  return seen;
}

// The same for small integers with one scale: a flag per possible value.
template <class V, class Values>
std::vector<double> distinct_small(const Values& values, const Scale& scale) {
  std::vector<std::uint8_t> seen(std::size_t(1) << (8 * sizeof(V)));
  for_each(values, [&](std::int64_t, std::int64_t, V v) {
    seen[static_cast<std::make_unsigned_t<V>>(v)] = 1;
  });
  std::vector<double> out;
  for (std::size_t u = 0; u < seen.size(); ++u)
    if (seen[u]) out.push_back(scale(static_cast<V>(u), 0));
  std::sort(out.begin(), out.end());
  return out;
}

// Weight and sum of the scaled values in cells that are equidistant in sqrt(t / top).
struct Cell {
  double weight = 0, total = 0;
};

template <class Values>
std::vector<Cell> histogram(const Values& values, const Scale& scale, const double* row_weight,
                            double top, bool skip_zeros, std::int64_t n_cells) {
  std::vector<Cell> cells(static_cast<std::size_t>(n_cells));
  const auto last = std::int32_t(n_cells - 1);
  double t[kTogether], weight[kTogether];
  std::int32_t at[kTogether];
  // Compute the cells of a run of values in vectors, and add in the order of the values.
  values.for_each_run([&](int n, auto value, auto row, auto feature) {
    int counted = 0;
    for (int k = 0; k < n; ++k) {
      t[counted] = std::min(std::max(scale(value(k), feature(k)), 0.0), top);
      weight[counted] = row_weight[row(k)];
      counted += !(is_missing(value(k)) || (skip_zeros && t[counted] == 0));
    }
    for (int k = 0; k < counted; ++k)
      at[k] = std::min(std::int32_t(std::sqrt(t[k] / top) * double(n_cells)), last);
    for (int k = 0; k < counted; ++k) {
      cells[at[k]].weight += weight[k];
      cells[at[k]].total += weight[k] * t[k];
    }
  });
  return cells;
}

// (min, max, number of stored values including missing ones) of each column: 3 n_features numbers.
template <class Values>
std::vector<double> column_ranges(const Values& values) {
  const auto d = std::size_t(values.n_features);
  std::vector<double> out(3 * d);
  std::fill_n(out.begin(), d, HUGE_VAL);
  std::fill_n(out.begin() + std::ptrdiff_t(d), d, -HUGE_VAL);
  for_each(values, [&](std::int64_t, std::int64_t j, auto v) {
    out[j] = std::min(out[j], double(v));
    out[d + j] = std::max(out[d + j], double(v));
    out[2 * d + j] += 1;
  });
  return out;
}

// An uninitialised array; pages that are never written take no memory.
template <class T>
struct Fresh {
  explicit Fresh(std::int64_t most = 0) : data(new T[std::size_t(most)]), size(std::size_t(most)) {}
  std::unique_ptr<T[]> data;
  std::size_t size;
};

template <class Code, class V>
Fresh<Code> encode_dense(const DenseValues<V>& values, const Encoder<V>& encode) {
  const auto d = values.n_features;
  Fresh<Code> out(values.n_rows * d);
  Code* const to = out.data.get();
  std::uint32_t codes[kTogether];
  values.for_each_run([&](int n, auto value, auto row, auto feature) {
    encode.run(n, value, feature, codes);
    for (int k = 0; k < n; ++k) to[row(k) * d + feature(k)] = Code(codes[k]);
  });
  return out;
}

// Codes without the zeros.
template <class Index, class Code>
struct CompressedCodes {
  Fresh<std::int64_t> start;
  Fresh<Index> index;
  Fresh<Code> codes;
};

// `each_row(i, emit)` calls emit(feature, code) for every value of row i, at most `most` of which
// have a nonzero code.
template <class Index, class Code, class EachRow>
CompressedCodes<Index, Code> compress_codes(std::int64_t n_rows, std::int64_t most,
                                            EachRow&& each_row) {
  // One more, because the write is unconditional and only the increment depends on the code.
  CompressedCodes<Index, Code> out{Fresh<std::int64_t>(n_rows + 1), Fresh<Index>(most + 1),
                                   Fresh<Code>(most + 1)};
  Index* const index = out.index.data.get();
  Code* const codes = out.codes.data.get();
  InterruptCheck interrupt;
  std::size_t at = 0;
  out.start.data[0] = 0;
  for (std::int64_t i = 0; i < n_rows; ++i) {
    const std::size_t before = at;
    each_row(i, [&](std::int64_t feature, std::uint32_t code) {
      index[at] = Index(feature);
      codes[at] = Code(code);
      at += code != 0;
    });
    out.start.data[i + 1] = std::int64_t(at);
    interrupt.after(std::int64_t(at - before) + 64);
  }
  out.index.size = out.codes.size = at;
  return out;
}

}  // namespace widemargin
