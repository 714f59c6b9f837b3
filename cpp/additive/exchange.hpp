// How the threads of one sweep agree on a row's decision.  Each publishes the sum over its features
// with the row's number, waits for the others and adds all sums in the same order.  Then all
// compute the same step, so one exchange per row suffices.  Only the leader writes shared data and
// reads the clock.
#pragma once

#include <sched.h>

#include "additive/feature_slices.hpp"
#include "clock.hpp"
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

// Only threads with enough work, because starting one takes some 50 us.
inline int useful_threads(int n_threads, std::int64_t n_vectors) {
  const std::int64_t most = n_vectors >> 19;
  return most < n_threads ? int(most > 1 ? most : 1) : n_threads;
}

// Waits for other threads, and yields the core if they are late.
class Waiting {
 public:
  // Whether so much time was lost waiting for threads without a core that one would be faster.
  bool is_crowded() const { return crowded_; }

  template <class Ready>
  WIDEMARGIN_INLINE void until(Ready&& ready) {
    for (int spins = 0; !ready(); ++spins) {
      if (spins == kSpins) return until_late(ready);
      relax();
    }
  }

 private:
  // A late thread has no core: offer this one.
  template <class Ready>
  void until_late(Ready&& ready) {
    const double since = Clock::now();
    while (!ready()) sched_yield();
    const double now = Clock::now();
    late_ += now - since;
    crowded_ = late_ > 0.01 && late_ > 0.4 * (now - begun_);
  }
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
  }
  static constexpr int kSpins = 200;  // some 4 us, ten times an exchange
  bool crowded_ = false;
  double begun_ = Clock::now(), late_ = 0;
};

// A published sum.  Every cache line carries a ticket; with a single one the reader would fetch the
// ticket first and the numbers after it, in twice the time.
template <class T>
struct Slot {
  static constexpr int kPerLine = 32 / sizeof(T), kLines = kLanes / kPerLine;
  struct alignas(64) Line {
    T numbers[kPerLine];
    std::uint64_t ticket;  // twice the row's number, and 1 more at the last row
  };
  Line lines[kLines];

  void put(const T* sum, std::uint64_t ticket) {
    for (Line& line : lines) {
      __builtin_memcpy(line.numbers, sum, sizeof(line.numbers));
      __atomic_store_n(&line.ticket, ticket, __ATOMIC_RELEASE);
      sum += kPerLine;
    }
  }
  bool has(std::uint64_t row) const {
    bool all = true;
    for (const Line& line : lines)
      all &= __atomic_load_n(&line.ticket, __ATOMIC_ACQUIRE) / 2 == row;
    return all;
  }
  bool is_last() const { return __atomic_load_n(&lines[0].ticket, __ATOMIC_RELAXED) % 2 != 0; }
  void get(T* sum) const {
    for (const Line& line : lines) {
      __builtin_memcpy(sum, line.numbers, sizeof(line.numbers));
      sum += kPerLine;
    }
  }
};

// The slots for sums, used in turn.  No thread is more than one row ahead, so a slot is free when
// its turn comes again.
template <class T>
struct Board {
  Slot<T> slots[2][kMostSlices] = {};
};

template <class T>
class Member {
 public:
  using Lanes = LaneVector<T, kLanes>;
  Member(Board<T>& board, int who, int n) : board_(board), who_(who), n_(n) {}

  bool leads() const { return who_ == 0; }
  bool is_crowded() const { return waiting_.is_crowded(); }

  // The sum over all threads, and whether the leader marked this row as the last.
  WIDEMARGIN_INLINE Lanes total(Lanes own, bool& last) {
    if (n_ == 1) return own;
    Slot<T>* slots = board_.slots[++row_ & 1];
    T numbers[kLanes];
    store(numbers, own);
    slots[who_].put(numbers, 2 * row_ + (last ? 1 : 0));
    Lanes sums[kMostSlices];
    for (int m = 0; m < n_; ++m) {
      waiting_.until([&] { return slots[m].has(row_); });
      slots[m].get(numbers);
      sums[m] = load<Lanes>(numbers);
    }
    last = slots[0].is_last();
    return add_pairwise(sums, n_);
  }

 private:
  Board<T>& board_;
  int who_, n_;
  Waiting waiting_;
  std::uint64_t row_ = 0;
};

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
