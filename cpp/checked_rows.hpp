// Rows of codes as Python hands them over, checked once: shapes agree, row pointers ascend, every
// index and code is in range.
#pragma once

#include <optional>

#include "additive/code_passes.hpp"
#include "bindings.hpp"

namespace widemargin {

class Rows {
 public:
  Rows(Array codes, std::optional<Array> index, std::optional<Array> start, std::int64_t n_features,
       std::int64_t n_codes)
      : codes_(codes), index_(index), start_(start), n_codes_(n_codes) {
    require(index.has_value() == start.has_value(), "index and start go together");
    require(n_features > 0 && n_codes > 0, "n_features and n_codes must be positive");
    arg_.code_type = code_type();
    arg_.codes = codes.data();
    arg_.n_features = n_features;
    if (index)
      take_sparse();
    else
      take_dense();
    check_rows(arg_, std::int64_t(codes.size()), n_codes);
  }

  const RowsArg& arg() const { return arg_; }
  std::int64_t n_rows() const { return arg_.n_rows; }
  std::int64_t n_features() const { return arg_.n_features; }
  std::int64_t n_codes() const { return n_codes_; }

 private:
  CodeType code_type() const {
    if (codes_.dtype() == nb::dtype<std::uint8_t>()) return CodeType::u8;
    if (codes_.dtype() == nb::dtype<std::uint16_t>()) return CodeType::u16;
    require(codes_.dtype() == nb::dtype<std::uint32_t>(), "codes must be uint8/16/32");
    return CodeType::u32;
  }

  void take_dense() {
    require(codes_.ndim() == 2 && std::int64_t(codes_.shape(1)) == arg_.n_features,
            "dense codes must be (n_rows, n_features)");
    arg_.index_type = IndexType::dense;
    arg_.n_rows = std::int64_t(codes_.shape(0));
  }

  void take_sparse() {
    const bool narrow = index_->dtype() == nb::dtype<std::uint16_t>();
    require(narrow || index_->dtype() == nb::dtype<std::uint32_t>(), "index must be uint16/32");
    require(!narrow || arg_.code_type == CodeType::u8, "a uint16 index needs uint8 codes");
    require(start_->dtype() == nb::dtype<std::int64_t>() && start_->ndim() == 1 &&
                start_->shape(0) >= 1,
            "start must be int64 (n_rows + 1)");
    require(index_->ndim() == 1 && codes_.ndim() == 1 && index_->shape(0) == codes_.shape(0),
            "index and codes must have one length");
    arg_.index_type = narrow ? IndexType::u16 : IndexType::u32;
    arg_.index = index_->data();
    arg_.start = static_cast<const std::int64_t*>(start_->data());
    arg_.n_rows = std::int64_t(start_->shape(0)) - 1;
  }

  Array codes_;  // what arg_ points into
  std::optional<Array> index_, start_;
  std::int64_t n_codes_;
  RowsArg arg_{};
};

}  // namespace widemargin
