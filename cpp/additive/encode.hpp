// From raw values of any dtype and layout to bin codes, without a float64 copy of the data.
//
//     t = (value - shift[feature]) * factor[feature],     code = #{k : threshold[k] <= t}
//
// Code 0 means "absent": it contributes nothing, so sparse rows leave it out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace widemargin {

// Called every few million values, so that a long pass can be interrupted (set by the bindings).
inline void (*breathe)() = [] {};

class Breath {
 public:
  void after(std::int64_t values) {
    if ((work_ += values) < (1 << 22)) return;
    work_ = 0;
    breathe();
  }

 private:
  std::int64_t work_ = 0;
};

// A matrix of raw values: dense with strides (in elements), or CSR.
template <class V>
struct DenseValues {
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
  const V* data;
  const Index* index;
  const Index* start;
  std::int64_t n_rows, n_features;

  template <class F>
  void for_each(F&& f) const {
    Breath breath;
    for (std::int64_t i = 0; i < n_rows; ++i) {
      for (Index k = start[i]; k < start[i + 1]; ++k) f(i, std::int64_t(index[k]), data[k]);
      breath.after(start[i + 1] - start[i]);
    }
  }
};

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

// upper_bound over the thresholds, narrowed first by a uniform grid.
class Quantiser {
 public:
  Quantiser(const double* thresholds, std::int64_t n) : thresholds_(thresholds), first_(kGrid + 2) {
    double low = n > 0 ? thresholds[0] : 0;
    if (!std::isfinite(low)) low = n > 1 ? thresholds[1] : 0;  // "zero is a value": -infinity
    low_ = low;
    const double high = n > 0 ? thresholds[n - 1] : 0;
    scale_ = high > low ? kGrid / (high - low) : 0;
    for (int g = 0; g <= kGrid + 1; ++g) {
      const double edge = g <= kGrid && scale_ > 0 ? low + g / scale_ : HUGE_VAL;
      // one step of slack on each side absorbs the rounding of the grid position
      first_[g] = std::upper_bound(thresholds, thresholds + n, edge) - thresholds;
    }
  }
  std::int64_t operator()(double t) const {
    const double position = (t - low_) * scale_;
    const int g = !(position > 0) ? 0 : position >= kGrid ? kGrid : int(position);
    const double* from = thresholds_ + (g > 0 ? first_[g - 1] : 0);
    const double* to = thresholds_ + first_[g + 1];
    return std::upper_bound(from, to, t) - thresholds_;
  }

 private:
  static constexpr int kGrid = 4096;
  const double* thresholds_;
  double low_, scale_;
  std::vector<std::int64_t> first_;
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
          table_[u] = std::uint32_t(quantise_(scale_(v, 0)));
        }
      }
  }
  std::uint32_t operator()(V v, std::int64_t feature) const {
    if constexpr (kSmall)
      if (!table_.empty()) return table_[static_cast<std::make_unsigned_t<V>>(v)];
    return std::uint32_t(quantise_(scale_(v, feature)));
  }

 private:
  static constexpr bool kSmall = std::is_integral_v<V> && sizeof(V) <= 2;
  Scale scale_;
  Quantiser quantise_;
  std::vector<std::uint32_t> table_;
};

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
  double last = HUGE_VAL;
  try {
    values.for_each([&](std::int64_t, std::int64_t j, auto v) {
      const double t = scale(v, j);
      if (t == last) return;
      last = t;
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

// Weight and sum of the scaled values in cells that are even in sqrt(t / top).
template <class Values>
void histogram(const Values& values, const Scale& scale, const double* row_weight, double top,
               bool skip_zeros, std::int64_t n_cells, double* weight, double* total) {
  values.for_each([&](std::int64_t i, std::int64_t j, auto v) {
    const double t = std::min(std::max(scale(v, j), 0.0), top);
    if (skip_zeros && t == 0) return;
    const auto cell = std::min(std::int64_t(std::sqrt(t / top) * double(n_cells)), n_cells - 1);
    weight[cell] += row_weight[i];
    total[cell] += row_weight[i] * t;
  });
}

}  // namespace widemargin
