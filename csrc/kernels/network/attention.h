// What attention works on: strided matrices, one for each head.
#pragma once
#include "kernels/network/network.h"

namespace network {

// The matrices of the last two axes of an array; those before it number the heads.
struct Heads {
    char *data = nullptr;
    std::vector<npy_intp> strides;                        // of the leading axes, 0 where broadcast
    npy_intp rows = 0, columns = 0, row = 0, column = 0;  // sizes; strides in bytes

    char *head(const std::vector<npy_intp> &lead, npy_intp h) const {
        char *p = data;
        for (size_t i = lead.size(); i-- > 0; h /= lead[i]) p += h % lead[i] * strides[i];
        return p;
    }
};

// Attention of all heads; sizes in elements.
struct Attention {
    std::vector<npy_intp> lead;
    npy_intp heads, queries, keys, width, depth;  // width of q and k, depth of v
    Heads q, k, v, g, mask;
    bool causal, boolean;
    double scale;
};

}  // namespace network
