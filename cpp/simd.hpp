// Vectors of GCC/Clang's vector extension, and the few operations that read the same on a
// vector of lanes and on a plain number.  No intrinsics: the compiler picks the instructions
// of the instruction set the file is compiled for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "isa.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

template <class T, int N>
struct VectorOf {
  typedef T type __attribute__((vector_size(sizeof(T) * N)));
};
template <class T>
struct VectorOf<T, 1> {
  using type = T;
};
template <class T, int N>
using Vector = typename VectorOf<T, N>::type;

// Any address will do; the arrays are aligned to 64 bytes all the same, because a vector that
// straddles two cache lines costs twice.
template <class V, class T>
inline V load(const T* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(V));
  return v;
}
template <class V, class T>
inline void store(T* p, V v) {
  __builtin_memcpy(p, &v, sizeof(V));
}

template <class V>
inline V vmax(V a, V b) {
  return a > b ? a : b;
}
template <class V>
inline V vmin(V a, V b) {
  return a < b ? a : b;
}

// Is any lane of a comparison's result true?  (A scalar comparison is its own answer.)
inline bool any(bool m) { return m; }
template <class M, std::enable_if_t<!std::is_arithmetic_v<M>, int> = 0>
inline bool any(M m) {
  constexpr int n = sizeof(M) / sizeof(m[0]);
  std::remove_reference_t<decltype(m[0])> r = 0;
  for (int i = 0; i < n; ++i) r |= m[i];
  return r != 0;
}
template <class V, class T>
inline T sum_of(V v) {
  if constexpr (std::is_arithmetic_v<V>) {
    return v;
  } else {
    T s = 0;
    for (std::size_t i = 0; i < sizeof(V) / sizeof(T); ++i) s += v[i];
    return s;
  }
}

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
