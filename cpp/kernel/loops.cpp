// Hot loops of the kernel machine: kernel values from inner products, the two-variable solver of
// one block, the gradient update.  Compiled once per instruction set (see isa.hpp).
#include "kernel/problem.hpp"
#include "simd.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {
namespace {

// The widest vectors of kernel values in each precision: 64 bytes.
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

// exp(x), clamped to [-80, 80].  Below -80 (1.8e-35) a kernel value is zero for every purpose, and
// denormal numbers would slow everything that reads them.  The relative error is below 3e-7, which
// a test measures over the whole range.
inline Floats exp_clamped(Floats x) {
  using Ints = Vector<std::int32_t, 16>;
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
  p = p * (r * r) + r + 1.0f;
  const Ints bits = (__builtin_convertvector(n, Ints) + 127) << 23;
  Floats two_to_n;
  __builtin_memcpy(&two_to_n, &bits, sizeof two_to_n);
  return p * two_to_n;
}

// Double precision serves small problems with tight tolerances: the library's exp is fast enough.
inline Doubles exp_clamped(Doubles x) {
  for (int l = 0; l < 8; ++l) x[l] = __builtin_exp(x[l] < -700 ? -700 : x[l] > 700 ? 700 : x[l]);
  return x;
}

template <class V>
inline V power(V x, int degree) {
  V result = V{} + 1;
  for (int bit = degree; bit > 0; bit >>= 1, x = x * x)
    if (bit & 1) result = result * x;
  return result;
}

// Inner products to kernel values; `norms` are the sums of the two squared norms.
template <Finish kind, class T, class V>
inline V finished(const FinishArg<T>& f, V dot, V norms) {
  if constexpr (kind == Finish::rbf)
    return exp_clamped(V(-f.gamma * vmax(V(norms - 2 * dot), V{})));
  else if constexpr (kind == Finish::polynomial)
    return power(V(f.gamma * dot + f.coef0), f.degree);
  else if constexpr (kind == Finish::sigmoid)  // tanh(u) = 1 - 2 / (exp(2u) + 1)
    return 1 - 2 / (exp_clamped(V(2 * (f.gamma * dot + f.coef0))) + 1);
  else
    return dot;
}

template <Finish kind, class T>
void finish_rows(const BlockArg<T>& b) {
  using V = typename Lanes<T>::Values;
  constexpr int lanes = Lanes<T>::n;
  for (std::int64_t i = 0; i < b.n_rows; ++i) {
    T* row = b.values + i * b.row_stride;
    const T own = b.row_norms[i];
    std::int64_t j = 0;
    for (; j + lanes <= b.n_columns; j += lanes)
      store(row + j,
            finished<kind>(b.finish, load<V>(row + j), V(own + load<V>(b.column_norms + j))));
    if (j < b.n_columns) {  // the last vector, partly filled
      V dot{}, norm{};
      const std::size_t rest = std::size_t(b.n_columns - j) * sizeof(T);
      __builtin_memcpy(&dot, row + j, rest);
      __builtin_memcpy(&norm, b.column_norms + j, rest);
      const V value = finished<kind>(b.finish, dot, V(own + norm));
      __builtin_memcpy(row + j, &value, rest);
    }
  }
}

// The panel that begins with row j0, of which `vectors` vectors are in use, stays in cache while
// all compressed rows pass by; sixteen of them at a time, so that the transposed results are
// written a cache line at a time.
template <Finish kind, int vectors, class T>
void sparse_panel(const SparseBlockArg<T>& a, std::int64_t j0, std::int64_t width) {
  using V = typename Lanes<T>::Values;
  constexpr int lanes = Lanes<T>::n;
  constexpr std::int64_t kGroup = 16;
  T results[kGroup][vectors * lanes];
  const T* panel = a.panels + j0 * a.n_features;
  for (std::int64_t i0 = 0; i0 < a.n_columns; i0 += kGroup) {
    const std::int64_t group = a.n_columns - i0 < kGroup ? a.n_columns - i0 : kGroup;
    for (std::int64_t i = 0; i < group; ++i) {
      V sum[vectors] = {};
      for (std::int64_t p = a.start[i0 + i]; p < a.start[i0 + i + 1]; ++p) {
        const std::int64_t at = a.place ? a.place[a.index[p]] : a.index[p];
        if (at < 0) continue;
        const T value = a.value[p], *row = panel + at * kPanel;
        for (int v = 0; v < vectors; ++v) sum[v] += value * load<V>(row + v * lanes);
      }
      for (int v = 0; v < vectors; ++v) {
        const V norms = a.column_norms[i0 + i] + load<V>(a.row_norms + j0 + v * lanes);
        store(results[i] + v * lanes, finished<kind>(a.finish, sum[v], norms));
      }
    }
    for (std::int64_t j = 0; j < width; ++j) {
      T* to = a.out + (j0 + j) * a.row_stride + i0;
      for (std::int64_t i = 0; i < group; ++i) to[i] = results[i][j];
    }
  }
}

template <Finish kind, class T>
void sparse_rows(const SparseBlockArg<T>& a) {
  constexpr int most = kPanel / Lanes<T>::n;
  for (std::int64_t j0 = 0; j0 < a.n_rows; j0 += kPanel) {
    const std::int64_t width = a.n_rows - j0 < kPanel ? a.n_rows - j0 : kPanel;
    if (width <= kPanel / 4)
      sparse_panel<kind, most / 4>(a, j0, width);
    else if (width <= kPanel / 2)
      sparse_panel<kind, most / 2>(a, j0, width);
    else
      sparse_panel<kind, most>(a, j0, width);
  }
}

template <class T>
void finish(const BlockArg<T>& b) {
  if (b.finish.kind == Finish::rbf) finish_rows<Finish::rbf>(b);
  if (b.finish.kind == Finish::polynomial) finish_rows<Finish::polynomial>(b);
  if (b.finish.kind == Finish::sigmoid) finish_rows<Finish::sigmoid>(b);
}

template <class T>
void sparse_block(const SparseBlockArg<T>& a) {
  if (a.finish.kind == Finish::none) sparse_rows<Finish::none>(a);
  if (a.finish.kind == Finish::rbf) sparse_rows<Finish::rbf>(a);
  if (a.finish.kind == Finish::polynomial) sparse_rows<Finish::polynomial>(a);
  if (a.finish.kind == Finish::sigmoid) sparse_rows<Finish::sigmoid>(a);
}

using Longs = Vector<std::int64_t, 8>;

inline Doubles widened(const float* p) {
  return __builtin_convertvector((load<Vector<float, 8>>(p)), Doubles);
}
inline Doubles widened(const double* p) { return load<Doubles>(p); }

struct Best {
  double score;
  std::int64_t index;
};

// Lane-wise maxima to one; ties go to the smallest index, so that results do not depend on lanes.
inline Best reduce(Doubles score, Longs index) {
  Best best{score[0], index[0]};
  for (int l = 1; l < 8; ++l)
    if (score[l] > best.score || (score[l] == best.score && index[l] < best.index))
      best = {score[l], index[l]};
  return best;
}

inline Doubles projected(Doubles a, Doubles g, Doubles upper) {
  const Doubles zero{};
  const Doubles low = vmin(g, zero), high = vmax(g, zero);
  return a <= zero ? low : (a >= upper ? high : g);
}

// Two-variable steps with a second-order partner on one block (Steinwart, Hush, Scovel 2011;
// without a bias there is no equality constraint, so the pair moves in a rectangle).
template <class T>
class Block {
 public:
  explicit Block(const WorkingSetArg<T>& w) : w_(w) {}

  std::int64_t solve() {
    std::int64_t steps = 0;
    Best first = most_violating(0, 0, 0, 0);
    while (steps < w_.max_steps) {
      const std::int64_t i = first.index;
      if (first.score <= 0 || violation(i) <= w_.tol) break;
      const std::int64_t j = partner(i);
      double di = 0, dj = 0;
      minimise_pair(i, j, &di, &dj);
      ++steps;
      if (di == 0 && dj == 0) break;  // at the limit of the arithmetic
      w_.alpha[i] += di;
      if (j != i) w_.alpha[j] += dj;
      first = most_violating(i, di, j, j != i ? dj : 0);
    }
    return steps;
  }

 private:
  const T* row(std::int64_t i) const { return w_.q + i * w_.size; }
  double violation(std::int64_t i) const {
    const double g = w_.gradient[i];
    if (w_.alpha[i] <= 0) return g < 0 ? -g : 0;
    if (w_.alpha[i] >= w_.upper[i]) return g > 0 ? g : 0;
    return g < 0 ? -g : g;
  }

  // Updates the gradient by two rows and finds the largest projected gradient on the way.
  Best most_violating(std::int64_t i, double di, std::int64_t j, double dj) {
    const T *qi = row(i), *qj = row(j);
    Doubles best{};
    Longs at{}, index = {0, 1, 2, 3, 4, 5, 6, 7};
    best = best - 1.0;
    for (std::int64_t k = 0; k < w_.size; k += 8, index = index + 8) {
      const Doubles g =
          load<Doubles>(w_.gradient + k) + di * widened(qi + k) + dj * widened(qj + k);
      store(w_.gradient + k, g);
      const Doubles pg = projected(load<Doubles>(w_.alpha + k), g, load<Doubles>(w_.upper + k));
      const Doubles score = pg * pg;
      const auto better = score > best;
      best = better ? score : best;
      at = better ? index : at;
    }
    return reduce(best, at);
  }

  // The partner with the largest decrease of the unconstrained two-variable step, among those
  // that may move in its direction; i itself stands for a step of one variable.
  std::int64_t partner(std::int64_t i) const {
    const double qii = w_.diagonal[i], gi = w_.gradient[i];
    const T* qi = row(i);
    Doubles best{};
    Longs at{}, index = {0, 1, 2, 3, 4, 5, 6, 7};
    best = best + gi * gi / qii;
    at = at + i;
    for (std::int64_t k = 0; k < w_.size; k += 8, index = index + 8) {
      const Doubles qij = widened(qi + k), g = load<Doubles>(w_.gradient + k);
      const Doubles a = load<Doubles>(w_.alpha + k), upper = load<Doubles>(w_.upper + k);
      const Doubles qjj = load<Doubles>(w_.diagonal + k);
      const Doubles determinant = vmax(qii * qjj - qij * qij, 1e-12 * qii * qjj);
      const Doubles towards = qij * gi - qii * g;  // sign of the partner's step
      const Doubles gain = (gi * gi * qjj - 2 * gi * g * qij + g * g * qii) / determinant;
      const Doubles zero{};
      const auto blocked = ((a <= zero) & (towards <= zero)) | ((a >= upper) & (towards >= zero));
      const Doubles score = blocked ? zero : gain;
      const auto better = score > best;
      best = better ? score : best;
      at = better ? index : at;
    }
    return reduce(best, at).index;
  }

  double clipped(std::int64_t i, double step) const {
    const double a = w_.alpha[i], to = a + step;
    return to < 0 ? -a : to > w_.upper[i] ? w_.upper[i] - a : step;
  }

  void minimise_pair(std::int64_t i, std::int64_t j, double* di, double* dj) const {
    const double qii = w_.diagonal[i], gi = w_.gradient[i];
    if (i == j) {
      *di = clipped(i, -gi / qii);
      *dj = 0;
      return;
    }
    const double qjj = w_.diagonal[j], gj = w_.gradient[j], qij = row(i)[j];
    double determinant = qii * qjj - qij * qij;
    if (determinant < 1e-12 * qii * qjj) determinant = 1e-12 * qii * qjj;
    const double si = (qij * gj - qjj * gi) / determinant, sj = (qij * gi - qii * gj) / determinant;
    if (clipped(i, si) == si && clipped(j, sj) == sj) {
      *di = si;
      *dj = sj;
      return;
    }
    // The minimum lies on an edge: fix one variable at each bound it may reach, solve the other.
    // With a nearly singular pair every edge can be worse than moving the first one alone.
    *di = clipped(i, -gi / qii);
    *dj = 0;
    double best = *di * (gi + 0.5 * qii * *di);
    const auto try_edge = [&](double step, bool first) {
      const double g_other = (first ? gj : gi) + qij * step;
      const double other = clipped(first ? j : i, -g_other / (first ? qjj : qii));
      const double xi = first ? step : other, xj = first ? other : step;
      const double value =
          gi * xi + gj * xj + 0.5 * (qii * xi * xi + qjj * xj * xj) + qij * xi * xj;
      if (value < best) {
        best = value;
        *di = xi;
        *dj = xj;
      }
    };
    try_edge(-w_.alpha[i], true);
    try_edge(-w_.alpha[j], false);
    if (w_.upper[i] < __builtin_huge_val()) try_edge(w_.upper[i] - w_.alpha[i], true);
    if (w_.upper[j] < __builtin_huge_val()) try_edge(w_.upper[j] - w_.alpha[j], false);
  }

  const WorkingSetArg<T>& w_;
};

template <class T>
std::int64_t solve_block(const WorkingSetArg<T>& w) {
  return Block<T>(w).solve();
}

// In double precision, a tile of sums at a time so that they stay in the first-level cache.
template <class T>
void add_rows(const T* const* rows, const double* coef, std::int64_t n_rows, std::int64_t n_columns,
              double* out) {
  constexpr std::int64_t kTile = 1024;
  for (std::int64_t from = 0; from < n_columns; from += kTile) {
    const std::int64_t to = from + kTile < n_columns ? from + kTile : n_columns;
    std::int64_t i = 0;
    for (; i + 4 <= n_rows; i += 4) {
      const T *r0 = rows[i], *r1 = rows[i + 1], *r2 = rows[i + 2], *r3 = rows[i + 3];
      const double c0 = coef[i], c1 = coef[i + 1], c2 = coef[i + 2], c3 = coef[i + 3];
      std::int64_t j = from;
      for (; j + 8 <= to; j += 8)
        store(out + j, load<Doubles>(out + j) + (c0 * widened(r0 + j) + c1 * widened(r1 + j)) +
                           (c2 * widened(r2 + j) + c3 * widened(r3 + j)));
      for (; j < to; ++j) out[j] += (c0 * r0[j] + c1 * r1[j]) + (c2 * r2[j] + c3 * r3[j]);
    }
    for (; i < n_rows; ++i)
      for (std::int64_t j = from; j < to; ++j) out[j] += coef[i] * double(rows[i][j]);
  }
}

}  // namespace

extern const KernelLoops kernel_loops;
const KernelLoops kernel_loops = {
    {finish<float>, sparse_block<float>, solve_block<float>, add_rows<float>},
    {finish<double>, sparse_block<double>, solve_block<double>, add_rows<double>}};

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
