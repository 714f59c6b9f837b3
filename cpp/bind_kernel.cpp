// Bindings of kernel values: from inner products, and of compressed rows with panels.
#include <limits>

#include "kernel/compressed.hpp"
#include "kernel_bindings.hpp"
#include "team.hpp"

namespace widemargin {
namespace {

// What makes kernel values of inner products.
class Finish {
 public:
  Finish(const std::string& name, double gamma, double coef0, int degree)
      : gamma_(gamma), coef0_(coef0), degree_(degree) {
    require(degree >= 0, "degree must not be negative");
    if (name == "rbf")
      kind_ = FinishKind::rbf;
    else if (name == "poly")
      kind_ = FinishKind::polynomial;
    else if (name == "sigmoid")
      kind_ = FinishKind::sigmoid;
    else
      require(name == "linear", "the kernel must be 'rbf', 'poly', 'sigmoid' or 'linear'");
  }

  template <class T>
  FinishArg<T> arg() const {
    return {kind_, T(gamma_), T(coef0_), degree_};
  }

  void apply(const Matrix& values, const Array& row_norms, const Array& column_norms) const {
    require_rows(values, "values must have contiguous rows that do not overlap");
    with_type(values.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const auto to = matrix_arg<T>(values);
      const T* by_row =
          pointer<T>(row_norms, to.n_rows, "row_norms: one per row, of the values' type");
      const T* by_column = pointer<T>(column_norms, to.n_columns,
                                      "column_norms: one per column, of the values' type");
      nb::gil_scoped_release release;
      loops_of<T>().finish(arg<T>(), by_row, by_column, to);
    });
  }

 private:
  FinishKind kind_ = FinishKind::none;
  double gamma_, coef0_;
  int degree_;
};

// Compressed rows, checked once for all slices of them.
class CompressedRows {
 public:
  CompressedRows(Array start, Array index, Array value, Array norms, std::int64_t n_features)
      : start_(start), index_(index), value_(value), norms_(norms), n_features_(n_features) {
    require(start.size() > 0, "start must not be empty");
    n_rows_ = std::int64_t(start.size()) - 1;
    require(n_features >= 0, "n_features must not be negative");
    with_type(value.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const auto rows = arg<T>();
      pointer<std::int64_t>(start, rows.n_rows + 1, "start must be int64");
      pointer<std::int32_t>(index, std::int64_t(index.size()), "index must be int32");
      pointer<T>(value, std::int64_t(index.size()), "value: one per index");
      pointer<T>(norms, rows.n_rows, "norms: one per row, of the values' type");
      nb::gil_scoped_release release;
      check_compressed(rows, std::int64_t(index.size()));
    });
  }

  // Rows begin to end of these.
  CompressedRows part(std::int64_t begin, std::int64_t end) const {
    require(0 <= begin && begin <= end && end <= n_rows_, "rows out of range");
    CompressedRows some = *this;
    some.first_ += begin;
    some.n_rows_ = end - begin;
    return some;
  }

  nb::dlpack::dtype dtype() const { return value_.dtype(); }
  std::int64_t n_rows() const { return n_rows_; }
  std::int64_t n_features() const { return n_features_; }

  template <class T>  // the type of the values
  CompressedArg<T> arg() const {
    return arg<T>(0, n_rows_);
  }

  template <class T>
  CompressedArg<T> arg(std::int64_t begin, std::int64_t end) const {
    return {static_cast<const std::int64_t*>(start_.data()) + first_ + begin,
            static_cast<const std::int32_t*>(index_.data()),
            static_cast<const T*>(value_.data()),
            static_cast<const T*>(norms_.data()) + first_ + begin,
            end - begin,
            n_features_};
  }

 private:
  Array start_, index_, value_, norms_;
  std::int64_t n_features_, first_ = 0, n_rows_ = 0;
};

const std::int32_t* place_pointer(const std::optional<Array>& place) {
  if (!place) return nullptr;
  return pointer<std::int32_t>(*place, std::int64_t(place->size()), "place must be int32");
}

// Rows in panels; see kernel/problem.hpp.
class Panels {
 public:
  Panels(Array values, const std::optional<Array>& place, Array norms)
      : values_(values), norms_(norms), place_(place) {
    require(values.ndim() == 3 && values.shape(2) == kPanel,
            "panels must be (n_panels, n_features, 64)");
    n_features_ = std::int64_t(values.shape(1));
    with_type(values.dtype(), [&](auto zero) {
      pointer<decltype(zero)>(norms, n_panels() * kPanel,
                              "norms: one per row of the panels, of their type");
    });
    const std::int32_t* places = place_pointer(place);
    for (std::int64_t j = 0; places && j < n_known(); ++j)
      require(places[j] < n_features_, "a place is out of range");
  }

  // out[slots[r]][c] = k(row r of the panels, row c of `rows`)
  void fill(const CompressedRows& rows, const Finish& finish, const Matrix& out,
            const std::optional<Array>& slots, Team* team) const {
    require_rows(out, "out must have contiguous rows that do not overlap");
    require(out.dtype() == values_.dtype(), "panels must have the type of out");
    require(std::int64_t(out.shape(1)) == rows.n_rows(), "out must have a column per row");
    require_alike(rows);
    const std::int64_t* slot = nullptr;
    const auto n = std::int64_t(slots ? slots->size() : out.shape(0));
    require(n <= n_panels() * kPanel, "out has more rows than the panels");
    if (slots) {
      slot = pointer<std::int64_t>(*slots, n, "slots must be int64");
      check_range(slot, n, std::int64_t(out.shape(0)), "a slot is out of range");
    }
    with_type(out.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const PanelsArg<T> panels = arg<T>();
      const FinishArg<T> how = finish.arg<T>();
      nb::gil_scoped_release release;
      run_parts(team, rows.n_rows(), kUnit, [&](std::int64_t begin, std::int64_t end) {
        MatrixArg<T> to = matrix_arg<T>(out);
        to.values += begin;
        to.n_rows = n;
        to.n_columns = end - begin;
        to.slot = slot;
        loops_of<T>().fill(panels, rows.arg<T>(begin, end), how, to);
      });
    });
  }

  // sums[c][i] += sum_r weights[c][r] k(row r of the panels, row i of `rows`)
  void add(const CompressedRows& rows, const Finish& finish, const Matrix& weights,
           const Matrix& sums, Team* team) const {
    require_rows(sums, "sums must have contiguous rows that do not overlap");
    require(sums.dtype() == nb::dtype<double>(), "sums must be float64");
    require(std::int64_t(sums.shape(1)) == rows.n_rows(), "sums must have a column per row");
    require(weights.shape(0) == sums.shape(0), "weights and sums must have as many rows");
    require_rows(weights, "weights must have contiguous rows");
    require(weights.dtype() == values_.dtype() &&
                std::int64_t(weights.shape(1)) == n_panels() * kPanel &&
                (weights.shape(0) < 2 || weights.stride(0) == n_panels() * kPanel),
            "weights: one per row of the panels, of their type");
    require_alike(rows);
    with_type(weights.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const WeightsArg<T> by_row{static_cast<const T*>(weights.data()),
                                 std::int64_t(weights.shape(0))};
      const PanelsArg<T> panels = arg<T>();
      const FinishArg<T> how = finish.arg<T>();
      auto* to = static_cast<double*>(sums.data());
      nb::gil_scoped_release release;
      run_parts(team, rows.n_rows(), kUnit, [&](std::int64_t begin, std::int64_t end) {
        loops_of<T>().add(panels, rows.arg<T>(begin, end), how, by_row, to + begin, sums.stride(0));
      });
    });
  }

 private:
  static constexpr std::int64_t kUnit = 256;  // rows that a thread takes at least
  std::int64_t n_panels() const { return std::int64_t(values_.shape(0)); }
  void require_alike(const CompressedRows& rows) const {
    require(rows.dtype() == values_.dtype(), "rows must have the type of the panels");
    require(rows.n_features() == n_known(), "rows and panels must have the same features");
  }
  template <class T>
  PanelsArg<T> arg() const {
    return {static_cast<const T*>(values_.data()), static_cast<const T*>(norms_.data()),
            place_pointer(place_), n_panels(), n_features_};
  }
  std::int64_t n_known() const {  // features that a row may have
    return place_ ? std::int64_t(place_->size()) : n_features_;
  }

  Array values_, norms_;
  std::optional<Array> place_;
  std::int64_t n_features_;
};

AnyDenseKernel dense_kernel(const Array& data, const Finish& finish) {
  require(data.ndim() == 2, "data must be a matrix");
  const auto n_rows = std::int64_t(data.shape(0)), n_features = std::int64_t(data.shape(1));
  return with_type(data.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* values = static_cast<const T*>(data.data());
    nb::gil_scoped_release release;
    return AnyDenseKernel(
        DenseKernel<T>{StripRows<T>(values, n_rows, n_features, loops_of<T>()), finish.arg<T>()});
  });
}

template <class T>
nb::tuple to_tuple(PackedRows<T>&& packed) {
  return nb::make_tuple(vector_to_numpy(std::move(packed.start)),
                        vector_to_numpy(std::move(packed.index)),
                        vector_to_numpy(std::move(packed.value)));
}

nb::tuple py_compress(const Array& rows, bool single) {
  require(rows.ndim() == 2, "rows must be a matrix");
  const auto n = std::int64_t(rows.shape(0)), d = std::int64_t(rows.shape(1));
  require(d <= std::numeric_limits<std::int32_t>::max(), "too many features");
  return with_type(rows.dtype(), [&](auto zero) {
    using From = decltype(zero);
    const From* values = pointer<From>(rows, n * d, "rows must be float32 or float64");
    const auto packed = [&](auto wanted) {
      PackedRows<decltype(wanted)> found;
      {
        nb::gil_scoped_release release;
        found = compress<decltype(wanted)>(values, n, d);
      }
      return to_tuple(std::move(found));
    };
    return single ? packed(0.0f) : packed(0.0);
  });
}

nb::tuple py_take_rows(const Array& start, const Array& index, const Array& value,
                       const Array& rows) {
  require(start.size() > 0, "start must not be empty");
  const auto n_stored = std::int64_t(index.size()), n = std::int64_t(rows.size());
  const auto* numbers = pointer<std::int64_t>(rows, n, "rows must be int64");
  return with_type(value.dtype(), [&](auto zero) {
    using T = decltype(zero);
    CompressedArg<T> from{};
    from.n_rows = std::int64_t(start.size()) - 1;
    from.start = pointer<std::int64_t>(start, from.n_rows + 1, "start must be int64");
    from.index = pointer<std::int32_t>(index, n_stored, "index must be int32");
    from.value = pointer<T>(value, n_stored, "value: one per index");
    PackedRows<T> packed;
    {
      nb::gil_scoped_release release;
      packed = take_rows(from, n_stored, numbers, n);
    }
    return to_tuple(std::move(packed));
  });
}

nb::object py_make_panels(const CompressedRows& rows, const std::optional<Array>& place,
                          std::int64_t n_features) {
  const std::int32_t* places = place_pointer(place);
  require(n_features >= 0, "n_features must not be negative");
  require(rows.n_features() == (place ? std::int64_t(place->size()) : n_features),
          "rows and panels must have the same features");
  return with_type(rows.dtype(), [&](auto zero) -> nb::object {
    using T = decltype(zero);
    std::vector<T> panels;
    {
      nb::gil_scoped_release release;
      panels = make_panels(rows.arg<T>(), places, n_features);
    }
    const auto n_panels = std::size_t((rows.n_rows() + kPanel - 1) / kPanel);
    return nb::cast(
        to_numpy(std::move(panels), {n_panels, std::size_t(n_features), std::size_t(kPanel)}));
  });
}

}  // namespace

void bind_kernel(nb::module_& m) {
  m.attr("PANEL") = kPanel;
  nb::class_<Finish>(m, "Finish",
                     "What makes kernel values of inner products: 'rbf', 'poly', 'sigmoid', or "
                     "'linear', which leaves them.")
      .def(nb::init<const std::string&, double, double, int>(), "name"_a, "gamma"_a, "coef0"_a,
           "degree"_a)
      .def("apply", &Finish::apply, "values"_a.noconvert(), "row_norms"_a, "column_norms"_a,
           "Inner products to kernel values, in place; the norms are squared.");
  nb::class_<CompressedRows>(m, "CompressedRows",
                             "Rows of which only the non-zero values are kept, checked.")
      .def(nb::init<Array, Array, Array, Array, std::int64_t>(), "start"_a, "index"_a, "value"_a,
           "norms"_a, "n_features"_a)
      .def("part", &CompressedRows::part, "begin"_a, "end"_a, "Rows begin to end of these.");
  nb::class_<Panels>(m, "Panels",
                     "Rows written out, 64 at a time, for products with compressed ones.")
      .def(nb::init<Array, const std::optional<Array>&, Array>(), "values"_a, "place"_a.none(),
           "norms"_a)
      .def("fill", &Panels::fill, "rows"_a, "finish"_a, "out"_a.noconvert(), "slots"_a.none(),
           "team"_a.none(),
           "Write the kernel values of every row of the panels (down) and of rows (across); "
           "slots are the rows of out for those of the panels.")
      .def("add", &Panels::add, "rows"_a, "finish"_a, "weights"_a.noconvert(), "sums"_a.noconvert(),
           "team"_a.none(),
           "Add weighted sums of the kernel values of rows (across) with those of the panels.");
  nb::class_<Team>(m, "Team", "Threads that wait for work, the caller's included.")
      .def(nb::init<int>(), "n_threads"_a)
      .def_prop_ro("n_threads", &Team::n_threads, "As many as the system has given.");
  nb::class_<AnyDenseKernel>(m, "DenseKernel", "Kernel values among dense rows, for KeptRows.")
      .def(
          "__init__",
          [](AnyDenseKernel* self, const Array& data, const Finish& finish) {
            new (self) AnyDenseKernel(dense_kernel(data, finish));
          },
          "data"_a, "finish"_a);
  m.def("compress_rows", &py_compress, "rows"_a, "single"_a,
        "Dense rows as a compressed matrix in single or double precision: start, index, value.");
  m.def("take_rows", &py_take_rows, "start"_a, "index"_a, "value"_a, "rows"_a,
        "Some rows of a compressed matrix: their start, index and value.");
  m.def("make_panels", &py_make_panels, "rows"_a, "place"_a.none(), "n_features"_a,
        "The values of Panels, of shape (n_panels, n_features, 64).");
}

}  // namespace widemargin
