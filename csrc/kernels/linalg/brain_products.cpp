// Products of bfloat16 matrices, where the processor has instructions that multiply pairs of them into
// sums in float32 (AVX-512 BF16). Elsewhere, and for what is not a matrix, the twin widens to float32.
#include "kernels/linalg/matrices.h"

#include <memory>

#if FLAMBEAU_CLONES
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,avx512bf16")

namespace {

#include "kernels/linalg/brain_blocks.h"

// WIDE columns of b, as pairs of rows: to[l * WIDE + c] holds b(2l, c) and b(2l + 1, c).
void pack_columns(Side b, npy_intp k, npy_intp columns, uint32_t *to) {
    npy_intp pairs = (k + 1) / 2;
    if (b.row == 1) {  // the columns lie in memory
        constexpr npy_intp TILE = 16;
        for (npy_intp c = 0; c < WIDE; c++) {
            if (c >= columns) {
                for (npy_intp l = 0; l < pairs; l++) to[l * WIDE + c] = 0;
                continue;
            }
            const uint16_t *from = b.at + c * b.column;
            npy_intp whole = k / 2;
            for (npy_intp l = 0; l < whole; l += TILE)
                for (npy_intp i = l; i < std::min(l + TILE, whole); i++) std::memcpy(to + i * WIDE + c, from + 2 * i, 4);
            if (k % 2) to[whole * WIDE + c] = from[k - 1];
        }
        return;
    }
    for (npy_intp l = 0; l < pairs; l++, to += WIDE) {
        const uint16_t *low = b.at + 2 * l * b.row, *high = 2 * l + 1 < k ? low + b.row : nullptr;
        if (b.column == 1 && columns == WIDE && high) {
            for (npy_intp c = 0; c < WIDE; c++) to[c] = low[c] | uint32_t(high[c]) << 16;
            continue;
        }
        for (npy_intp c = 0; c < WIDE; c++)
            to[c] = c < columns ? low[c * b.column] | uint32_t(high ? high[c * b.column] : 0) << 16 : 0;
    }
}

struct Product {
    npy_intp items, n, k, m;
    Side a, b;
    npy_intp a_item, b_item;
    char *to;
    bool wide;  // is the result float32?

    void run() const {
        npy_intp pairs = (k + 1) / 2, bands = (m + WIDE - 1) / WIDE;
        // rows are packed once, by each thread those that it takes; short of bands, rows are cut too
        npy_intp cuts = 1, work = n * k * m;
        if (items * bands < 2 * max_threads() && work > (1 << 18))
            cuts = std::max<npy_intp>(1, std::min<npy_intp>(n / (4 * HIGH), 2 * max_threads()));
        npy_intp each = (n + cuts - 1) / cuts;
        each = (each + HIGH - 1) / HIGH * HIGH;
        std::unique_ptr<uint32_t[]> rows(new uint32_t[items * n * pairs]);
        parallel_for(items * n, (1 << 15) / k + 1, [&](int64_t from, int64_t to_) {
            for (npy_intp i = from; i < to_; i++) {
                Side one{a.at + i / n * a_item + i % n * a.row, a.row, a.column};
                pack_rows(one, 1, k, rows.get() + i * pairs);
            }
        }, 1);
        npy_intp size = wide ? sizeof(float) : sizeof(uint16_t);
        npy_intp grain = std::max<npy_intp>(1, (1 << 18) / (std::min(each, n) * k * std::min(m, WIDE)));
        parallel_for(items * cuts * bands, grain, [&](int64_t from, int64_t to_) {
            std::unique_ptr<uint32_t[]> columns(new uint32_t[pairs * WIDE]);
            alignas(64) float made[HIGH * WIDE];
            for (npy_intp task = from; task < to_; task++) {
                npy_intp band = task % bands, cut = task / bands % cuts, item = task / bands / cuts;
                npy_intp first = band * WIDE, count = std::min(WIDE, m - first);
                pack_columns({b.at + item * b_item + first * b.column, b.row, b.column}, k, count, columns.get());
                for (npy_intp i = cut * each; i < std::min(n, (cut + 1) * each); i += HIGH) {
                    npy_intp high = std::min(HIGH, n - i);
                    any_block(high, rows.get() + (item * n + i) * pairs, columns.get(), pairs, made);
                    char *place = to + ((item * n + i) * m + first) * size;
                    for (npy_intp r = 0; r < high; r++, place += m * size)
                        if (wide) std::memcpy(place, made + r * WIDE, count * sizeof(float));
                        else round_row(made + r * WIDE, (uint16_t *)place, count);
                }
            }
        }, 1);
    }
};

}  // namespace

#pragma GCC pop_options

namespace {

using linalg::declined;

bool read_side(PyArrayObject *x, Side &side, npy_intp &item) {
    int nd = PyArray_NDIM(x);
    for (int d = 0; d < nd; d++)
        if (PyArray_STRIDE(x, d) % 2) return false;
    side = {(const uint16_t *)PyArray_DATA(x), PyArray_STRIDE(x, nd - 2) / 2, PyArray_STRIDE(x, nd - 1) / 2};
    item = nd == 3 ? PyArray_STRIDE(x, 0) / 2 : 0;
    return true;
}

constexpr npy_intp LEAST = 1 << 12;

// brain_product(a, b, wide): matrices, or as many of each; `wide`, with the result in float32
PyObject *brain_product(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (!linalg::multiplies_brains() || names || n != 3 || !is_plain(args[0]) || !is_plain(args[1])) return declined();
    PyArrayObject *a = (PyArrayObject *)args[0], *b = (PyArrayObject *)args[1];
    int nd = PyArray_NDIM(a);
    if (dtype_of(PyArray_TYPE(a)) != BF || dtype_of(PyArray_TYPE(b)) != BF || (nd != 2 && nd != 3) ||
        PyArray_NDIM(b) != nd || PyArray_DIM(a, nd - 1) != PyArray_DIM(b, nd - 2) ||
        (nd == 3 && PyArray_DIM(a, 0) != PyArray_DIM(b, 0)))
        return declined();
    Product p;
    p.items = nd == 3 ? PyArray_DIM(a, 0) : 1;
    p.n = PyArray_DIM(a, nd - 2), p.k = PyArray_DIM(a, nd - 1), p.m = PyArray_DIM(b, nd - 1);
    if (p.items * p.n * p.k * p.m < LEAST || !read_side(a, p.a, p.a_item) || !read_side(b, p.b, p.b_item))
        return declined();
    p.wide = args[2] == Py_True;
    npy_intp dims[] = {p.items, p.n, p.m};
    PyArray_Descr *descr = descr_of(p.wide ? F4 : BF);
    PyObject *result = descr ? PyArray_NewFromDescr(&PyArray_Type, descr, nd, dims + (3 - nd), nullptr, nullptr, 0,
                                                    nullptr)
                             : nullptr;
    if (!result) return nullptr;
    p.to = PyArray_BYTES((PyArrayObject *)result);
    Py_BEGIN_ALLOW_THREADS;
    p.run();
    Py_END_ALLOW_THREADS;
    return result;
}

}  // namespace

bool linalg::multiplies_brains() {
    static const bool known = __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vl") &&
                              __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    return known;
}

int register_brain_products(PyObject *module) { return make_function(module, "brain_product", brain_product); }

#else

int register_brain_products(PyObject *) { return 0; }

#endif
