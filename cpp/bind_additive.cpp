// Bindings of the additive solver: rows of codes, tables, sweeps, and passes over the codes.
#include <algorithm>
#include <limits>

#include "bindings.hpp"

namespace widemargin {
namespace {

template <class T>
bool all_below(const void* p, std::int64_t n, std::uint64_t bound) {
  if (bound > std::numeric_limits<T>::max()) return true;
  const T* v = static_cast<const T*>(p);
  T top = 0;
  for (std::int64_t k = 0; k < n; ++k) top = std::max(top, v[k]);
  return n == 0 || top < bound;
}

bool all_below(const Array& a, std::uint64_t bound) {
  const auto n = std::int64_t(a.size());
  if (a.dtype() == nb::dtype<std::uint8_t>()) return all_below<std::uint8_t>(a.data(), n, bound);
  if (a.dtype() == nb::dtype<std::uint16_t>()) return all_below<std::uint16_t>(a.data(), n, bound);
  return all_below<std::uint32_t>(a.data(), n, bound);
}

bool all_within(const std::int32_t* p, std::int64_t n, std::int64_t bound) {
  std::uint32_t top = 0;  // a negative number is a very large one
  for (std::int64_t k = 0; k < n; ++k) top = std::max(top, std::uint32_t(p[k]));
  return n <= 0 || top < bound;
}

// Codes that were checked: shapes agree, row pointers ascend, every index and code is in range.
class Rows {
 public:
  Rows(Array codes, std::optional<Array> index, std::optional<Array> start, std::int64_t n_features,
       std::int64_t n_codes)
      : codes_(codes), index_(index), start_(start), n_codes_(n_codes) {
    require(index.has_value() == start.has_value(), "index and start go together");
    require(n_features > 0 && n_codes > 0, "n_features and n_codes must be positive");
    if (codes.dtype() == nb::dtype<std::uint8_t>())
      arg_.code_type = CodeType::u8;
    else if (codes.dtype() == nb::dtype<std::uint16_t>())
      arg_.code_type = CodeType::u16;
    else
      arg_.code_type = CodeType::u32,
      require(codes.dtype() == nb::dtype<std::uint32_t>(), "codes must be uint8/16/32");
    arg_.codes = codes.data();
    arg_.n_features = n_features;
    arg_.index_type = IndexType::dense;
    arg_.index = nullptr;
    arg_.start = nullptr;
    if (!index) {
      require(codes.ndim() == 2 && std::int64_t(codes.shape(1)) == n_features,
              "dense codes must be (n_rows, n_features)");
      arg_.n_rows = std::int64_t(codes.shape(0));
    } else {
      check_sparse();
    }
    require(all_below(codes, std::uint64_t(n_codes)), "a code is out of range");
  }

  const RowsArg& arg() const { return arg_; }
  std::int64_t n_rows() const { return arg_.n_rows; }
  std::int64_t n_features() const { return arg_.n_features; }
  std::int64_t n_codes() const { return n_codes_; }

  // f(row, size, feature_of, codes) for every row, typed.
  template <class F>
  void for_each_row(F&& f) const {
    if (arg_.code_type == CodeType::u8) return rows_of<std::uint8_t>(f);
    if (arg_.code_type == CodeType::u16) return rows_of<std::uint16_t>(f);
    rows_of<std::uint32_t>(f);
  }

 private:
  void check_sparse() {
    const bool small = index_->dtype() == nb::dtype<std::uint16_t>();
    require(small || index_->dtype() == nb::dtype<std::uint32_t>(), "index must be uint16/32");
    require(!small || arg_.code_type == CodeType::u8, "a uint16 index needs uint8 codes");
    require(start_->dtype() == nb::dtype<std::int64_t>() && start_->ndim() == 1 &&
                start_->shape(0) >= 1,
            "start must be int64 (n_rows + 1)");
    require(index_->ndim() == 1 && codes_.ndim() == 1 && index_->shape(0) == codes_.shape(0),
            "index and codes must have one length");
    arg_.index_type = small ? IndexType::u16 : IndexType::u32;
    arg_.index = index_->data();
    arg_.start = static_cast<const std::int64_t*>(start_->data());
    arg_.n_rows = std::int64_t(start_->shape(0)) - 1;
    require(arg_.start[0] == 0 && arg_.start[arg_.n_rows] == std::int64_t(codes_.shape(0)),
            "start must run from 0 to the number of codes");
    for (std::int64_t i = 0; i < arg_.n_rows; ++i)
      require(arg_.start[i] <= arg_.start[i + 1], "start must not descend");
    require(all_below(*index_, std::uint64_t(arg_.n_features)), "an index is out of range");
  }

  template <class Code, class F>
  void rows_of(F&& f) const {
    const Code* code = static_cast<const Code*>(arg_.codes);
    const auto d = arg_.n_features;
    if (arg_.index_type == IndexType::dense) {
      for (std::int64_t i = 0; i < arg_.n_rows; ++i)
        f(i, d, [](std::int64_t k) { return k; }, code + i * d);
    } else if (arg_.index_type == IndexType::u16) {
      sparse_rows_of(static_cast<const std::uint16_t*>(arg_.index), code, f);
    } else {
      sparse_rows_of(static_cast<const std::uint32_t*>(arg_.index), code, f);
    }
  }
  template <class Index, class Code, class F>
  void sparse_rows_of(const Index* index, const Code* code, F&& f) const {
    for (std::int64_t i = 0; i < arg_.n_rows; ++i) {
      const Index* own = index + arg_.start[i];
      f(
          i, arg_.start[i + 1] - arg_.start[i],
          [own](std::int64_t k) { return std::int64_t(own[k]); }, code + arg_.start[i]);
    }
  }

  Array codes_;
  std::optional<Array> index_, start_;
  std::int64_t n_codes_;
  RowsArg arg_{};
};

// The two look-up tables, checked against the codes they will be read with.
class Tables {
 public:
  Tables(std::optional<Array> left, Array right, std::optional<Array> offset, int lanes)
      : left_(left), right_(right), offset_(offset) {
    require(lanes == 1 || lanes == kLanes, "lanes must be 1 or 16");
    require(left.has_value() != offset.has_value(), "give left (factors) or offset (unary)");
    require(right.ndim() == 2, "right must be a matrix");
    arg_.is_double = right.dtype() == nb::dtype<double>();
    arg_.lanes = lanes;
    arg_.n_codes = std::int64_t(right.shape(0));
    const auto size = std::int64_t(right.size());
    arg_.right = number_pointer(right, arg_.is_double, size, "tables must be float32 or float64");
    if (left) {
      arg_.rank = int(right.shape(1));
      require(arg_.rank > 0, "the rank must be positive");
      require(lanes == 1 ? arg_.rank == 1 || arg_.rank == 4 || arg_.rank % 8 == 0
                         : arg_.rank % 4 == 0 || (arg_.rank < 4 && !arg_.is_double),
              "pad the rank: see solver.padded_rank");
      arg_.left = number_pointer(*left, arg_.is_double, size, "left and right must agree");
      arg_.offset = nullptr;
    } else {
      arg_.rank = 0;
      require(right.shape(0) == right.shape(1), "the kernel matrix must be square");
      arg_.left = nullptr;
      require(offset->size() > 1, "offset is empty");
      arg_.offset =
          pointer<std::int64_t>(*offset, std::int64_t(offset->size()), "offset must be int64");
      require(arg_.offset[0] == 0, "offset must start at 0");
      for (std::size_t j = 1; j < offset->size(); ++j)
        require(arg_.offset[j - 1] <= arg_.offset[j] &&
                    arg_.offset[j] - arg_.offset[j - 1] <= arg_.n_codes,
                "offset must ascend by at most n_codes");
    }
  }

  template <class A>
  TablesArg with_weights(const Rows& rows, const A& weights) const {
    TablesArg arg = arg_;
    require(rows.n_codes() <= arg.n_codes, "the codes exceed the table");
    require(arg.rank > 0 || std::int64_t(offset_->size()) == rows.n_features() + 1,
            "offset must have n_features + 1 entries");
    const std::int64_t cells =
        arg.rank > 0 ? rows.n_features() * arg.rank : arg.offset[rows.n_features()];
    arg.weights = const_cast<void*>(static_cast<const void*>(number_pointer(
        weights, arg.is_double, cells * arg.lanes, "weights have the wrong size or dtype")));
    return arg;
  }
  bool is_double() const { return arg_.is_double; }
  int lanes() const { return arg_.lanes; }

 private:
  std::optional<Array> left_;
  Array right_;
  std::optional<Array> offset_;
  TablesArg arg_{};
};

Sweep make_sweep(const Rows& rows, const std::optional<Array>& order, std::int64_t begin,
                 double seconds, const Array& shrink, const std::optional<Output>& shrunk,
                 const Output& account) {
  Sweep s{};
  s.begin = begin;
  s.seconds = seconds;
  s.end = rows.n_rows();
  if (order) {
    s.end = std::int64_t(order->size());
    s.order = pointer<std::int32_t>(*order, s.end, "order must be int32");
    require(begin >= 0 && begin <= s.end, "begin is out of range");
    require(all_within(s.order + begin, s.end - begin, rows.n_rows()),
            "order names a row out of range");
    require(shrunk.has_value(), "shrunk is missing");
    s.shrunk = pointer<std::uint8_t>(*shrunk, rows.n_rows(), "shrunk must be uint8");
  }
  require(begin >= 0 && begin <= s.end, "begin is out of range");
  s.shrink_max = pointer<double>(shrink, 2 * kLanes, "shrink must be float64 (2, 16)");
  s.shrink_min = s.shrink_max + kLanes;
  s.account = reinterpret_cast<Account*>(
      pointer<double>(account, 5 * kLanes, "account must be float64 (5, 16)"));
  return s;
}
static_assert(sizeof(Account) == 5 * kLanes * sizeof(double));

std::int64_t sweep_box(bool descend, const Rows& rows, const Tables& tables, const Output& weights,
                       const Array& label, const Array& sign, const Array& c, const Array& diagonal,
                       const Output& alpha, const Output& bias, double bias_value, bool squared,
                       const std::optional<Array>& order, std::int64_t begin, double seconds,
                       const Array& shrink, const std::optional<Output>& shrunk,
                       const Output& account) {
  const TablesArg t = tables.with_weights(rows, weights);
  const std::int64_t n = rows.n_rows(), lanes = tables.lanes();
  const bool d = tables.is_double();
  ProblemArg p{};
  p.squared = squared;
  p.label = pointer<std::int32_t>(label, n, "label must be int32 (n_rows)");
  const auto n_labels = std::int64_t(sign.size()) / lanes;
  require(all_within(p.label, n, n_labels), "a label is out of range");
  p.sign = number_pointer(sign, d, n_labels * lanes, "sign must be (n_labels, lanes)");
  p.c = number_pointer(c, d, n, "c must have n_rows entries");
  p.diagonal = number_pointer(diagonal, d, n, "diagonal must have n_rows entries");
  p.alpha = number_pointer(alpha, d, n * lanes, "alpha must be (n_rows, lanes)");
  p.bias = number_pointer(bias, d, lanes, "bias must have one entry per lane");
  p.bias_value = bias_value;
  require(descend == order.has_value(), "descend needs an order, certify takes none");
  const Sweep s = make_sweep(rows, order, begin, seconds, shrink, shrunk, account);
  const Kernels& k = kernels(d);
  nb::gil_scoped_release release;
  return (descend ? k.descend : k.certify)(rows.arg(), t, p, s);
}

std::int64_t sweep_simplex(bool descend, const Rows& rows, const Tables& tables,
                           const Output& weights, std::int32_t n_classes, const Array& label,
                           const Array& c, const Array& diagonal, const Output& alpha,
                           const Output& bias, double bias_value, bool squared,
                           const std::optional<Array>& order, std::int64_t begin, double seconds,
                           const Array& shrink, const std::optional<Output>& shrunk,
                           const Output& account) {
  require(tables.lanes() == kLanes && n_classes > 1, "Crammer-Singer needs 16 lanes");
  require(weights.ndim() >= 2, "weights must have one block per 16 classes");
  const std::int64_t n = rows.n_rows();
  const bool d = tables.is_double();
  CrammerSingerArg p{};
  p.n_classes = n_classes;
  p.n_blocks = (n_classes + kLanes - 1) / kLanes;
  require(std::int64_t(weights.shape(0)) == p.n_blocks,
          "weights must have one block per 16 classes");
  p.squared = squared;
  p.label = pointer<std::int32_t>(label, n, "label must be int32 (n_rows)");
  require(all_within(p.label, n, n_classes), "a label is out of range");
  p.c = number_pointer(c, d, n, "c must have n_rows entries");
  p.diagonal = number_pointer(diagonal, d, n, "diagonal must have n_rows entries");
  p.alpha = number_pointer(alpha, d, n * p.n_blocks * kLanes, "alpha has the wrong size");
  p.bias = number_pointer(bias, d, p.n_blocks * kLanes, "bias has the wrong size");
  p.bias_value = bias_value;

  const auto block = std::int64_t(weights.size()) / p.n_blocks;
  const std::size_t width = d ? sizeof(double) : sizeof(float);
  std::vector<void*> blocks;
  for (int b = 0; b < p.n_blocks; ++b)
    blocks.push_back(static_cast<char*>(weights.data()) + std::size_t(b * block) * width);
  p.weights = blocks.data();
  const std::size_t shape[1] = {std::size_t(block)};
  const Output first(weights.data(), 1, shape, nb::handle(), nullptr, weights.dtype());
  const TablesArg t = tables.with_weights(rows, first);
  require(t.rank % 4 == 0, "pad the rank of Crammer-Singer to a multiple of 4");
  require(descend == order.has_value(), "descend needs an order, certify takes none");
  const Sweep s = make_sweep(rows, order, begin, seconds, shrink, shrunk, account);
  const Kernels& k = kernels(d);
  std::int64_t reached;
  {
    nb::gil_scoped_release release;
    reached = (descend ? k.descend_crammer_singer : k.certify_crammer_singer)(rows.arg(), t, p, s);
  }
  if (reached < 0) throw std::bad_alloc();
  return reached;
}

void decide(const Rows& rows, const Tables& tables, const Array& weights, std::int64_t begin,
            std::int64_t end, const Output& out) {
  require(0 <= begin && begin <= end && end <= rows.n_rows(), "rows out of range");
  const TablesArg t = tables.with_weights(rows, weights);
  void* to =
      number_pointer(out, t.is_double, rows.n_rows() * t.lanes, "out must be (n_rows, lanes)");
  nb::gil_scoped_release release;
  kernels(t.is_double).decide(rows.arg(), t, begin, end, to);
}

void accumulate(const Rows& rows, const Tables& tables, const Output& weights, std::int64_t begin,
                std::int64_t end, const Array& coef) {
  require(0 <= begin && begin <= end && end <= rows.n_rows(), "rows out of range");
  const TablesArg t = tables.with_weights(rows, weights);
  const void* from =
      number_pointer(coef, t.is_double, rows.n_rows() * t.lanes, "coef must be (n_rows, lanes)");
  nb::gil_scoped_release release;
  kernels(t.is_double).accumulate(rows.arg(), t, begin, end, from);
}

// A random order of the given rows (Fisher-Yates), the same on every platform.
nb::ndarray<nb::numpy, std::int32_t> shuffled(const Array& rows, std::uint64_t seed) {
  const auto n = rows.size();
  const auto* from = pointer<std::int32_t>(rows, std::int64_t(n), "rows must be int32");
  std::vector<std::int32_t> out(from, from + n);
  for (std::size_t k = n; k > 1; --k) {
    seed += 0x9e3779b97f4a7c15u;  // splitmix64
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    const std::uint64_t bits = (z ^ (z >> 31)) >> 32;
    std::swap(out[k - 1], out[(bits * k) >> 32]);  // k < 2^31, so the product fits
  }
  return to_numpy(std::move(out), {n});
}

nb::ndarray<nb::numpy, double> row_sums(const Rows& rows, const Array& table) {
  const double* value = pointer<double>(table, rows.n_codes(), "table must have n_codes entries");
  std::vector<double> out(std::size_t(rows.n_rows()));
  {
    nb::gil_scoped_release release;
    rows.for_each_row([&](std::int64_t i, std::int64_t size, auto, const auto* code) {
      double sums[4] = {};  // independent chains
      std::int64_t k = 0;
      for (; k + 4 <= size; k += 4)
        for (int u = 0; u < 4; ++u) sums[u] += value[code[k + u]];
      for (; k < size; ++k) sums[0] += value[code[k]];
      out[i] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    });
  }
  return to_numpy(std::move(out), {std::size_t(rows.n_rows())});
}

nb::ndarray<nb::numpy, double> count_codes(const Rows& rows, const Array& row_weight) {
  const double* weight = pointer<double>(row_weight, rows.n_rows(), "one weight per row");
  const auto n = std::size_t(rows.n_codes());
  // Images repeat a code many times in a row: four books keep the additions from queueing.
  std::vector<double> books(4 * n);
  {
    nb::gil_scoped_release release;
    rows.for_each_row([&](std::int64_t i, std::int64_t size, auto, const auto* code) {
      std::int64_t k = 0;
      for (; k + 4 <= size; k += 4)
        for (int u = 0; u < 4; ++u) books[n * u + code[k + u]] += weight[i];
      for (; k < size; ++k) books[code[k]] += weight[i];
    });
  }
  for (std::size_t b = 1; b < 4; ++b)
    for (std::size_t k = 0; k < n; ++k) books[k] += books[b * n + k];
  books.resize(n);
  return to_numpy(std::move(books), {n});
}

nb::ndarray<nb::numpy, std::int64_t> largest_codes(const Rows& rows) {
  std::vector<std::int64_t> out(std::size_t(rows.n_features()));
  {
    nb::gil_scoped_release release;
    rows.for_each_row([&](std::int64_t, std::int64_t size, auto feature, const auto* code) {
      for (std::int64_t k = 0; k < size; ++k)
        out[feature(k)] = std::max(out[feature(k)], std::int64_t(code[k]));
    });
  }
  return to_numpy(std::move(out), {std::size_t(rows.n_features())});
}

}  // namespace

void bind_additive(nb::module_& m) {
  m.attr("LANES") = kLanes;
  nb::class_<Rows>(m, "Rows").def(
      nb::init<Array, std::optional<Array>, std::optional<Array>, std::int64_t, std::int64_t>(),
      "codes"_a, "index"_a.none(), "start"_a.none(), "n_features"_a, "n_codes"_a);
  nb::class_<Tables>(m, "Tables")
      .def(nb::init<std::optional<Array>, Array, std::optional<Array>, int>(), "left"_a.none(),
           "right"_a, "offset"_a.none(), "lanes"_a);

  m.def("sweep_box", &sweep_box, "descend"_a, "rows"_a, "tables"_a, "weights"_a, "label"_a,
        "sign"_a, "c"_a, "diagonal"_a, "alpha"_a, "bias"_a, "bias_value"_a, "squared"_a,
        "order"_a.none(), "begin"_a, "seconds"_a, "shrink"_a, "shrunk"_a.none(), "account"_a);
  m.def("sweep_simplex", &sweep_simplex, "descend"_a, "rows"_a, "tables"_a, "weights"_a,
        "n_classes"_a, "label"_a, "c"_a, "diagonal"_a, "alpha"_a, "bias"_a, "bias_value"_a,
        "squared"_a, "order"_a.none(), "begin"_a, "seconds"_a, "shrink"_a, "shrunk"_a.none(),
        "account"_a);
  m.def("decide", &decide, "rows"_a, "tables"_a, "weights"_a, "begin"_a, "end"_a, "out"_a);
  m.def("accumulate", &accumulate, "rows"_a, "tables"_a, "weights"_a, "begin"_a, "end"_a, "coef"_a);
  m.def("shuffled", &shuffled, "rows"_a, "seed"_a);
  m.def("row_sums", &row_sums, "rows"_a, "table"_a);
  m.def("count_codes", &count_codes, "rows"_a, "row_weight"_a);
  m.def("largest_codes", &largest_codes, "rows"_a);
}

}  // namespace widemargin
