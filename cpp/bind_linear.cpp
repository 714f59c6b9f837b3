// Bindings of coordinate descent on the weights of a linear kernel.
#include <limits>

#include "kernel/compressed.hpp"
#include "kernel_bindings.hpp"

namespace widemargin {
namespace {

// Dense or compressed rows; see LinearArg.
class LinearRows {
 public:
  LinearRows(const std::optional<Array>& start, const std::optional<Array>& index, Array value,
             std::int64_t n_features)
      : start_(start), index_(index), value_(value), n_features_(n_features) {
    require(n_features >= 0, "n_features must not be negative");
    require(start.has_value() == index.has_value(), "start and index come together");
    is_double(value.dtype());
    if (!start) {
      require(n_features > 0 && value.ndim() == 2 && std::int64_t(value.shape(1)) == n_features,
              "value must be (n_rows, n_features)");
      n_rows_ = std::int64_t(value.shape(0));
      return;
    }
    require(start->size() > 0, "start must not be empty");
    n_rows_ = std::int64_t(start->size()) - 1;
    const auto n_stored = std::int64_t(index->size());
    pointer<std::int64_t>(*start, n_rows_ + 1, "start must be int64");
    pointer<std::int32_t>(*index, n_stored, "index must be int32");
    with_type(value.dtype(), [&](auto zero) {
      using T = decltype(zero);
      CompressedArg<T> rows{};
      rows.start = static_cast<const std::int64_t*>(start->data());
      rows.index = static_cast<const std::int32_t*>(index->data());
      rows.value = pointer<T>(value, n_stored, "value: one per index");
      rows.n_rows = n_rows_;
      rows.n_features = n_features;
      nb::gil_scoped_release release;
      check_compressed(rows, n_stored);
    });
  }

  template <class T>
  void fill(LinearArg<T>& a) const {
    a.start = start_ ? static_cast<const std::int64_t*>(start_->data()) : nullptr;
    a.index = index_ ? static_cast<const std::int32_t*>(index_->data()) : nullptr;
    a.value = static_cast<const T*>(value_.data());
    a.n_features = n_features_;
  }
  std::int64_t n_rows() const { return n_rows_; }
  std::int64_t n_features() const { return n_features_; }
  nb::dlpack::dtype dtype() const { return value_.dtype(); }

 private:
  std::optional<Array> start_, index_;
  Array value_;
  std::int64_t n_features_, n_rows_ = 0;
};

// The variables of one problem on such rows.
class LinearVariables {
 public:
  LinearVariables(const LinearRows& rows, double constant, Array row, Array terms, Output alpha,
                  Output weights, Output order)
      : rows_(rows),
        constant_(constant),
        n_(std::int64_t(row.size())),
        row_(row),
        terms_(terms),
        alpha_(alpha),
        weights_(weights),
        order_(order) {
    const auto* number = pointer<std::int64_t>(row, n_, "row must be int64");
    for (std::int64_t i = 0; i < n_; ++i)
      require(0 <= number[i] && number[i] < rows.n_rows(), "a row is out of range");
    pointer<double>(terms, 5 * n_, "terms must be (5, n) of float64");
    pointer<double>(alpha, n_, "alpha must be float64, one per row");
    pointer<double>(weights, rows.n_features() + 1, "weights: one per feature, and one more");
    pointer<std::int64_t>(order, n_, "order must be int64, one per row");
    const double* diagonal = static_cast<const double*>(terms_.data()) + 4 * n_;
    for (std::int64_t i = 0; i < n_; ++i) require(diagonal[i] > 0, "the diagonal must be positive");
  }

  nb::tuple sweep(std::int64_t n_active, double low, double high, std::uint64_t seed) {
    require(0 <= n_active && n_active <= n_, "n_active is out of range");
    require(seed != 0, "seed must not be zero");
    const auto* order = static_cast<const std::int64_t*>(order_.data());
    for (std::int64_t i = 0; i < n_active; ++i)
      require(0 <= order[i] && order[i] < n_, "order must hold numbers of variables");
    LinearState state{n_active, low, high, seed};
    with_type(rows_.dtype(), [&](auto zero) {
      using T = decltype(zero);
      LinearArg<T> a{};
      rows_.fill(a);
      a.constant = constant_;
      a.row = static_cast<const std::int64_t*>(row_.data());
      const double* terms = static_cast<const double*>(terms_.data());
      a.sign = terms, a.linear = terms + n_, a.upper = terms + 2 * n_;
      a.ridge = terms + 3 * n_, a.diagonal = terms + 4 * n_;
      a.alpha = static_cast<double*>(alpha_.data());
      a.weights = static_cast<double*>(weights_.data());
      a.order = static_cast<std::int64_t*>(order_.data());
      nb::gil_scoped_release release;
      state = loops_of<T>().sweep_linear(a, state);
    });
    return nb::make_tuple(state.n_active, state.low, state.high, state.seed);
  }

 private:
  LinearRows rows_;
  double constant_;
  std::int64_t n_;
  Array row_, terms_;
  Output alpha_, weights_, order_;
};

}  // namespace

void bind_linear(nb::module_& m) {
  nb::class_<LinearRows>(m, "LinearRows", "Dense rows, or compressed ones, checked.")
      .def(
          nb::init<const std::optional<Array>&, const std::optional<Array>&, Array, std::int64_t>(),
          "start"_a.none(), "index"_a.none(), "value"_a, "n_features"_a);
  nb::class_<LinearVariables>(m, "LinearVariables",
                              "The variables of a problem with a linear kernel, and its weights.")
      .def(nb::init<const LinearRows&, double, Array, Array, Output, Output, Output>(), "rows"_a,
           "constant"_a, "row"_a, "terms"_a, "alpha"_a.noconvert(), "weights"_a.noconvert(),
           "order"_a.noconvert())
      .def("sweep", &LinearVariables::sweep, "n_active"_a, "low"_a, "high"_a, "seed"_a,
           "Visit the first n_active variables of the order once; those at a bound with a gradient "
           "beyond low or high leave it. Returns n_active, the extreme projected gradients and the "
           "next seed.");
}

}  // namespace widemargin
