// Find the bin of a number: code = #{k : threshold[k] <= t}.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace widemargin {

// A cell contains the numbers with the same leading bits, so finding it needs no rounding, and
// small numbers have as many cells as large ones.  A table has the number of thresholds below each
// cell; a branchless binary search with a fixed number of steps finds the rest.
class Quantiser {
 public:
  Quantiser(const double* thresholds, std::int64_t n) : thresholds_(thresholds, thresholds + n) {
    const double* const positive = std::find_if(thresholds, thresholds + n, [](double t) {
      return begins_with(t) >
             0;  // smaller thresholds share the first cell with zero and negative numbers
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
    thresholds_.resize(std::size_t(n + 2 * half_), NAN);  // padding for look-ups beyond the end
  }
  std::uint32_t operator()(double t) const {
    std::uint32_t code;
    run(&t, 1, &code);
    return code;
  }
  // Step by step for all numbers, so that their look-ups overlap.
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
  // Sign, exponent and leading bits of the fraction; monotonic for positive numbers.
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
  std::uint32_t half_ = 1;  // a search of half_, half_ / 2, ... 1 distinguishes 2 * half_ positions
};

}  // namespace widemargin
