// Sums of contiguous elements, at the speed of memory.
#pragma once
#include "kernels/network/module.h"

#if NETWORK_VECTORS
// Those at even places, and those at odd ones.
void vector_sums(const float *x, npy_intp n, double *found);
void vector_sums(const double *x, npy_intp n, double *found);
void vector_sums(const BFloat *x, npy_intp n, double *found);

template <class T>
double vector_sum(const T *x, npy_intp n) {
    double found[2];
    vector_sums(x, n, found);
    return found[0] + found[1];
}
#endif
