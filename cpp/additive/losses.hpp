// The losses, in signed coefficients b_i = y_i a_i.  With targets t_i the dual is
//
//     min  1/2 b'Kb - t'b + 1/2 sum_i rho_i b_i^2,    l_i <= b_i <= u_i
//
//     hinge          rho = 0,        |b| <= C,         b has the target's sign
//     squared hinge  rho = 1/(2C),   |b| unbounded,    b has the target's sign
//
// A target of 0 (a lane without a problem) has l = u = 0 and contributes nothing.  losses.py is the
// same in Python; tests/test_losses.py compares the two.
//
// A new loss needs a LossKind, a name in bind_additive.cpp, and a case in each function here.
#pragma once

#include "additive/problem.hpp"
#include "simd.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

// T is a number, V a number or a vector of lanes.  The kind is a branch at run time: templates over
// it would double the number of loops to compile, for one predictable branch per sample.
template <class T>
struct Loss {
  LossKind kind;

  bool squared() const { return kind == LossKind::squared_hinge; }

  // rho, the loss's own curvature in the dual.
  T ridge(T c) const { return squared() ? T(0.5) / c : T(0); }

  // The largest |b|.
  T largest(T c) const { return squared() ? T(__builtin_huge_val()) : c; }

  // Clip a coefficient to l = min(0, t most) and u = max(0, t most); 0 if t is 0, also
  // for 0 * infinity, because vmin and vmax return their second value when they compare NaN.
  template <class V>
  V clipped(V coef, V target, T c) const {
    const V zero{}, end = target * largest(c);
    return vmin(vmax(coef, vmin(end, zero)), vmax(end, zero));
  }

  // C loss of a sample with slack >= 0.
  template <class V>
  V value(V slack, T c) const {
    return squared() ? c * slack * slack : c * slack;
  }

  // The gap of a sample, C loss + rho b^2 / 2 - |b| (1 - margin), in forms without cancellation,
  // with slack below the margin, excess beyond it, size |b| and pull rho |b|:
  //   squared hinge  C (slack - pull)^2  below the margin,  |b| (pull / 2 + excess)  beyond it
  //   hinge          (C - |b|) slack     below the margin,  |b| excess               beyond it
  template <class V>
  V gap(V size, V slack, V excess, T c, V pull) const {
    if (!squared()) return (c - size) * slack + size * excess;
    const V short_of = slack - pull, below = c * short_of * short_of;
    const V beyond = size * (T(0.5) * pull + excess);
    return select(excess > V{}, beyond, below);  // a select instead of a branch
  }
};

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
