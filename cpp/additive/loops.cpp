// The hot loops, instantiated for every layout of rows and shape of cells.  Compiled once per
// instruction set (see isa.hpp); the file exports only the table of functions at the end.
#include "additive/any_rows.hpp"
#include "additive/certificate.hpp"
#include "additive/crammer_singer.hpp"
#include "additive/descent.hpp"

#ifdef WIDEMARGIN_DOUBLE
#define WIDEMARGIN_LOOPS additive_double
#else
#define WIDEMARGIN_LOOPS additive_float
#endif

namespace widemargin {
namespace WIDEMARGIN_ISA {
namespace {

#ifdef WIDEMARGIN_DOUBLE
using Number = double;
#else
using Number = float;
#endif

template <class C>
struct Tag {
  using type = C;
};

// f(rows) with the layout of the codes.
template <class F>
auto with_layout(const RowsArg& r, F&& f) {
  using u8 = std::uint8_t;
  using u16 = std::uint16_t;
  using u32 = std::uint32_t;
  if (r.index_type == IndexType::dense) {
    if (r.code_type == CodeType::u8) return f(DenseRows<u8>(r));
    if (r.code_type == CodeType::u16) return f(DenseRows<u16>(r));
    return f(DenseRows<u32>(r));
  }
  if (r.index_type == IndexType::u16) return f(SparseRows<u16, u8>(r));
  if (r.code_type == CodeType::u8) return f(SparseRows<u32, u8>(r));
  if (r.code_type == CodeType::u16) return f(SparseRows<u32, u16>(r));
  return f(SparseRows<u32, u32>(r));
}

// f(Tag<Cells>{}) with the shape of the cells.
template <class F>
auto with_cells(const TablesArg& t, F&& f) {
  if (t.lanes == 1) {
    if (t.rank == 0) return f(Tag<Unary<Number, 1>>{});
    if (t.rank == 1) return f(Tag<FactorSingle<Number, 1>>{});
    if (t.rank == 4) return f(Tag<FactorSingle<Number, 4>>{});
    if (t.rank == 8) return f(Tag<FactorSingle<Number, 8>>{});
    return f(Tag<FactorSingle<Number, 0>>{});
  }
  if (t.rank == 0) return f(Tag<Unary<Number, kLanes>>{});
  if (t.rank == 1) return f(Tag<FactorLanes<Number, 1>>{});
  if (t.rank == 2) return f(Tag<FactorLanes<Number, 2>>{});
  if (t.rank == 3) return f(Tag<FactorLanes<Number, 3>>{});
  if (t.rank == 4) return f(Tag<FactorLanes<Number, 4>>{});
  if (t.rank == 8) return f(Tag<FactorLanes<Number, 8>>{});
  return f(Tag<FactorLanes<Number, 0>>{});
}

const RowCalls& calls_of(const RowsArg& r, const TablesArg& t) {
  return *with_layout(r, [&](auto rows) {
    return with_cells(
        t, [](auto tag) { return &kCallsOf<decltype(rows), typename decltype(tag)::type>; });
  });
}

// f(rows, Tag<Cells>{}) through the virtual calls of any_rows.hpp.
template <class F>
auto with_calls(const RowsArg& r, const TablesArg& t, F&& f) {
  const AnyRows<false> rows(r, calls_of(r, t));
  if (t.lanes == 1) return f(rows, Tag<AnyCells<Number, 1>>{});
  return f(rows, Tag<AnyCells<Number, kLanes>>{});
}

template <template <class, class> class Goal, class Rows, class Cells>
std::int64_t descend_rows(const Rows& rows, Tag<Cells>, const SharedArg& p, const BoxArg& box,
                          const Sweep& sweep) {
  const Cells cells(p.tables, box.weights, p.rows.n_features);
  const BoxDual<Cells, Goal> dual(p, box);
  return descend(rows, cells, box, dual, sweep, Alone<typename Cells::Lanes>{});
}

// Number of vectors that these rows read.
std::int64_t cost_of(const SharedArg& p, std::int64_t begin, std::int64_t end) {
  const RowsArg& r = p.rows;
  return row_cost(p.tables, r.start ? r.start[end] - r.start[begin] : (end - begin) * r.n_features);
}

// Dense rows in 16 lanes, by a power of two of threads.
template <template <class, class> class Goal>
std::int64_t descend_in_team(const SharedArg& p, const BoxArg& box, const Sweep& sweep) {
  using Cells = AnyCells<Number, kLanes>;
  const RowCalls& calls = calls_of(p.rows, p.tables);
  const int n_slices = count_slices(p.rows, p.tables);
  const int wanted = useful_threads(sweep.n_threads, cost_of(p, sweep.begin, sweep.end));
  const Cells cells(p.tables, box.weights, p.rows.n_features);
  Board<Number> board;
  std::int64_t reached = sweep.begin;
  together(wanted < n_slices ? wanted : n_slices, [&](int who, int n) {
    while (n & (n - 1)) n &= n - 1;
    if (who >= n) return;
    const AnyRows<true> rows(p.rows, calls, share_of(p.rows.n_features, n_slices, who, n));
    Member<Number> member(board, who, n);
    const std::int64_t at = descend(rows, cells, box, BoxDual<Cells, Goal>(p, box), sweep, member);
    if (who > 0) return;
    reached = at;
    if (sweep.crowded) *sweep.crowded = member.is_crowded();
  });
  return reached;
}

// Wide codes are rare, so their sweeps of 16 lanes have no loop per rank.
template <template <class, class> class Goal>
std::int64_t descend_alone(const SharedArg& p, const BoxArg& box, const Sweep& sweep) {
  return with_layout(p.rows, [&](auto rows) {
    return with_cells(p.tables, [&](auto tag) {
      using Rows = std::remove_reference_t<decltype(rows)>;
      using Lanes = typename decltype(tag)::type::Lanes;
      if constexpr (Rows::wide && !std::is_arithmetic_v<Lanes>)
        return with_calls(p.rows, p.tables, [&](auto any_rows, auto any_tag) {
          return descend_rows<Goal>(any_rows, any_tag, p, box, sweep);
        });
      else
        return descend_rows<Goal>(rows, tag, p, box, sweep);
    });
  });
}

template <template <class, class> class Goal>
std::int64_t descend_goal(const SharedArg& p, const BoxArg& box, const Sweep& sweep) {
  const bool wide = p.rows.code_type != CodeType::u8, dense = !p.rows.index;
  if (p.tables.lanes > 1 && dense && (wide || count_slices(p.rows, p.tables) > 1))
    return descend_in_team<Goal>(p, box, sweep);
  return descend_alone<Goal>(p, box, sweep);
}

template <template <class, class> class Goal>
std::int64_t certify_goal(const SharedArg& p, const BoxArg& box, const Sweep& sweep) {
  return with_calls(p.rows, p.tables, [&](auto rows, auto tag) {
    using Cells = typename decltype(tag)::type;
    const Cells cells(p.tables, box.weights, p.rows.n_features);
    const int n = useful_threads(sweep.n_threads, cost_of(p, sweep.begin, sweep.end));
    return certify(rows, cells, BoxDual<Cells, Goal>(p, box), sweep, n);
  });
}

bool has_tube(LossKind loss) {
  return loss == LossKind::epsilon_insensitive || loss == LossKind::squared_epsilon_insensitive;
}

std::int64_t descend_box(const SharedArg& p, const BoxArg& box, const Sweep& sweep) {
  return has_tube(p.loss) ? descend_goal<Tube>(p, box, sweep) : descend_goal<Margin>(p, box, sweep);
}

std::int64_t certify_box(const SharedArg& p, const BoxArg& box, const Sweep& sweep) {
  return has_tube(p.loss) ? certify_goal<Tube>(p, box, sweep) : certify_goal<Margin>(p, box, sweep);
}

template <bool kDescend>
std::int64_t pass_simplex(const SharedArg& p, const SimplexArg& simplex, const Sweep& sweep) {
  using Rows = AnyRows<false>;
  const Rows rows(p.rows, calls_of(p.rows, p.tables));
  return pass_crammer_singer<Rows, AnyCells<Number, kLanes>, kDescend>(rows, p, simplex, sweep);
}

void decide(const RowsArg& r, const TablesArg& t, const void* weights, std::int64_t begin,
            std::int64_t end, void* out) {
  calls_of(r, t).decide(r, {&t, const_cast<void*>(weights)}, begin, end,
                        static_cast<Number*>(out) + begin * t.lanes);
}

// One block of lanes of a start; the next row's coefficients are `stride` numbers away.
struct Block {
  const Number* coef;
  std::int64_t stride;
  void* weights;
  Number* bias;
};

// Rows with a nonzero coefficient.
struct RowBlock {
  static constexpr int kMost = WeightedRows::kMost;
  std::int64_t row[kMost];
  Number coef[kMost * kLanes];
  int n = 0;

  std::int64_t take(const Block& b, int lanes, std::int64_t from, std::int64_t end) {
    for (n = 0; from < end && n < kMost; ++from) {
      const Number* c = b.coef + from * b.stride;
      bool some = false;
      for (int l = 0; l < lanes; ++l) some |= (coef[n * lanes + l] = c[l]) != 0;
      row[n] = from;
      n += some;
    }
    return from;
  }
};

// Threads share the features of dense rows; features of sparse rows would have to be searched.
void accumulate(const SharedArg& p, const Block& b, std::int64_t begin, std::int64_t end,
                int n_threads) {
  const int n_useful = useful_threads(n_threads, cost_of(p, begin, end));
  const RowCalls& calls = calls_of(p.rows, p.tables);
  together(p.rows.index ? 1 : n_useful, [&](int who, int n) {
    const Share own = share_of(p.rows.n_features, n, who, n);
    RowBlock some;
    for (std::int64_t i = begin; i < end;) {
      i = some.take(b, p.tables.lanes, i, end);
      calls.add(p.rows, {&p.tables, b.weights}, own, {some.row, some.coef, some.n});
    }
  });
  double sums[kLanes] = {};
  for (std::int64_t i = begin; i < end; ++i)
    for (int l = 0; l < p.tables.lanes; ++l) sums[l] += double(b.coef[i * b.stride + l]);
  for (int l = 0; l < p.tables.lanes; ++l) b.bias[l] = Number(b.bias[l] + p.bias_value * sums[l]);
}

void accumulate_box(const SharedArg& p, const BoxArg& box, std::int64_t begin, std::int64_t end,
                    int n_threads) {
  const Block block{static_cast<const Number*>(box.coef), p.tables.lanes, box.weights,
                    static_cast<Number*>(box.bias)};
  accumulate(p, block, begin, end, n_threads);
}

void accumulate_simplex(const SharedArg& p, const SimplexArg& simplex, std::int64_t begin,
                        std::int64_t end, int n_threads) {
  for (std::int64_t b = 0; b < simplex.n_blocks; ++b) {
    const Block block{static_cast<const Number*>(simplex.coef) + b * kLanes,
                      simplex.n_blocks * kLanes, simplex.weights[b],
                      static_cast<Number*>(simplex.bias) + b * kLanes};
    accumulate(p, block, begin, end, n_threads);
  }
}

}  // namespace

extern const AdditiveLoops WIDEMARGIN_LOOPS = {
    {descend_box, certify_box, accumulate_box},
    {pass_simplex<true>, pass_simplex<false>, accumulate_simplex},
    decide};

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
