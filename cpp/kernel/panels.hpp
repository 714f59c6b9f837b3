// Kernel values of compressed rows with rows in panels (see kernel/problem.hpp).
#pragma once

#include "kernel/finish.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

// The panel that begins with row j0, of which `vectors` vectors are in use, stays in cache while
// all compressed rows pass by; sixteen of them at a time, so that the transposed results are
// written a cache line at a time.
template <FinishKind kind, int vectors, class T>
void fill_panel(const PanelsArg<T>& panels, const CompressedArg<T>& rows,
                const FinishArg<T>& finish, const MatrixArg<T>& out, std::int64_t j0) {
  using V = typename Lanes<T>::Values;
  constexpr int lanes = Lanes<T>::n;
  constexpr std::int64_t kGroup = 16;
  T results[kGroup][vectors * lanes];
  const T* panel = panels.values + j0 * panels.n_features;
  const std::int64_t width = out.n_rows - j0 < kPanel ? out.n_rows - j0 : kPanel;
  for (std::int64_t i0 = 0; i0 < rows.n_rows; i0 += kGroup) {
    const std::int64_t group = rows.n_rows - i0 < kGroup ? rows.n_rows - i0 : kGroup;
    for (std::int64_t i = 0; i < group; ++i) {
      V sum[vectors] = {};
      for (std::int64_t p = rows.start[i0 + i]; p < rows.start[i0 + i + 1]; ++p) {
        const std::int64_t at = panels.place ? panels.place[rows.index[p]] : rows.index[p];
        if (at < 0) continue;
        const T value = rows.value[p], *row = panel + at * kPanel;
        for (int v = 0; v < vectors; ++v) sum[v] += value * load<V>(row + v * lanes);
      }
      for (int v = 0; v < vectors; ++v) {
        const V norms = rows.norms[i0 + i] + load<V>(panels.norms + j0 + v * lanes);
        store(results[i] + v * lanes, finished<kind>(finish, sum[v], norms));
      }
    }
    for (std::int64_t j = 0; j < width; ++j) {
      T* to = out.values + (j0 + j) * out.row_stride + i0;
      for (std::int64_t i = 0; i < group; ++i) to[i] = results[i][j];
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

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
