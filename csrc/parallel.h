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

// body(begin, end) over [0, n), in pieces of about equal size, each a multiple of `unit` but the last
// and of at least about `grain`.
template <class Body>
void parallel_for(int64_t n, int64_t grain, Body body, int64_t unit = 16) {
    int64_t threads = in_parallel() ? 1 : max_threads();
    if (threads > n / grain) threads = n / grain;
    if (threads <= 1) {
        body(int64_t(0), n);
        return;
    }
    // several pieces a thread, where they are long: who is slower takes fewer
    int64_t pieces = n / grain >= 8 * threads ? 4 * threads : threads;
    int64_t piece = (n + pieces - 1) / pieces;
    piece = (piece + unit - 1) / unit * unit;
    auto run = [&](int64_t t) {
        int64_t begin = t * piece, end = begin + piece < n ? begin + piece : n;
        if (begin < end) body(begin, end);
    };
    run_in_pool(
        int(threads), (n + piece - 1) / piece,
        [](const void *work, int64_t t) { (*(decltype(run) *)work)(t); }, &run);
}
