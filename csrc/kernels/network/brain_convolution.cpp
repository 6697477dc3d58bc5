// Convolution of bfloat16, where the processor multiplies pairs of them into sums in float32 (AVX-512
// BF16); elsewhere the twin widens to float32.
#include "kernels/linalg/matrices.h"
#include "kernels/network/convolution.h"
#include "kernels/network/module.h"

#if FLAMBEAU_CLONES
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,avx512bf16")

namespace network {
namespace {

#include "kernels/linalg/brain_blocks.h"

// `count` windows side by side, as pairs of their elements: to[l * WIDE + c] holds those at offsets 2l
// and 2l + 1 of window c.
void pack_pairs(const uint16_t *x, const std::vector<npy_intp> &offsets, const std::vector<Run> &runs,
                npy_intp count, uint32_t *to) {
    npy_intp depth = offsets.size();
    for (npy_intp k = 0; k < depth; k += 2, to += WIDE) {
        const uint16_t *low = x + offsets[k], *high = k + 1 < depth ? x + offsets[k + 1] : nullptr;
        for (const Run &run : runs)
            for (npy_intp t = 0; t < run.length; t += 16) {
                __mmask16 mask = run.length - t < 16 ? (1 << (run.length - t)) - 1 : 0xffff;
                __m512i pair = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, low + run.from + t));
                if (high) {
                    __m512i second = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, high + run.from + t));
                    pair = _mm512_or_si512(pair, _mm512_slli_epi32(second, 16));
                }
                _mm512_mask_storeu_epi32(to + run.at + t, mask, pair);
            }
        std::fill(to + count, to + WIDE, 0);
    }
}

// What has been summed for `count` windows from `first` on (counted through all images), a row for each
// of `rows` channels from `channel` on, with the bias added and rounded.
void put(const Geometry &g, const float *made, npy_intp channel, npy_intp rows, npy_intp first, npy_intp count,
         const BFloat *bias, BFloat *result) {
    float sums[WIDE];
    for (npy_intp r = 0; r < rows; r++, made += WIDE) {
        float b = bias ? widen(bias[channel + r]) : 0;
        for (npy_intp c = 0; c < WIDE; c++) sums[c] = made[c] + b;
        for (npy_intp c = 0; c < count;) {
            npy_intp sample = (first + c) / g.positions, within = (first + c) % g.positions;
            npy_intp length = std::min(g.positions - within, count - c);
            BFloat *to = result + (sample * g.groups * g.o + channel + r) * g.positions + within;
            round_row(sums + c, (uint16_t *)to, length);
            c += length;
        }
    }
}

void correlate_pairs(const Geometry &g, const uint16_t *x, const uint16_t *w, const BFloat *bias, BFloat *result) {
    npy_intp depth = g.c * g.taps, pairs = (depth + 1) / 2, channels = g.groups * g.o;
    npy_intp total = g.n * g.positions, panels = (total + WIDE - 1) / WIDE;
    Buffer<uint32_t> weights(channels * pairs);
    pack_rows({w, depth, 1}, channels, depth, weights.get());
    npy_intp grain = std::max<npy_intp>(1, 400000 / (2 * g.o * depth * WIDE));
    parallel_for(
        g.groups * panels, grain,
        [&](int64_t begin, int64_t end) {
            Buffer<uint32_t> columns(pairs * WIDE);
            alignas(64) float made[HIGH * WIDE];
            std::vector<Run> runs;
            for (npy_intp task = begin; task < end; task++) {
                npy_intp group = task / panels, first = task % panels * WIDE, count = std::min(WIDE, total - first);
                find_runs(g, first, count, runs);
                pack_pairs(x + group * g.c * g.plane, g.offsets, runs, count, columns.get());
                for (npy_intp i = 0; i < g.o; i += HIGH) {
                    npy_intp channel = group * g.o + i, rows = std::min(HIGH, g.o - i);
                    any_block(rows, weights.get() + channel * pairs, columns.get(), pairs, made);
                    put(g, made, channel, rows, first, count, bias, result);
                }
            }
        },
        1);
}

}  // namespace
}  // namespace network

#pragma GCC pop_options

namespace network {

// (large, w, bias, stride, padding, dilation, groups)
static PyObject *brain_correlate(PyObject *const *args) {
    Array x, w, bias;
    Geometry g;
    auto is_brain = [](PyObject *a) { return is_plain_array(a) && dtype_of(type_of(a)) == BF; };
    if (!linalg::multiplies_brains() || !is_brain(args[0]) || !is_brain(args[1]) ||
        (args[2] != Py_None && !is_brain(args[2])) || !take_any(args[0], x) || !take_any(args[1], w) ||
        (args[2] != Py_None && !take_any(args[2], bias)) || !geometry(g, x.dims(), w.dims(), nullptr, args + 3))
        return declined();
    std::vector<npy_intp> shape = small_shape(g, x.dims());
    PyArray_Descr *descr = descr_of(BF);
    if (!descr) return nullptr;
    Array result(PyArray_NewFromDescr(&PyArray_Type, descr, int(shape.size()), shape.data(), nullptr, nullptr, 0,
                                      nullptr));
    if (!result || !result.size()) return result.release();
    Unlocked unlocked;
    npy_intp n = g.n, step = batch_of<uint16_t>(g), area = g.groups * g.c * g.size[0] * g.size[1] * g.size[2];
    for (npy_intp i = 0; i < n; i += step) {
        g.n = std::min(step, n - i);
        Padded<uint16_t> images(g, x.data<uint16_t>() + i * area);
        correlate_pairs(g, images.data, w.data<uint16_t>(), bias ? bias.data<BFloat>() : nullptr,
                        result.data<BFloat>() + i * g.groups * g.o * g.positions);
    }
    return result.release();
}

static PyMethodDef brain_methods[] = {NETWORK_METHOD(brain_correlate, 7), {nullptr, nullptr, 0, nullptr}};

}  // namespace network

int register_network_brain_convolution(PyObject *module) {
    return PyModule_AddFunctions(module, network::brain_methods);
}

#else

int register_network_brain_convolution(PyObject *) { return 0; }

#endif
