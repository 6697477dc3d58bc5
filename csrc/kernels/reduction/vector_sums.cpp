#include "kernels/reduction/vector_sums.h"

#if NETWORK_VECTORS

#define NETWORK_LOOPS "kernels/reduction/vector_sums_loops.h"
#include "kernels/network/isa.h"

using namespace network;

void vector_sums(const float *x, npy_intp n, double *found) {
    NETWORK_BEST(vector_sums<float>)(x, n, found);
}
void vector_sums(const double *x, npy_intp n, double *found) {
    NETWORK_BEST(vector_sums<double>)(x, n, found);
}
void vector_sums(const BFloat *x, npy_intp n, double *found) {
    NETWORK_BEST(vector_sums<BFloat>)(x, n, found);
}

#endif
