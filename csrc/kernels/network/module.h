// Which families of network kernels there are. Each registers its functions as `network_<name of
// the twin>`.
#pragma once
#include "kernels/network/network.h"

// Whether the compiler has vector types; without them some families stay with their twins.
#if defined(__GNUC__) || defined(__clang__)
#define NETWORK_VECTORS 1
#else
#define NETWORK_VECTORS 0
#endif

namespace network {

int simd_level();  // 2: AVX-512, 1: AVX2, 0: anything else

}  // namespace network

int register_checked(PyObject *module);  // after all others, which it calls
int register_network_activations(PyObject *module);
int register_network_attention(PyObject *module);
int register_network_convolution(PyObject *module);
int register_network_brain_convolution(PyObject *module);
int register_network_ctc(PyObject *module);
int register_network_distances(PyObject *module);
int register_network_fourier(PyObject *module);
int register_network_indexing(PyObject *module);
int register_network_losses(PyObject *module);
int register_network_normalization(PyObject *module);
int register_network_pooling(PyObject *module);
int register_network_recurrent(PyObject *module);
int register_network_resampling(PyObject *module);
int register_network_searching(PyObject *module);
int register_network_softmax(PyObject *module);
int register_network_sorting(PyObject *module);
