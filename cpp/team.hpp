// Threads that do one piece of work together and end with it.
#pragma once

namespace widemargin {

// work(context, who, n) in n threads at once, of which the caller's is number 0.  n is n_threads,
// or less where the system has no more to give; it returns when all of them have.  `work` may wait
// for the others, so it must not throw.
void work_together(int n_threads, void (*work)(void* context, int who, int n), void* context);

// How many threads a call should have that is made again and again.  Where the machine was too
// crowded for a team the next calls have one thread, and twice as many if it still is after that.
class Patience {
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
