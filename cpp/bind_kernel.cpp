// Bindings of the kernel machine's loops, and the moves of cached rows that need no vectors.
#include <algorithm>
#include <cmath>
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

template <class T>
FinishArg<T> finish_named(const std::string& name, double gamma, double coef0, int degree) {
  require(degree >= 0, "degree must not be negative");
  Finish kind = Finish::none;
  if (name == "rbf")
    kind = Finish::rbf;
  else if (name == "poly")
    kind = Finish::polynomial;
  else if (name == "sigmoid")
    kind = Finish::sigmoid;
  else
    require(name == "linear", "the kernel must be 'rbf', 'poly', 'sigmoid' or 'linear'");
  return {kind, T(gamma), T(coef0), degree};
}

// Inner products to kernel values, in place.
void finish_block(const Matrix& values, const Array& row_norms, const Array& column_norms,
                  const std::string& name, double gamma, double coef0, int degree) {
  require_rows(values, "values must have contiguous rows that do not overlap");
  with_type(values.dtype(), [&](auto zero) {
    using T = decltype(zero);
    BlockArg<T> b{};
    b.finish = finish_named<T>(name, gamma, coef0, degree);
    b.values = static_cast<T*>(values.data());
    b.n_rows = std::int64_t(values.shape(0));
    b.n_columns = std::int64_t(values.shape(1));
    b.row_stride = values.stride(0);
    b.row_norms = pointer<T>(row_norms, b.n_rows, "row_norms: one per row, of the values' type");
    b.column_norms =
        pointer<T>(column_norms, b.n_columns, "column_norms: one per column, of the values' type");
    nb::gil_scoped_release release;
    loops<T>().finish(b);
  });
}

// Some rows of a compressed matrix, packed: their start, index and value.
nb::tuple take_rows(const Array& start, const Array& index, const Array& value, const Array& rows) {
  require(start.size() > 0, "start must not be empty");
  const auto n_all = std::int64_t(start.size()) - 1, n = std::int64_t(rows.size());
  const auto n_stored = std::int64_t(index.size());
  const auto* from = pointer<std::int64_t>(start, n_all + 1, "start must be int64");
  const auto* feature = pointer<std::int32_t>(index, n_stored, "index must be int32");
  const auto* at = pointer<std::int64_t>(rows, n, "rows must be int64");
  return with_type(value.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* number = pointer<T>(value, n_stored, "value: one per index");
    std::vector<std::int64_t> new_start(1, 0);
    std::vector<std::int32_t> new_index;
    std::vector<T> new_value;
    {
      nb::gil_scoped_release release;
      for (std::int64_t k = 0; k < n; ++k) {
        require(at[k] >= 0 && at[k] < n_all, "a row is out of range");
        const std::int64_t begin = from[at[k]], end = from[at[k] + 1];
        require(0 <= begin && begin <= end && end <= n_stored, "start is out of range");
        new_index.insert(new_index.end(), feature + begin, feature + end);
        new_value.insert(new_value.end(), number + begin, number + end);
        new_start.push_back(std::int64_t(new_index.size()));
      }
    }
    const std::size_t stored = new_index.size(), starts = new_start.size();
    return nb::make_tuple(to_numpy(std::move(new_start), {starts}),
                          to_numpy(std::move(new_index), {stored}),
                          to_numpy(std::move(new_value), {stored}));
  });
}

// Compressed rows as panels, zeros written out; see SparseBlockArg.
nb::object make_panels(const Array& start, const Array& index, const Array& value,
                       const std::optional<Array>& place, std::int64_t n_features) {
  require(start.size() > 0 && n_features >= 0, "start must not be empty");
  const auto n = std::int64_t(start.size()) - 1, n_stored = std::int64_t(index.size());
  const auto* from = pointer<std::int64_t>(start, n + 1, "start must be int64");
  const auto* feature = pointer<std::int32_t>(index, n_stored, "index must be int32");
  const std::int32_t* places = nullptr;
  std::int64_t n_known = n_features;
  if (place) {
    n_known = std::int64_t(place->size());
    places = pointer<std::int32_t>(*place, n_known, "place must be int32");
  }
  return with_type(value.dtype(), [&](auto zero) -> nb::object {
    using T = decltype(zero);
    const T* number = pointer<T>(value, n_stored, "value: one per index");
    const std::int64_t n_panels = (n + kPanel - 1) / kPanel;
    std::vector<T> panels;
    {
      nb::gil_scoped_release release;
      panels.assign(std::size_t(n_panels * n_features * kPanel), T(0));
      for (std::int64_t r = 0; r < n; ++r) {
        require(0 <= from[r] && from[r] <= from[r + 1] && from[r + 1] <= n_stored,
                "start is out of range");
        T* panel = panels.data() + (r / kPanel) * n_features * kPanel + r % kPanel;
        for (std::int64_t p = from[r]; p < from[r + 1]; ++p) {
          require(feature[p] >= 0 && feature[p] < n_known, "a feature is out of range");
          const std::int64_t at = places ? places[feature[p]] : feature[p];
          require(at < n_features, "a place is out of range");
          if (at >= 0) panel[at * kPanel] = number[p];
        }
      }
    }
    const auto shape = {std::size_t(n_panels), std::size_t(n_features), std::size_t(kPanel)};
    return nb::cast(to_numpy(std::move(panels), shape));
  });
}

// out[r, c] = k(dense row r, compressed row c); see SparseBlockArg for the panels.
void sparse_block(const Array& start, const Array& index, const Array& value,
                  const Array& column_norms, const std::optional<Array>& place, const Array& panels,
                  const Array& row_norms, const std::string& name, double gamma, double coef0,
                  int degree, const Matrix& out) {
  require_rows(out, "out must have contiguous rows that do not overlap");
  require(panels.ndim() == 3 && panels.shape(2) == kPanel, "panels must be (panels, features, 64)");
  require(start.size() > 0 && out.shape(1) == start.size() - 1, "out needs a column per row");
  require(out.shape(0) <= panels.shape(0) * kPanel, "out has more rows than the panels");
  with_type(out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    SparseBlockArg<T> a{};
    a.finish = finish_named<T>(name, gamma, coef0, degree);
    a.n_rows = std::int64_t(out.shape(0));
    a.n_columns = std::int64_t(out.shape(1));
    a.row_stride = out.stride(0);
    a.n_features = std::int64_t(panels.shape(1));
    a.start = pointer<std::int64_t>(start, a.n_columns + 1, "start must be int64");
    const auto n_stored = std::int64_t(index.size());
    a.index = pointer<std::int32_t>(index, n_stored, "index must be int32");
    a.value = pointer<T>(value, n_stored, "value must have the type of out, one per index");
    a.column_norms = pointer<T>(column_norms, a.n_columns,
                                "column_norms: one per compressed row, of out's type");
    a.panels = pointer<T>(panels, std::int64_t(panels.size()), "panels must have the type of out");
    a.row_norms = pointer<T>(row_norms, std::int64_t(panels.shape(0)) * kPanel,
                             "row_norms: one per row of the panels, of out's type");
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
    loops<T>().sparse_block(a);
  });
}

// Every variable's projected gradient, and the block that they choose: up to half of it the free
// variables of the last block with the steepest ones first, the rest the worst violators.  Without
// the retained half the method need not converge.  Returns the block, in ascending order, the
// largest projected gradient, and the duality gap.
nb::tuple select_block(const Array& alpha, const Array& gradient, const Array& upper,
                       const Array& diagonal, const Array& last, std::int64_t size) {
  const auto n = std::int64_t(alpha.size()), n_last = std::int64_t(last.size());
  const double* a = pointer<double>(alpha, n, "alpha must be float64");
  const double* g = pointer<double>(gradient, n, "gradient must be float64, one per variable");
  const double* u = pointer<double>(upper, n, "upper must be float64, one per variable");
  const double* d = pointer<double>(diagonal, n, "diagonal must be float64, one per variable");
  const auto* previous = pointer<std::int64_t>(last, n_last, "last must be int64");
  for (std::int64_t k = 0; k < n_last; ++k)
    require(previous[k] >= 0 && previous[k] < n, "a variable of the last block is out of range");
  require(size > 0, "a block needs at least one variable");
  std::vector<std::int64_t> block;
  double violation = 0, gap = 0;
  {
    nb::gil_scoped_release release;
    std::vector<double> score(std::size_t(n), 0.0);
    std::vector<std::int64_t> worst;
    for (std::int64_t i = 0; i < n; ++i) {
      const double slope = g[i];
      gap += slope < 0 ? (a[i] - u[i]) * slope : a[i] * slope;
      const bool held = (a[i] <= 0 && slope >= 0) || (a[i] >= u[i] && slope <= 0);
      if (held || slope == 0) continue;
      violation = std::max(violation, std::abs(slope));
      score[std::size_t(i)] = slope * slope / d[i];
      worst.push_back(i);
    }
    const auto steeper = [&](std::int64_t i, std::int64_t j) {
      const double si = score[std::size_t(i)], sj = score[std::size_t(j)];
      return si > sj || (si == sj && i < j);
    };
    const auto keep_best = [&](std::vector<std::int64_t>& from, std::int64_t most) {
      if (std::int64_t(from.size()) <= most) return;
      std::nth_element(from.begin(), from.begin() + most, from.end(), steeper);
      from.resize(std::size_t(most));
    };
    for (std::int64_t k = 0; k < n_last; ++k)
      if (a[previous[k]] > 0 && a[previous[k]] < u[previous[k]]) block.push_back(previous[k]);
    keep_best(block, size / 2);
    std::vector<bool> taken(std::size_t(n), false);
    for (const auto i : block) taken[std::size_t(i)] = true;
    worst.erase(std::remove_if(worst.begin(), worst.end(),
                               [&](std::int64_t i) { return bool(taken[std::size_t(i)]); }),
                worst.end());
    keep_best(worst, size - std::int64_t(block.size()));
    block.insert(block.end(), worst.begin(), worst.end());
    std::sort(block.begin(), block.end());
  }
  const std::size_t length = block.size();
  return nb::make_tuple(to_numpy(std::move(block), {length}), violation, gap);
}

// Minimises over a block: alpha changes, the gradient is left for add_rows, and coef becomes sign
// times change.  q holds y_i y_j k_ij of the block in its first rows and columns.  Returns by how
// much the objective fell: f(a + d) - f(a) = d'(g_before + g_after) / 2 for a quadratic function.
double minimise_block(const Output& q, const Array& block, const Array& sign, const Output& alpha,
                      const Array& gradient, const Array& upper, const Array& diagonal, double tol,
                      const Output& coef) {
  return with_type(q.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto n = std::int64_t(block.size()), all = std::int64_t(alpha.size());
    const std::int64_t size = (n + 7) / 8 * 8;
    T* values = pointer<T>(q, size * size, "q must be square, of the block's size padded to 8");
    const auto* at = pointer<std::int64_t>(block, n, "block must be int64");
    for (std::int64_t k = 0; k < n; ++k)
      require(at[k] >= 0 && at[k] < all, "a variable is out of range");
    const double* y = pointer<double>(sign, all, "sign must be float64, one per variable");
    double* a = pointer<double>(alpha, all, "alpha must be float64");
    const double* g = pointer<double>(gradient, all, "gradient must be float64, one per variable");
    const double* u = pointer<double>(upper, all, "upper must be float64, one per variable");
    const double* d = pointer<double>(diagonal, all, "diagonal must be float64, one per variable");
    double* change = pointer<double>(coef, n, "coef must be float64, one per block variable");
    if (n == 0) return 0.0;
    nb::gil_scoped_release release;
    const auto room = std::size_t(size);
    std::vector<double> own_alpha(room, 0.0), own_gradient(room, 1.0);
    std::vector<double> own_upper(room, 0.0), own_diagonal(room, 1.0);
    for (std::int64_t k = 0; k < n; ++k) {
      own_alpha[std::size_t(k)] = a[at[k]];
      own_gradient[std::size_t(k)] = g[at[k]];
      own_upper[std::size_t(k)] = u[at[k]];
      own_diagonal[std::size_t(k)] = d[at[k]];
    }
    for (std::int64_t i = 0; i < size; ++i)
      for (std::int64_t j = i < n ? n : 0; j < size; ++j) values[i * size + j] = 0;
    WorkingSetArg<T> w{};
    w.size = size;
    w.q = values;
    w.diagonal = own_diagonal.data();
    w.upper = own_upper.data();
    w.alpha = own_alpha.data();
    w.gradient = own_gradient.data();
    w.tol = tol;
    w.max_steps = 100 * n;
    loops<T>().solve_block(w);
    double gain = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      const double moved = own_alpha[std::size_t(k)] - a[at[k]];
      gain -= 0.5 * moved * (g[at[k]] + own_gradient[std::size_t(k)]);
      change[k] = moved * y[at[k]];
      a[at[k]] = own_alpha[std::size_t(k)];
    }
    return gain;
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

// out[begin:end] += sign[begin:end] * sum_k coef[k] pool[slots[k], begin:end]
void add_rows(const Array& pool, const Array& slots, const Array& coef, const Array& sign,
              std::int64_t begin, std::int64_t end, const Output& out) {
  with_type(pool.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto rows = rows_at<T>(pool, slots);
    const double* given = pointer<double>(coef, std::int64_t(rows.size()), "coef: one per slot");
    const auto width = std::int64_t(out.size());
    double* to = pointer<double>(out, width, "out must be float64");
    const double* y = pointer<double>(sign, width, "sign must be float64, as long as out");
    require(0 <= begin && begin <= end && end <= width && end <= std::int64_t(pool.shape(1)),
            "columns out of range");
    nb::gil_scoped_release release;
    std::vector<double> c;
    std::size_t n = 0;  // rows that count
    for (std::size_t k = 0; k < rows.size(); ++k)
      if (given[k] != 0) {
        c.push_back(given[k]);
        rows[n++] = rows[k] + begin;
      }
    std::vector<double> sums(std::size_t(end - begin), 0.0);
    loops<T>().add_rows(rows.data(), c.data(), std::int64_t(n), end - begin, sums.data());
    for (std::int64_t j = begin; j < end; ++j) to[j] += y[j] * sums[std::size_t(j - begin)];
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
  m.def("take_rows", &take_rows, "start"_a, "index"_a, "value"_a, "rows"_a);
  m.def("make_panels", &make_panels, "start"_a, "index"_a, "value"_a, "place"_a.none(),
        "n_features"_a);
  m.def("sparse_block", &sparse_block, "start"_a, "index"_a, "value"_a, "column_norms"_a,
        "place"_a.none(), "panels"_a, "row_norms"_a, "name"_a, "gamma"_a, "coef0"_a, "degree"_a,
        "out"_a.noconvert());
  m.def("select_block", &select_block, "alpha"_a, "gradient"_a, "upper"_a, "diagonal"_a, "last"_a,
        "size"_a);
  m.def("minimise_block", &minimise_block, "q"_a.noconvert(), "block"_a, "sign"_a,
        "alpha"_a.noconvert(), "gradient"_a, "upper"_a, "diagonal"_a, "tol"_a,
        "coef"_a.noconvert());
  m.def("add_rows", &add_rows, "pool"_a, "slots"_a, "coef"_a, "sign"_a, "begin"_a, "end"_a,
        "out"_a.noconvert());
  m.def("gather", &gather, "pool"_a, "slots"_a, "columns"_a, "row_sign"_a, "column_sign"_a,
        "out"_a.noconvert());
  m.def("compact_rows", &compact_rows, "buffer"_a.noconvert(), "slots"_a, "columns"_a,
        "old_stride"_a, "new_stride"_a);
  m.def("widen_rows", &widen_rows, "buffer"_a.noconvert(), "n_rows"_a, "old_stride"_a,
        "new_stride"_a);
}

}  // namespace widemargin
