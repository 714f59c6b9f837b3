// Rows of any layout and cells of any shape in 16 lanes, behind one virtual call per row.  A row in
// 16 lanes is so much work that the call costs nothing, and the code between rows is compiled once
// instead of once per layout and rank, which dominated the compile time of the core.
#pragma once

#include "additive/cells.hpp"
#include "additive/feature_slices.hpp"
#include "additive/rows.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

// The cells of one block of lanes, described by `tables`.
struct CellsArg {
  const TablesArg* tables;
  void* weights;
};

// The operations of cells.hpp on rows; vectors of lanes are passed by address.
struct RowCalls {
  void (*decide)(const RowsArg&, const CellsArg&, std::int64_t begin, std::int64_t end, void* out);
  // Only dense rows can be split by features.
  void (*update)(const RowsArg&, const CellsArg&, const Share&, std::int64_t i, const void* delta);
  // Dense rows only: row i (none if negative) is written, then the next one read, slice by slice.
  void (*update_dot)(const RowsArg&, const CellsArg&, const Share&, std::int64_t i,
                     const void* delta, std::int64_t next, void* out);
  void (*prefetch)(const RowsArg&, const CellsArg&, std::int64_t i);
  void (*add)(const RowsArg&, const CellsArg&, const Share&, const WeightedRows&);
};

template <class Rows, class Cells>
struct CallsOf {
  using T = typename Cells::Number;
  using Lanes = typename Cells::Lanes;
  static Cells cells(const RowsArg& r, const CellsArg& c) {
    return Cells(*c.tables, c.weights, r.n_features);
  }
  static Lanes lanes(const void* p) { return load<Lanes>(static_cast<const T*>(p)); }

  static void decide(const RowsArg& r, const CellsArg& c, std::int64_t begin, std::int64_t end,
                     void* out) {
    const Rows rows(r);
    const Cells some = cells(r, c);
    T* to = static_cast<T*>(out);
    if constexpr (kBlocked) {
      for (; begin < end; begin += kRowsAtOnce, to += kRowsAtOnce * kLanes)
        decide_block(r, c, begin, begin + kRowsAtOnce < end ? begin + kRowsAtOnce : end, to);
      return;
    }
    for (std::int64_t i = begin; i < end; ++i, to += sizeof(Lanes) / sizeof(T)) {
      if (i + 1 < r.n_rows) some.prefetch(rows[i + 1]);
      store(to, some.dot(rows[i]));
    }
  }
  static void update(const RowsArg& r, const CellsArg& c, const Share& share, std::int64_t i,
                     const void* delta) {
    const auto row = Rows(r)[i];
    if constexpr (Rows::dense)
      cells(r, c).update(row.slice(share.from(), share.to()), lanes(delta));
    else
      cells(r, c).update(row, lanes(delta));
  }
  static void update_dot(const RowsArg& r, const CellsArg& c, const Share& share, std::int64_t i,
                         const void* delta, std::int64_t next, void* out) {
    const Rows rows(r);
    Cells some = cells(r, c);
    const Lanes step = i < 0 ? Lanes{} : lanes(delta);
    Lanes sums[kMostSlices];
    for (int p = 0; p < share.n_slices; ++p) {
      const std::int64_t from = share.bounds[p], to = share.bounds[p + 1];
      const auto slice = rows[next].slice(from, to);
      sums[p] = i < 0 ? some.dot(slice) : moved_dot(some, rows[i].slice(from, to), step, slice);
    }
    store(static_cast<T*>(out), add_pairwise(sums, share.n_slices));
  }
  static void prefetch(const RowsArg& r, const CellsArg& c, std::int64_t i) {
    cells(r, c).prefetch(Rows(r)[i]);
  }
  static void add(const RowsArg& r, const CellsArg& c, const Share& share, const WeightedRows& w) {
    if constexpr (kBlocked) {
      cells(r, c).add(Rows(r), share.from(), share.to(), w);
    } else {
      const T* coef = static_cast<const T*>(w.coef);
      for (int k = 0; k < w.n; ++k, coef += sizeof(Lanes) / sizeof(T))
        update(r, c, share, w.row[k], coef);
    }
  }
  static constexpr RowCalls all() {
    if constexpr (Rows::dense && sizeof(Lanes) > sizeof(T))
      return {decide, update, update_dot, prefetch, add};
    else
      return {decide, update, nullptr, prefetch, add};
  }

 private:
  static constexpr bool kBlocked = Rows::dense && Cells::kFused;
  static constexpr std::int64_t kRowsAtOnce = 32;

  // Several rows at once, so that weights in the cache serve all of them; the sums are added in the
  // order of dot().
  static void decide_block(const RowsArg& r, const CellsArg& c, std::int64_t begin,
                           std::int64_t end, T* out) {
    const Rows rows(r);
    const Cells some = cells(r, c);
    typename Cells::Chains chains[kRowsAtOnce];
    const std::int64_t step = near_features(*c.tables);
    for (std::int64_t from = 0; from < r.n_features; from += step) {
      const std::int64_t to = from + step < r.n_features ? from + step : r.n_features;
      for (std::int64_t i = begin; i < end; ++i)
        some.add_dot(rows[i].slice(from, to), chains[i - begin]);
    }
    for (std::int64_t i = begin; i < end; ++i)
      store(out + (i - begin) * kLanes, chains[i - begin].sum());
  }

  template <class Row>
  static Lanes moved_dot(Cells& some, const Row& row, Lanes step, const Row& next) {
    if constexpr (Cells::kFused) {
      return some.update_dot(row, step, next);
    } else {
      some.update(row, step);
      return some.dot(next);
    }
  }
};
template <class Rows, class Cells>
inline constexpr RowCalls kCallsOf = CallsOf<Rows, Cells>::all();

// Whole rows, or a share of the features of dense ones.
template <bool kShared>
struct AnyRows {
  static constexpr bool dense = kShared;
  struct Row {
    static constexpr bool shared = kShared;
    const AnyRows* all;
    std::int64_t i, size;
    void prefetch() const {
      const RowsArg& rows = all->rows;
      std::int64_t first = i * rows.n_features + all->share.from();
      if (rows.index) {
        first = rows.start[i];
        prefetch(rows.index, first, 1 << int(rows.index_type));
      }
      prefetch(rows.codes, first, 1 << int(rows.code_type));
    }

   private:
    void prefetch(const void* values, std::int64_t first, std::int64_t bytes) const {
      const char* p = static_cast<const char*>(values) + first * bytes;
      for (std::int64_t b = 0; b < size * bytes; b += 64) __builtin_prefetch(p + b);
    }
  };
  const RowsArg& rows;
  const RowCalls& calls;
  Share share;
  AnyRows(const RowsArg& a, const RowCalls& c) : AnyRows(a, c, share_of(a.n_features, 1, 0, 1)) {}
  AnyRows(const RowsArg& a, const RowCalls& c, const Share& s) : rows(a), calls(c), share(s) {}
  Row operator[](std::int64_t i) const {
    if (rows.start) return {this, i, rows.start[i + 1] - rows.start[i]};
    return {this, i, share.to() - share.from()};
  }
  void prefetch_place(std::int64_t i) const {
    if (rows.start) __builtin_prefetch(rows.start + i);
  }
};

template <class T, int kWidth>
struct AnyCells {
  static constexpr bool kFused = true;
  using Number = T;
  using Lanes = LaneVector<T, kWidth>;
  CellsArg arg;
  bool far;

  AnyCells(const TablesArg& a, void* weights, std::int64_t n_features)
      : arg{&a, weights}, far(are_far(a, n_features)) {}

  std::int64_t cost() const { return arg.tables->rank ? arg.tables->rank : arg.tables->n_codes; }

  // out[i - begin] of every row i.
  template <class Rows>
  void decide(const Rows& rows, std::int64_t begin, std::int64_t end, T* out) const {
    rows.calls.decide(rows.rows, arg, begin, end, out);
  }
  template <class Row>
  Lanes dot(const Row& row) const {
    T out[kWidth];
    if constexpr (Row::shared)
      row.all->calls.update_dot(row.all->rows, arg, row.all->share, -1, nullptr, row.i, out);
    else
      row.all->calls.decide(row.all->rows, arg, row.i, row.i + 1, out);
    return load<Lanes>(out);
  }
  template <class Row>
  void update(const Row& row, Lanes delta) {
    T step[kWidth];
    store(step, delta);
    row.all->calls.update(row.all->rows, arg, row.all->share, row.i, step);
  }
  template <class Row>
  Lanes update_dot(const Row& row, Lanes delta, const Row& next) {
    T out[kWidth], step[kWidth];
    store(step, delta);
    row.all->calls.update_dot(row.all->rows, arg, row.all->share, row.i, step, next.i, out);
    return load<Lanes>(out);
  }
  template <class Row>
  void prefetch(const Row& row) const {
    // Every row's part has the same cells.
    if (far && !Row::shared) row.all->calls.prefetch(row.all->rows, arg, row.i);
  }
};

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
