// The plain structs that cross from `core.cpp` (arrays checked, Python outside) to the hot
// loops (pointers only).  Compiled once, shared by every instruction set.
#pragma once

#include <cstdint>

namespace widemargin {

constexpr int kLanes = 16;  // classes trained at once

enum class IndexType { dense, u16, u32 };
enum class CodeType { u8, u16, u32 };

// Rows of bin codes: dense (every feature, in order) or sparse (index and code per value).
struct RowsArg {
  IndexType index_type;
  CodeType code_type;
  const void* codes;
  const void* index;          // null when dense
  const std::int64_t* start;  // null when dense
  std::int64_t n_rows, n_features;
};

// A pair of look-up tables and the weights they act on.  rank > 0: left and right are
// [n_codes][rank] and weights [feature][rank][lanes].  rank == 0 (unary): right is the
// [n_codes][n_codes] kernel matrix, weights the tables [offset[feature] + code][lanes].
struct TablesArg {
  bool is_double;
  int rank, lanes;  // lanes is 1 or kLanes
  std::int64_t n_codes;
  const void *left, *right;
  const std::int64_t* offset;  // unary only: [n_features + 1]
  void* weights;
};

// One-vs-rest box-constrained duals, one per lane; or, for Crammer-Singer, one lane per class.
struct ProblemArg {
  bool squared;               // squared hinge, else hinge
  const std::int32_t* label;  // [n_rows], row of `sign`
  const void* sign;           // [n_labels][lanes]: +1, -1, or 0 for a lane without a class
  const void* c;              // [n_rows], upper weight of each sample
  const void* diagonal;       // [n_rows], Q_ii without the loss's own term
  void* alpha;                // [n_rows][lanes]
  void* bias;                 // [lanes], weight of the constant feature
  double bias_value;          // value of the constant feature (0: no intercept)
};

// Per-lane sums over the samples seen; the duality module turns them into objectives.
struct Account {
  double loss[kLanes];       // sum of C_i loss_i
  double quadratic[kLanes];  // a'Qa = |w|^2
  double gap[kLanes];        // primal minus dual, a sum of terms that are each non-negative
  double pg_max[kLanes], pg_min[kLanes];
};

struct Sweep {
  const std::int32_t* order;
  std::int64_t begin, end;
  double seconds;                         // return after about this long
  const double *shrink_max, *shrink_min;  // [lanes], last sweep's extremes
  std::uint8_t* shrunk;                   // [n_rows], set to 1 where every lane rests at a bound
  Account* account;
};

struct CrammerSingerArg {
  const std::int32_t* label;
  std::int32_t n_classes, n_blocks;  // n_blocks = ceil(n_classes / kLanes)
  bool squared;
  const void* c;
  const void* diagonal;
  void* alpha;  // [n_rows][n_blocks][lanes]
  void* bias;   // [n_blocks][lanes]
  double bias_value;
  void* const* weights;  // [n_blocks] pointers, each as TablesArg::weights
};

// What one instruction set offers.
struct Kernels {
  std::int64_t (*descend)(const RowsArg&, const TablesArg&, const ProblemArg&, const Sweep&);
  std::int64_t (*certify)(const RowsArg&, const TablesArg&, const ProblemArg&, const Sweep&);
  std::int64_t (*descend_crammer_singer)(const RowsArg&, const TablesArg&, const CrammerSingerArg&,
                                         const Sweep&);
  std::int64_t (*certify_crammer_singer)(const RowsArg&, const TablesArg&, const CrammerSingerArg&,
                                         const Sweep&);
  // out[i][lane] = sum_j L[code_ij] . w_j, rows [begin, end)
  void (*decide)(const RowsArg&, const TablesArg&, std::int64_t begin, std::int64_t end, void* out);
  // weights += sum_i coef[i][lane] R[code_ij], rows [begin, end)
  void (*accumulate)(const RowsArg&, const TablesArg&, std::int64_t begin, std::int64_t end,
                     const void* coef);
};

}  // namespace widemargin
