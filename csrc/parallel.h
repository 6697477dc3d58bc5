// Threads: OpenMP where the compiler has it, else one. A forked child uses one thread, because the
// pool of its parent does not live on in it.
#pragma once
#include <cstdint>

int max_threads();
void set_max_threads(int n);
bool in_parallel();

constexpr int64_t PARALLEL_FROM = 1 << 15;  // elements; below, starting threads costs more

// body(begin, end) over [0, n), in `pieces` of about equal size, each a multiple of `unit` but the last.
template <class Body>
void parallel_for(int64_t n, int64_t grain, Body body, int64_t unit = 16) {
    int64_t threads = in_parallel() ? 1 : max_threads();
    if (threads > n / grain) threads = n / grain;
    if (threads <= 1) {
        body(int64_t(0), n);
        return;
    }
#ifdef _OPENMP
    int64_t piece = (n + threads - 1) / threads;
    piece = (piece + unit - 1) / unit * unit;
#pragma omp parallel for num_threads(int(threads)) schedule(static, 1)
    for (int64_t t = 0; t < threads; t++) {
        int64_t begin = t * piece, end = begin + piece < n ? begin + piece : n;
        if (begin < end) body(begin, end);
    }
#else
    body(int64_t(0), n);
#endif
}
