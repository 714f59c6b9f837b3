// A time limit that is looked at once per so many values, so that it costs nothing.
#pragma once

#include <cstdint>
#include <ctime>

#include "isa.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

class Clock {
 public:
  static double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
  }
  explicit Clock(double seconds) : deadline_(now() + seconds) {}
  void count(std::int64_t values) { work_ += values + 16; }
  bool is_up() {
    if (work_ < (1 << 18)) return false;
    work_ = 0;
    return now() > deadline_;
  }

 private:
  double deadline_;
  std::int64_t work_ = 0;
};

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
