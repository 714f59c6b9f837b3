// Structs passed from bind_additive.cpp, which checks arrays, to the hot loops.  `void*` points to
// numbers in the tables' precision, float or double.
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

// see losses.hpp
enum class LossKind { hinge, squared_hinge, epsilon_insensitive, squared_epsilon_insensitive };

// Data shared by all duals of a fit.
struct SharedArg {
  RowsArg rows;
  TablesArg tables;
  LossKind loss;
  double epsilon[kLanes];     // half the width of each lane's tube
  const std::int32_t* label;  // [n_rows]: row of BoxArg::targets, or class of SimplexArg
  const void* c;              // [n_rows], weight of each sample's loss
  const void* diagonal;       // [n_rows], k(x_i, x_i), the constant feature's share included
  double bias_value;          // value of the constant feature (0: no intercept)
};

// Box-constrained duals, one per lane, in signed coefficients b_i = y_i a_i (see losses.hpp).
struct BoxArg {
  // [n_labels][lanes]: +1, -1, or 0 for a lane without a problem; with a tube any numbers
  const void* targets;
  void* weights;  // as TablesArg says
  void* coef;     // [n_rows][lanes]
  void* bias;     // [lanes], weight of the constant feature
  double damping =
      1;  // factor of a step's curvature and move, for other shards that step in parallel
};

// Crammer and Singer's dual: a class per lane, in blocks of lanes.
struct SimplexArg {
  std::int32_t n_classes, n_blocks;  // n_blocks = ceil(n_classes / kLanes)
  void* const* weights;              // [n_blocks] pointers, each as TablesArg says
  void* coef;                        // [n_rows][n_blocks][lanes]
  void* bias;                        // [n_blocks][lanes]
};

// Per-lane sums over the visited samples, from which duality.py computes objectives.
struct Account {
  double loss[kLanes];       // sum of C_i loss_i
  double quadratic[kLanes];  // b'Kb = |w|^2
  double gap[kLanes];        // primal minus dual, a sum of terms that are each non-negative
  double pg_max[kLanes],
      pg_min[kLanes];  // LIBLINEAR's extremes of the projected gradient in a_i = |b_i|
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

// Status of a row after a visit; 0 if neither holds.
constexpr std::uint8_t kRests = 1;  // firmly at a bound in every lane
constexpr std::uint8_t kMoved = 2;  // in some lane

// The rows of a sweep: those in `order`, or the rows begin .. end without it.
struct Sweep {
  const std::int32_t* order;
  std::int64_t begin, end;
  double seconds;                         // return after about this long
  const double *shrink_max, *shrink_min;  // [lanes], last sweep's extremes
  std::uint8_t* status;                   // [n_rows], set to kRests or kMoved
  Account* account;
  int n_threads = 1;        // at most; more than one only if no row comes twice
  bool* crowded = nullptr;  // set if fewer threads would have been faster, or null
};

// Operations on a dual.  Sweeps return the position reached, or -1 if out of memory.
template <class DualArg>
struct DualLoops {
  std::int64_t (*descend)(const SharedArg&, const DualArg&, const Sweep&);
  std::int64_t (*certify)(const SharedArg&, const DualArg&, const Sweep&);
  // weights and bias += sum_i coef_i phi(x_i) over rows begin .. end, for a start
  void (*accumulate)(const SharedArg&, const DualArg&, std::int64_t begin, std::int64_t end,
                     int n_threads);
};

// The loops of one instruction set in one precision.
struct AdditiveLoops {
  DualLoops<BoxArg> box;
  DualLoops<SimplexArg> simplex;
  // out[i][lane] = sum_j L[code_ij] . w_j, rows begin .. end
  void (*decide)(const RowsArg&, const TablesArg&, const void* weights, std::int64_t begin,
                 std::int64_t end, void* out);
};

}  // namespace widemargin
