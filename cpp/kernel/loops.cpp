// The hot loops of the kernel machine in both precisions.  Compiled once per instruction set (see
// isa.hpp); the table of functions at the end is all that leaves this file.
#include "kernel/dense.hpp"
#include "kernel/finish.hpp"
#include "kernel/linear.hpp"
#include "kernel/pair_steps.hpp"
#include "kernel/panels.hpp"
#include "kernel/row_sums.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {
namespace {

template <class T>
std::int64_t solve_pairs(const WorkingSetArg<T>& w) {
  return PairSteps<T>(w).solve();
}

template <class T>
constexpr KernelLoopsOf<T> loops() {
  return {finish_block<T>, fill<T>,       add<T>,         kStrip<T>,   fill_dense<T>,
          dense_norms<T>,  gather_row<T>, solve_pairs<T>, add_rows<T>, sweep_linear<T>};
}

}  // namespace

extern const KernelLoops kernel_loops;
const KernelLoops kernel_loops = {loops<float>(), loops<double>()};

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
