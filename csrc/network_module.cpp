#include "network_module.h"

namespace network {

int simd_level() {
#if FLAMBEAU_CLONES
    static const int level = [] {
        __builtin_cpu_init();
        if (__builtin_cpu_supports("x86-64-v4")) return 2;
        return __builtin_cpu_supports("x86-64-v3") ? 1 : 0;
    }();
    return level;
#else
    return 0;
#endif
}

}  // namespace network

int register_network(PyObject *module) {
    for (auto add :
         {register_network_attention, register_network_convolution, register_network_ctc,
          register_network_fourier, register_network_indexing, register_network_normalization,
          register_network_pooling, register_network_recurrent, register_network_resampling,
          register_network_softmax, register_network_sorting})
        if (add(module)) return -1;
    return 0;
}
