// Kernel values of compressed rows with rows in panels (see kernel/problem.hpp).
#pragma once

#include "kernel/finish.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

// Kernel values of compressed row i with the panel that begins with row j0, of which `vectors`
// vectors are in use.
template <FinishKind kind, int vectors, class T>
WIDEMARGIN_INLINE void panel_values(const PanelsArg<T>& panels, const CompressedArg<T>& rows,
                                    const FinishArg<T>& finish, std::int64_t j0, std::int64_t i,
                                    typename Lanes<T>::Values (&value)[vectors]) {
  using V = typename Lanes<T>::Values;
  constexpr int lanes = Lanes<T>::n;
  const T* panel = panels.values + j0 * panels.n_features;
  V sum[vectors] = {};
  for (std::int64_t p = rows.start[i]; p < rows.start[i + 1]; ++p) {
    const std::int64_t at = panels.place ? panels.place[rows.index[p]] : rows.index[p];
    if (at < 0) continue;
    const T x = rows.value[p], *row = panel + at * kPanel;
    for (int v = 0; v < vectors; ++v) sum[v] += x * load<V>(row + v * lanes);
  }
  for (int v = 0; v < vectors; ++v) {
    const V norms = rows.norms[i] + load<V>(panels.norms + j0 + v * lanes);
    value[v] = finished<kind>(finish, sum[v], norms);
  }
}

// Rows of a square of values become its columns: at distance s, the lanes with that bit change
// places with those of the other row without it.
template <int s, class V, int... lane>
WIDEMARGIN_INLINE void exchange_lanes(V& a, V& b, Numbers<lane...>) {
  constexpr int n = sizeof...(lane);
  const V first = shuffled<(lane & s ? n + lane - s : lane)...>(a, b);
  b = shuffled<(lane & s ? n + lane : lane + s)...>(a, b);
  a = first;
}

template <int s = 1, class V, int n>
WIDEMARGIN_INLINE void transpose(V (&square)[n]) {
  if constexpr (s < n) {
    for (int i = 0; i < n; ++i)
      if (!(i & s)) exchange_lanes<s>(square[i], square[i + s], CountTo<n>());
    transpose<2 * s>(square);
  }
}

// A panel stays in cache while all compressed rows pass by; as many of them at a time as a vector
// has lanes, so that the transposed results are written a vector at a time.
template <FinishKind kind, int vectors, class T>
void fill_panel(const PanelsArg<T>& panels, const CompressedArg<T>& rows,
                const FinishArg<T>& finish, const MatrixArg<T>& out, std::int64_t j0) {
  using V = typename Lanes<T>::Values;
  constexpr int lanes = Lanes<T>::n;
  V results[vectors][lanes];
  const std::int64_t width = out.n_rows - j0 < kPanel ? out.n_rows - j0 : kPanel;
  for (std::int64_t i0 = 0; i0 < rows.n_rows; i0 += lanes) {
    const std::int64_t group = rows.n_rows - i0 < lanes ? rows.n_rows - i0 : lanes;
    for (std::int64_t i = 0; i < group; ++i) {
      V value[vectors];
      panel_values<kind, vectors>(panels, rows, finish, j0, i0 + i, value);
      for (int v = 0; v < vectors; ++v) results[v][i] = value[v];
    }
    for (int v = 0; v < vectors; ++v) transpose(results[v]);
    for (std::int64_t j = 0; j < width; ++j) {
      const std::int64_t r = j0 + j;
      T* to = out.values + (out.slot ? out.slot[r] : r) * out.row_stride + i0;
      const V& values = results[j / lanes][j % lanes];
      if (group == lanes)
        store(to, values);
      else
        for (std::int64_t i = 0; i < group; ++i) to[i] = values[i];
      __builtin_prefetch(to + lanes, 1);
    }
  }
}

template <FinishKind kind, class T>
void fill_panels(const PanelsArg<T>& panels, const CompressedArg<T>& rows,
                 const FinishArg<T>& finish, const MatrixArg<T>& out) {
  constexpr int most = kPanel / Lanes<T>::n;
  for (std::int64_t j0 = 0; j0 < out.n_rows; j0 += kPanel) {
    if (out.n_rows - j0 <= kPanel / 4)
      fill_panel<kind, most / 4>(panels, rows, finish, out, j0);
    else if (out.n_rows - j0 <= kPanel / 2)
      fill_panel<kind, most / 2>(panels, rows, finish, out, j0);
    else
      fill_panel<kind, most>(panels, rows, finish, out, j0);
  }
}

template <class T>
void fill(const PanelsArg<T>& panels, const CompressedArg<T>& rows, const FinishArg<T>& finish,
          const MatrixArg<T>& out) {
  if (finish.kind == FinishKind::none) fill_panels<FinishKind::none>(panels, rows, finish, out);
  if (finish.kind == FinishKind::rbf) fill_panels<FinishKind::rbf>(panels, rows, finish, out);
  if (finish.kind == FinishKind::polynomial)
    fill_panels<FinishKind::polynomial>(panels, rows, finish, out);
  if (finish.kind == FinishKind::sigmoid)
    fill_panels<FinishKind::sigmoid>(panels, rows, finish, out);
}

template <class T, int n>
inline T added_up(Vector<T, n> v) {
  if constexpr (n == 1) {
    return v;
  } else {
    Vector<T, n / 2> half[2];
    __builtin_memcpy(half, &v, sizeof v);
    return added_up<T, n / 2>(half[0] + half[1]);
  }
}

// Of a value, its weight and the sums over a panel at most eight roundings are in T.
template <FinishKind kind, class T>
void add_panels(const PanelsArg<T>& panels, const CompressedArg<T>& rows,
                const FinishArg<T>& finish, const WeightsArg<T>& weights, double* sums,
                std::int64_t stride) {
  using V = typename Lanes<T>::Values;
  constexpr int lanes = Lanes<T>::n, vectors = kPanel / lanes;
  for (std::int64_t j0 = 0; j0 < panels.n_panels * kPanel; j0 += kPanel)
    for (std::int64_t i = 0; i < rows.n_rows; ++i) {
      V value[vectors];
      panel_values<kind, vectors>(panels, rows, finish, j0, i, value);
      for (std::int64_t c = 0; c < weights.n_sums; ++c) {
        const T* weight = weights.values + c * panels.n_panels * kPanel + j0;
        V sum = load<V>(weight) * value[0];
        for (int v = 1; v < vectors; ++v) sum += load<V>(weight + v * lanes) * value[v];
        sums[c * stride + i] += double(added_up<T, lanes>(sum));
      }
    }
}

template <class T>
void add(const PanelsArg<T>& panels, const CompressedArg<T>& rows, const FinishArg<T>& finish,
         const WeightsArg<T>& weights, double* sums, std::int64_t stride) {
  if (finish.kind == FinishKind::none)
    add_panels<FinishKind::none>(panels, rows, finish, weights, sums, stride);
  if (finish.kind == FinishKind::rbf)
    add_panels<FinishKind::rbf>(panels, rows, finish, weights, sums, stride);
  if (finish.kind == FinishKind::polynomial)
    add_panels<FinishKind::polynomial>(panels, rows, finish, weights, sums, stride);
  if (finish.kind == FinishKind::sigmoid)
    add_panels<FinishKind::sigmoid>(panels, rows, finish, weights, sums, stride);
}

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
