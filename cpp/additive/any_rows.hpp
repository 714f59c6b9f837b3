// Rows of any layout and cells of any shape in 16 lanes, behind one call per row.  In 16 lanes a
// row is so much work that the call is lost in it, and what a sweep does between rows is compiled
// once, not once per layout and rank: that was most of the time that compiling the core took.
#pragma once

#include "additive/cells.hpp"
#include "additive/rows.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

// The cells of one block of lanes; `tables` says what they are.
struct CellsArg {
  const TablesArg* tables;
  void* weights;
};

// What cells.hpp does with rows; vectors of lanes are passed by address.
struct RowCalls {
  void (*decide)(const RowsArg&, const CellsArg&, std::int64_t begin, std::int64_t end, void* out);
  void (*update)(const RowsArg&, const CellsArg&, std::int64_t i, const void* delta);
  void (*update_dot)(const RowsArg&, const CellsArg&, std::int64_t i, const void* delta,
                     std::int64_t next, void* out);  // null: update() and dot() are as good
  void (*prefetch)(const RowsArg&, const CellsArg&, std::int64_t i);
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
    for (std::int64_t i = begin; i < end; ++i, to += sizeof(Lanes) / sizeof(T)) {
      if (i + 1 < r.n_rows) some.prefetch(rows[i + 1]);
      store(to, some.dot(rows[i]));
    }
  }
  static void update(const RowsArg& r, const CellsArg& c, std::int64_t i, const void* delta) {
    cells(r, c).update(Rows(r)[i], lanes(delta));
  }
  static void update_dot(const RowsArg& r, const CellsArg& c, std::int64_t i, const void* delta,
                         std::int64_t next, void* out) {
    const Rows rows(r);
    store(static_cast<T*>(out), cells(r, c).update_dot(rows[i], lanes(delta), rows[next]));
  }
  static void prefetch(const RowsArg& r, const CellsArg& c, std::int64_t i) {
    cells(r, c).prefetch(Rows(r)[i]);
  }
  static constexpr RowCalls all() {
    if constexpr (Rows::dense && Cells::kFused)
      return {decide, update, update_dot, prefetch};
    else
      return {decide, update, nullptr, prefetch};
  }
};
template <class Rows, class Cells>
inline constexpr RowCalls kCallsOf = CallsOf<Rows, Cells>::all();

template <bool kFused>  // whether there is update_dot
struct AnyRows {
  static constexpr bool dense = kFused;
  struct Row {
    const RowsArg* rows;
    const RowCalls* calls;
    std::int64_t i, size;
    void prefetch() const {
      const std::int64_t first = rows->start ? rows->start[i] : i * rows->n_features;
      if (rows->index) prefetch(rows->index, first, 1 << int(rows->index_type));
      prefetch(rows->codes, first, 1 << int(rows->code_type));
    }

   private:
    void prefetch(const void* values, std::int64_t first, std::int64_t bytes) const {
      const char* p = static_cast<const char*>(values) + first * bytes;
      for (std::int64_t b = 0; b < size * bytes; b += 64) __builtin_prefetch(p + b);
    }
  };
  const RowsArg& rows;
  const RowCalls& calls;
  AnyRows(const RowsArg& a, const RowCalls& c) : rows(a), calls(c) {}
  Row operator[](std::int64_t i) const {
    return {&rows, &calls, i, rows.start ? rows.start[i + 1] - rows.start[i] : rows.n_features};
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
    row.calls->decide(*row.rows, arg, row.i, row.i + 1, out);
    return load<Lanes>(out);
  }
  template <class Row>
  void update(const Row& row, Lanes delta) {
    T step[kWidth];
    store(step, delta);
    row.calls->update(*row.rows, arg, row.i, step);
  }
  template <class Row>
  Lanes update_dot(const Row& row, Lanes delta, const Row& next) {
    T out[kWidth], step[kWidth];
    store(step, delta);
    row.calls->update_dot(*row.rows, arg, row.i, step, next.i, out);
    return load<Lanes>(out);
  }
  template <class Row>
  void prefetch(const Row& row) const {
    if (far) row.calls->prefetch(*row.rows, arg, row.i);
  }
};

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
