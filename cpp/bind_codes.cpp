// Bindings of rows of codes and of the passes over them, and of the checksum of bytes.
#include "checked_rows.hpp"
#include "checksum.hpp"

namespace widemargin {
namespace {

nb::ndarray<nb::numpy, std::int32_t> py_shuffled(const Array& rows, std::uint64_t seed) {
  const auto n = std::int64_t(rows.size());
  const auto* from = pointer<std::int32_t>(rows, n, "rows must be int32");
  std::vector<std::int32_t> out(from, from + n);
  shuffle(out, seed);
  return vector_to_numpy(std::move(out));
}

nb::ndarray<nb::numpy, double> py_row_sums(const Rows& rows, const Array& table) {
  const double* value = pointer<double>(table, rows.n_codes(), "table must have n_codes entries");
  std::vector<double> out;
  {
    nb::gil_scoped_release release;
    out = row_sums(rows.arg(), value);
  }
  return vector_to_numpy(std::move(out));
}

nb::ndarray<nb::numpy, double> py_count_codes(const Rows& rows, const Array& row_weight) {
  const double* weight = pointer<double>(row_weight, rows.n_rows(), "one weight per row");
  std::vector<double> out;
  {
    nb::gil_scoped_release release;
    out = count_codes(rows.arg(), rows.n_codes(), weight);
  }
  return vector_to_numpy(std::move(out));
}

nb::tuple py_count_cells(const Rows& rows, const Array& row_weight) {
  const double* weight = pointer<double>(row_weight, rows.n_rows(), "one weight per row");
  CellCounts out;
  {
    nb::gil_scoped_release release;
    out = count_cells(rows.arg(), rows.n_codes(), weight);
  }
  return nb::make_tuple(vector_to_numpy(std::move(out.start)), vector_to_numpy(std::move(out.code)),
                        vector_to_numpy(std::move(out.weight)));
}

nb::ndarray<nb::numpy, std::int64_t> py_largest_codes(const Rows& rows) {
  std::vector<std::int64_t> out;
  {
    nb::gil_scoped_release release;
    out = largest_codes(rows.arg());
  }
  return vector_to_numpy(std::move(out));
}

nb::ndarray<nb::numpy, std::uint32_t> py_checksum(const Array& bytes) {
  const auto n = std::int64_t(bytes.size());
  const auto* begin = pointer<std::uint8_t>(bytes, n, "bytes must be uint8");
  Checksum sum;
  {
    nb::gil_scoped_release release;
    sum.add(begin, n);
  }
  return vector_to_numpy(std::vector<std::uint32_t>(sum.lane.begin(), sum.lane.end()));
}

}  // namespace

void bind_codes(nb::module_& m) {
  nb::class_<Rows>(m, "Rows", "Rows of codes, checked: dense, or compressed with index and start.")
      .def(
          nb::init<Array, std::optional<Array>, std::optional<Array>, std::int64_t, std::int64_t>(),
          "codes"_a, "index"_a.none(), "start"_a.none(), "n_features"_a, "n_codes"_a);
  m.def("shuffled", &py_shuffled, "rows"_a, "seed"_a, "A random order of the given rows.");
  m.def("row_sums", &py_row_sums, "rows"_a, "table"_a, "Sum of the table over each row's codes.");
  m.def("count_codes", &py_count_codes, "rows"_a, "row_weight"_a,
        "Total weight of each code's occurrences.");
  m.def("count_cells", &py_count_cells, "rows"_a, "row_weight"_a,
        "Total weight of each feature's codes: start of each feature, codes, weights.");
  m.def("largest_codes", &py_largest_codes, "rows"_a, "The largest code of each feature.");
  m.def("checksum", &py_checksum, "bytes"_a,
        "Numbers that tell an array of bytes from damaged ones.");
}

}  // namespace widemargin
