// A sweep by two threads that share no row: rounds of three.  Two halves of a round's rows descend
// from the same weights, side by side; what both have found is added; and one thread goes on alone
// over a few rows.
//
// Both halves correct the error that they begin with, so their sum has it again, with the other
// sign; left to itself it would not die out.  The few rows after them correct it, since it lies in
// the directions that all rows share.  So it takes as many sweeps as one row after another, within
// a few per cent (benchmarks/results/halves.md).  Four parts or sixteen correct it as many times:
// they need many rows alone and more sweeps, which one thread would feel.
//
// Rounds are a function of the problem and of the sweep's length, and one thread does what two do.
#pragma once

#include <cstdlib>

#include "additive/descent.hpp"

namespace widemargin {
namespace WIDEMARGIN_ISA {

constexpr std::int64_t kLeastHalf = 512, kRowsAlone = 64;
// Values times rank of a row, under which a round's own work would show on one thread.
constexpr std::int64_t kLeastSharedRow = 24;
constexpr std::int64_t kGroups = 32;  // of neighbouring rows, at least
// Weights are copied and added once per round, and a half's rows write this many times as many.
constexpr std::int64_t kWritesPerWeight = 16;
// A round is not cut by the clock: no longer ones than take some 0.1 s.
constexpr std::int64_t kLongestRound = 1 << 25;

// Values that a sweep has if a second thread is worth its start.
constexpr std::int64_t kLeastShared = 1 << 17;

inline std::int64_t count_weights(const SharedArg& p) {
  return p.rows.n_features * p.tables.rank * p.tables.lanes;
}

// The rounds of a sweep over so many rows; none where it is too short for one, or where there is no
// objective to gain in.  Rows that are left over come last, one after another: halves that share
// all of them without that end take some per cent more sweeps.
struct Rounds {
  std::int64_t n = 0, half = kLeastHalf;  // half: at most so many rows
  int neighbours = 10;                    // so many bits of a row's number, all in one half

  Rounds(const SharedArg& p, std::int64_t n_in_order) {
    const RowsArg& r = p.rows;
    if (p.tables.rank == 0 || p.tables.left != p.tables.right || r.n_rows == 0) return;
    const std::int64_t values = r.start ? r.start[r.n_rows] / r.n_rows : r.n_features;
    if (values * p.tables.rank < kLeastSharedRow) return;
    const std::int64_t written = kWritesPerWeight * r.n_features / (values > 0 ? values : 1);
    if (written > half) half = written;
    while (neighbours > 0 && (r.n_rows >> neighbours) < kGroups) --neighbours;
    if (half * values * p.tables.rank <= kLongestRound) n = n_in_order / length();
  }
  std::int64_t length() const { return 2 * half + kRowsAlone; }
  // The first that begins there or later.
  std::int64_t from(std::int64_t position) const {
    const std::int64_t round = (position + length() - 1) / length();
    return round < n ? round : n;
  }
};

// Some rows with weights of their own.
template <class T>
struct Half {
  BoxArg box;
  Steps<T> steps;
  Account account;
};

// The rows of a round: those of either half, then those for one thread alone.  Rows whose samples
// share lines of the cache are in the same half, so that threads do not write to the same lines.
class RoundRows {
 public:
  explicit RoundRows(const Rounds& rounds)
      : rounds_(rounds),
        memory_(static_cast<std::int32_t*>(
            std::malloc(std::size_t(3 * rounds.length()) * sizeof(std::int32_t)))) {}
  ~RoundRows() { std::free(memory_); }
  RoundRows(const RoundRows&) = delete;
  RoundRows& operator=(const RoundRows&) = delete;
  explicit operator bool() const { return memory_ != nullptr; }

  void take(const std::int32_t* order) {
    const auto other = std::uint32_t(order[0]);  // in every round: rows must not always be apart
    std::int64_t n[3] = {0, 0, 0};
    for (std::int64_t k = 0; k < rounds_.length(); ++k) {  // without branches: nobody foresees them
      const auto group = std::uint32_t(order[k]) >> rounds_.neighbours;
      const auto half = int((group + other) * 0x9E3779B1u >> 31);
      const int part = n[half] < rounds_.half ? half : 2;
      of(part)[n[part]++] = order[k];
    }
    for (int part = 0; part < 3; ++part) n_[part] = n[part];
  }
  // Those of half 0 or 1, or (2) for one thread alone.
  std::int32_t* of(int part) const { return memory_ + part * rounds_.length(); }
  std::int64_t count(int part) const { return n_[part]; }

 private:
  const Rounds& rounds_;
  std::int32_t* memory_;
  std::int64_t n_[3] = {0, 0, 0};
};

// Both halves of a round.
template <class T>
class Pair {
 public:
  Pair(const SharedArg& p, const BoxArg& box, std::int64_t n_rows)
      : n_(count_weights(p)), lanes_(p.tables.lanes) {
    const std::int64_t weights = padded(n_), each = weights + kLanes + padded(n_rows * lanes_);
    memory_ = static_cast<T*>(std::aligned_alloc(64, std::size_t(2 * each) * sizeof(T)));
    if (!memory_) return;
    for (int h = 0; h < 2; ++h) {
      T* own = memory_ + h * each;
      half_[h] = {box, {own + weights + kLanes, {}}, {}};
      half_[h].box.weights = own;
      half_[h].box.bias = own + weights;
    }
  }
  ~Pair() { std::free(memory_); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  explicit operator bool() const { return memory_ != nullptr; }

  // A half that begins where the whole is.
  Half<T>& begin(int h, const BoxArg& whole) {
    Half<T>& half = half_[h];
    __builtin_memcpy(half.box.weights, whole.weights, std::size_t(n_) * sizeof(T));
    __builtin_memcpy(half.box.bias, whole.bias, std::size_t(lanes_) * sizeof(T));
    half.account = {};
    return half;
  }

  // What both have found, of the rows that each had, becomes the whole's.
  void add_to(const BoxArg& whole, const RoundRows& rows, Account* account) {
    const Choice choice = choose(whole);
    T *w = static_cast<T*>(whole.weights), *bias = static_cast<T*>(whole.bias);
    const T *left = weights(0), *right = weights(1);
    const Lanes both = load<Lanes>(choice.both);
    std::int64_t k = 0;
    for (; k + kLanes <= n_; k += kLanes) {
      const Lanes l = load<Lanes>(left + k), r = load<Lanes>(right + k);
      const Lanes sum = l + (r - load<Lanes>(w + k)), mean = T(0.5) * (l + r);
      store(w + k, select(both > Lanes{}, sum, mean));
    }
    for (; k < n_; ++k) w[k] = choice.of(0, left[k], right[k], w[k]);
    for (int l = 0; l < lanes_; ++l)
      bias[l] = choice.of(l, this->bias(0)[l], this->bias(1)[l], bias[l]);
    for (int h = 0; h < 2; ++h) {
      if (!choice.is_sum) take_back(half_[h], rows.of(h), rows.count(h), choice);
      add(*account, half_[h].account);
    }
  }

 private:
  using Lanes = LaneVector<T, kLanes>;

  // In which lanes both moves are taken whole; in the others half of each.
  struct Choice {
    T both[kLanes];  // 1 or 0; the same in all of them where one lane's weights fill vectors
    bool is_sum;     // in every lane
    T of(int lane, T left, T right, T from) const {
      return both[lane] > 0 ? left + (right - from) : T(0.5) * (left + right);
    }
  };

  // Together they gain what each gains alone less the inner product of their moves.  Half of each
  // gains at least half of that, since the dual objective is concave; and more than both where that
  // product is above a third, if each has gone to the best point on its way.
  Choice choose(const BoxArg& whole) const {
    T inner[kLanes];
    multiply_moves(whole, inner);
    Choice choice{{}, true};
    for (int l = 0; l < lanes_; ++l) {
      const T alone = half_[0].steps.gain[l] + half_[1].steps.gain[l];
      choice.both[l] = 3 * inner[l] <= T(whole.damping) * alone ? 1 : 0;
      choice.is_sum = choice.is_sum && choice.both[l] > 0;
    }
    for (int l = lanes_; l < kLanes; ++l) choice.both[l] = choice.both[0];
    return choice;
  }

  void multiply_moves(const BoxArg& whole, T* inner) const {
    const T *w = static_cast<const T*>(whole.weights), *b = static_cast<const T*>(whole.bias);
    const T *left = weights(0), *right = weights(1);
    Lanes sums{};
    std::int64_t k = 0;
    for (; k + kLanes <= n_; k += kLanes) {
      const Lanes from = load<Lanes>(w + k);
      sums += (load<Lanes>(left + k) - from) * (load<Lanes>(right + k) - from);
    }
    store(inner, sums);
    for (; k < n_; ++k) inner[0] += (left[k] - w[k]) * (right[k] - w[k]);
    for (int l = lanes_; l < kLanes; ++l) inner[0] += inner[l];  // one lane's weights fill vectors
    for (int l = 0; l < lanes_; ++l) inner[l] += (bias(0)[l] - b[l]) * (bias(1)[l] - b[l]);
  }

  void take_back(const Half<T>& half, const std::int32_t* order, std::int64_t n,
                 const Choice& choice) const {
    T* coef = static_cast<T*>(half.box.coef);
    for (std::int64_t k = 0; k < n; ++k)
      for (int l = 0; l < lanes_; ++l) {
        T& mine = coef[std::int64_t(order[k]) * lanes_ + l];
        if (!(choice.both[l] > 0)) mine = T(0.5) * (mine + half.steps.was[k * lanes_ + l]);
      }
  }

  static std::int64_t padded(std::int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }
  const T* weights(int h) const { return static_cast<const T*>(half_[h].box.weights); }
  const T* bias(int h) const { return static_cast<const T*>(half_[h].box.bias); }

  std::int64_t n_;
  int lanes_;
  T* memory_;
  Half<T> half_[2];
};

// The second half of a round is for whoever comes first: a thread that waits for a core keeps
// nobody waiting.
class SecondHalf {
 public:
  static constexpr std::uint64_t kNoMore = ~std::uint64_t(0);

  void offer(std::uint64_t round) { __atomic_store_n(&offered_, round, __ATOMIC_RELEASE); }
  std::uint64_t offered() const { return __atomic_load_n(&offered_, __ATOMIC_ACQUIRE); }
  bool take(std::uint64_t round) {
    std::uint64_t last = round - 1;
    return __atomic_compare_exchange_n(&taken_, &last, round, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
  }
  void finish(std::uint64_t round) { __atomic_store_n(&done_, round, __ATOMIC_RELEASE); }
  bool is_done(std::uint64_t round) const {
    return __atomic_load_n(&done_, __ATOMIC_ACQUIRE) == round;
  }

 private:
  alignas(64) std::uint64_t offered_ = 0;
  alignas(64) std::uint64_t taken_ = 0;
  alignas(64) std::uint64_t done_ = 0;
};

// A sweep in rounds, by two threads or one; `descend(box, sweep, steps)` is a sweep by one thread.
template <class T, class Descend>
class RoundsOfSweep {
 public:
  RoundsOfSweep(const Rounds& rounds, const SharedArg& p, const BoxArg& box, const Sweep& sweep,
                Descend descend)
      : rounds_(rounds),
        box_(box),
        sweep_(sweep),
        descend_(descend),
        rows_(rounds),
        pair_(p, box, rounds.half),
        at_(sweep.begin) {}

  // Returns the position reached, or -1 without memory.
  std::int64_t run(int n_threads) {
    if (!pair_ || !rows_) return -1;
    together(n_threads, [this](int who, int) { who == 0 ? lead() : help(); });
    return at_;
  }

 private:
  void lead() {
    Waiting waiting(kSpins);
    const double deadline = Clock::now() + sweep_.seconds;
    std::int64_t next = rounds_.from(at_);
    if (next < rounds_.n)
      at_ = descend_(box_, some(at_, next * rounds_.length(), kNotCut), nullptr);
    bool is_up = false;
    for (std::uint64_t turn = 1; next < rounds_.n && !is_up; ++turn, ++next) {
      rows_.take(sweep_.order + at_);
      second_.offer(turn);
      descend_half(0);
      if (second_.take(turn))
        descend_half(1);
      else
        waiting.until([&] { return second_.is_done(turn); });
      pair_.add_to(box_, rows_, sweep_.account);
      descend_(box_, of_round(2), nullptr);
      at_ += rounds_.length();
      is_up = Clock::now() > deadline || waiting.is_crowded();
    }
    second_.offer(SecondHalf::kNoMore);
    if (sweep_.crowded) *sweep_.crowded = waiting.is_crowded();
    if (!is_up) at_ = descend_(box_, some(at_, sweep_.end, deadline - Clock::now()), nullptr);
  }

  void help() {
    Waiting waiting(kSpins);
    for (std::uint64_t turn = 0; turn != SecondHalf::kNoMore;) {
      waiting.until([&] { return second_.offered() != turn; });
      turn = second_.offered();
      if (turn == SecondHalf::kNoMore || !second_.take(turn)) continue;
      descend_half(1);
      second_.finish(turn);
    }
  }

  void descend_half(int h) {
    Half<T>& half = pair_.begin(h, box_);
    Sweep rows = of_round(h);
    rows.account = &half.account;
    descend_(half.box, rows, &half.steps);
  }
  Sweep of_round(int part) const {
    Sweep rows = some(0, rows_.count(part), kNotCut);
    rows.order = rows_.of(part);
    return rows;
  }
  Sweep some(std::int64_t begin, std::int64_t end, double seconds) const {
    Sweep rows = sweep_;
    rows.begin = begin;
    rows.end = end;
    rows.seconds = seconds;
    return rows;
  }

  static constexpr double kNotCut = 1e9;
  static constexpr int kSpins = 5000;  // longer than the rows alone take

  const Rounds& rounds_;
  const BoxArg& box_;
  const Sweep& sweep_;
  Descend descend_;
  RoundRows rows_;
  Pair<T> pair_;
  SecondHalf second_;
  std::int64_t at_;  // where the round begins, while its halves are swept
};

}  // namespace WIDEMARGIN_ISA
}  // namespace widemargin
