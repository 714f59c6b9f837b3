// Not compiled per instruction set: the standard library's inline functions belong to all of them.
#include "team.hpp"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace widemargin {

void work_together(int n_threads, void (*work)(void*, int, int), void* context) {
  std::mutex mutex;
  std::condition_variable known;
  int n = 0;  // until it is known how many there are
  const auto help = [&](int who) {
    {
      std::unique_lock<std::mutex> lock(mutex);
      known.wait(lock, [&] { return n > 0; });
    }
    work(context, who, n);
  };
  std::vector<std::thread> helpers;
  try {
    for (int who = 1; who < n_threads; ++who) helpers.emplace_back(help, who);
  } catch (const std::system_error&) {  // as many as there are
  } catch (const std::bad_alloc&) {
  }
  {
    const std::lock_guard<std::mutex> lock(mutex);
    n = int(helpers.size()) + 1;
  }
  known.notify_all();
  work(context, 0, n);
  for (std::thread& helper : helpers) helper.join();
}

struct Team::State {
  std::mutex busy;  // held by the caller whose work this is
  std::mutex mutex;
  std::condition_variable begun, ended;
  std::vector<std::thread> helpers;
  void (*task)(const void*, std::int64_t) = nullptr;  // null between calls
  const void* context = nullptr;
  std::int64_t n = 0;
  std::atomic<std::int64_t> next{0};
  std::uint64_t call = 0;
  int running = 0;  // helpers inside a call
  bool gone = false;
  std::exception_ptr error;

  void take_turns() {
    try {
      for (std::int64_t k; (k = next++) < n;) task(context, k);
    } catch (...) {
      next = n;
      const std::lock_guard<std::mutex> lock(mutex);
      if (!error) error = std::current_exception();
    }
  }

  void help() {
    std::unique_lock<std::mutex> lock(mutex);
    for (std::uint64_t done = 0;;) {
      begun.wait(lock, [&] { return gone || (task && call != done); });
      if (gone) return;
      done = call;
      ++running;
      lock.unlock();
      take_turns();
      lock.lock();
      if (--running == 0) ended.notify_one();
    }
  }
};

Team::Team(int n_threads) : state_(new State) {
  try {
    for (int who = 1; who < n_threads; ++who)
      state_->helpers.emplace_back([state = state_] { state->help(); });
  } catch (const std::system_error&) {  // as many as there are
  } catch (const std::bad_alloc&) {
  }
}

Team::~Team() {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->gone = true;
  }
  state_->begun.notify_all();
  for (std::thread& helper : state_->helpers) helper.join();
  delete state_;
}

int Team::n_threads() const { return int(state_->helpers.size()) + 1; }

void Team::run(std::int64_t n, void (*task)(const void*, std::int64_t), const void* context) {
  const std::unique_lock<std::mutex> mine(state_->busy, std::try_to_lock);
  if (!mine || state_->helpers.empty()) {
    for (std::int64_t k = 0; k < n; ++k) task(context, k);
    return;
  }
  State& s = *state_;
  {
    const std::lock_guard<std::mutex> lock(s.mutex);
    s.task = task;
    s.context = context;
    s.n = n;
    s.next = 0;
    ++s.call;
  }
  s.begun.notify_all();
  s.take_turns();
  std::unique_lock<std::mutex> lock(s.mutex);
  s.ended.wait(lock, [&] { return s.running == 0; });
  s.task = nullptr;  // a helper that wakes now has missed it
  if (s.error) std::rethrow_exception(std::exchange(s.error, nullptr));
}

}  // namespace widemargin
