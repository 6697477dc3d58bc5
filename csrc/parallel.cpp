#include "parallel.h"

#include <atomic>
#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

#ifdef _OPENMP
static std::atomic<int> threads{omp_get_max_threads()};
bool in_parallel() { return omp_in_parallel(); }
#else
static std::atomic<int> threads{1};
bool in_parallel() { return false; }
#endif

#if defined(__unix__) || defined(__APPLE__)
static int after_fork = pthread_atfork(nullptr, nullptr, [] { threads = 1; });
#endif

int max_threads() { return threads; }

void set_max_threads(int n) {
#ifdef _OPENMP
    threads = n < 1 ? 1 : n;
#else
    (void)n;
#endif
}
