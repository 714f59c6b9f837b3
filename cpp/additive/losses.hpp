// The losses, in signed coefficients b_i.  With targets t_i the dual is
//
//     min  1/2 b'Kb - t'b + sum_i eps |b_i| + 1/2 sum_i rho_i b_i^2,    l_i <= b_i <= u_i
//
//     hinge                        rho = 0,       |b| <= C,        b has the target's sign, eps = 0
//     squared hinge                rho = 1/(2C),  |b| unbounded,   b has the target's sign, eps = 0
//     epsilon-insensitive          rho = 0,       |b| <= C
//     squared epsilon-insensitive  rho = 1/(2C),  |b| unbounded
//
// The first two are of a margin, with targets +1 and -1; a target of 0 (a lane without a problem)
// has l = u = 0 and contributes nothing.  The last two are of a tube of half width eps around a
// target that is any number; a lane without a problem has targets of 0 and stays at 0.  losses.py
// is the same in Python; tests/test_losses.py compares the two.
//
// A new loss needs a LossKind, a name in bind_additive.cpp, and a case in each function here.
#pragma once

#include "additive/problem.hpp"
#include "simd.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

// T is a number, V a number or a vector of lanes.  Whether a loss is squared is a branch at run
// time: templates over it would double the number of loops to compile, for one predictable branch
// per sample.
template <class T>
struct Loss {
  LossKind kind;

  bool squared() const {
    return kind == LossKind::squared_hinge || kind == LossKind::squared_epsilon_insensitive;
  }

  // rho, the loss's own curvature in the dual.
  T ridge(T c) const { return squared() ? T(0.5) / c : T(0); }

  // The largest |b|.
  T largest(T c) const { return squared() ? T(__builtin_huge_val()) : c; }

  // C loss of a sample with slack >= 0.
  template <class V>
  V value(V slack, T c) const {
    return squared() ? c * slack * slack : c * slack;
  }

  // The gap of a sample, C loss + rho b^2 / 2 - |b| ahead, in forms without cancellation, with
  // slack where it is ahead of 0, excess where it is behind, size |b| and pull rho |b|:
  //   squared  C (slack - pull)^2  with slack,  |b| (pull / 2 + excess)  without
  //   others   (C - |b|) slack     with slack,  |b| excess               without
  template <class V>
  V gap(V size, V slack, V excess, T c, V pull) const {
    if (!squared()) return (c - size) * slack + size * excess;
    const V short_of = slack - pull, below = c * short_of * short_of;
    const V beyond = size * (T(0.5) * pull + excess);
    return select(excess > V{}, beyond, below);  // a select instead of a branch
  }
};

// LIBLINEAR's variable a = |b|, its gradient, and how far the decision is from where the loss
// begins, in the direction that b pushes it.
template <class V>
struct OneSided {
  V a, gradient, ahead;
};

// The losses of a margin.
template <class T, class V>
struct Margin {
  static constexpr bool kTwoSided = false;

  explicit Margin(const SharedArg&) {}

  // 0 in an empty lane.
  OneSided<V> of(V target, V coef, V decision, V gradient) const {
    return {target * coef, target * gradient, target * (target - decision)};
  }

  // Clip a coefficient to l = min(0, t most) and u = max(0, t most); 0 if t is 0, also
  // for 0 * infinity, because vmin and vmax return their second value when they compare NaN.
  V minimiser(V coef, T, V target, T most) const {
    const V zero{}, end = target * most;
    return vmin(vmax(coef, vmin(end, zero)), vmax(end, zero));
  }
};

// The losses of a tube.  A coefficient of 0 may move to either side: its side is the one that
// lowers the dual objective.
template <class T, class V>
struct Tube {
  static constexpr bool kTwoSided = true;
  V epsilon;

  explicit Tube(const SharedArg& shared) {
    T lanes[kLanes];
    for (int l = 0; l < kLanes; ++l) lanes[l] = T(shared.epsilon[l]);
    epsilon = load<V>(lanes);
  }

  OneSided<V> of(V target, V coef, V decision, V gradient) const {
    const V zero{}, away = target - decision;
    const V side = select(coef != zero, coef, V(zero - gradient));
    return {select(side < zero, V(-coef), coef),
            select(side < zero, V(epsilon - gradient), V(epsilon + gradient)),
            select(side < zero, V(-away), away) - epsilon};
  }

  // How far the decision is beyond the tube's other side.
  V opposite(V ahead) const { return vmax(V(-ahead - epsilon - epsilon), V{}); }

  // A step is `step` times the gradient: move towards 0 by epsilon steps, not past it; then clip.
  V minimiser(V coef, T step, V, T most) const {
    const V zero{}, width = step * epsilon, end = zero + most;
    const V moved = vmax(V(coef - width), zero) + vmin(V(coef + width), zero);
    return vmin(vmax(moved, V(-end)), end);
  }
};

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
