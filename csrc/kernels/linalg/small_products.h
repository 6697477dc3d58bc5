// Products of small matrices, and of matrices and vectors, without BLAS.
#pragma once
#include "common.h"

namespace linalg {

// Part of an array: strides in elements.
template <class T>
struct Part {
    const T *at;
    npy_intp row, column;
};

constexpr npy_intp SMALL_DEPTH = 128;  // the longest sums of small_product

// to = a v, for rows of k elements, `step` apart.
void matrix_vector(const float *a, npy_intp step, const float *v, npy_intp rows, npy_intp k, float *to);
void matrix_vector(const double *a, npy_intp step, const double *v, npy_intp rows, npy_intp k, double *to);

// to = a b, (n, k) by (k, m), where k is at most SMALL_DEPTH and the rows of b are contiguous.
void small_product(Part<float> a, Part<float> b, float *to, npy_intp n, npy_intp k, npy_intp m);
void small_product(Part<double> a, Part<double> b, double *to, npy_intp n, npy_intp k, npy_intp m);

constexpr npy_intp PACKED_DEPTH = 256;  // … and of packed_product

// The same for any strides, in float.
void packed_product(Part<float> a, Part<float> b, float *to, npy_intp n, npy_intp k, npy_intp m);

}  // namespace linalg
