// Which bin a number is in: code = #{k : threshold[k] <= t}.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace widemargin {

// A cell is all numbers that begin with the same bits, so it is found without rounding, and small
// numbers have as many as large ones.  A table says how many thresholds lie below each cell; a
// binary search of a fixed number of steps, without a branch that depends on the number, finds the
// rest.
class Quantiser {
 public:
  Quantiser(const double* thresholds, std::int64_t n) : thresholds_(thresholds, thresholds + n) {
    const double* const positive = std::find_if(thresholds, thresholds + n, [](double t) {
      return begins_with(t) > 0;  // smaller ones share the first cell with zero and less
    });
    const std::int64_t last = n > 0 ? std::max(begins_with(thresholds[n - 1]), std::int64_t(1)) : 1;
    base_ = std::max(positive < thresholds + n ? begins_with(*positive) : 1, last - kMostCells) - 1;
    top_ = last - base_;
    below_.resize(std::size_t(top_) + 2);
    for (std::int64_t k = 0; k < n; ++k)
      ++below_[std::size_t(cell(thresholds[k], base_, top_)) + 1];
    const std::uint32_t most = *std::max_element(below_.begin(), below_.end());
    for (std::size_t c = 1; c < below_.size(); ++c) below_[c] += below_[c - 1];
    while (2 * half_ <= most) half_ *= 2;
    thresholds_.resize(std::size_t(n + 2 * half_), NAN);  // no look is too far, none is below
  }
  std::uint32_t operator()(double t) const {
    std::uint32_t code;
    run(&t, 1, &code);
    return code;
  }
  // Step by step for all of them: no number waits for another one's look-ups.
  void run(const double* t, int n, std::uint32_t* codes) const {
    const double* const thresholds = thresholds_.data();
    const std::uint32_t* const below = below_.data();
    const std::int64_t base = base_, top = top_;
    for (int k = 0; k < n; ++k) codes[k] = below[cell(t[k], base, top)];
    for (std::uint32_t step = half_; step > 0; step /= 2)
      for (int k = 0; k < n; ++k)
        codes[k] += step * std::uint32_t(thresholds[codes[k] + step - 1] <= t[k]);
  }

 private:
  // The sign, the exponent and some bits of the fraction; positive numbers are in their own order.
  static std::int64_t begins_with(double t) {
    std::int64_t bits;
    std::memcpy(&bits, &t, sizeof bits);
    return bits >> (52 - kFraction);
  }
  static std::int64_t cell(double t, std::int64_t base, std::int64_t top) {
    return std::min(std::max(begins_with(t) - base, std::int64_t(0)), top);
  }

  static constexpr int kFraction = 8;
  static constexpr std::int64_t kMostCells = 16 << kFraction;
  std::vector<double> thresholds_;
  std::vector<std::uint32_t> below_;
  std::int64_t base_, top_;
  std::uint32_t half_ = 1;  // a search of half_, half_ / 2, ... 1 tells 2 * half_ places apart
};

}  // namespace widemargin
