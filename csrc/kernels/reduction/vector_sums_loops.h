// Sums of contiguous elements for one instruction set; see network/isa.h.

template <class T>
struct Summed {
    using type = T;
};
template <>
struct Summed<BFloat> {
    using type = float;
};

template <class T>
struct SumVector {
    typedef T type __attribute__((vector_size(VECTOR_BYTES)));
    typedef T loose __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
    static constexpr npy_intp count = VECTOR_BYTES / sizeof(T);
};

template <class T>
static INLINE typename SumVector<T>::type load(const T *x) {
    return *(const typename SumVector<T>::loose *)x;
}
// The upper half of each float's bits.
static INLINE SumVector<float>::type load(const BFloat *x) {
    typedef uint16_t Halves __attribute__((vector_size(VECTOR_BYTES / 2), aligned(2), may_alias));
    auto wide = __builtin_convertvector(*(const Halves *)x, SumVector<uint32_t>::type) << 16;
    return (SumVector<float>::type)wide;
}

// Adds the upper half of the lanes to the lower one, until two are left.
template <class P>
static INLINE void fold_to_two(P *lanes, npy_intp n) {
    for (npy_intp half = n / 2; half > 1; half /= 2)
        for (npy_intp k = 0; k < half; k++) lanes[k] += lanes[k + half];
}

// The sums of the elements at even and at odd places. In each chunk several vectors of sums stand side by
// side, because a processor adds several in the time that one addition takes. Chunks are added up in double
// precision.
template <class T>
static void vector_sums(const T *x, npy_intp n, double *found) {
    using P = typename Summed<T>::type;
    using V = typename SumVector<P>::type;
    using L = typename SumVector<P>::loose;
    constexpr npy_intp lanes = SumVector<P>::count, beside = VECTOR_BYTES > 32 ? 4 : 8, depth = 16;
    double sums[lanes] = {};
    npy_intp rest = n % lanes;
    bool is_short = n <= beside * lanes * depth;
    for (npy_intp left = n / lanes; left;) {
        V part[beside] = {};
        npy_intp rounds = left / beside < depth ? left / beside : depth;
        for (npy_intp i = 0; i < rounds; i++, x += beside * lanes) {
#pragma GCC unroll 8
            for (npy_intp k = 0; k < beside; k++) part[k] += load(x + k * lanes);
        }
        left -= rounds * beside;
        for (; rounds < depth && left; left--, x += lanes) part[0] += load(x);  // of the last chunk
#pragma GCC unroll 4
        for (npy_intp half = beside / 2; half; half /= 2)
#pragma GCC unroll 4
            for (npy_intp k = 0; k < half; k++) part[k] += part[k + half];
        P folded[lanes];
        *(L *)folded = part[0];
        if (is_short) {
            fold_to_two(folded, lanes);
            sums[0] = double(folded[0]), sums[1] = double(folded[1]);
        } else {
            for (npy_intp k = 0; k < lanes; k++) sums[k] += double(folded[k]);
        }
    }
    for (npy_intp i = 0; i < rest; i++) sums[i % 2] += double(widen(x[i]));
    if (!is_short) fold_to_two(sums, lanes);
    found[0] = sums[0], found[1] = sums[1];
}
