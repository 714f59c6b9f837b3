// Sums over every row at fixed weights, from which the duality gap is computed.  Threads take
// groups of rows in turn; each group has its own sums, which are added in order at the end.
#pragma once

#include <cstdlib>

#include "additive/descent.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

constexpr std::int64_t kRowsPerTurn = 4 * kRowsPerSum;
constexpr std::int64_t kRowsPerCall = 4096 * kRowsPerSum;  // 2.5 MiB of sums

class GroupSums {  // no std containers in files compiled per ISA
 public:
  explicit GroupSums(std::int64_t n_rows)
      : n_((n_rows + kRowsPerSum - 1) / kRowsPerSum),
        sums_(static_cast<Account*>(std::calloc(std::size_t(n_ > 0 ? n_ : 1), sizeof(Account)))) {}
  ~GroupSums() { std::free(sums_); }
  GroupSums(const GroupSums&) = delete;
  GroupSums& operator=(const GroupSums&) = delete;
  explicit operator bool() const { return sums_ != nullptr; }

  Account* of_row(std::int64_t row) { return sums_ + row / kRowsPerSum; }

  void add_to(Account& total) const {
    for (std::int64_t g = 0; g < n_; ++g) add(total, sums_[g]);
  }

 private:
  std::int64_t n_;
  Account* sums_;
};

// At most kRowsPerSum rows.
template <class Rows, class Cells, class Dual>
void account_rows(const Rows& rows, const Cells& cells, const Dual& dual, std::int64_t from,
                  std::int64_t to, Account* account) {
  using Lanes = typename Cells::Lanes;
  typename Cells::Number decisions[kRowsPerSum * Dual::kWidth];
  cells.decide(rows, from, to, decisions);
  Accountant<Lanes, typename Cells::Number> book(account);
  for (std::int64_t i = from; i < to; ++i) {
    auto s = dual.at(i);
    dual.decide(s, load<Lanes>(decisions + (i - from) * Dual::kWidth));
    dual.account(book, s);
  }
}

// Rows from begin; returns the row reached when the time or the room for sums is up.
template <class Rows, class Cells, class Dual>
std::int64_t certify(const Rows& rows, const Cells& cells, const Dual& dual, const Sweep& sweep,
                     int n_threads) {
  const std::int64_t begin = sweep.begin, room = begin + kRowsPerCall;
  const std::int64_t end = sweep.end < room ? sweep.end : room;
  GroupSums sums(end - begin);
  if (!sums) return -1;
  std::int64_t taken = begin;  // rows before it are taken
  together(n_threads, [&](int, int) {
    Clock clock(sweep.seconds);
    do {
      std::int64_t from = __atomic_fetch_add(&taken, kRowsPerTurn, __ATOMIC_RELAXED);
      const std::int64_t stop = from + kRowsPerTurn < end ? from + kRowsPerTurn : end;
      for (; from < stop; from += kRowsPerSum) {
        const std::int64_t to = from + kRowsPerSum < stop ? from + kRowsPerSum : stop;
        account_rows(rows, cells, dual, from, to, sums.of_row(from - begin));
        for (std::int64_t i = from; i < to; ++i) clock.count(rows[i].size * cells.cost());
      }
    } while (__atomic_load_n(&taken, __ATOMIC_RELAXED) < end && !clock.is_up());
  });
  sums.add_to(*sweep.account);
  return taken < end ? taken : end;
}

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
