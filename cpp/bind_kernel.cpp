// Bindings of the kernel machine's loops, and the moves of cached rows that need no vectors.
#include <cstring>

#include "bindings.hpp"

namespace widemargin {
namespace {

template <class T>
const KernelLoopsOf<T>& loops() {
  if constexpr (sizeof(T) == sizeof(float))
    return kernel_loops().single;
  else
    return kernel_loops().twice;
}

bool is_double(nb::dlpack::dtype type) {
  require(type == nb::dtype<float>() || type == nb::dtype<double>(),
          "kernel values must be float32 or float64");
  return type == nb::dtype<double>();
}

// f(T) with the type of the kernel values.
template <class F>
auto with_type(nb::dlpack::dtype type, F&& f) {
  return is_double(type) ? f(double()) : f(float());
}

using Matrix = nb::ndarray<nb::ndim<2>, nb::device::cpu>;  // rows may be apart

void require_rows(const Matrix& m, const char* message) {
  const bool contiguous = m.shape(1) < 2 || m.stride(1) == 1;
  require(contiguous && (m.shape(0) < 2 || m.stride(0) >= std::int64_t(m.shape(1))), message);
}

Finish finish_named(const std::string& name) {
  if (name == "rbf") return Finish::rbf;
  if (name == "poly") return Finish::polynomial;
  require(name == "sigmoid", "finish must be 'rbf', 'poly' or 'sigmoid'");
  return Finish::sigmoid;
}

// Inner products to kernel values, in place.
void finish_block(const Matrix& values, const Array& row_norms, const Array& column_norms,
                  const std::string& name, double gamma, double coef0, int degree) {
  require_rows(values, "values must have contiguous rows that do not overlap");
  require(degree >= 0, "degree must not be negative");
  with_type(values.dtype(), [&](auto zero) {
    using T = decltype(zero);
    BlockArg<T> b{};
    b.finish = finish_named(name);
    b.values = static_cast<T*>(values.data());
    b.n_rows = std::int64_t(values.shape(0));
    b.n_columns = std::int64_t(values.shape(1));
    b.row_stride = values.stride(0);
    b.row_norms = pointer<T>(row_norms, b.n_rows, "row_norms: one per row, of the values' type");
    b.column_norms =
        pointer<T>(column_norms, b.n_columns, "column_norms: one per column, of the values' type");
    b.gamma = T(gamma);
    b.coef0 = T(coef0);
    b.degree = degree;
    nb::gil_scoped_release release;
    loops<T>().finish(b);
  });
}

// out[r, c] = <dense row r, compressed row c>; see SparseDotsArg for the panels.
void sparse_dots(const Array& start, const Array& index, const Array& value,
                 const std::optional<Array>& place, const Array& panels, const Matrix& out) {
  require_rows(out, "out must have contiguous rows that do not overlap");
  require(panels.ndim() == 3 && panels.shape(2) == kPanel, "panels must be (panels, features, 64)");
  require(start.size() > 0 && out.shape(1) == start.size() - 1, "out needs a column per row");
  require(out.shape(0) <= panels.shape(0) * kPanel, "out has more rows than the panels");
  with_type(out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    SparseDotsArg<T> a{};
    a.n_rows = std::int64_t(out.shape(0));
    a.n_columns = std::int64_t(out.shape(1));
    a.row_stride = out.stride(0);
    a.n_features = std::int64_t(panels.shape(1));
    a.start = pointer<std::int64_t>(start, a.n_columns + 1, "start must be int64");
    const auto n_stored = std::int64_t(index.size());
    a.index = pointer<std::int32_t>(index, n_stored, "index must be int32");
    a.value = pointer<T>(value, n_stored, "value must have the type of out, one per index");
    a.panels = pointer<T>(panels, std::int64_t(panels.size()), "panels must have the type of out");
    a.out = static_cast<T*>(out.data());
    const std::int64_t begin = a.start[0], end = a.start[a.n_columns];
    require(0 <= begin && begin <= end && end <= n_stored, "start is out of range");
    for (std::int64_t i = 0; i < a.n_columns; ++i)
      require(a.start[i] <= a.start[i + 1], "start must not descend");
    std::int64_t n_known = a.n_features;
    if (place) {
      n_known = std::int64_t(place->size());
      a.place = pointer<std::int32_t>(*place, n_known, "place must be int32");
    }
    nb::gil_scoped_release release;
    std::int32_t low = 0, high = -1;
    for (std::int64_t p = begin; p < end; ++p) {
      low = a.index[p] < low ? a.index[p] : low;
      high = a.index[p] > high ? a.index[p] : high;
    }
    require(low >= 0 && high < n_known, "a feature is out of range");
    if (a.place)
      for (std::int64_t p = begin; p < end; ++p)
        require(a.place[a.index[p]] < a.n_features, "a place is out of range");
    loops<T>().sparse_dots(a);
  });
}

std::int64_t solve_block(const Array& q, const Array& diagonal, const Array& upper,
                         const Output& alpha, const Output& gradient, double tol,
                         std::int64_t max_steps) {
  return with_type(q.dtype(), [&](auto zero) {
    using T = decltype(zero);
    WorkingSetArg<T> w{};
    w.size = std::int64_t(alpha.size());
    require(w.size > 0 && w.size % 8 == 0, "pad the block to a multiple of 8");
    w.q = pointer<T>(q, w.size * w.size, "q must be (size, size)");
    w.diagonal = pointer<double>(diagonal, w.size, "diagonal must be float64 (size)");
    w.upper = pointer<double>(upper, w.size, "upper must be float64 (size)");
    w.alpha = pointer<double>(alpha, w.size, "alpha must be float64 (size)");
    w.gradient = pointer<double>(gradient, w.size, "gradient must be float64 (size)");
    w.tol = tol;
    w.max_steps = max_steps;
    nb::gil_scoped_release release;
    return loops<T>().solve_block(w);
  });
}

// The rows of a pool that the slots name.
template <class T>
std::vector<const T*> rows_at(const Array& pool, const Array& slots) {
  require(pool.ndim() == 2, "pool must be a matrix");
  const auto n_slots = std::int64_t(pool.shape(0)), width = std::int64_t(pool.shape(1));
  const T* values = pointer<T>(pool, n_slots * width, "pool must be float32 or float64");
  const auto n = std::int64_t(slots.size());
  const auto* at = pointer<std::int64_t>(slots, n, "slots must be int64");
  std::vector<const T*> rows;
  rows.reserve(std::size_t(n));
  for (std::int64_t k = 0; k < n; ++k) {
    require(at[k] >= 0 && at[k] < n_slots, "a slot is out of range");
    rows.push_back(values + at[k] * width);
  }
  return rows;
}

// out[begin:end] += sum_k coef[k] pool[slots[k], begin:end]
void add_rows(const Array& pool, const Array& slots, const Array& coef, std::int64_t begin,
              std::int64_t end, const Output& out) {
  with_type(pool.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto rows = rows_at<T>(pool, slots);
    const auto n = std::int64_t(rows.size());
    const double* c = pointer<double>(coef, n, "coef must be float64, one per slot");
    double* to = pointer<double>(out, std::int64_t(out.size()), "out must be float64");
    require(0 <= begin && begin <= end && end <= std::int64_t(out.size()) &&
                end <= std::int64_t(pool.shape(1)),
            "columns out of range");
    nb::gil_scoped_release release;
    loops<T>().add_rows(rows.data(), c, n, begin, end, to);
  });
}

// out[k, j] = row_sign[k] column_sign[j] pool[slots[k], columns[j]]
void gather(const Array& pool, const Array& slots, const Array& columns, const Array& row_sign,
            const Array& column_sign, const Matrix& out) {
  require_rows(out, "out must have contiguous rows that do not overlap");
  require(out.dtype() == pool.dtype(), "out must have the type of the pool");
  with_type(pool.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto rows = rows_at<T>(pool, slots);
    const auto n_rows = std::int64_t(rows.size()), n = std::int64_t(columns.size());
    const auto* at = pointer<std::int64_t>(columns, n, "columns must be int64");
    for (std::int64_t j = 0; j < n; ++j)
      require(at[j] >= 0 && at[j] < std::int64_t(pool.shape(1)), "a column is out of range");
    const double* by_row = pointer<double>(row_sign, n_rows, "row_sign: float64, one per slot");
    const double* by_column = pointer<double>(column_sign, n, "column_sign: one per column");
    require(std::int64_t(out.shape(0)) == n_rows && std::int64_t(out.shape(1)) == n,
            "out must have a row per slot and a column per column");
    T* to = static_cast<T*>(out.data());
    const std::int64_t stride = out.stride(0);
    nb::gil_scoped_release release;
    for (std::int64_t k = 0; k < n_rows; ++k, to += stride)
      for (std::int64_t j = 0; j < n; ++j) to[j] = T(by_row[k] * by_column[j]) * rows[k][at[j]];
  });
}

// Rows of a flat buffer, moved in place: row k of the new stride is row slots[k] of the old one,
// reduced to some columns.  Both lists ascend, so nothing is overwritten before it is read.
void compact_rows(const Output& buffer, const Array& slots, const Array& columns,
                  std::int64_t old_stride, std::int64_t new_stride) {
  with_type(buffer.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto size = std::int64_t(buffer.size());
    T* values = pointer<T>(buffer, size, "buffer must be float32 or float64");
    const auto n = std::int64_t(slots.size()), width = std::int64_t(columns.size());
    const auto* row = pointer<std::int64_t>(slots, n, "slots must be int64");
    const auto* column = pointer<std::int64_t>(columns, width, "columns must be int64");
    require(0 < new_stride && new_stride <= old_stride && width <= new_stride,
            "rows can only become shorter");
    for (std::int64_t k = 0; k < n; ++k)
      require(row[k] >= 0 && row[k] < size / old_stride && (k == 0 || row[k] > row[k - 1]),
              "slots must ascend within the buffer");
    for (std::int64_t j = 0; j < width; ++j)
      require(column[j] >= 0 && column[j] < old_stride && (j == 0 || column[j] > column[j - 1]),
              "columns must ascend within a row");
    nb::gil_scoped_release release;
    for (std::int64_t k = 0; k < n; ++k) {
      const T* from = values + row[k] * old_stride;
      T* to = values + k * new_stride;
      for (std::int64_t j = 0; j < width; ++j) to[j] = from[column[j]];
    }
  });
}

// The first rows of a flat buffer, moved in place to a larger stride.
void widen_rows(const Output& buffer, std::int64_t n_rows, std::int64_t old_stride,
                std::int64_t new_stride) {
  with_type(buffer.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto size = std::int64_t(buffer.size());
    T* values = pointer<T>(buffer, size, "buffer must be float32 or float64");
    require(0 < old_stride && old_stride <= new_stride, "rows can only become longer");
    require(n_rows >= 0 && n_rows <= size / new_stride, "the buffer is too small");
    nb::gil_scoped_release release;
    for (std::int64_t k = n_rows; k-- > 0;)
      std::memmove(values + k * new_stride, values + k * old_stride,
                   std::size_t(old_stride) * sizeof(T));
  });
}

}  // namespace

void bind_kernel(nb::module_& m) {
  m.def("finish_block", &finish_block, "values"_a.noconvert(), "row_norms"_a, "column_norms"_a,
        "name"_a, "gamma"_a, "coef0"_a, "degree"_a);
  m.attr("PANEL") = kPanel;
  m.def("sparse_dots", &sparse_dots, "start"_a, "index"_a, "value"_a, "place"_a.none(), "panels"_a,
        "out"_a.noconvert());
  m.def("solve_block", &solve_block, "q"_a, "diagonal"_a, "upper"_a, "alpha"_a.noconvert(),
        "gradient"_a.noconvert(), "tol"_a, "max_steps"_a);
  m.def("add_rows", &add_rows, "pool"_a, "slots"_a, "coef"_a, "begin"_a, "end"_a,
        "out"_a.noconvert());
  m.def("gather", &gather, "pool"_a, "slots"_a, "columns"_a, "row_sign"_a, "column_sign"_a,
        "out"_a.noconvert());
  m.def("compact_rows", &compact_rows, "buffer"_a.noconvert(), "slots"_a, "columns"_a,
        "old_stride"_a, "new_stride"_a);
  m.def("widen_rows", &widen_rows, "buffer"_a.noconvert(), "n_rows"_a, "old_stride"_a,
        "new_stride"_a);
}

}  // namespace widemargin
