// The vectors of the kernel machine's loops: 64 bytes of values in either precision.
#pragma once

#include "simd.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

template <class T>
struct Lanes;
template <>
struct Lanes<float> {
  static constexpr int n = 16;
  using Values = Vector<float, 16>;
};
template <>
struct Lanes<double> {
  static constexpr int n = 8;
  using Values = Vector<double, 8>;
};
using Floats = Lanes<float>::Values;
using Doubles = Lanes<double>::Values;

inline Doubles widened(const float* p) {
  return __builtin_convertvector((load<Vector<float, 8>>(p)), Doubles);
}
inline Doubles widened(const double* p) { return load<Doubles>(p); }

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
