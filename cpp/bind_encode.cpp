// Bindings of the encoder: raw values of any dtype and layout to codes.
#include <algorithm>
#include <type_traits>

#include "additive/encode.hpp"
#include "bindings.hpp"

namespace widemargin {
namespace {

// Calls f(values) with the typed view of a dense matrix or of a CSR triple.
template <class F>
auto with_values(const Strided& data, const std::optional<Array>& index,
                 const std::optional<Array>& start, std::int64_t n_features, F&& f) {
  const auto typed = [&](auto zero) {
    using V = decltype(zero);
    const V* p = static_cast<const V*>(data.data());
    if (!index) {
      require(data.ndim() == 2 && std::int64_t(data.shape(1)) == n_features,
              "dense values must be (n_rows, n_features)");
      return f(DenseValues<V>{p, std::int64_t(data.shape(0)), n_features, data.stride(0),
                              data.stride(1)});
    }
    require(start.has_value() && data.ndim() == 1 && index->size() == data.size() &&
                (data.size() < 2 || data.stride(0) == 1),
            "sparse values need index and start of matching sizes");
    const auto sparse = [&](auto one) {
      using Index = decltype(one);
      const auto n = std::int64_t(start->size()) - 1;
      const Index* at = pointer<Index>(*index, std::int64_t(index->size()), "index dtype");
      const Index* from = pointer<Index>(*start, n + 1, "index and start must share a dtype");
      require(n >= 0 && from[0] == 0 && std::int64_t(from[n]) <= std::int64_t(data.size()),
              "start does not fit the values");
      for (std::int64_t i = 0; i < n; ++i) require(from[i] <= from[i + 1], "start descends");
      for (Index k = 0; k < from[n]; ++k)
        require(at[k] >= 0 && std::int64_t(at[k]) < n_features, "an index is out of range");
      return f(SparseValues<V, Index>{p, at, from, n, n_features});
    };
    if (index->dtype() == nb::dtype<std::int32_t>()) return sparse(std::int32_t{});
    return sparse(std::int64_t{});
  };
  const auto t = data.dtype();
  if (t == nb::dtype<float>()) return typed(float{});
  if (t == nb::dtype<double>()) return typed(double{});
  if (t == nb::dtype<std::uint8_t>()) return typed(std::uint8_t{});
  if (t == nb::dtype<std::int8_t>()) return typed(std::int8_t{});
  if (t == nb::dtype<std::uint16_t>()) return typed(std::uint16_t{});
  if (t == nb::dtype<std::int16_t>()) return typed(std::int16_t{});
  if (t == nb::dtype<std::int32_t>()) return typed(std::int32_t{});
  if (t == nb::dtype<std::uint32_t>()) return typed(std::uint32_t{});
  if (t == nb::dtype<std::uint64_t>()) return typed(std::uint64_t{});
  require(t == nb::dtype<std::int64_t>(), "values must be real numbers or integers");
  return typed(std::int64_t{});
}

template <class Values>
struct ValueType;
template <class V>
struct ValueType<DenseValues<V>> {
  using type = V;
};
template <class V, class Index>
struct ValueType<SparseValues<V, Index>> {
  using type = V;
};
template <class Values>
struct IsSparse : std::false_type {};
template <class V, class Index>
struct IsSparse<SparseValues<V, Index>> : std::true_type {};

Scale make_scale(const Array& shift, const Array& factor, std::int64_t n_features) {
  const auto n = std::int64_t(shift.size());
  require(n == 1 || n == n_features, "shift must have 1 or n_features entries");
  return {pointer<double>(shift, n, "shift must be float64"),
          pointer<double>(factor, n, "factor must match shift"), n != 1};
}

nb::ndarray<nb::numpy, double> distinct_values(Strided data, std::optional<Array> index,
                                               std::optional<Array> start, std::int64_t n_features,
                                               Array shift, Array factor, std::size_t limit) {
  const Scale scale = make_scale(shift, factor, n_features);
  auto out = with_values(data, index, start, n_features, [&](auto values) {
    using V = typename ValueType<decltype(values)>::type;
    nb::gil_scoped_release release;
    if constexpr (std::is_integral_v<V> && sizeof(V) <= 2)
      if (!scale.per_feature) return distinct_small<V>(values, scale);
    return distinct(values, scale, limit);
  });
  const auto n = out.size();
  return to_numpy(std::move(out), {n});
}

nb::ndarray<nb::numpy, double> value_histogram(Strided data, std::optional<Array> index,
                                               std::optional<Array> start, std::int64_t n_features,
                                               Array shift, Array factor, Array row_weight,
                                               double top, bool skip_zeros, std::int64_t n_cells) {
  const Scale scale = make_scale(shift, factor, n_features);
  require(top > 0 && n_cells > 0, "top and n_cells must be positive");
  std::vector<double> out(std::size_t(2 * n_cells));
  with_values(data, index, start, n_features, [&](auto values) {
    const double* weight = pointer<double>(row_weight, values.n_rows, "one weight per row");
    nb::gil_scoped_release release;
    histogram(values, scale, weight, top, skip_zeros, n_cells, out.data(), out.data() + n_cells);
  });
  return to_numpy(std::move(out), {2, std::size_t(n_cells)});
}

// (min, max, number of stored values) of each column.
nb::ndarray<nb::numpy, double> column_ranges(Strided data, std::optional<Array> index,
                                             std::optional<Array> start, std::int64_t n_features) {
  const auto d = std::size_t(n_features);
  std::vector<double> out(3 * d);
  std::fill_n(out.begin(), d, HUGE_VAL);
  std::fill_n(out.begin() + std::ptrdiff_t(d), d, -HUGE_VAL);
  with_values(data, index, start, n_features, [&](auto values) {
    nb::gil_scoped_release release;
    values.for_each([&](std::int64_t, std::int64_t j, auto v) {
      out[j] = std::min(out[j], double(v));
      out[d + j] = std::max(out[d + j], double(v));
      out[2 * d + j] += 1;
    });
  });
  return to_numpy(std::move(out), {3, d});
}

template <class Code>
void encode_into(Strided data, std::int64_t n_features, const Scale& scale,
                 const double* thresholds, std::int64_t n_thresholds, Code* out) {
  with_values(data, std::nullopt, std::nullopt, n_features, [&](auto values) {
    using V = typename ValueType<decltype(values)>::type;
    nb::gil_scoped_release release;
    const Encoder<V> encode(scale, thresholds, n_thresholds);
    values.for_each(
        [&](std::int64_t i, std::int64_t j, V v) { out[i * n_features + j] = Code(encode(v, j)); });
  });
}

nb::object encode_dense(Strided data, std::int64_t n_features, Array shift, Array factor,
                        Array thresholds) {
  const Scale scale = make_scale(shift, factor, n_features);
  const auto b = std::int64_t(thresholds.size());
  const double* t = pointer<double>(thresholds, b, "thresholds must be float64");
  const auto n = data.shape(0);
  const auto run = [&](auto zero) {
    using Code = decltype(zero);
    std::vector<Code> out(n * std::size_t(n_features));
    encode_into<Code>(data, n_features, scale, t, b, out.data());
    return nb::cast(to_numpy(std::move(out), {n, std::size_t(n_features)}));
  };
  if (b <= 0xff) return run(std::uint8_t{});
  if (b <= 0xffff) return run(std::uint16_t{});
  return run(std::uint32_t{});
}

// CSR without the zeros: (start, index, codes), in the smallest types that hold them.
// `each_row(i, emit)` calls emit(feature, code) for every value of row i.
template <class Index, class Code, class EachRow>
nb::object compressed(std::int64_t n_rows, EachRow&& each_row) {
  std::vector<std::int64_t> start(std::size_t(n_rows) + 1);
  std::vector<Index> index;
  std::vector<Code> codes;
  {
    nb::gil_scoped_release release;
    Breath breath;
    for (std::int64_t i = 0; i < n_rows; ++i) {
      std::int64_t count = 0;
      each_row(i, [&](std::int64_t, std::uint32_t code) { count += code != 0; });
      start[i + 1] = start[i] + count;
      breath.after(count + 64);
    }
    const auto stored = std::size_t(start.back());
    index.resize(stored + 1);  // one more: the write below is unconditional, only the step is not
    codes.resize(stored + 1);
    std::size_t at = 0;
    for (std::int64_t i = 0; i < n_rows; ++i) {
      each_row(i, [&](std::int64_t feature, std::uint32_t code) {
        index[at] = Index(feature);
        codes[at] = Code(code);
        at += code != 0;
      });
      breath.after(start[i + 1] - start[i] + 64);
    }
    index.pop_back();
    codes.pop_back();
  }
  const auto rows = start.size(), stored = codes.size();
  return nb::make_tuple(to_numpy(std::move(start), {rows}), to_numpy(std::move(index), {stored}),
                        to_numpy(std::move(codes), {stored}));
}

template <class EachRow>
nb::object compressed(std::int64_t n_rows, std::int64_t n_features, std::int64_t n_codes,
                      EachRow&& each_row) {
  require(n_features <= std::int64_t(0xffffffff), "more than 2^32 features");
  using u8 = std::uint8_t;
  using u16 = std::uint16_t;
  using u32 = std::uint32_t;
  if (n_codes <= 0x100 && n_features <= 0x10000) return compressed<u16, u8>(n_rows, each_row);
  if (n_codes <= 0x100) return compressed<u32, u8>(n_rows, each_row);
  if (n_codes <= 0x10000) return compressed<u32, u16>(n_rows, each_row);
  return compressed<u32, u32>(n_rows, each_row);
}

nb::object encode_sparse(Strided data, Array index, Array start, std::int64_t n_features,
                         Array shift, Array factor, Array thresholds) {
  const Scale scale = make_scale(shift, factor, n_features);
  const auto b = std::int64_t(thresholds.size());
  const double* t = pointer<double>(thresholds, b, "thresholds must be float64");
  return with_values(data, index, start, n_features, [&](auto values) -> nb::object {
    if constexpr (IsSparse<decltype(values)>::value) {
      using V = typename ValueType<decltype(values)>::type;
      const Encoder<V> encode(scale, t, b);
      return compressed(values.n_rows, n_features, b + 1, [&](std::int64_t i, auto&& emit) {
        for (auto k = values.start[i]; k < values.start[i + 1]; ++k)
          emit(values.index[k], encode(values.data[k], values.index[k]));
      });
    } else {
      return nb::none();
    }
  });
}

// Dense codes whose zeros are many, as compressed rows.
nb::object compress(Array codes, std::int64_t n_codes) {
  require(codes.ndim() == 2, "codes must be (n_rows, n_features)");
  const auto n = std::int64_t(codes.shape(0)), d = std::int64_t(codes.shape(1));
  const auto run = [&](auto zero) {
    using Code = decltype(zero);
    const Code* p = pointer<Code>(codes, n * d, "codes must be uint8/16/32");
    return compressed(n, d, n_codes, [&](std::int64_t i, auto&& emit) {
      for (std::int64_t j = 0; j < d; ++j) emit(j, p[i * d + j]);
    });
  };
  if (codes.dtype() == nb::dtype<std::uint8_t>()) return run(std::uint8_t{});
  if (codes.dtype() == nb::dtype<std::uint16_t>()) return run(std::uint16_t{});
  return run(std::uint32_t{});
}

}  // namespace

void bind_encode(nb::module_& m) {
  breathe = [] {  // Ctrl-C during a long pass; signals reach the main thread only
    nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  };
  m.def("distinct_values", &distinct_values, "data"_a, "index"_a.none(), "start"_a.none(),
        "n_features"_a, "shift"_a, "factor"_a, "limit"_a);
  m.def("value_histogram", &value_histogram, "data"_a, "index"_a.none(), "start"_a.none(),
        "n_features"_a, "shift"_a, "factor"_a, "row_weight"_a, "top"_a, "skip_zeros"_a,
        "n_cells"_a);
  m.def("column_ranges", &column_ranges, "data"_a, "index"_a.none(), "start"_a.none(),
        "n_features"_a);
  m.def("encode_dense", &encode_dense, "data"_a, "n_features"_a, "shift"_a, "factor"_a,
        "thresholds"_a);
  m.def("encode_sparse", &encode_sparse, "data"_a, "index"_a, "start"_a, "n_features"_a, "shift"_a,
        "factor"_a, "thresholds"_a);
  m.def("compress", &compress, "codes"_a, "n_codes"_a);
}

}  // namespace widemargin
