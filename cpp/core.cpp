// The Python module `widemargin._core`, and the choice of instruction set at import.  The functions
// are bound in bind_*.cpp, which check every array once, release the GIL, and hand plain pointers
// to the loops compiled for this CPU.
#include "bindings.hpp"

namespace widemargin {

#define WIDEMARGIN_DECLARE(isa)                               \
  namespace isa {                                             \
  extern const AdditiveLoops additive_float, additive_double; \
  extern const KernelLoops kernel_loops;                      \
  }
#ifdef WIDEMARGIN_X86_V4
WIDEMARGIN_DECLARE(v4)
#endif
#ifdef WIDEMARGIN_X86_V3
WIDEMARGIN_DECLARE(v3)
#endif
#ifdef WIDEMARGIN_X86_V2
WIDEMARGIN_DECLARE(v2)
#endif
#ifdef WIDEMARGIN_BASELINE
WIDEMARGIN_DECLARE(baseline)
#endif

namespace {

struct InstructionSet {
  const char* name;
  bool available;
  const AdditiveLoops *float32, *float64;
  const KernelLoops* kernel;
};

const std::vector<InstructionSet>& instruction_sets() {  // best first
  static const std::vector<InstructionSet> sets = {
#ifdef WIDEMARGIN_X86_V4
      {"x86-64-v4",
       __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl"),
       &v4::additive_float, &v4::additive_double, &v4::kernel_loops},
#endif
#ifdef WIDEMARGIN_X86_V3
      {"x86-64-v3",
       __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"),
       &v3::additive_float, &v3::additive_double, &v3::kernel_loops},
#endif
#ifdef WIDEMARGIN_X86_V2
      {"x86-64-v2", true, &v2::additive_float, &v2::additive_double, &v2::kernel_loops},
#endif
#ifdef WIDEMARGIN_BASELINE
      {"baseline", true, &baseline::additive_float, &baseline::additive_double,
       &baseline::kernel_loops},
#endif
  };
  return sets;
}

const InstructionSet* chosen = nullptr;

void use_instruction_set(const std::string& name) {
  for (const auto& set : instruction_sets())
    if (set.available && (name.empty() || name == set.name)) {
      chosen = &set;
      return;
    }
  throw std::invalid_argument("this CPU or build has no instruction set called '" + name + "'");
}

}  // namespace

const AdditiveLoops& additive_loops(bool is_double) {
  return is_double ? *chosen->float64 : *chosen->float32;
}

const KernelLoops& kernel_loops() { return *chosen->kernel; }

}  // namespace widemargin

NB_MODULE(_core, m) {
  using namespace widemargin;
  use_instruction_set("");
  m.doc() = "Compiled loops of widemargin.additive, .kernel and .data; private.";
  m.def(
      "instruction_sets",
      [] {
        std::vector<std::string> names;
        for (const auto& set : instruction_sets())
          if (set.available) names.push_back(set.name);
        return names;
      },
      "Those that this build has and this CPU runs, best first.");
  m.def("instruction_set", [] { return std::string(chosen->name); }, "The one in use.");
  m.def("use_instruction_set", &use_instruction_set, "name"_a, "Choose one by name.");

  bind_codes(m);
  bind_additive(m);
  bind_encode(m);
  bind_kernel(m);
  bind_linear(m);
  bind_working_set(m);
  bind_svmlight(m);
}
