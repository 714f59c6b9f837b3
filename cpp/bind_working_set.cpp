// Bindings of the exact solver's working sets, and of the buffer of kernel rows.
#include <chrono>
#include <optional>
#include <variant>

#include "kernel/each_problem.hpp"
#include "kernel/kept_rows.hpp"
#include "kernel/row_buffer.hpp"
#include "kernel/working_set.hpp"
#include "kernel_bindings.hpp"

namespace widemargin {
namespace {

constexpr std::int64_t kUnit = 1024;  // columns that a thread takes at least

// The rows of a pool that the slots name.
template <class T>
std::vector<const T*> rows_at(const Array& pool, const Array& slots) {
  require(pool.ndim() == 2, "pool must be a matrix");
  const auto n_slots = std::int64_t(pool.shape(0)), width = std::int64_t(pool.shape(1));
  const T* values = pointer<T>(pool, n_slots * width, "pool must be float32 or float64");
  const auto n = std::int64_t(slots.size());
  const auto* at = pointer<std::int64_t>(slots, n, "slots must be int64");
  std::vector<const T*> rows;
  rows.reserve(std::size_t(n));
  for (std::int64_t k = 0; k < n; ++k) {
    require(at[k] >= 0 && at[k] < n_slots, "a slot is out of range");
    rows.push_back(values + at[k] * width);
  }
  return rows;
}

// out[begin:end] += sign[begin:end] * sum_k coef[k] pool[slots[k], begin:end]
void add_rows(const Array& pool, const Array& slots, const Array& coef, const double* sign,
              std::int64_t begin, std::int64_t end, double* out, std::int64_t width, Team* team) {
  with_type(pool.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto rows = rows_at<T>(pool, slots);
    const double* c = pointer<double>(coef, std::int64_t(rows.size()), "coef: one per slot");
    require(0 <= begin && begin <= end && end <= width && end <= std::int64_t(pool.shape(1)),
            "columns out of range");
    nb::gil_scoped_release release;
    run_parts(team, end - begin, kUnit, [&](std::int64_t from, std::int64_t to) {
      add_signed_rows(loops_of<T>(), rows, c, sign, begin + from, begin + to, out);
    });
  });
}

void py_add_rows(const Array& pool, const Array& slots, const Array& coef, const Array& sign,
                 std::int64_t begin, std::int64_t end, const Output& out) {
  const auto width = std::int64_t(out.size());
  double* to = pointer<double>(out, width, "out must be float64");
  const double* y = pointer<double>(sign, width, "sign must be float64, as long as out");
  add_rows(pool, slots, coef, y, begin, end, to, width, nullptr);
}

// Kernel rows that are kept, of either type, in a pool with a row and a column per variable.
class AnyKeptRows {
 public:
  AnyKeptRows(Output pool, const AnyDenseKernel* kernel)
      : pool_(pool), rows_(with_type(pool.dtype(), [&](auto zero) -> Rows {
          using T = decltype(zero);
          require(pool.ndim() == 2 && pool.shape(0) == pool.shape(1), "pool must be square");
          const auto n = std::int64_t(pool.shape(0));
          const auto own = kernel ? kernel->of<T>() : nullptr;
          require(!kernel || own, "the kernel must have the type of the pool");
          require(!own || own->rows.n_rows() == n, "the kernel must have a row per variable");
          return KeptRows<T>(pointer<T>(pool, n * n, "pool must be square"), n, own);
        })) {}

  template <class F>
  auto visit(F&& f) {
    return std::visit(f, rows_);
  }

  std::int64_t n_used() {
    return visit([](const auto& rows) { return rows.n_used(); });
  }

  std::int64_t add(const Array& numbers) {
    const auto n = std::int64_t(numbers.size());
    const auto* number = pointer<std::int64_t>(numbers, n, "numbers must be int64");
    return visit([&](auto& rows) {
      for (std::int64_t k = 0; k < n; ++k)
        require(number[k] >= 0 && number[k] < rows.n() && (k == 0 || number[k] > number[k - 1]),
                "variables must ascend and be in range");
      const std::vector<std::int64_t> without(number, number + n);
      require(rows.missing(without).size() == without.size(), "a variable has a row already");
      return rows.add(without);
    });
  }

  bool ask_all() {
    return visit([](auto& rows) {
      nb::gil_scoped_release release;
      return rows.ask_all(loops_for(rows));
    });
  }

  template <class T>
  static const KernelLoopsOf<T>& loops_for(const KeptRows<T>&) {
    return loops_of<T>();
  }

 private:
  using Rows = std::variant<KeptRows<float>, KeptRows<double>>;
  Output pool_;  // what rows_ points into
  Rows rows_;
};

// The variables of a problem, checked once; alpha and gradient are written in place.
class WorkingSet {
 public:
  WorkingSet(Output alpha, Output gradient, Array sign, Array upper, Array diagonal,
             bool has_offset, double offset, double turn)
      : alpha_(alpha), gradient_(gradient), sign_(sign), upper_(upper), diagonal_(diagonal) {
    require(turn >= 0, "turn must not be negative");
    arg_.turn = turn;
    if (has_offset) offset_ = Offset(offset);
    const auto n = std::int64_t(alpha.size());
    arg_.n = n;
    arg_.alpha = pointer<double>(alpha, n, "alpha must be float64");
    arg_.gradient = pointer<double>(gradient, n, "gradient must be float64, one per variable");
    arg_.sign = pointer<double>(sign, n, "sign must be float64, one per variable");
    arg_.upper = pointer<double>(upper, n, "upper must be float64, one per variable");
    arg_.diagonal = pointer<double>(diagonal, n, "diagonal must be float64, one per variable");
  }

  nb::tuple select(const Array& last, std::int64_t size, std::optional<Array> cluster,
                   std::int64_t n_clusters) {
    const auto n = std::int64_t(last.size());
    const auto* previous = pointer<std::int64_t>(last, n, "last must be int64");
    check_numbers(previous, n, "a variable of the last block is out of range");
    require(size > 0, "a block needs at least one variable");
    ClustersArg clusters;
    if (cluster) {
      clusters = {pointer<std::int64_t>(*cluster, arg_.n, "cluster: one per variable"), n_clusters};
      check_range(clusters.number, arg_.n, n_clusters, "a cluster is out of range");
    }
    Selection chosen;
    {
      nb::gil_scoped_release release;
      chosen = select_working_sets(arg_, clusters, offset_, previous, n, size);
    }
    return nb::make_tuple(vector_to_numpy(std::move(chosen.block)),
                          vector_to_numpy(std::move(chosen.start)), chosen.violation, chosen.gap);
  }

  double offset() const { return offset_.value(); }
  bool is_kept() const { return offset_.is_kept(); }
  double missed() const { return offset_.missed(arg_); }
  double less_slack(double aim) const { return offset_.less_slack(aim); }
  bool is_due(double gap) { return offset_.is_due(gap); }
  double move_offset() { return offset_.move(arg_); }
  void set_rest(double rest) { offset_.set_rest(rest); }

  bool must_be_met(double gap, double primal, double aim) {
    return offset_.must_be_met(arg_, gap, primal, aim);
  }

  nb::tuple meet_constraint(std::int64_t most) {
    offset_.keep();
    Balancing moves = balancing(arg_, offset_.missed(arg_), most);
    apply(arg_, moves);
    offset_.have_met(arg_);
    return nb::make_tuple(vector_to_numpy(std::move(moves.block)),
                          vector_to_numpy(std::move(moves.coef)));
  }

  double minimise(const Array& pool, const Array& slots, const Array& block, const Array& starts,
                  double tol, const Output& q, const Output& coef, Team* team) const {
    require(q.dtype() == pool.dtype(), "q must have the type of the pool");
    return with_type(pool.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const auto rows = rows_at<T>(pool, slots);
      require(std::int64_t(pool.shape(1)) >= arg_.n, "a row of the pool is too short");
      const auto n = std::int64_t(block.size()), n_sets = std::int64_t(starts.size()) - 1;
      require(std::int64_t(rows.size()) == n, "there must be a slot per variable of the block");
      const auto* start = pointer<std::int64_t>(starts, n_sets + 1, "starts must be int64");
      require(n_sets > 0 && start[0] == 0 && start[n_sets] == n, "starts must span the block");
      std::int64_t room = 0;
      for (std::int64_t k = 0; k < n_sets; ++k) {
        require(start[k] <= start[k + 1], "starts must ascend");
        room += padded_size(start[k + 1] - start[k]) * padded_size(start[k + 1] - start[k]);
      }
      require(std::int64_t(q.size()) >= room, "q must hold Q of every set, padded to 8");
      T* to = pointer<T>(q, std::int64_t(q.size()), "q must have the type of the pool");
      const auto* numbers = pointer<std::int64_t>(block, n, "block must be int64");
      check_numbers(numbers, n, "a variable is out of range");
      double* change = pointer<double>(coef, n, "coef must be float64, one per block variable");
      nb::gil_scoped_release release;
      return minimise_working_sets(arg_, loops_of<T>(), rows.data(), numbers, start, n_sets, tol,
                                   offset_.is_kept(), to, change, team);
    });
  }

  template <class F>
  auto on_rows(AnyKeptRows& kept, F&& f) {
    return kept.visit([&](auto& rows) {
      require(rows.n() == arg_.n, "there must be a row per variable");
      nb::gil_scoped_release release;
      return f(Descent(arg_, AnyKeptRows::loops_for(rows), rows, offset_, last_));
    });
  }

  nb::tuple descend(AnyKeptRows& kept, double dual, double tol, double inner_tol,
                    std::int64_t max_steps, std::int64_t size) {
    require(size > 0, "a block needs at least one variable");
    const Limits limits{tol, inner_tol, max_steps, size};
    Descended found = on_rows(kept, [&](auto descent) { return descent.run(dual, limits); });
    return nb::make_tuple(found.dual, found.gap, found.steps,
                          vector_to_numpy(std::move(found.missing)));
  }

  nb::tuple refresh(AnyKeptRows& kept, const Array& linear) {
    const double* p = pointer<double>(linear, arg_.n, "linear must be float64, one per variable");
    Measured found = on_rows(kept, [&](auto descent) { return descent.refresh(p); });
    return nb::make_tuple(found.dual, found.gap, found.slack,
                          vector_to_numpy(std::move(found.missing)));
  }

  auto meet_constraint_on(AnyKeptRows& kept) {
    double gain = 0;
    return vector_to_numpy(
        on_rows(kept, [&](auto descent) { return descent.meet_constraint(arg_.n, &gain); }));
  }

  void add_rows(const Array& pool, const Array& slots, const Array& coef, Team* team) const {
    widemargin::add_rows(pool, slots, coef, arg_.sign, 0, arg_.n, arg_.gradient, arg_.n, team);
  }

 private:
  void check_numbers(const std::int64_t* numbers, std::int64_t n, const char* message) const {
    check_range(numbers, n, arg_.n, message);
  }

  Output alpha_, gradient_;  // what arg_ points into
  Array sign_, upper_, diagonal_;
  VariablesArg arg_{};
  Offset offset_;
  std::vector<std::int64_t> last_;  // the last block of `descend`
};

// Small problems on rows that are all kept, checked once; alpha is written in place.
class SmallProblems {
 public:
  SmallProblems(AnyKeptRows& kept, Array row, Array start, Output alpha, Array sign, Array linear,
                Array upper, Array diagonal)
      : kept_(&kept), arrays_{row, start, sign, linear, upper, diagonal}, alpha_(alpha) {
    require(start.size() > 0, "start must not be empty");
    const auto n = std::int64_t(row.size());
    all_.n_problems = std::int64_t(start.size()) - 1;
    all_.row = pointer<std::int64_t>(row, n, "row must be int64");
    all_.start = pointer<std::int64_t>(start, all_.n_problems + 1, "start must be int64");
    all_.alpha = pointer<double>(alpha, n, "alpha must be float64, one per variable");
    all_.sign = pointer<double>(sign, n, "sign must be float64, one per variable");
    all_.linear = pointer<double>(linear, n, "linear must be float64, one per variable");
    all_.upper = pointer<double>(upper, n, "upper must be float64, one per variable");
    require(all_.start[0] == 0 && all_.start[all_.n_problems] == n,
            "start must span the variables");
    for (std::int64_t k = 0; k < all_.n_problems; ++k)
      require(all_.start[k] <= all_.start[k + 1], "start must ascend");
    kept.visit([&](auto& rows) {
      require(rows.n_used() == rows.n(), "all kernel rows must be there");
      all_.diagonal = pointer<double>(diagonal, rows.n(), "diagonal must be float64, one per row");
      check_range(all_.row, n, rows.n(), "a row is out of range");
    });
  }

  // From problem `first` on, until the time is up; returns the first that is not solved.
  std::int64_t solve(std::int64_t first, double tol, double inner_tol, std::int64_t max_steps,
                     std::int64_t size, double seconds, bool has_offset, const Output& found) {
    all_.offset = has_offset ? Offset(0.0) : Offset();
    require(first >= 0 && first <= all_.n_problems, "first is out of range");
    require(size > 0, "a block needs at least one variable");
    double* to = pointer<double>(found, 4 * all_.n_problems, "found: four numbers per problem");
    const Limits limits{tol, inner_tol, max_steps, size};
    return kept_->visit([&](auto& rows) {
      nb::gil_scoped_release release;
      EachProblem each(all_, AnyKeptRows::loops_for(rows), rows);
      using Clock = std::chrono::steady_clock;
      const auto began = Clock::now();
      const auto is_up = [&] {
        return std::chrono::duration<double>(Clock::now() - began).count() > seconds;
      };
      std::int64_t k = first;
      for (; k < all_.n_problems && (k == first || !is_up()); ++k) {  // every call gets on
        EachFound one;
        const bool solved = each.solve(k, limits, state_, one, is_up);
        const double numbers[] = {one.dual, one.gap, one.steps, one.offset};
        std::copy(numbers, numbers + 4, to + 4 * k);
        if (!solved) break;
      }
      return k;
    });
  }

 private:
  AnyKeptRows* kept_;  // which Python keeps as long as this
  Array arrays_[6];    // what all_ points into
  Output alpha_;
  EachArg all_{};
  EachState state_;
};

void py_gather(const Array& pool, const Array& slots, const Array& columns, const Matrix& out) {
  require_rows(out, "out must have contiguous rows that do not overlap");
  require(out.dtype() == pool.dtype(), "out must have the type of the pool");
  with_type(pool.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto rows = rows_at<T>(pool, slots);
    const auto n = std::int64_t(columns.size());
    const auto* at = pointer<std::int64_t>(columns, n, "columns must be int64");
    check_range(at, n, std::int64_t(pool.shape(1)), "a column is out of range");
    require(out.shape(0) == rows.size() && std::int64_t(out.shape(1)) == n,
            "out must have a row per slot and a column per column");
    nb::gil_scoped_release release;
    gather(rows, at, matrix_arg<T>(out));
  });
}

void py_compact_rows(const Output& buffer, const Array& slots, const Array& columns,
                     std::int64_t old_stride, std::int64_t new_stride) {
  with_type(buffer.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto size = std::int64_t(buffer.size());
    T* values = pointer<T>(buffer, size, "buffer must be float32 or float64");
    const auto n = std::int64_t(slots.size()), width = std::int64_t(columns.size());
    const auto* row = pointer<std::int64_t>(slots, n, "slots must be int64");
    const auto* column = pointer<std::int64_t>(columns, width, "columns must be int64");
    require(0 < new_stride && new_stride <= old_stride && width <= new_stride,
            "rows can only become shorter");
    for (std::int64_t k = 0; k < n; ++k)
      require(row[k] >= 0 && row[k] < size / old_stride && (k == 0 || row[k] > row[k - 1]),
              "slots must ascend within the buffer");
    for (std::int64_t j = 0; j < width; ++j)
      require(column[j] >= 0 && column[j] < old_stride && (j == 0 || column[j] > column[j - 1]),
              "columns must ascend within a row");
    nb::gil_scoped_release release;
    compact_rows(values, row, n, column, width, old_stride, new_stride);
  });
}

void py_widen_rows(const Output& buffer, std::int64_t n_rows, std::int64_t old_stride,
                   std::int64_t new_stride) {
  with_type(buffer.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto size = std::int64_t(buffer.size());
    T* values = pointer<T>(buffer, size, "buffer must be float32 or float64");
    require(0 < old_stride && old_stride <= new_stride, "rows can only become longer");
    require(n_rows >= 0 && n_rows <= size / new_stride, "the buffer is too small");
    nb::gil_scoped_release release;
    widen_rows(values, n_rows, old_stride, new_stride);
  });
}

}  // namespace

void bind_working_set(nb::module_& m) {
  nb::class_<AnyKeptRows>(m, "KeptRows",
                          "Kernel rows over all variables, in a square pool; those of a "
                          "DenseKernel are computed when they are asked for.")
      .def(nb::init<Output, const AnyDenseKernel*>(), "pool"_a.noconvert(), "kernel"_a.none())
      .def_prop_ro("n_used", &AnyKeptRows::n_used)
      .def("add", &AnyKeptRows::add, "numbers"_a,
           "Next places in the pool for variables without a row; returns the first place.")
      .def("ask_all", &AnyKeptRows::ask_all,
           "Compute all rows; false where there is no kernel to do so.");
  nb::class_<WorkingSet>(m, "WorkingSet",
                         "The active variables of min 1/2 a'Qa + p'a, 0 <= a <= upper (with a "
                         "finite turn, which a negative one costs per unit, |a| <= upper), checked "
                         "once; alpha and gradient are written in place.")
      .def(nb::init<Output, Output, Array, Array, Array, bool, double, double>(),
           "alpha"_a.noconvert(), "gradient"_a.noconvert(), "sign"_a, "upper"_a, "diagonal"_a,
           "has_offset"_a, "offset"_a, "turn"_a = __builtin_huge_val())
      .def_prop_ro("offset", &WorkingSet::offset, "The intercept.")
      .def_prop_ro("is_kept", &WorkingSet::is_kept, "Whether working sets keep its constraint.")
      .def_prop_ro("missed", &WorkingSet::missed, "By how much its constraint is missed.")
      .def("select", &WorkingSet::select, "last"_a, "size"_a, "cluster"_a.none(), "n_clusters"_a,
           "The next block of each cluster, one behind the other, where each begins, the largest "
           "projected gradient, and the duality gap.")
      .def("is_due", &WorkingSet::is_due, "gap"_a,
           "Whether it is time to move the intercept; to be asked once per step.")
      .def("move_offset", &WorkingSet::move_offset,
           "Move the intercept, and the gradient with it; returns the change of the dual "
           "objective.")
      .def("must_be_met", &WorkingSet::must_be_met, "gap"_a, "primal"_a, "aim"_a,
           "Whether variables must meet the constraint now.")
      .def("meet_constraint", &WorkingSet::meet_constraint, "most"_a,
           "Meet it; the variables that were changed, and sign times their changes.")
      .def("less_slack", &WorkingSet::less_slack, "aim"_a,
           "What an aim leaves for the gap, when the constraint has had its share.")
      .def("set_rest", &WorkingSet::set_rest, "rest"_a,
           "Say what other variables add to the constraint.")
      .def("minimise", &WorkingSet::minimise, "pool"_a, "slots"_a, "block"_a, "starts"_a, "tol"_a,
           "q"_a.noconvert(), "coef"_a.noconvert(), "team"_a.none(),
           "Minimise over working sets side by side, each from a start to the next in the block; "
           "coef becomes sign times change.  Returns the gain.")
      .def("descend", &WorkingSet::descend, "kept"_a, "dual"_a, "tol"_a, "inner_tol"_a,
           "max_steps"_a, "size"_a,
           "Blocks, one after another, as long as their kernel rows are there or can be computed; "
           "the dual objective, the gap, the number of steps, and variables without a row.")
      .def(
          "refresh", &WorkingSet::refresh, "kept"_a, "linear"_a,
          "The gradient afresh; the dual objective, the gap, what the first is less and the second "
          "more for sure, and variables without a row, in which case nothing was done.")
      .def("meet_constraint_on", &WorkingSet::meet_constraint_on, "kept"_a,
           "Meet the constraint, and add the rows; variables without a row, in which case nothing "
           "was done.")
      .def("add_rows", &WorkingSet::add_rows, "pool"_a, "slots"_a, "coef"_a, "team"_a.none(),
           "gradient += sign * sum_k coef_k pool[slots_k].");
  nb::class_<SmallProblems>(m, "SmallProblems",
                            "Problems on rows that are all kept, one behind the other, checked "
                            "once; alpha is written in place.")
      .def(nb::init<AnyKeptRows&, Array, Array, Output, Array, Array, Array, Array>(), "kept"_a,
           "row"_a, "start"_a, "alpha"_a.noconvert(), "sign"_a, "linear"_a, "upper"_a, "diagonal"_a,
           nb::keep_alive<1, 2>())
      .def("solve", &SmallProblems::solve, "first"_a, "tol"_a, "inner_tol"_a, "max_steps"_a,
           "size"_a, "seconds"_a, "has_offset"_a, "found"_a.noconvert(),
           "One after another from the first; dual objective, gap, steps and intercept of each.  "
           "Returns the "
           "first that is not solved when the time is up, to go on with.");
  m.def("add_rows", &py_add_rows, "pool"_a, "slots"_a, "coef"_a, "sign"_a, "begin"_a, "end"_a,
        "out"_a.noconvert(), "out += sign * sum_k coef_k pool[slots_k], for some columns.");
  m.def("gather", &py_gather, "pool"_a, "slots"_a, "columns"_a, "out"_a.noconvert(),
        "out[k, j] = pool[slots[k], columns[j]]");
  m.def("compact_rows", &py_compact_rows, "buffer"_a.noconvert(), "slots"_a, "columns"_a,
        "old_stride"_a, "new_stride"_a,
        "Rows of a flat buffer, reduced to some rows and columns in place.");
  m.def("widen_rows", &py_widen_rows, "buffer"_a.noconvert(), "n_rows"_a, "old_stride"_a,
        "new_stride"_a, "The first rows of a flat buffer, moved apart in place.");
}

}  // namespace widemargin
