// The pool of threads. The caller of a parallel loop takes pieces of it itself, and is helped by
// threads that wait for work: for a while busily, then asleep, so that a loop that follows soon finds
// them awake and an idle program costs nothing. Whoever comes first takes the next piece: a thread
// that wakes late, because the machine is busy, is not waited for. A forked child uses one thread,
// because its parent's threads do not live on in it.
#pragma once
#include <cstdint>

int max_threads();
void set_max_threads(int n);
bool in_parallel();

constexpr int64_t PARALLEL_FROM = 1 << 15;  // elements; below, starting threads costs more

// Calls run(work, piece) for each of `pieces`, by up to `threads` threads at once.
void run_in_pool(int threads, int64_t pieces, void (*run)(const void *, int64_t), const void *work);

// Calls run(body, begin, end) for ranges that make up [0, n), as `parallel_for` says.
void run_ranges(int64_t n, int64_t grain, int64_t unit, void (*run)(const void *, int64_t, int64_t),
                const void *body);

// body(begin, end) over [0, n), in pieces of about equal size, each a multiple of `unit` but the last
// and of at least about `grain`. (Of the body there is one copy in the program, which is called.)
template <class Body>
void parallel_for(int64_t n, int64_t grain, const Body &body, int64_t unit = 16) {
    run_ranges(
        n, grain, unit,
        [](const void *body, int64_t begin, int64_t end) { (*(const Body *)body)(begin, end); }, &body);
}
