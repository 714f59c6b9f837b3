// Threads that do one piece of work together and end with it.
#pragma once

namespace widemargin {

// work(context, who, n) in n threads at once, of which the caller's is number 0.  n is n_threads,
// or less where the system has no more to give; it returns when all of them have.  `work` may wait
// for the others, so it must not throw.
void work_together(int n_threads, void (*work)(void* context, int who, int n), void* context);

}  // namespace widemargin
