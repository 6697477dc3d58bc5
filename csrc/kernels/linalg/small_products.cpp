#include "kernels/linalg/small_products.h"

#include "kernels/moving/transposed.h"
#include "kernels/network/module.h"

#if NETWORK_VECTORS

namespace network {
using linalg::Part;
using linalg::SMALL_DEPTH;
}  // namespace network

#define NETWORK_LOOPS "kernels/linalg/small_products_loops.h"
#include "kernels/network/isa.h"

namespace linalg {

using network::simd_level;
namespace baseline = network::baseline;
#if FLAMBEAU_CLONES
namespace avx2 = network::avx2;
namespace avx512 = network::avx512;
#endif

void matrix_vector(const float *a, npy_intp step, const float *v, npy_intp rows, npy_intp k, float *to) {
    NETWORK_BEST(matrix_vector<float>)(a, step, v, rows, k, to);
}
void matrix_vector(const double *a, npy_intp step, const double *v, npy_intp rows, npy_intp k, double *to) {
    NETWORK_BEST(matrix_vector<double>)(a, step, v, rows, k, to);
}
void small_product(Part<float> a, Part<float> b, float *to, npy_intp n, npy_intp k, npy_intp m) {
    NETWORK_BEST(small_product<float>)(a, b, to, n, k, m);
}
void small_product(Part<double> a, Part<double> b, double *to, npy_intp n, npy_intp k, npy_intp m) {
    NETWORK_BEST(small_product<double>)(a, b, to, n, k, m);
}

void packed_product(Part<float> a, Part<float> b, float *to, npy_intp n, npy_intp k, npy_intp m) {
    NETWORK_BEST(packed_product<float>)(a, b, to, n, k, m);
}

}  // namespace linalg

#endif
