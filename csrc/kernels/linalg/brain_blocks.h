// Blocks of products of bfloat16, in pairs of neighbouring terms that one instruction multiplies and adds
// up (AVX-512 BF16). Included inside a namespace and `#pragma GCC target` for those instructions.
#pragma once

constexpr npy_intp WIDE = 32, HIGH = 12;  // of the part of the result that is kept in registers

struct Side {
    const uint16_t *at;
    npy_intp row, column;  // strides in elements
};

// Rows of a, pairs of elements one after another, an odd last one with a zero.
void pack_rows(Side a, npy_intp rows, npy_intp k, uint32_t *to) {
    npy_intp pairs = (k + 1) / 2;
    for (npy_intp i = 0; i < rows; i++, to += pairs) {
        const uint16_t *from = a.at + i * a.row;
        if (a.column == 1) {
            to[pairs - 1] = 0;
            std::memcpy(to, from, k * sizeof(uint16_t));
            continue;
        }
        for (npy_intp l = 0; l < pairs; l++) {
            uint32_t high = 2 * l + 1 < k ? from[(2 * l + 1) * a.column] : 0;
            to[l] = from[2 * l * a.column] | high << 16;
        }
    }
}

template <int rows>
void block(const uint32_t *a, const uint32_t *b, npy_intp pairs, float *to) {
    __m512 left[rows], right[rows];
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) left[r] = right[r] = _mm512_setzero_ps();
    for (npy_intp l = 0; l < pairs; l++) {
        __m512bh x = (__m512bh)_mm512_loadu_si512(b + l * WIDE), y = (__m512bh)_mm512_loadu_si512(b + l * WIDE + 16);
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++) {
            __m512bh factor = (__m512bh)_mm512_set1_epi32(int(a[r * pairs + l]));
            left[r] = _mm512_dpbf16_ps(left[r], factor, x);
            right[r] = _mm512_dpbf16_ps(right[r], factor, y);
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) {
        _mm512_storeu_ps(to + r * WIDE, left[r]);
        _mm512_storeu_ps(to + r * WIDE + 16, right[r]);
    }
}

void any_block(npy_intp rows, const uint32_t *a, const uint32_t *b, npy_intp pairs, float *to) {
    while (rows >= HIGH) return block<HIGH>(a, b, pairs, to);
    for (; rows >= 4; rows -= 4, a += 4 * pairs, to += 4 * WIDE) block<4>(a, b, pairs, to);
    for (; rows > 0; rows--, a += pairs, to += WIDE) block<1>(a, b, pairs, to);
}

void round_row(const float *from, uint16_t *to, npy_intp n) {
    for (npy_intp c = 0; c < n; c++) to[c] = Narrow<BFloat, float>::from(from[c]).v;
}
