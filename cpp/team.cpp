// Not compiled per instruction set: the standard library's inline functions belong to all of them.
#include "team.hpp"

#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
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

}  // namespace widemargin
