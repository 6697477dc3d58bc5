#include "parallel.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

thread_local bool inside = false;  // does this thread run a piece of a loop?

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) && !defined(_MSC_VER)
    asm volatile("yield");
#endif
}

// Waits busily until `done()` or for so long; says whether it is done.
template <class Done>
bool spin(microseconds limit, Done done) {
    auto end = Clock::now() + limit;
    for (;;) {
        for (int i = 0; i < 64; i++) {
            if (done()) return true;
            relax();
        }
        if (Clock::now() >= end) return false;
    }
}

struct Loop {
    void (*run)(const void *, int64_t);
    const void *work;
    int64_t pieces;
    std::exception_ptr error;
};

class Pool {
    static constexpr int SHORTEST = 10, LONGEST = 200;  // microseconds that a thread waits busily

    std::mutex calls;               // held while a loop runs
    std::mutex sleeping;            // of `wake` and `limit`
    std::condition_variable wake;
    std::atomic<uint32_t> number{0};    // of the loop: odd while threads may join it
    std::atomic<int> asleep{0}, helping{0};
    std::atomic<int64_t> next{0};
    std::atomic<bool> failed{false};
    int limit = 0;                  // so many of the threads may help
    int started = 0;
    int late = 0, alone = 0;        // how often they have been too slow; so many loops to do without
    Loop loop{};

    void take_pieces() {
        inside = true;
        for (int64_t piece; (piece = next.fetch_add(1, std::memory_order_relaxed)) < loop.pieces;) {
            try {
                loop.run(loop.work, piece);
            } catch (...) {
                if (!failed.exchange(true)) loop.error = std::current_exception();
            }
        }
        inside = false;
    }

    // A thread joins a loop by being counted; when it then still is the loop that it saw, the caller
    // waits for it.
    void help(int index, uint32_t seen) {
        helping.fetch_add(1);
        if (number.load() == seen && index < limit) take_pieces();
        helping.fetch_sub(1);
    }

    void wait_and_help(int index) {
        uint32_t seen = 0;
        int patience = LONGEST;
        auto is_new = [&] {
            uint32_t now = number.load();
            return (now & 1) && now != seen;
        };
        for (;;) {
            bool soon = spin(microseconds(patience), is_new);
            patience = soon ? (patience * 2 < LONGEST ? patience * 2 : LONGEST)
                            : (patience / 2 > SHORTEST ? patience / 2 : SHORTEST);
            if (!soon) {
                std::unique_lock<std::mutex> lock(sleeping);
                asleep.fetch_add(1);
                wake.wait(lock, is_new);
                asleep.fetch_sub(1);
            }
            seen = number.load();
            if (seen & 1) help(index, seen);
        }
    }

    void start(int wanted) {
        try {
            for (; started < wanted; started++)
                std::thread([this, index = started] { wait_and_help(index); }).detach();
        } catch (const std::system_error &) {
            // there are no more: those that there are do it
        }
    }

 public:
    void run(int threads, const Loop &given) {
        std::unique_lock<std::mutex> lock(calls, std::try_to_lock);
        if (lock.owns_lock() && alone) alone--, lock.unlock();
        if (!lock.owns_lock()) {  // another thread of Python has the pool, or help comes too late
            inside = true;
            struct Leave {
                ~Leave() { inside = false; }
            } leave;
            for (int64_t piece = 0; piece < given.pieces; piece++) given.run(given.work, piece);
            return;
        }
        start(threads - 1);
        loop = given;
        failed.store(false, std::memory_order_relaxed);
        next.store(0, std::memory_order_relaxed);
        limit = threads - 1;
        number.fetch_add(1);  // now it is odd
        if (asleep.load()) {
            { std::lock_guard<std::mutex> locked(sleeping); }
            wake.notify_all();
        }
        auto begin = Clock::now();
        take_pieces();
        number.fetch_add(1);  // whoever has not come yet comes too late
        auto end = Clock::now();
        while (helping.load(std::memory_order_acquire))
            if (!spin(microseconds(50), [this] { return !helping.load(std::memory_order_acquire); }))
                std::this_thread::yield();
        // on a busy machine a thread that has taken a piece may wait for its turn: then rather alone
        bool slow = Clock::now() - end > (end - begin) + microseconds(5);
        if (slow) alone = 1 << (late < 6 ? ++late : late);
        else if (late) late--;
        if (loop.error) {
            std::exception_ptr error = loop.error;
            loop.error = nullptr;
            std::rethrow_exception(error);
        }
    }
};

// Never destroyed: its threads may outlive the static objects.
alignas(Pool) char memory[sizeof(Pool)];
Pool *pool = new (memory) Pool;

int at_first() {
#ifdef _OPENMP
    return omp_get_max_threads();  // by OMP_NUM_THREADS, or the processors that there are
#elif defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__)
    return 1;
#else
    int n = int(std::thread::hardware_concurrency());
    return n < 1 ? 1 : n;
#endif
}
std::atomic<int> threads{at_first()};

#if defined(__unix__) || defined(__APPLE__)
int after_fork = pthread_atfork(nullptr, nullptr, [] {
    threads = 1;
    inside = false;
    pool = new (memory) Pool;
});
#endif

}  // namespace

bool in_parallel() { return inside; }

int max_threads() { return threads; }

void set_max_threads(int n) { threads = n < 1 ? 1 : n; }

void run_in_pool(int threads, int64_t pieces, void (*run)(const void *, int64_t), const void *work) {
    pool->run(threads, {run, work, pieces, nullptr});
}

void run_ranges(int64_t n, int64_t grain, int64_t unit, void (*run)(const void *, int64_t, int64_t),
                const void *body) {
    int64_t threads = max_threads();
    if (threads == 1 || n < 2 * grain || in_parallel()) return run(body, 0, n);
    if (threads > n / grain) threads = n / grain;
    // several pieces a thread, where they are long: who is slower takes fewer
    int64_t pieces = n / grain >= 8 * threads ? 4 * threads : threads;
    int64_t piece = (n + pieces - 1) / pieces;
    piece = (piece + unit - 1) / unit * unit;
    struct Ranges {
        int64_t n, piece;
        void (*run)(const void *, int64_t, int64_t);
        const void *body;
    } ranges{n, piece, run, body};
    run_in_pool(
        int(threads), (n + piece - 1) / piece,
        [](const void *work, int64_t t) {
            const Ranges &r = *(const Ranges *)work;
            int64_t begin = t * r.piece, end = begin + r.piece < r.n ? begin + r.piece : r.n;
            if (begin < end) r.run(r.body, begin, end);
        },
        &ranges);
}
