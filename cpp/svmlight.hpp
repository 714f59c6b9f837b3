// svmlight / LIBSVM text:  label [qid:n] index:value index:value ... [# comment]
// A block of whole lines in, flat arrays out.  Every byte is checked; the first fault stops it.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace widemargin {

// Decimal text to the nearest double.  Most numbers have few digits: their mantissa and power of
// ten are exact doubles, so that one operation rounds correctly (Clinger 1990).
enum class Number { ok, malformed, too_large };

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

inline Number parse_number(const char*& p, const char* end, double* out) {
  static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                      1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                      1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const bool negative = p < end && *p == '-';
  if (p < end && (*p == '-' || *p == '+')) ++p;
  const char* const first = p;
  std::uint64_t mantissa = 0;  // wraps where there are over 19 digits, which is checked
  for (; p < end && is_digit(*p); ++p) mantissa = 10 * mantissa + std::uint64_t(*p - '0');
  std::int64_t n_digits = p - first, exponent = 0;
  if (p < end && *p == '.') {
    const char* const point = ++p;
    for (; p < end && is_digit(*p); ++p) mantissa = 10 * mantissa + std::uint64_t(*p - '0');
    exponent = point - p;
    n_digits -= exponent;
  }
  if (n_digits == 0) return Number::malformed;
  if (p < end && (*p == 'e' || *p == 'E')) {
    ++p;
    const bool down = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) ++p;
    if (p == end || !is_digit(*p)) return Number::malformed;
    std::int64_t power = 0;
    for (; p < end && is_digit(*p); ++p)
      if (power < 1'000'000'000) power = 10 * power + (*p - '0');
    exponent += down ? -power : power;
  }
  double value = 0;
  if (n_digits <= 19 && mantissa <= (std::uint64_t(1) << 53) && exponent >= -22 && exponent <= 22) {
    value = double(mantissa);
    value = exponent < 0 ? value / powers[-exponent] : value * powers[exponent];
  } else if (const auto [rest, error] = std::from_chars(first, p, value);
             error == std::errc::result_out_of_range || std::isinf(value)) {
    // Out of range: at which power of ten does the first digit that counts stand?
    std::int64_t power = exponent;
    bool counts = false;
    for (const char* q = first; q < p && (is_digit(*q) || *q == '.'); ++q) {
      counts |= *q != '0' && *q != '.';
      power += counts && *q != '.';
    }
    if (counts && power > 0) return Number::too_large;
    value = 0;
  }
  *out = negative ? -value : value;
  return Number::ok;
}

enum class Fault {
  none,
  text_label,  // not a fault of the file: parse again and keep labels as text
  wide_index,  // likewise, with 64-bit indices
  no_label,
  many_labels,
  bad_label,
  long_label,
  bad_qid,
  late_qid,
  bad_index,
  negative_index,
  large_index,
  descending_index,
  repeated_index,
  no_value,
  bad_value,
  large_value,
  bad_byte,
};

struct SvmlightSize {
  std::int64_t rows, values;  // no block has more than these
};

// Vectors of bytes count up to 255 steps at a time; a comparison is -1 where it holds.
inline SvmlightSize measure_svmlight(const char* text, std::int64_t size) {
  typedef signed char Bytes __attribute__((vector_size(16)));
  typedef unsigned char Counts __attribute__((vector_size(16)));
  SvmlightSize most{size > 0 && text[size - 1] != '\n', 0};
  std::int64_t i = 0;
  while (i + 16 <= size) {
    Counts newlines{}, colons{};
    for (int step = 0; step < 255 && i + 16 <= size; ++step, i += 16) {
      Bytes bytes;
      std::memcpy(&bytes, text + i, sizeof bytes);
      newlines -= Counts(bytes == '\n');
      colons -= Counts(bytes == ':');
    }
    for (int l = 0; l < 16; ++l) {
      most.rows += newlines[l];
      most.values += colons[l];
    }
  }
  for (; i < size; ++i) {
    most.rows += text[i] == '\n';
    most.values += text[i] == ':';
  }
  return most;
}

template <class Value, class Index>
struct SvmlightRows {
  double* label;       // or, where labels are text,
  std::int64_t* span;  // where each begins and ends: two numbers per row
  std::int64_t* qid;
  std::int64_t* end;  // of each row's values
  Index* index;
  Value* value;
};

struct SvmlightResult {
  std::int64_t rows = 0, values = 0, lines = 0, with_qid = 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = -1;  // index
  Fault fault = Fault::none;
  const char *line = nullptr, *at = nullptr;  // of the fault
};

template <class Value, class Index>
class SvmlightParser {
 public:
  SvmlightParser(const char* text, std::int64_t size, const SvmlightRows<Value, Index>& out)
      : text_(text), p_(text), end_(text + size), out_(out) {}

  SvmlightResult parse() {
    while (p_ < end_ && result_.fault == Fault::none) {
      result_.line = p_;
      parse_line();
      if (result_.fault != Fault::none) break;
      if (p_ < end_) ++p_;  // the newline
      ++result_.lines;
    }
    return result_;
  }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
  bool at_end() const { return p_ == end_ || *p_ == '\n' || *p_ == '#'; }
  void skip_spaces() {
    while (p_ < end_ && is_space(*p_)) ++p_;
  }
  bool ends_token() const { return at_end() || is_space(*p_); }

  void parse_line() {
    skip_spaces();
    if (!at_end()) {
      parse_label();
      skip_spaces();
      if (result_.fault == Fault::none && !at_end() && *p_ == 'q') parse_qid();
      previous_ = -1;
      while (result_.fault == Fault::none) {
        skip_spaces();
        if (at_end()) break;
        parse_feature();
      }
      out_.end[result_.rows] = result_.values;
      ++result_.rows;
    }
    if (result_.fault == Fault::none && p_ < end_ && *p_ == '#') {
      const void* newline = std::memchr(p_, '\n', std::size_t(end_ - p_));
      p_ = newline ? static_cast<const char*>(newline) : end_;
    }
  }

  void parse_label() {
    const char* const begin = p_;
    if (out_.label) {
      double value;
      const Number number = parse_number(p_, end_, &value);
      if (number == Number::ok && ends_token()) {
        out_.label[result_.rows] = value;
        return;
      }
    }
    p_ = begin;
    bool colon = false, comma = false;
    for (; !ends_token(); ++p_) {
      colon |= *p_ == ':';
      comma |= *p_ == ',';
      if (static_cast<unsigned char>(*p_) < ' ' || *p_ == 127) return fail(Fault::bad_byte, p_);
    }
    if (colon) return fail(Fault::no_label, begin);
    if (comma) return fail(Fault::many_labels, begin);
    if (is_not_a_number(begin)) return fail(Fault::bad_label, begin);
    if (p_ - begin > kLongestLabel) return fail(Fault::long_label, begin);
    if (!out_.span) return fail(Fault::text_label, begin);
    out_.span[2 * result_.rows] = begin - text_;
    out_.span[2 * result_.rows + 1] = p_ - text_;
  }

  // nan, inf, infinity and 1e999 look like numbers; as the name of a class they would surprise.
  bool is_not_a_number(const char* begin) const {
    double value;
    const char* q = begin;
    if (parse_number(q, p_, &value) == Number::too_large && q == p_) return true;
    q = begin + (*begin == '-' || *begin == '+');
    if (q < p_ && *q == '-') return false;  // from_chars would take a second sign
    const auto [rest, error] = std::from_chars(q, p_, value);
    return error == std::errc() && rest == p_ && !std::isfinite(value);
  }

  void parse_qid() {
    const char* const begin = p_;
    if (end_ - p_ < 4 || std::memcmp(p_, "qid:", 4) != 0) return;  // no index: parse_feature fails
    std::int64_t number = 0;
    const auto [rest, error] = std::from_chars(p_ + 4, end_, number);
    p_ = rest;
    if (error != std::errc() || !ends_token()) return fail(Fault::bad_qid, begin);
    out_.qid[result_.rows] = number;
    ++result_.with_qid;
  }

  void parse_feature() {
    const char* const begin = p_;
    std::uint64_t number = 0;
    for (; p_ < end_ && is_digit(*p_); ++p_) {
      if (number > kMostIndex / 10) return fail(Fault::large_index, begin);
      number = 10 * number + std::uint64_t(*p_ - '0');
    }
    if (p_ == begin) return fail_index(begin);
    if (p_ == end_ || *p_ != ':')
      return fail(ends_token() ? Fault::no_value : Fault::bad_index, begin);
    if (number > kMostIndex) return fail(Fault::large_index, begin);
    const auto index = std::int64_t(number);
    if (index <= previous_)
      return fail(index < previous_ ? Fault::descending_index : Fault::repeated_index, begin);
    if (index > std::int64_t(std::numeric_limits<Index>::max() - 1))
      return fail(Fault::wide_index, begin);
    previous_ = index;
    ++p_;
    if (ends_token()) return fail(Fault::no_value, begin);
    const char* const from = p_;
    double value;
    const Number read = parse_number(p_, end_, &value);
    if (read == Number::too_large) return fail(Fault::large_value, from);
    if (read == Number::malformed || !ends_token()) return fail(Fault::bad_value, from);
    const auto stored = static_cast<Value>(value);
    if (std::isinf(stored)) return fail(Fault::large_value, from);
    if (index < result_.least) result_.least = index;
    if (index > result_.most) result_.most = index;
    out_.index[result_.values] = Index(index);
    out_.value[result_.values] = stored;
    ++result_.values;
  }

  void fail_index(const char* begin) {
    const auto byte = static_cast<unsigned char>(*begin);
    if (byte < ' ' || byte == 127) return fail(Fault::bad_byte, begin);
    if (*begin == '-') return fail(Fault::negative_index, begin);
    const bool qid = end_ - begin >= 4 && std::memcmp(begin, "qid:", 4) == 0;
    fail(qid ? Fault::late_qid : Fault::bad_index, begin);
  }

  void fail(Fault fault, const char* at) {
    result_.fault = fault;
    result_.at = at;
  }

  static constexpr std::uint64_t kMostIndex = std::uint64_t(1) << 62;
  static constexpr std::ptrdiff_t kLongestLabel = 256;  // NumPy pads all labels to the longest
  const char *text_, *p_, *end_;
  SvmlightRows<Value, Index> out_;
  SvmlightResult result_;
  std::int64_t previous_ = -1;
};

}  // namespace widemargin
