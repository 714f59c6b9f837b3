// The hot loops, instantiated for every layout of rows and shape of cells.  Compiled once per
// instruction set (see isa.hpp); `kernels()` is the only name that leaves this file.
#include "crammer_singer.hpp"
#include "descent.hpp"

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

// Calls f.operator()<Rows, Cells>(rows).  Only single precision has a loop of its own for the
// common ranks: double precision is for tight tolerances on small problems.
template <class Rows, bool kLanesOnly, class F>
auto with_cells(const Rows& rows, const TablesArg& t, F&& f) {
  if (t.rank == 0) {
    if constexpr (!kLanesOnly)
      if (t.lanes == 1) return f.template operator()<Rows, Unary<Number, 1>>(rows);
    return f.template operator()<Rows, Unary<Number, kLanes>>(rows);
  }
  if constexpr (!kLanesOnly) {
    if (t.lanes == 1) {
      if constexpr (std::is_same_v<Number, float>) {
        if (t.rank == 4) return f.template operator()<Rows, FactorSingle<Number, 4>>(rows);
        if (t.rank == 8) return f.template operator()<Rows, FactorSingle<Number, 8>>(rows);
      }
      if (t.rank == 1) return f.template operator()<Rows, FactorSingle<Number, 1>>(rows);
      return f.template operator()<Rows, FactorSingle<Number, 0>>(rows);
    }
    if constexpr (std::is_same_v<Number, float>) {
      if (t.rank == 1) return f.template operator()<Rows, FactorLanes<Number, 1>>(rows);
      if (t.rank == 2) return f.template operator()<Rows, FactorLanes<Number, 2>>(rows);
      if (t.rank == 3) return f.template operator()<Rows, FactorLanes<Number, 3>>(rows);
      if (t.rank == 4) return f.template operator()<Rows, FactorLanes<Number, 4>>(rows);
      if (t.rank == 8) return f.template operator()<Rows, FactorLanes<Number, 8>>(rows);
    }
  }
  return f.template operator()<Rows, FactorLanes<Number, 0>>(rows);
}

template <bool kLanesOnly, class F>
auto with_types(const RowsArg& r, const TablesArg& t, F&& f) {
  using u8 = std::uint8_t;
  using u16 = std::uint16_t;
  using u32 = std::uint32_t;
  const auto go = [&](auto rows) {
    return with_cells<decltype(rows), kLanesOnly>(rows, t, static_cast<F&&>(f));
  };
  if (r.index_type == IndexType::dense) {
    if (r.code_type == CodeType::u8) return go(DenseRows<u8>(r));
    if (r.code_type == CodeType::u16) return go(DenseRows<u16>(r));
    return go(DenseRows<u32>(r));
  }
  if (r.index_type == IndexType::u16 && r.code_type == CodeType::u8)
    return go(SparseRows<u16, u8>(r));
  if (r.code_type == CodeType::u8) return go(SparseRows<u32, u8>(r));
  if (r.code_type == CodeType::u16) return go(SparseRows<u32, u16>(r));
  return go(SparseRows<u32, u32>(r));
}

struct Descend {
  const RowsArg& r;
  const TablesArg& t;
  const ProblemArg& p;
  const Sweep& s;
  template <class Rows, class Cells>
  std::int64_t operator()(const Rows& rows) {
    return descend(rows, Cells(t, r.n_features), p, s);
  }
};
struct Certify {
  const RowsArg& r;
  const TablesArg& t;
  const ProblemArg& p;
  const Sweep& s;
  template <class Rows, class Cells>
  std::int64_t operator()(const Rows& rows) {
    return certify(rows, Cells(t, r.n_features), p, s);
  }
};
struct DescendCrammerSinger {
  const RowsArg& r;
  const TablesArg& t;
  const CrammerSingerArg& p;
  const Sweep& s;
  template <class Rows, class Cells>
  std::int64_t operator()(const Rows& rows) {
    return descend_crammer_singer<Rows, Cells>(rows, t, p, s, r.n_features);
  }
};
struct CertifyCrammerSinger {
  const RowsArg& r;
  const TablesArg& t;
  const CrammerSingerArg& p;
  const Sweep& s;
  template <class Rows, class Cells>
  std::int64_t operator()(const Rows& rows) {
    return certify_crammer_singer<Rows, Cells>(rows, t, p, s, r.n_features);
  }
};
struct Decide {
  const RowsArg& r;
  const TablesArg& t;
  std::int64_t begin, end;
  Number* out;
  template <class Rows, class Cells>
  int operator()(const Rows& rows) {
    const Cells cells(t, r.n_features);
    for (std::int64_t i = begin; i < end; ++i) {
      if (i + 1 < end) cells.prefetch(rows[i + 1]);
      store(out + i * t.lanes, cells.dot(rows[i]));
    }
    return 0;
  }
};
struct Accumulate {
  const RowsArg& r;
  const TablesArg& t;
  std::int64_t begin, end;
  const Number* coef;
  template <class Rows, class Cells>
  int operator()(const Rows& rows) {
    Cells cells(t, r.n_features);
    for (std::int64_t i = begin; i < end; ++i) {
      const auto delta = load<typename Cells::Lanes>(coef + i * t.lanes);
      if (any(delta != typename Cells::Lanes{})) cells.update(rows[i], delta);
    }
    return 0;
  }
};

}  // namespace

extern const Kernels WIDEMARGIN_KERNELS;
const Kernels WIDEMARGIN_KERNELS = {
    [](const RowsArg& r, const TablesArg& t, const ProblemArg& p, const Sweep& s) {
      return with_types<false>(r, t, Descend{r, t, p, s});
    },
    [](const RowsArg& r, const TablesArg& t, const ProblemArg& p, const Sweep& s) {
      return with_types<false>(r, t, Certify{r, t, p, s});
    },
    [](const RowsArg& r, const TablesArg& t, const CrammerSingerArg& p, const Sweep& s) {
      return with_types<true>(r, t, DescendCrammerSinger{r, t, p, s});
    },
    [](const RowsArg& r, const TablesArg& t, const CrammerSingerArg& p, const Sweep& s) {
      return with_types<true>(r, t, CertifyCrammerSinger{r, t, p, s});
    },
    [](const RowsArg& r, const TablesArg& t, std::int64_t begin, std::int64_t end, void* out) {
      with_types<false>(r, t, Decide{r, t, begin, end, static_cast<Number*>(out)});
    },
    [](const RowsArg& r, const TablesArg& t, std::int64_t begin, std::int64_t end,
       const void* coef) {
      with_types<false>(r, t, Accumulate{r, t, begin, end, static_cast<const Number*>(coef)});
    }};

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
