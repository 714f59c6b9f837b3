// Bindings of the kernel machine's loops.
#include "bindings.hpp"

namespace widemargin {
namespace {

Finish finish_named(const std::string& name) {
  if (name == "rbf") return Finish::rbf;
  if (name == "poly") return Finish::polynomial;
  require(name == "sigmoid", "finish must be 'rbf', 'poly' or 'sigmoid'");
  return Finish::sigmoid;
}

void finish_block(const nb::ndarray<float, nb::ndim<2>, nb::device::cpu>& values,
                  const Array& row_norms, const Array& column_norms, const std::string& name,
                  float gamma, float coef0, int degree) {
  BlockArg b{};
  b.finish = finish_named(name);
  b.values = values.data();
  b.n_rows = std::int64_t(values.shape(0));
  b.n_columns = std::int64_t(values.shape(1));
  b.row_stride = values.stride(0);
  require(b.n_columns < 2 || values.stride(1) == 1, "values must be contiguous along each row");
  require(b.n_rows < 2 || b.row_stride >= b.n_columns, "rows of values overlap");
  b.row_norms = pointer<float>(row_norms, b.n_rows, "row_norms must be float32 (n_rows)");
  b.column_norms =
      pointer<float>(column_norms, b.n_columns, "column_norms must be float32 (n_columns)");
  b.gamma = gamma;
  b.coef0 = coef0;
  b.degree = degree;
  require(degree >= 0, "degree must not be negative");
  nb::gil_scoped_release release;
  kernel_loops().finish(b);
}

std::int64_t solve_block(const Array& q, const Array& diagonal, const Array& upper,
                         const Output& alpha, const Output& gradient, double tol,
                         std::int64_t max_steps) {
  WorkingSetArg w{};
  w.size = std::int64_t(alpha.size());
  require(w.size > 0 && w.size % 8 == 0, "pad the block to a multiple of 8");
  w.q = pointer<float>(q, w.size * w.size, "q must be float32 (size, size)");
  w.diagonal = pointer<double>(diagonal, w.size, "diagonal must be float64 (size)");
  w.upper = pointer<double>(upper, w.size, "upper must be float64 (size)");
  w.alpha = pointer<double>(alpha, w.size, "alpha must be float64 (size)");
  w.gradient = pointer<double>(gradient, w.size, "gradient must be float64 (size)");
  w.tol = tol;
  w.max_steps = max_steps;
  nb::gil_scoped_release release;
  return kernel_loops().solve_block(w);
}

// out[begin:end] += sum_k coef[k] pool[slots[k], begin:end]
void add_rows(const Array& pool, const Array& slots, const Array& coef, std::int64_t begin,
              std::int64_t end, const Output& out) {
  require(pool.ndim() == 2, "pool must be a matrix");
  const auto n_slots = std::int64_t(pool.shape(0)), width = std::int64_t(pool.shape(1));
  const auto n = std::int64_t(slots.size());
  const float* values = pointer<float>(pool, n_slots * width, "pool must be float32");
  const auto* at = pointer<std::int64_t>(slots, n, "slots must be int64");
  const double* c = pointer<double>(coef, n, "coef must be float64, one per slot");
  double* to = pointer<double>(out, width, "out must be float64, as wide as the pool");
  require(0 <= begin && begin <= end && end <= width, "columns out of range");
  std::vector<const float*> rows;
  for (std::int64_t k = 0; k < n; ++k) {
    require(at[k] >= 0 && at[k] < n_slots, "a slot is out of range");
    rows.push_back(values + at[k] * width);
  }
  nb::gil_scoped_release release;
  kernel_loops().add_rows(rows.data(), c, n, begin, end, to);
}

}  // namespace

void bind_kernel(nb::module_& m) {
  m.def("finish_block", &finish_block, "values"_a.noconvert(), "row_norms"_a, "column_norms"_a,
        "name"_a, "gamma"_a, "coef0"_a, "degree"_a);
  m.def("solve_block", &solve_block, "q"_a, "diagonal"_a, "upper"_a, "alpha"_a, "gradient"_a,
        "tol"_a, "max_steps"_a);
  m.def("add_rows", &add_rows, "pool"_a, "slots"_a, "coef"_a, "begin"_a, "end"_a, "out"_a);
}

}  // namespace widemargin
