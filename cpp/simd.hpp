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

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

// Two vectors as one.  GCC takes vectors beyond the machine's through memory, and comparisons of
// them number by number.
template <class H>
struct Halves {
  H low, high;

  friend Halves operator-(Halves a) { return {-a.low, -a.high}; }
  friend Halves operator+(Halves a, Halves b) { return {a.low + b.low, a.high + b.high}; }
  friend Halves operator-(Halves a, Halves b) { return {a.low - b.low, a.high - b.high}; }
  friend Halves operator*(Halves a, Halves b) { return {a.low * b.low, a.high * b.high}; }
  template <class T>
  friend Halves operator+(Halves a, T b) {
    return {a.low + b, a.high + b};
  }
  template <class T>
  friend Halves operator-(T a, Halves b) {
    return {a - b.low, a - b.high};
  }
  template <class T>
  friend Halves operator*(Halves a, T b) {
    return {a.low * b, a.high * b};
  }
  template <class T>
  friend Halves operator*(T a, Halves b) {
    return {a * b.low, a * b.high};
  }
  friend Halves operator|(Halves a, Halves b) { return {a.low | b.low, a.high | b.high}; }
  Halves& operator+=(Halves b) { return *this = *this + b; }
};
template <class H>
auto operator<(Halves<H> a, Halves<H> b) {
  return Halves<decltype(a.low < b.low)>{a.low < b.low, a.high < b.high};
}
template <class H>
auto operator<=(Halves<H> a, Halves<H> b) {
  return Halves<decltype(a.low <= b.low)>{a.low <= b.low, a.high <= b.high};
}
template <class H>
auto operator>(Halves<H> a, Halves<H> b) {
  return b < a;
}
template <class H>
auto operator>=(Halves<H> a, Halves<H> b) {
  return b <= a;
}
template <class H>
auto operator!=(Halves<H> a, Halves<H> b) {
  return Halves<decltype(a.low != b.low)>{a.low != b.low, a.high != b.high};
}
template <class V>
constexpr bool kIsHalves = false;
template <class H>
constexpr bool kIsHalves<Halves<H>> = true;

// N numbers in the machine's vectors.
template <class T, int N, bool kFits = N == 1 || sizeof(T) * N <= kVectorBytes>
struct LanesOf {
  using type = Vector<T, N>;
};
template <class T, int N>
struct LanesOf<T, N, false> {
  using type = Halves<typename LanesOf<T, N / 2>::type>;
};
template <class T, int N>
using LaneVector = typename LanesOf<T, N>::type;

// Any address will do; the arrays are aligned to 64 bytes all the same, because a vector that
// straddles two cache lines costs twice.
template <class V, class T>
inline V load(const T* p) {
  if constexpr (kIsHalves<V>) {
    using H = decltype(V::low);
    return {load<H>(p), load<H>(p + sizeof(H) / sizeof(T))};
  } else {
    V v;
    __builtin_memcpy(&v, p, sizeof(V));
    return v;
  }
}
template <class V, class T>
inline void store(T* p, V v) {
  if constexpr (kIsHalves<V>) {
    store(p, v.low);
    store(p + sizeof(v.low) / sizeof(T), v.high);
  } else {
    __builtin_memcpy(p, &v, sizeof(V));
  }
}

// a where the comparison holds, b elsewhere.
template <class M, class V>
inline V select(M m, V a, V b) {
  if constexpr (kIsHalves<V>)
    return {select(m.low, a.low, b.low), select(m.high, a.high, b.high)};
  else
    return m ? a : b;
}
template <class V>
inline V vmax(V a, V b) {
  return select(a > b, a, b);
}
template <class V>
inline V vmin(V a, V b) {
  return select(a < b, a, b);
}

// The numbers below n, as a pack: CountTo<n> can be passed for Numbers<0, ..., n - 1>.
template <int... number>
struct Numbers {};
template <int n, int... number>
struct CountTo : CountTo<n - 1, n - 1, number...> {};
template <int... number>
struct CountTo<0, number...> : Numbers<number...> {};

// Of two vectors, lanes by number: those of b come after those of a.
template <int... place, class V>
inline V shuffled(V a, V b) {
#if defined(__clang__)
  return __builtin_shufflevector(a, b, place...);
#else
  using Place = std::conditional_t<sizeof(a[0]) == 4, std::int32_t, std::int64_t>;
  return __builtin_shuffle(a, b, Vector<Place, sizeof...(place)>{place...});
#endif
}

// Is any lane of a comparison's result true?  (A scalar comparison is its own answer.)
inline bool any(bool m) { return m; }
template <class M, std::enable_if_t<!std::is_arithmetic_v<M>, int> = 0>
inline bool any(M m) {
  if constexpr (kIsHalves<M>) {
    return any(m.low | m.high);
  } else {
    constexpr int n = sizeof(M) / sizeof(m[0]);
    std::remove_reference_t<decltype(m[0])> r = 0;
    for (int i = 0; i < n; ++i) r |= m[i];
    return r != 0;
  }
}
template <class V, class T>
inline T sum_of(V v) {
  T numbers[sizeof(V) / sizeof(T)], s = 0;
  store(numbers, v);
  for (const T number : numbers) s += number;
  return s;
}

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
