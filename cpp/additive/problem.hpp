// The plain structs that cross from bind_additive.cpp (arrays checked, Python outside) to the hot
// loops (pointers only).  `void*` points at numbers of the tables' precision, float or double.
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

// A pair of look-up tables.  rank > 0: left and right are [n_codes][rank] and act on weights
// [feature][rank][lanes].  rank == 0 (unary): right is the [n_codes][n_codes] kernel matrix, and
// the weights are tables [offset[feature] + code][lanes].
struct TablesArg {
  bool is_double;
  int rank, lanes;  // lanes is 1 or kLanes
  std::int64_t n_codes;
  const void *left, *right;
  const std::int64_t* offset;  // unary only: [n_features + 1]
};

enum class LossKind { hinge, squared_hinge };  // see losses.hpp

// What all duals of a fit have in common.
struct SharedArg {
  RowsArg rows;
  TablesArg tables;
  LossKind loss;
  const std::int32_t* label;  // [n_rows]: row of BoxArg::targets, or class of SimplexArg
  const void* c;              // [n_rows], weight of each sample's loss
  const void* diagonal;       // [n_rows], k(x_i, x_i), the constant feature's share included
  double bias_value;          // value of the constant feature (0: no intercept)
};

// Box-constrained duals, one per lane, in signed coefficients b_i = y_i a_i (see losses.hpp).
struct BoxArg {
  const void* targets;  // [n_labels][lanes]: +1, -1, or 0 for a lane without a problem
  void* weights;        // as TablesArg says
  void* coef;           // [n_rows][lanes]
  void* bias;           // [lanes], weight of the constant feature
  double damping = 1;   // what a step moves the weights by, and its curvature, times this: how many
                        // steps like it others take at the same time
};

// Crammer and Singer's dual: a class per lane, in blocks of lanes.
struct SimplexArg {
  std::int32_t n_classes, n_blocks;  // n_blocks = ceil(n_classes / kLanes)
  void* const* weights;              // [n_blocks] pointers, each as TablesArg says
  void* coef;                        // [n_rows][n_blocks][lanes]
  void* bias;                        // [n_blocks][lanes]
};

// Per-lane sums over the samples seen; duality.py turns them into objectives.
struct Account {
  double loss[kLanes];       // sum of C_i loss_i
  double quadratic[kLanes];  // b'Kb = |w|^2
  double gap[kLanes];        // primal minus dual, a sum of terms that are each non-negative
  double pg_max[kLanes], pg_min[kLanes];  // LIBLINEAR's: of the projected gradient in a_i = y_i b_i
};

inline void add(Account& total, const Account& more) {
  for (int l = 0; l < kLanes; ++l) {
    total.loss[l] += more.loss[l];
    total.quadratic[l] += more.quadratic[l];
    total.gap[l] += more.gap[l];
    if (more.pg_max[l] > total.pg_max[l]) total.pg_max[l] = more.pg_max[l];
    if (more.pg_min[l] < total.pg_min[l]) total.pg_min[l] = more.pg_min[l];
  }
}

// What a sweep says of a row; 0 where neither is so.
constexpr std::uint8_t kRests = 1;  // at a bound in every lane, and firmly
constexpr std::uint8_t kMoved = 2;  // in some lane

// Some rows in turn: those that `order` names, or without it the rows begin .. end themselves.
struct Sweep {
  const std::int32_t* order;
  std::int64_t begin, end;
  double seconds;                         // return after about this long
  const double *shrink_max, *shrink_min;  // [lanes], last sweep's extremes
  std::uint8_t* fate;                     // [n_rows], set to kRests or kMoved
  Account* account;
  int n_threads = 1;        // at most; more than one only if no row comes twice
  bool* crowded = nullptr;  // set where fewer threads would have been faster, or null
};

// What can be done with a dual.  Sweeps return how far they came, or -1 without memory.
template <class DualArg>
struct DualLoops {
  std::int64_t (*descend)(const SharedArg&, const DualArg&, const Sweep&);
  std::int64_t (*certify)(const SharedArg&, const DualArg&, const Sweep&);
  // weights and bias += sum_i coef_i phi(x_i), rows begin .. end: what a start needs
  void (*accumulate)(const SharedArg&, const DualArg&, std::int64_t begin, std::int64_t end,
                     int n_threads);
};

// What one instruction set offers in one precision.
struct AdditiveLoops {
  DualLoops<BoxArg> box;
  DualLoops<SimplexArg> simplex;
  // out[i][lane] = sum_j L[code_ij] . w_j, rows begin .. end
  void (*decide)(const RowsArg&, const TablesArg&, const void* weights, std::int64_t begin,
                 std::int64_t end, void* out);
};

}  // namespace widemargin
