// Bindings of the encoder: raw values of any dtype and layout to codes.
#include <type_traits>

#include "additive/encode.hpp"
#include "bindings.hpp"

namespace widemargin {
namespace {

// f(T) with the type of the array's numbers.
template <class F>
auto with_number(nb::dlpack::dtype t, F&& f) {
  if (t == nb::dtype<float>()) return f(float{});
  if (t == nb::dtype<double>()) return f(double{});
  if (t == nb::dtype<std::uint8_t>()) return f(std::uint8_t{});
  if (t == nb::dtype<std::int8_t>()) return f(std::int8_t{});
  if (t == nb::dtype<std::uint16_t>()) return f(std::uint16_t{});
  if (t == nb::dtype<std::int16_t>()) return f(std::int16_t{});
  if (t == nb::dtype<std::int32_t>()) return f(std::int32_t{});
  if (t == nb::dtype<std::uint32_t>()) return f(std::uint32_t{});
  if (t == nb::dtype<std::uint64_t>()) return f(std::uint64_t{});
  require(t == nb::dtype<std::int64_t>(), "values must be real numbers or integers");
  return f(std::int64_t{});
}

// f(Index) with the type of the array's indices.
template <class F>
auto with_index(nb::dlpack::dtype t, F&& f) {
  if (t == nb::dtype<std::uint16_t>()) return f(std::uint16_t{});
  if (t == nb::dtype<std::int32_t>()) return f(std::int32_t{});
  require(t == nb::dtype<std::int64_t>(), "index must be uint16, int32 or int64");
  return f(std::int64_t{});
}

template <class T>
nb::ndarray<nb::numpy, T> fresh_to_numpy(Fresh<T>&& fresh, const std::vector<std::size_t>& shape) {
  T* const data = fresh.data.release();
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nb::ndarray<nb::numpy, T>(data, shape.size(), shape.data(), owner);
}

// Raw values, checked once: dense with any strides, or the three arrays of CSR.
class Values {
 public:
  Values(Strided data, const std::optional<Array>& index, const std::optional<Array>& start,
         std::int64_t n_features)
      : data_(data), index_(index), start_(start), n_features_(n_features) {
    with_number(data.dtype(), [](auto) {});
    require(index.has_value() == start.has_value(), "index and start go together");
    if (!index) {
      require(data.ndim() == 2 && std::int64_t(data.shape(1)) == n_features,
              "dense values must be (n_rows, n_features)");
      return;
    }
    require(data.ndim() == 1 && index->size() == data.size() &&
                (data.size() < 2 || data.stride(0) == 1),
            "sparse values need index and start of matching sizes");
    if (start->dtype() == nb::dtype<std::int32_t>())
      take_starts<std::int32_t>();
    else
      take_starts<std::int64_t>();
    with_index(index->dtype(), [&](auto zero) { check_index<decltype(zero)>(); });
  }

  std::int64_t n_rows() const {
    return index_ ? std::int64_t(start_->size()) - 1 : std::int64_t(data_.shape(0));
  }
  std::int64_t n_features() const { return n_features_; }
  bool is_sparse() const { return index_.has_value(); }

  // f(values) with the typed view.
  template <class F>
  auto visit(F&& f) const {
    if (!index_) return visit_dense(f);
    return visit_sparse(f);
  }
  template <class F>
  auto visit_dense(F&& f) const {
    return with_number(data_.dtype(), [&](auto zero) {
      using V = decltype(zero);
      return f(DenseValues<V>{static_cast<const V*>(data_.data()), n_rows(), n_features_,
                              data_.stride(0), data_.stride(1)});
    });
  }
  template <class F>
  auto visit_sparse(F&& f) const {
    return with_number(data_.dtype(), [&](auto zero) {
      using V = decltype(zero);
      return with_index(index_->dtype(),
                        [&](auto place) { return f(sparse<V, decltype(place)>()); });
    });
  }

 private:
  // There is one for many values, so a copy costs little.
  template <class Start>
  void take_starts() {
    const auto n = n_rows();
    const Start* from = pointer<Start>(*start_, n + 1, "start must be int32 or int64");
    starts_.assign(from, from + n + 1);
    require(n >= 0 && starts_[0] == 0 && starts_.back() <= std::int64_t(data_.size()),
            "start does not fit the values");
    require(std::is_sorted(starts_.begin(), starts_.end()), "start descends");
  }
  template <class Index>
  void check_index() const {
    const auto* at = static_cast<const Index*>(index_->data());
    nb::gil_scoped_release release;
    std::make_unsigned_t<Index> top = 0;  // a negative number is a very large one
    for (std::int64_t k = 0; k < starts_.back(); ++k)
      top = std::max(top, std::make_unsigned_t<Index>(at[k]));
    require(starts_.back() == 0 || std::uint64_t(top) < std::uint64_t(n_features_),
            "an index is out of range");
  }
  template <class V, class Index>
  SparseValues<V, Index> sparse() const {
    return {static_cast<const V*>(data_.data()), static_cast<const Index*>(index_->data()),
            starts_.data(), n_rows(), n_features_};
  }

  Strided data_;
  std::optional<Array> index_, start_;
  std::int64_t n_features_;
  std::vector<std::int64_t> starts_;
};

// t = (value - shift) * factor, with one shift and factor or one per feature.
class ValueScale {
 public:
  ValueScale(Array shift, Array factor) : shift_(shift), factor_(factor) {
    const auto n = std::int64_t(shift.size());
    arg_ = {pointer<double>(shift, n, "shift must be float64"),
            pointer<double>(factor, n, "factor must match shift"), n != 1};
  }
  const Scale& arg(const Values& values) const {
    require(!arg_.per_feature || std::int64_t(shift_.size()) == values.n_features(),
            "shift must have 1 or n_features entries");
    return arg_;
  }

 private:
  Array shift_, factor_;
  Scale arg_{};
};

nb::ndarray<nb::numpy, double> distinct_values(const Values& values, const ValueScale& scale,
                                               std::size_t limit) {
  const Scale& s = scale.arg(values);
  return vector_to_numpy(values.visit([&](auto view) {
    using V = typename decltype(view)::Value;
    nb::gil_scoped_release release;
    if constexpr (std::is_integral_v<V> && sizeof(V) <= 2)
      if (!s.per_feature) return distinct_small<V>(view, s);
    return distinct(view, s, limit);
  }));
}

nb::ndarray<nb::numpy, double> value_histogram(const Values& values, const ValueScale& scale,
                                               const Array& row_weight, double top, bool skip_zeros,
                                               std::int64_t n_cells) {
  const Scale& s = scale.arg(values);
  require(top > 0 && n_cells > 0, "top and n_cells must be positive");
  require(n_cells <= (1 << 30), "n_cells must be at most 2^30");
  const double* weight = pointer<double>(row_weight, values.n_rows(), "one weight per row");
  std::vector<double> out(std::size_t(2 * n_cells));
  values.visit([&](auto view) {
    nb::gil_scoped_release release;
    const auto cells = histogram(view, s, weight, top, skip_zeros, n_cells);
    for (std::size_t k = 0; k < cells.size(); ++k) {
      out[k] = cells[k].weight;
      out[k + cells.size()] = cells[k].total;
    }
  });
  return to_numpy(std::move(out), {2, std::size_t(n_cells)});
}

nb::ndarray<nb::numpy, double> py_column_ranges(const Values& values) {
  auto out = values.visit([&](auto view) {
    nb::gil_scoped_release release;
    return column_ranges(view);
  });
  return to_numpy(std::move(out), {3, std::size_t(values.n_features())});
}

nb::object py_encode_dense(const Values& values, const ValueScale& scale, const Array& thresholds) {
  require(!values.is_sparse(), "these values are sparse");
  const Scale& s = scale.arg(values);
  const auto n = std::int64_t(thresholds.size());
  const double* t = pointer<double>(thresholds, n, "thresholds must be float64");
  const auto run = [&](auto zero) {
    auto codes = values.visit_dense([&](auto view) {
      nb::gil_scoped_release release;
      return encode_dense<decltype(zero)>(view, Encoder<typename decltype(view)::Value>(s, t, n));
    });
    const std::vector<std::size_t> shape{std::size_t(values.n_rows()),
                                         std::size_t(values.n_features())};
    return nb::cast(fresh_to_numpy(std::move(codes), shape));
  };
  if (n <= 0xff) return run(std::uint8_t{});
  if (n <= 0xffff) return run(std::uint16_t{});
  return run(std::uint32_t{});
}

// (start, index, codes) without the zeros, in the smallest types that hold them.
template <class EachRow>
nb::object compressed(std::int64_t n_rows, std::int64_t n_features, std::int64_t n_codes,
                      std::int64_t most, EachRow&& each_row) {
  require(n_features <= std::int64_t(0xffffffff), "more than 2^32 features");
  using u8 = std::uint8_t;
  using u16 = std::uint16_t;
  using u32 = std::uint32_t;
  const auto run = [&](auto index, auto code) -> nb::object {
    using Index = decltype(index);
    using Code = decltype(code);
    auto out = [&] {
      nb::gil_scoped_release release;
      return compress_codes<Index, Code>(n_rows, most, each_row);
    }();
    const auto array = [](auto&& fresh) {
      const std::vector<std::size_t> shape{fresh.size};
      return fresh_to_numpy(std::move(fresh), shape);
    };
    return nb::make_tuple(array(std::move(out.start)), array(std::move(out.index)),
                          array(std::move(out.codes)));
  };
  if (n_codes <= 0x100 && n_features <= 0x10000) return run(u16{}, u8{});
  if (n_codes <= 0x100) return run(u32{}, u8{});
  if (n_codes <= 0x10000) return run(u32{}, u16{});
  return run(u32{}, u32{});
}

nb::object encode_sparse(const Values& values, const ValueScale& scale, const Array& thresholds) {
  require(values.is_sparse(), "these values are dense");
  const Scale& s = scale.arg(values);
  const auto n = std::int64_t(thresholds.size());
  const double* t = pointer<double>(thresholds, n, "thresholds must be float64");
  return values.visit_sparse([&](auto view) -> nb::object {
    const Encoder<typename decltype(view)::Value> encode(s, t, n);
    const std::int64_t most = view.start[view.n_rows];
    std::uint32_t codes[kTogether];
    std::int64_t end = 0;  // of the values that have codes by now: runs go on from row to row
    return compressed(view.n_rows, view.n_features, n + 1, most, [&](std::int64_t i, auto&& emit) {
      const auto* const v = view.data;
      const auto* const feature = view.index;
      const std::int64_t row_end = view.start[i + 1];
      for (std::int64_t k = view.start[i]; k < row_end;) {
        if (k == end) {
          const int some = run_length(most - k);
          encode.run(
              some, [=](int l) { return v[k + l]; }, [=](int l) { return feature[k + l]; }, codes);
          end += some;
        }
        const std::uint32_t* code = codes + k % kTogether;
        for (const auto last = std::min(row_end, end); k < last; ++k) emit(feature[k], *code++);
      }
    });
  });
}

nb::object compress(const Array& codes, std::int64_t n_codes) {
  require(codes.ndim() == 2, "codes must be (n_rows, n_features)");
  const auto n = std::int64_t(codes.shape(0)), d = std::int64_t(codes.shape(1));
  const auto run = [&](auto zero) {
    const auto* p = pointer<decltype(zero)>(codes, n * d, "codes must be uint8/16/32");
    const auto most = [&] {
      nb::gil_scoped_release release;
      return n * d - std::count(p, p + n * d, zero);
    }();
    return compressed(n, d, n_codes, most, [&](std::int64_t i, auto&& emit) {
      for (std::int64_t j = 0; j < d; ++j) emit(j, p[i * d + j]);
    });
  };
  if (codes.dtype() == nb::dtype<std::uint8_t>()) return run(std::uint8_t{});
  if (codes.dtype() == nb::dtype<std::uint16_t>()) return run(std::uint16_t{});
  return run(std::uint32_t{});
}

}  // namespace

void bind_encode(nb::module_& m) {
  check_interrupt = [] {  // Ctrl-C during a long pass; signals reach the main thread only
    nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  };
  nb::class_<Values>(m, "Values", "Raw values, checked: dense, or CSR with index and start.")
      .def(nb::init<Strided, const std::optional<Array>&, const std::optional<Array>&,
                    std::int64_t>(),
           "data"_a, "index"_a.none(), "start"_a.none(), "n_features"_a);
  nb::class_<ValueScale>(m, "Scale", "t = (value - shift) * factor, one for all or per feature.")
      .def(nb::init<Array, Array>(), "shift"_a, "factor"_a);
  m.def("distinct_values", &distinct_values, "values"_a, "scale"_a, "limit"_a,
        "The distinct scaled values in order; of many, more than limit.");
  m.def("value_histogram", &value_histogram, "values"_a, "scale"_a, "row_weight"_a, "top"_a,
        "skip_zeros"_a, "n_cells"_a,
        "Weight and sum of the scaled values in cells that are even in sqrt(t / top).");
  m.def("column_ranges", &py_column_ranges, "values"_a,
        "Smallest and largest stored value of each column, and how many there are.");
  m.def("encode_dense", &py_encode_dense, "values"_a, "scale"_a, "thresholds"_a,
        "Codes of dense values.");
  m.def("encode_sparse", &encode_sparse, "values"_a, "scale"_a, "thresholds"_a,
        "Codes of sparse values, without the zeros: start, index and codes.");
  m.def("compress", &compress, "codes"_a, "n_codes"_a,
        "Dense codes whose zeros are many, as start, index and codes.");
}

}  // namespace widemargin
