// The plain structs that cross from bind_kernel.cpp to the hot loops of the kernel machine.  T is
// float or double: the type of the kernel values; gradients and variables are always double.
#pragma once

#include <cstdint>

namespace widemargin {

// What turns a block of inner products <a_i, b_j> into kernel values, in place.
enum class FinishKind { none, rbf, polynomial, sigmoid };

template <class T>
struct FinishArg {
  FinishKind kind;
  T gamma, coef0;
  int degree;
};

// A block of kernel values, of which the first n_columns of each row count.
template <class T>
struct MatrixArg {
  T* values;  // [n_rows][row_stride]
  std::int64_t n_rows, n_columns, row_stride;
  const std::int64_t* slot = nullptr;  // where each row lies, if not in their order
};

// Rows of which only the non-zero values are kept.
template <class T>
struct CompressedArg {
  const std::int64_t* start;  // n_rows + 1 positions in index and value
  const std::int32_t* index;
  const T *value, *norms;  // norms: squared, one per row
  std::int64_t n_rows, n_features;
};

// Rows written out in panels of kPanel: value d of row p * kPanel + l is
// values[(p * n_features + d) * kPanel + l], padded with zeros.
constexpr int kPanel = 64;

template <class T>
struct PanelsArg {
  const T *values, *norms;    // norms: squared, padded to whole panels
  const std::int32_t* place;  // where a feature lies in the panels (-1: absent), or null
  std::int64_t n_panels, n_features;
};

// What the rows of panels count for in a few sums: [n_sums][n_panels * kPanel], 0 in the padding.
template <class T>
struct WeightsArg {
  const T* values;
  std::int64_t n_sums;
};

// Dense rows, and the same in strips of as many as the loops take at a time (`width`): value d of
// row s * width + l is strips[(s * n_features + d) * width + l], padded with zeros.
template <class T>
struct DenseArg {
  const T* values;          // [n_rows][n_features]
  const T *strips, *norms;  // norms: squared, padded to whole strips
  std::int64_t n_rows, n_features;
};

// The variables of  min 1/2 a'Qa + p'a,  0 <= a <= upper,  Q_ij = sign_i sign_j k(x_i, x_j).
// With a finite turn (of regression: twice epsilon) they are two-sided, |a| <= upper, and whatever
// is below 0 costs turn per unit: the objective has a kink at 0.  The gradient leaves that out.
struct VariablesArg {
  std::int64_t n;
  double *alpha, *gradient;
  const double *sign, *upper, *diagonal;  // the diagonal is bounded away from zero
  double turn = __builtin_huge_val();

  bool two_sided() const { return turn < __builtin_huge_val(); }
  double lower(std::int64_t i) const { return two_sided() ? -upper[i] : 0; }
  bool rises(std::int64_t i) const { return alpha[i] < upper[i]; }
  bool falls(std::int64_t i) const { return alpha[i] > lower(i); }
  bool is_free(std::int64_t i) const { return alpha[i] != 0 && rises(i) && falls(i); }
  // The slope of the objective to the right and to the left of a variable.
  double slope_up(std::int64_t i) const { return gradient[i] - (alpha[i] < 0 ? turn : 0); }
  double slope_down(std::int64_t i) const { return gradient[i] - (alpha[i] > 0 ? 0 : turn); }
  // The slope in which it may fall, 0 where it falls in none.
  double violation(std::int64_t i) const {
    if (slope_up(i) < 0) return rises(i) ? slope_up(i) : 0;
    return falls(i) && slope_down(i) > 0 ? slope_down(i) : 0;
  }
};

// What a variable adds to the duality gap.
inline double gap_term(double alpha, double slope, double upper, double turn) {
  if (alpha < 0 || (alpha == 0 && slope > turn)) {  // seen from its other side
    alpha = -alpha;
    slope = turn - slope;
  }
  if (slope > turn) return upper * (slope - turn) + alpha * slope;
  return slope < 0 ? (alpha - upper) * slope : alpha * slope;
}

// A working set of them, as the loops take it.
template <class T>
struct WorkingSetArg {
  std::int64_t n, size;       // size: a multiple of 8, padded with variables whose upper bound is 0
  const T* const* rows;       // the kernel row of each, over all variables of the problem
  const std::int64_t* block;  // their numbers among these
  T* q;                       // [size][size], room for Q
  bool* gathered;             // which of its rows have been written
  const double *sign, *diagonal, *upper;
  double *alpha, *gradient;  // gradient of the whole problem at these variables
  double tol;                // stop when no projected gradient exceeds it
  bool balanced;             // keep the sum of sign * alpha as it is
  std::int64_t max_steps;
};

// min 1/2 a'(Q + R)a + linear'a,  0 <= a <= upper,  with w = sum_i a_i sign_i x_i in its weights.
template <class T>
struct LinearArg {
  const std::int64_t* start;  // of compressed rows; null for dense ones
  const std::int32_t* index;
  const T* value;
  std::int64_t n_features;
  double constant;          // the value of one more feature, whose weight is the last
  const std::int64_t* row;  // of every variable
  const double *sign, *linear, *upper, *ridge, *diagonal;
  double *alpha, *weights;
  std::int64_t* order;  // all variables, those that are swept first
};

// How many variables a sweep visits, and the gradients beyond which they leave; then how many are
// left, and the extreme projected gradients met.
struct LinearState {
  std::int64_t n_active;
  double low, high;
  std::uint64_t seed;
};

template <class T>
struct KernelLoopsOf {
  // Inner products to kernel values, in place; norms of the rows and of the columns.
  void (*finish)(const FinishArg<T>&, const T* row_norms, const T* column_norms,
                 const MatrixArg<T>& values);
  // out[r][c] = k(row r of the panels, compressed row c)
  void (*fill)(const PanelsArg<T>&, const CompressedArg<T>&, const FinishArg<T>&,
               const MatrixArg<T>& out);
  // sums[c * stride + i] += sum_r weights[c][r] k(row r of the panels, compressed row i)
  void (*add)(const PanelsArg<T>&, const CompressedArg<T>&, const FinishArg<T>&,
              const WeightsArg<T>&, double* sums, std::int64_t stride);
  std::int64_t strip_width;  // of dense rows
  // out[k][j] = k(row numbers[k], row j) for j >= begin, a multiple of the strips' width
  void (*fill_dense)(const DenseArg<T>&, const std::int64_t* numbers, std::int64_t begin,
                     const FinishArg<T>&, const MatrixArg<T>& out);
  // Squared norms, by the sums of fill_dense: equal rows are at distance exactly 0.
  void (*dense_norms)(const DenseArg<T>&, T* norms);
  void (*gather_row)(const WorkingSetArg<T>&, std::int64_t i);
  std::int64_t (*solve_pairs)(const WorkingSetArg<T>&);  // returns the number of steps
  // out[j] += sum_i coef[i] rows[i][j]
  void (*add_rows)(const T* const* rows, const double* coef, std::int64_t n_rows,
                   std::int64_t n_columns, double* out);
  LinearState (*sweep_linear)(const LinearArg<T>&, LinearState);
};

struct KernelLoops {
  KernelLoopsOf<float> float32;
  KernelLoopsOf<double> float64;
};

}  // namespace widemargin
