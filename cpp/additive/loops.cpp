// The hot loops, instantiated for every layout of rows and shape of cells.  Compiled once per
// instruction set (see isa.hpp); the table of functions at the end is all that leaves this file.
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

// Calls f(rows, Tag<Cells>{}).  Only single precision has a loop of its own for the common ranks:
// double precision is for tight tolerances on small problems.
template <bool kLanesOnly, class Rows, class F>
auto with_cells(const Rows& rows, const TablesArg& t, F&& f) {
  constexpr bool is_float = std::is_same_v<Number, float>;
  if constexpr (!kLanesOnly) {
    if (t.lanes == 1) {
      if (t.rank == 0) return f(rows, Tag<Unary<Number, 1>>{});
      if (t.rank == 1) return f(rows, Tag<FactorSingle<Number, 1>>{});
      if constexpr (is_float) {
        if (t.rank == 4) return f(rows, Tag<FactorSingle<Number, 4>>{});
        if (t.rank == 8) return f(rows, Tag<FactorSingle<Number, 8>>{});
      }
      return f(rows, Tag<FactorSingle<Number, 0>>{});
    }
    if constexpr (is_float) {
      if (t.rank == 1) return f(rows, Tag<FactorLanes<Number, 1>>{});
      if (t.rank == 2) return f(rows, Tag<FactorLanes<Number, 2>>{});
      if (t.rank == 3) return f(rows, Tag<FactorLanes<Number, 3>>{});
      if (t.rank == 4) return f(rows, Tag<FactorLanes<Number, 4>>{});
      if (t.rank == 8) return f(rows, Tag<FactorLanes<Number, 8>>{});
    }
  }
  if (t.rank == 0) return f(rows, Tag<Unary<Number, kLanes>>{});
  return f(rows, Tag<FactorLanes<Number, 0>>{});
}

template <bool kLanesOnly = false, class F>
auto with_types(const RowsArg& r, const TablesArg& t, F&& f) {
  using u8 = std::uint8_t;
  using u16 = std::uint16_t;
  using u32 = std::uint32_t;
  const auto go = [&](auto rows) { return with_cells<kLanesOnly>(rows, t, f); };
  if (r.index_type == IndexType::dense) {
    if (r.code_type == CodeType::u8) return go(DenseRows<u8>(r));
    if (r.code_type == CodeType::u16) return go(DenseRows<u16>(r));
    return go(DenseRows<u32>(r));
  }
  if (r.index_type == IndexType::u16) return go(SparseRows<u16, u8>(r));
  if (r.code_type == CodeType::u8) return go(SparseRows<u32, u8>(r));
  if (r.code_type == CodeType::u16) return go(SparseRows<u32, u16>(r));
  return go(SparseRows<u32, u32>(r));
}

std::int64_t descend_box(const SharedArg& p, const BoxArg& box, const Sweep& sweep) {
  return with_types(p.rows, p.tables, [&](auto rows, auto tag) {
    using Cells = typename decltype(tag)::type;
    const Cells cells(p.tables, box.weights, p.rows.n_features);
    return descend(rows, cells, BoxDual<Cells>(p, box), sweep);
  });
}

std::int64_t certify_box(const SharedArg& p, const BoxArg& box, const Sweep& sweep) {
  return with_types(p.rows, p.tables, [&](auto rows, auto tag) {
    using Cells = typename decltype(tag)::type;
    const Cells cells(p.tables, box.weights, p.rows.n_features);
    return certify(rows, cells, BoxDual<Cells>(p, box), sweep);
  });
}

std::int64_t descend_simplex(const SharedArg& p, const SimplexArg& simplex, const Sweep& sweep) {
  return with_types<true>(p.rows, p.tables, [&](auto rows, auto tag) {
    using Cells = typename decltype(tag)::type;
    return pass_crammer_singer<decltype(rows), Cells, true>(rows, p, simplex, sweep);
  });
}

std::int64_t certify_simplex(const SharedArg& p, const SimplexArg& simplex, const Sweep& sweep) {
  return with_types<true>(p.rows, p.tables, [&](auto rows, auto tag) {
    using Cells = typename decltype(tag)::type;
    return pass_crammer_singer<decltype(rows), Cells, false>(rows, p, simplex, sweep);
  });
}

void decide(const RowsArg& r, const TablesArg& t, const void* weights, std::int64_t begin,
            std::int64_t end, void* out) {
  with_types(r, t, [&](auto rows, auto tag) {
    const typename decltype(tag)::type cells(t, const_cast<void*>(weights), r.n_features);
    for (std::int64_t i = begin; i < end; ++i) {
      if (i + 1 < end) cells.prefetch(rows[i + 1]);
      store(static_cast<Number*>(out) + i * t.lanes, cells.dot(rows[i]));
    }
  });
}

// One block of lanes; its coefficients of the next row are `stride` numbers away.
void accumulate(const SharedArg& p, std::int64_t begin, std::int64_t end, const Number* coef,
                std::int64_t stride, void* weights, Number* bias) {
  with_types(p.rows, p.tables, [&](auto rows, auto tag) {
    using Cells = typename decltype(tag)::type;
    using Lanes = typename Cells::Lanes;
    Cells cells(p.tables, weights, p.rows.n_features);
    double sums[kLanes] = {};
    for (std::int64_t i = begin; i < end; ++i) {
      const auto delta = load<Lanes>(coef + i * stride);
      if (!any(delta != Lanes{})) continue;
      cells.update(rows[i], delta);
      for (int l = 0; l < p.tables.lanes; ++l) sums[l] += double(coef[i * stride + l]);
    }
    for (int l = 0; l < p.tables.lanes; ++l) bias[l] = Number(bias[l] + p.bias_value * sums[l]);
  });
}

void accumulate_box(const SharedArg& p, const BoxArg& box, std::int64_t begin, std::int64_t end) {
  accumulate(p, begin, end, static_cast<const Number*>(box.coef), p.tables.lanes, box.weights,
             static_cast<Number*>(box.bias));
}

void accumulate_simplex(const SharedArg& p, const SimplexArg& simplex, std::int64_t begin,
                        std::int64_t end) {
  for (std::int64_t b = 0; b < simplex.n_blocks; ++b)
    accumulate(p, begin, end, static_cast<const Number*>(simplex.coef) + b * kLanes,
               simplex.n_blocks * kLanes, simplex.weights[b],
               static_cast<Number*>(simplex.bias) + b * kLanes);
}

}  // namespace

extern const AdditiveLoops WIDEMARGIN_LOOPS = {
    {descend_box, certify_box, accumulate_box},
    {descend_simplex, certify_simplex, accumulate_simplex},
    decide};

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
