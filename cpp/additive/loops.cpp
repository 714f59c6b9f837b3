// The hot loops, instantiated for every layout of rows and shape of cells.  Compiled once per
// instruction set (see isa.hpp); `kernels()` is the only name that leaves this file.
#include "additive/crammer_singer.hpp"
#include "additive/descent.hpp"

#ifdef WIDEMARGIN_DOUBLE
#define WIDEMARGIN_KERNELS kernels_double
#else
#define WIDEMARGIN_KERNELS kernels_float
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

std::int64_t descend_box(const RowsArg& r, const TablesArg& t, const ProblemArg& p,
                         const Sweep& s) {
  return with_types(r, t, [&](auto rows, auto cells) {
    return descend(rows, typename decltype(cells)::type(t, r.n_features), p, s);
  });
}

std::int64_t certify_box(const RowsArg& r, const TablesArg& t, const ProblemArg& p,
                         const Sweep& s) {
  return with_types(r, t, [&](auto rows, auto cells) {
    return certify(rows, typename decltype(cells)::type(t, r.n_features), p, s);
  });
}

std::int64_t descend_simplex(const RowsArg& r, const TablesArg& t, const CrammerSingerArg& p,
                             const Sweep& s) {
  return with_types<true>(r, t, [&](auto rows, auto cells) {
    using Cells = typename decltype(cells)::type;
    return descend_crammer_singer<decltype(rows), Cells>(rows, t, p, s, r.n_features);
  });
}

std::int64_t certify_simplex(const RowsArg& r, const TablesArg& t, const CrammerSingerArg& p,
                             const Sweep& s) {
  return with_types<true>(r, t, [&](auto rows, auto cells) {
    using Cells = typename decltype(cells)::type;
    return certify_crammer_singer<decltype(rows), Cells>(rows, t, p, s, r.n_features);
  });
}

void decide(const RowsArg& r, const TablesArg& t, std::int64_t begin, std::int64_t end, void* out) {
  with_types(r, t, [&](auto rows, auto tag) {
    const typename decltype(tag)::type cells(t, r.n_features);
    for (std::int64_t i = begin; i < end; ++i) {
      if (i + 1 < end) cells.prefetch(rows[i + 1]);
      store(static_cast<Number*>(out) + i * t.lanes, cells.dot(rows[i]));
    }
  });
}

void accumulate(const RowsArg& r, const TablesArg& t, std::int64_t begin, std::int64_t end,
                const void* coef) {
  with_types(r, t, [&](auto rows, auto tag) {
    using Cells = typename decltype(tag)::type;
    using Lanes = typename Cells::Lanes;
    Cells cells(t, r.n_features);
    for (std::int64_t i = begin; i < end; ++i) {
      const auto delta = load<Lanes>(static_cast<const Number*>(coef) + i * t.lanes);
      if (any(delta != Lanes{})) cells.update(rows[i], delta);
    }
  });
}

}  // namespace

extern const Kernels WIDEMARGIN_KERNELS;
const Kernels WIDEMARGIN_KERNELS = {descend_box,     certify_box, descend_simplex,
                                    certify_simplex, decide,      accumulate};

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
