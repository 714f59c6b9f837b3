// From inner products to kernel values: the vector exponential, powers, and the sigmoid.
#pragma once

#include "kernel/problem.hpp"
#include "kernel/vectors.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

// exp(x) = (1 + rest) scale, where scale is a power of two.
template <class V>
struct Exponential {
  V rest, scale;

  V value() const { return (rest + 1) * scale; }
  V less_one() const { return rest * scale + (scale - 1); }  // as exact near zero as elsewhere
};

// Of x, clamped to [-80, 80].  Below -80 (1.8e-35) a kernel value is zero for every purpose, and
// denormal numbers would slow everything that reads them.  The relative error is below 3e-7, which
// a test measures over the whole range.
inline Exponential<Floats> exponential(Floats x) {
  using Ints = Vector<std::int32_t, Lanes<float>::n>;
  x = vmin(vmax(x, Floats{} - 80.0f), Floats{} + 80.0f);
  const Floats shifted = x * 1.44269504f + 12582912.0f;  // 1.5 * 2^23 rounds to an integer
  const Floats n = shifted - 12582912.0f;
  const Floats r = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // x - n ln 2, in two parts
  Floats p = Floats{} + 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r;
  const Ints bits = (__builtin_convertvector(n, Ints) + 127) << 23;
  Floats two_to_n;
  __builtin_memcpy(&two_to_n, &bits, sizeof two_to_n);
  return {p, two_to_n};
}

// The same in double precision, clamped to [-700, 700]; Taylor's series on [-ln 2 / 2, ln 2 / 2].
inline Exponential<Doubles> exponential(Doubles x) {
  using Longs = Vector<std::int64_t, kDoubles>;
  x = vmin(vmax(x, Doubles{} - 700.0), Doubles{} + 700.0);
  const Doubles shifted = x * 1.4426950408889634 + 6755399441055744.0;  // 1.5 * 2^52
  const Doubles n = shifted - 6755399441055744.0;
  const Doubles r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  const Doubles s = r * r;  // even and odd powers apart: neither waits for the other
  Doubles even = Doubles{} + 1.0 / 479001600, odd = Doubles{} + 1.0 / 6227020800;
  even = even * s + 1.0 / 3628800, odd = odd * s + 1.0 / 39916800;
  even = even * s + 1.0 / 40320, odd = odd * s + 1.0 / 362880;
  even = even * s + 1.0 / 720, odd = odd * s + 1.0 / 5040;
  even = even * s + 1.0 / 24, odd = odd * s + 1.0 / 120;
  even = even * s + 0.5, odd = odd * s + 1.0 / 6;
  odd = odd * s + 1.0;
  const Doubles p = odd * r + even * s;
  Longs bits;  // whose last ones are n
  __builtin_memcpy(&bits, &shifted, sizeof bits);
  bits = (bits << 52) + (std::int64_t(1023) << 52);
  Doubles two_to_n;
  __builtin_memcpy(&two_to_n, &bits, sizeof two_to_n);
  return {p, two_to_n};
}

// With the relative error of the exponential, also of the smallest numbers.
template <class V>
inline V hyperbolic_tangent(V x) {
  const V less_one = exponential(V(2 * x)).less_one();
  return less_one / (less_one + 2);
}

template <class V>
inline V power(V x, int degree) {
  V result = V{} + 1;
  for (int bit = degree; bit > 0; bit >>= 1, x = x * x)
    if (bit & 1) result = result * x;
  return result;
}

// Inner products to kernel values; `norms` are the sums of the two squared norms.
template <FinishKind kind, class T, class V>
inline V finished(const FinishArg<T>& f, V dot, V norms) {
  if constexpr (kind == FinishKind::rbf)
    return exponential(V(-f.gamma * vmax(V(norms - 2 * dot), V{}))).value();
  else if constexpr (kind == FinishKind::polynomial)
    return power(V(f.gamma * dot + f.coef0), f.degree);
  else if constexpr (kind == FinishKind::sigmoid)
    return hyperbolic_tangent(V(f.gamma * dot + f.coef0));
  else
    return dot;
}

template <FinishKind kind, class T>
void finish_rows(const FinishArg<T>& finish, const T* row_norms, const T* column_norms,
                 const MatrixArg<T>& b) {
  using V = typename Lanes<T>::Values;
  constexpr int lanes = Lanes<T>::n;
  for (std::int64_t i = 0; i < b.n_rows; ++i) {
    T* row = b.values + i * b.row_stride;
    const T own = row_norms[i];
    std::int64_t j = 0;
    for (; j + lanes <= b.n_columns; j += lanes)
      store(row + j, finished<kind>(finish, load<V>(row + j), V(own + load<V>(column_norms + j))));
    if (j < b.n_columns) {  // the last vector, partly filled
      V dot{}, norm{};
      const std::size_t rest = std::size_t(b.n_columns - j) * sizeof(T);
      __builtin_memcpy(&dot, row + j, rest);
      __builtin_memcpy(&norm, column_norms + j, rest);
      const V value = finished<kind>(finish, dot, V(own + norm));
      __builtin_memcpy(row + j, &value, rest);
    }
  }
}

template <class T>
void finish_block(const FinishArg<T>& f, const T* row_norms, const T* column_norms,
                  const MatrixArg<T>& values) {
  if (f.kind == FinishKind::rbf) finish_rows<FinishKind::rbf>(f, row_norms, column_norms, values);
  if (f.kind == FinishKind::polynomial)
    finish_rows<FinishKind::polynomial>(f, row_norms, column_norms, values);
  if (f.kind == FinishKind::sigmoid)
    finish_rows<FinishKind::sigmoid>(f, row_norms, column_norms, values);
}

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
