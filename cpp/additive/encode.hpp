// From raw values of any dtype and layout to bin codes, without a float64 copy of the data.
//
//     t = (value - shift[feature]) * factor[feature],     code = #{k : threshold[k] <= t}
//
// Code 0 means "absent": it contributes nothing, so sparse rows leave it out.  A value that is not a
// number is absent, whatever the kernel; no pass that looks for bins counts it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace widemargin {

// Called every few million values, so that a long pass can be interrupted; throws to end it.  Set
// by the bindings.
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

// A matrix of raw values: dense with strides (in elements), or CSR.
template <class V>
struct DenseValues {
  using Value = V;
  const V* data;
  std::int64_t n_rows, n_features, row_stride, column_stride;

  // f(row, feature, value), in an order that follows memory.
  template <class F>
  void for_each(F&& f) const {
    if (column_stride <= row_stride || n_rows == 1) {
      for (std::int64_t i = 0; i < n_rows; ++i)
        for (std::int64_t j = 0; j < n_features; ++j)
          f(i, j, data[i * row_stride + j * column_stride]);
    } else {
      for (std::int64_t j = 0; j < n_features; ++j)
        for (std::int64_t i = 0; i < n_rows; ++i) f(i, j, data[i * row_stride + j * column_stride]);
    }
  }
};

template <class V, class Index>
struct SparseValues {
  using Value = V;
  const V* data;
  const Index* index;
  const Index* start;
  std::int64_t n_rows, n_features;

  template <class F>
  void for_each(F&& f) const {
    InterruptCheck interrupt;
    for (std::int64_t i = 0; i < n_rows; ++i) {
      for (Index k = start[i]; k < start[i + 1]; ++k) f(i, std::int64_t(index[k]), data[k]);
      interrupt.after(start[i + 1] - start[i]);
    }
  }
};

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

// upper_bound over the thresholds: a uniform grid says where to begin, and a binary search of a fixed
// number of steps goes on from there.  It has no branch that depends on the value.
class Quantiser {
 public:
  Quantiser(const double* thresholds, std::int64_t n)
      : thresholds_(thresholds, thresholds + n), first_(kGrid + 1) {
    double low = n > 0 ? thresholds[0] : 0;
    if (!std::isfinite(low)) low = n > 1 ? thresholds[1] : 0;  // "zero is a value": -infinity
    low_ = low;
    const double high = n > 0 ? thresholds[n - 1] : 0;
    scale_ = high > low ? kGrid / (high - low) : 0;
    std::vector<std::int64_t> up_to(kGrid + 2);  // thresholds at or below the end of a cell
    for (int g = 0; g <= kGrid + 1; ++g) {
      const double edge = g <= kGrid && scale_ > 0 ? low + g / scale_ : HUGE_VAL;
      up_to[g] = std::upper_bound(thresholds, thresholds + n, edge) - thresholds;
    }
    // One cell of slack on each side absorbs the rounding of the position in the grid.
    std::int64_t most = 0;
    for (int g = 0; g <= kGrid; ++g) {
      first_[g] = std::uint32_t(g > 0 ? up_to[g - 1] : 0);
      most = std::max(most, up_to[g + 1] - first_[g]);
    }
    while (2 * half_ <= most) half_ *= 2;
    thresholds_.resize(std::size_t(n + 2 * half_), NAN);  // no look is too far, none is below
  }
  std::uint32_t operator()(double t) const {
    const double position = (t - low_) * scale_;
    const int g = !(position > 0) ? 0 : position >= kGrid ? kGrid : int(position);
    std::uint32_t code = first_[g];
    for (std::uint32_t step = half_; step > 0; step /= 2)
      code += step * std::uint32_t(thresholds_[code + step - 1] <= t);
    return code;
  }

 private:
  static constexpr int kGrid = 4096;
  std::vector<double> thresholds_;
  double low_, scale_;
  std::vector<std::uint32_t> first_;
  std::uint32_t half_ = 1;  // a search of half_, half_ / 2, ... 1 tells 2 * half_ places apart
};

// A code per raw value, looked up where the dtype is small and the scale is shared.
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
  std::uint32_t operator()(V v, std::int64_t feature) const {
    if constexpr (kSmall)
      if (!table_.empty()) return table_[static_cast<std::make_unsigned_t<V>>(v)];
    return is_missing(v) ? 0 : quantise_(scale_(v, feature));
  }

 private:
  static constexpr bool kSmall = std::is_integral_v<V> && sizeof(V) <= 2;
  Scale scale_;
  Quantiser quantise_;
  std::vector<std::uint32_t> table_;
};

inline constexpr int kMetBits = 14;
inline constexpr std::size_t kMet = std::size_t(1) << kMetBits;

// The distinct scaled values in order; more than `limit` of them as soon as they are found.
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
  std::vector<double> met(kMet, NAN);  // values met lately, where their bits say
  try {
    values.for_each([&](std::int64_t, std::int64_t j, auto v) {
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

// The same for small integers with one scale: a flag per possible value instead of a hash.
template <class V, class Values>
std::vector<double> distinct_small(const Values& values, const Scale& scale) {
  std::vector<std::uint8_t> seen(std::size_t(1) << (8 * sizeof(V)));
  values.for_each(
      [&](std::int64_t, std::int64_t, V v) { seen[static_cast<std::make_unsigned_t<V>>(v)] = 1; });
  std::vector<double> out;
  for (std::size_t u = 0; u < seen.size(); ++u)
    if (seen[u]) out.push_back(scale(static_cast<V>(u), 0));
  std::sort(out.begin(), out.end());
  return out;
}

// Weight and sum of the scaled values in cells that are even in sqrt(t / top), side by side.
struct Cell {
  double weight = 0, total = 0;
};

template <class Values>
std::vector<Cell> histogram(const Values& values, const Scale& scale, const double* row_weight,
                            double top, bool skip_zeros, std::int64_t n_cells) {
  std::vector<Cell> cells(static_cast<std::size_t>(n_cells));
  values.for_each([&](std::int64_t i, std::int64_t j, auto v) {
    if (is_missing(v)) return;
    const double t = std::min(std::max(scale(v, j), 0.0), top);
    if (skip_zeros && t == 0) return;
    const auto at = std::min(std::int64_t(std::sqrt(t / top) * double(n_cells)), n_cells - 1);
    cells[at].weight += row_weight[i];
    cells[at].total += row_weight[i] * t;
  });
  return cells;
}

// (min, max, number of stored values, missing ones too) of each column: three times n_features numbers.
template <class Values>
std::vector<double> column_ranges(const Values& values) {
  const auto d = std::size_t(values.n_features);
  std::vector<double> out(3 * d);
  std::fill_n(out.begin(), d, HUGE_VAL);
  std::fill_n(out.begin() + std::ptrdiff_t(d), d, -HUGE_VAL);
  values.for_each([&](std::int64_t, std::int64_t j, auto v) {
    out[j] = std::min(out[j], double(v));
    out[d + j] = std::max(out[d + j], double(v));
    out[2 * d + j] += 1;
  });
  return out;
}

template <class Code, class V>
std::vector<Code> encode_dense(const DenseValues<V>& values, const Encoder<V>& encode) {
  std::vector<Code> out(std::size_t(values.n_rows * values.n_features));
  values.for_each([&](std::int64_t i, std::int64_t j, V v) {
    out[i * values.n_features + j] = Code(encode(v, j));
  });
  return out;
}

// Codes without the zeros.
template <class Index, class Code>
struct CompressedCodes {
  std::vector<std::int64_t> start;
  std::vector<Index> index;
  std::vector<Code> codes;
};

// `each_row(i, emit)` calls emit(feature, code) for every value of row i; it is asked twice.
template <class Index, class Code, class EachRow>
CompressedCodes<Index, Code> compress_codes(std::int64_t n_rows, EachRow&& each_row) {
  CompressedCodes<Index, Code> out;
  out.start.resize(std::size_t(n_rows) + 1);
  InterruptCheck interrupt;
  for (std::int64_t i = 0; i < n_rows; ++i) {
    std::int64_t count = 0;
    each_row(i, [&](std::int64_t, std::uint32_t code) { count += code != 0; });
    out.start[i + 1] = out.start[i] + count;
    interrupt.after(count + 64);
  }
  const auto stored = std::size_t(out.start.back());
  out.index.resize(stored + 1);  // one more: the write is unconditional, only the step is not
  out.codes.resize(stored + 1);
  std::size_t at = 0;
  for (std::int64_t i = 0; i < n_rows; ++i) {
    each_row(i, [&](std::int64_t feature, std::uint32_t code) {
      out.index[at] = Index(feature);
      out.codes[at] = Code(code);
      at += code != 0;
    });
    interrupt.after(out.start[i + 1] - out.start[i] + 64);
  }
  out.index.pop_back();
  out.codes.pop_back();
  return out;
}

}  // namespace widemargin
