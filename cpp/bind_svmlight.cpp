// Bindings of the svmlight parser.
#include <algorithm>

#include "bindings.hpp"
#include "svmlight.hpp"

namespace widemargin {
namespace {

const char* text_of(const Array& text) {
  return reinterpret_cast<const char*>(
      pointer<std::uint8_t>(text, std::int64_t(text.size()), "text must be bytes"));
}

const char* name_of(Fault fault) {
  switch (fault) {
    case Fault::none:
      return "";
    case Fault::text_label:
      return "text_label";
    case Fault::wide_index:
      return "wide_index";
    case Fault::no_label:
      return "no_label";
    case Fault::many_labels:
      return "many_labels";
    case Fault::bad_label:
      return "bad_label";
    case Fault::long_label:
      return "long_label";
    case Fault::bad_qid:
      return "bad_qid";
    case Fault::late_qid:
      return "late_qid";
    case Fault::bad_index:
      return "bad_index";
    case Fault::negative_index:
      return "negative_index";
    case Fault::large_index:
      return "large_index";
    case Fault::descending_index:
      return "descending_index";
    case Fault::repeated_index:
      return "repeated_index";
    case Fault::no_value:
      return "no_value";
    case Fault::bad_value:
      return "bad_value";
    case Fault::large_value:
      return "large_value";
    case Fault::bad_byte:
      return "bad_byte";
  }
  return "unknown";
}

nb::tuple measure(const Array& text) {
  const char* p = text_of(text);
  const auto size = std::int64_t(text.size());
  SvmlightSize most;
  {
    nb::gil_scoped_release released;
    most = measure_svmlight(p, size);
  }
  return nb::make_tuple(most.rows, most.values);
}

// `label` takes numbers; without it `span` takes where each label stands in the text.  Outputs
// must have room for what `measure` says; that it is enough is checked here.
nb::tuple parse(const Array& text, const std::optional<Output>& label,
                const std::optional<Output>& span, const Output& qid, const Output& end,
                const Output& index, const Output& value) {
  const char* p = text_of(text);
  const auto size = std::int64_t(text.size());
  const auto rows = std::int64_t(end.size()), values = std::int64_t(index.size());
  require(label.has_value() != span.has_value(), "either label or span");
  SvmlightResult result;
  bool fits = false;
  const auto run = [&](auto number, auto place) {
    using Value = decltype(number);
    using Index = decltype(place);
    SvmlightRows<Value, Index> out{};
    out.label = label ? pointer<double>(*label, rows, "label: float64, one per row") : nullptr;
    out.span = span ? pointer<std::int64_t>(*span, 2 * rows, "span: int64, two per row") : nullptr;
    out.qid = pointer<std::int64_t>(qid, rows, "qid: int64, one per row");
    out.end = pointer<std::int64_t>(end, rows, "end must be int64");
    out.index = pointer<Index>(index, values, "index must be int32 or int64");
    out.value = pointer<Value>(value, values, "value: float32 or float64, one per index");
    nb::gil_scoped_release released;
    const SvmlightSize most = measure_svmlight(p, size);
    fits = most.rows <= rows && most.values <= values;
    if (fits) result = SvmlightParser<Value, Index>(p, size, out).parse();
  };
  const bool wide = index.dtype() == nb::dtype<std::int64_t>();
  const bool float64 = value.dtype() == nb::dtype<double>();
  if (float64 && wide) run(double{}, std::int64_t{});
  if (float64 && !wide) run(double{}, std::int32_t{});
  if (!float64 && wide) run(float{}, std::int64_t{});
  if (!float64 && !wide) run(float{}, std::int32_t{});
  require(fits, "the outputs are too small for this text");
  const bool fault = result.fault != Fault::none;
  return nb::make_tuple(result.rows, result.values, result.lines, result.with_qid, result.least,
                        result.most, name_of(result.fault), fault ? result.line - p : 0,
                        fault ? result.at - p : 0);
}

}  // namespace

void bind_svmlight(nb::module_& m) {
  m.def("measure_svmlight", &measure, "text"_a, "The most rows and values that a text can hold.");
  m.def("parse_svmlight", &parse, "text"_a, "label"_a.none().noconvert(),
        "span"_a.none().noconvert(), "qid"_a.noconvert(), "end"_a.noconvert(),
        "index"_a.noconvert(), "value"_a.noconvert(),
        "Parse into arrays with room for what was measured; returns what was found, and a fault.");
}

}  // namespace widemargin
