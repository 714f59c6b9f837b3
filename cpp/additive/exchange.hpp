// How the threads of one sweep agree on a row's decision.  Each publishes the sum over its own
// features under the row's number, waits for the others' and adds all of them in the same order;
// from there on all compute the same step, so there is one exchange per row and nothing else to
// agree on.  Only the leader writes what they share, and only its clock counts.
#pragma once

#include <sched.h>

#include "additive/parts.hpp"
#include "simd.hpp"
#include "team.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

// f(who, n) in n threads; see team.hpp.
template <class F>
void together(int n_threads, F&& f) {
  if (n_threads < 2) return f(0, 1);
  using Work = std::remove_reference_t<F>;
  work_together(
      n_threads, [](void* work, int who, int n) { (*static_cast<Work*>(work))(who, n); }, &f);
}

// As many threads as have something to do for a while: to start one takes some 50 us.
inline int useful_threads(int n_threads, std::int64_t n_vectors) {
  const std::int64_t most = n_vectors >> 19;
  return most < n_threads ? int(most > 1 ? most : 1) : n_threads;
}

class Alone {
 public:
  static constexpr bool leads() { return true; }
  template <class Lanes>
  WIDEMARGIN_INLINE Lanes total(Lanes whole, bool&) {
    return whole;
  }
};

template <class T>
struct Slot {
  alignas(64) T sum[kLanes];
  alignas(64) std::uint64_t ticket;  // twice the row's number, and 1 more at the last row
};

// Where sums are published, row after row in turn: nobody is more than one row ahead, so a slot is
// free when its turn comes again.
template <class T>
struct Board {
  Slot<T> slots[2][kMostParts] = {};
};

template <class T>
class Member {
 public:
  using Lanes = LaneVector<T, kLanes>;
  Member(Board<T>& board, int who, int n) : board_(board), who_(who), n_(n) {}

  bool leads() const { return who_ == 0; }

  // The sum of everybody's part, and whether the leader says that this row is the last.
  WIDEMARGIN_INLINE Lanes total(Lanes part, bool& last) {
    if (n_ == 1) return part;
    Slot<T>* slots = board_.slots[++row_ & 1];
    store(slots[who_].sum, part);
    __atomic_store_n(&slots[who_].ticket, 2 * row_ + (last ? 1 : 0), __ATOMIC_RELEASE);
    Lanes sums[kMostParts];
    for (int m = 0; m < n_; ++m) {
      const std::uint64_t ticket = arrived(slots[m]);
      if (m == 0) last = ticket & 1;
      sums[m] = load<Lanes>(slots[m].sum);
    }
    return add_pairwise(sums, n_);
  }

 private:
  // A sum that is late is late because its thread has no core: after a moment, offer it this one.
  std::uint64_t arrived(const Slot<T>& slot) const {
    for (int spins = 0;; ++spins) {
      const std::uint64_t ticket = __atomic_load_n(&slot.ticket, __ATOMIC_ACQUIRE);
      if (ticket >> 1 == row_) return ticket;
      if (spins < kSpins)
        relax();
      else
        sched_yield();
    }
  }
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
  }
  static constexpr int kSpins = 500;  // some 10 us, a hundred times what an exchange takes
  Board<T>& board_;
  int who_, n_;
  std::uint64_t row_ = 0;
};

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
