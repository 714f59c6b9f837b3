// The plain structs that cross to the hot loops of the kernel machine.  T is float or double: the
// type of the kernel values; gradients and variables are always double.
#pragma once

#include <cstdint>

namespace widemargin {

// What turns a block of inner products <a_i, b_j> into kernel values, in place.
enum class Finish { none, rbf, polynomial, sigmoid };

template <class T>
struct FinishArg {
  Finish kind;
  T gamma, coef0;
  int degree;
};

template <class T>
struct BlockArg {
  FinishArg<T> finish;
  T* values;  // [n_rows][row_stride], the first n_columns of each row
  std::int64_t n_rows, n_columns, row_stride;
  const T *row_norms, *column_norms;  // squared norms
};

// Kernel values of compressed rows and a block of dense rows.  The dense ones lie in panels of
// kPanel: value d of row p * kPanel + l is panels[(p * n_features + d) * kPanel + l], padded with
// zeros.
constexpr int kPanel = 64;

template <class T>
struct SparseBlockArg {
  const std::int64_t* start;  // n_columns + 1 positions in index and value
  const std::int32_t* index;
  const T* value;
  const std::int32_t* place;  // where a feature lies in the panels (-1: absent), or null
  const T* panels;
  std::int64_t n_features, n_rows, n_columns, row_stride;
  FinishArg<T> finish;
  const T *row_norms, *column_norms;  // the row norms padded to whole panels
  T* out;  // [n_rows][row_stride]: a row per dense row, a column per compressed one
};

// A block of variables of  min 1/2 a'Qa - e'a,  0 <= a <= upper.
template <class T>
struct WorkingSetArg {
  std::int64_t size;               // a multiple of 8, padded with variables whose upper bound is 0
  const T* q;                      // [size][size], q_ij = y_i y_j k(x_i, x_j)
  const double *diagonal, *upper;  // of q, bounded away from zero
  double *alpha, *gradient;        // gradient of the whole problem at these variables
  double tol;                      // stop when no projected gradient exceeds it
  std::int64_t max_steps;
};

template <class T>
struct KernelLoopsOf {
  void (*finish)(const BlockArg<T>&);
  void (*sparse_block)(const SparseBlockArg<T>&);
  std::int64_t (*solve_block)(const WorkingSetArg<T>&);
  // out[j] += sum_i coef[i] rows[i][j]
  void (*add_rows)(const T* const* rows, const double* coef, std::int64_t n_rows,
                   std::int64_t n_columns, double* out);
};

struct KernelLoops {
  KernelLoopsOf<float> single;
  KernelLoopsOf<double> twice;
};

}  // namespace widemargin
