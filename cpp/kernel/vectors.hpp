// The vectors of the kernel machine's loops: as many values as the machine takes at a time.
#pragma once

#include "simd.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

template <class T>
struct Lanes {
  static constexpr int n = kVectorBytes / int(sizeof(T));
  using Values = Vector<T, n>;
};
constexpr int kDoubles = Lanes<double>::n;
using Floats = Lanes<float>::Values;
using Doubles = Lanes<double>::Values;

inline Doubles widened(const float* p) {
  return __builtin_convertvector((load<Vector<float, kDoubles>>(p)), Doubles);
}
inline Doubles widened(const double* p) { return load<Doubles>(p); }

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
