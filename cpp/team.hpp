// Threads that do one piece of work together and end with it, or that wait for more of it.
#pragma once

#include <cstdint>

namespace widemargin {

// work(context, who, n) in n threads at once, of which the caller's is number 0.  n is n_threads,
// or less where the system has no more to give; it returns when all of them have.  `work` may wait
// for the others, so it must not throw.
void work_together(int n_threads, void (*work)(void* context, int who, int n), void* context);

// Threads that wait for work until the team goes: for calls of a fraction of a millisecond.
class Team {
 public:
  explicit Team(int n_threads);  // the caller's included; fewer where the system has no more
  Team(const Team&) = delete;
  ~Team();
  int n_threads() const;

  // task(context, k) for every k below n, taken in turn by all threads; returns when all are done.
  // A call from another thread meanwhile does its tasks alone.  What a task throws comes from here.
  void run(std::int64_t n, void (*task)(const void* context, std::int64_t k), const void* context);

 private:
  struct State;
  State* state_;
};

// task(k) for every k below n, by a team if there is one.
template <class F>
void run(Team* team, std::int64_t n, const F& task) {
  const auto call = [](const void* f, std::int64_t k) { (*static_cast<const F*>(f))(k); };
  if (team && n > 1) return team->run(n, call, &task);
  for (std::int64_t k = 0; k < n; ++k) task(k);
}

// task(begin, end) for parts of n numbers, each a multiple of `unit` but the last.
template <class F>
void run_parts(Team* team, std::int64_t n, std::int64_t unit, const F& task) {
  constexpr std::int64_t kParts = 4;  // for each thread: some are slower than others
  const std::int64_t wanted = team ? kParts * team->n_threads() : 1;
  const std::int64_t part = ((n + wanted - 1) / wanted + unit - 1) / unit * unit;
  run(team, part > 0 ? (n + part - 1) / part : 0,
      [&](std::int64_t k) { task(k * part, (k + 1) * part < n ? (k + 1) * part : n); });
}

// How many threads a call should have that is made again and again.  Where the machine was too
// crowded for a team the next calls have one thread, and twice as many if it still is after that.
class Crowding {
 public:
  int threads(int wanted) { return rest_ > 0 ? --rest_, 1 : wanted; }
  void tell(bool crowded) {
    length_ = !crowded ? 0 : length_ < kLongest ? 2 * length_ + 2 : length_;
    rest_ = length_;
  }

 private:
  static constexpr int kLongest = 6;
  int rest_ = 0, length_ = 0;
};

}  // namespace widemargin
