// Squares of four by four elements, turned.
#pragma once
#include "common.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

// to[r][k] = from[k][r], for four rows on both sides, `step` and `to_step` bytes apart.
template <class T>
INLINE void turn_four(const char *from, npy_intp step, char *to, npy_intp to_step) {
    T square[4][4];
    for (int k = 0; k < 4; k++) std::memcpy(square[k], from + k * step, sizeof square[k]);
    for (int r = 0; r < 4; r++) {
        T row[4] = {square[0][r], square[1][r], square[2][r], square[3][r]};
        std::memcpy(to + r * to_step, row, sizeof row);
    }
}
#ifdef __SSE2__
template <>
INLINE void turn_four<uint32_t>(const char *from, npy_intp step, char *to, npy_intp to_step) {
    __m128 a = _mm_loadu_ps((const float *)from), b = _mm_loadu_ps((const float *)(from + step));
    __m128 c = _mm_loadu_ps((const float *)(from + 2 * step)), d = _mm_loadu_ps((const float *)(from + 3 * step));
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps((float *)to, a), _mm_storeu_ps((float *)(to + to_step), b);
    _mm_storeu_ps((float *)(to + 2 * to_step), c), _mm_storeu_ps((float *)(to + 3 * to_step), d);
}
#endif
