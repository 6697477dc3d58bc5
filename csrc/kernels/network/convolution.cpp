// Convolution: correlate, spread and weigh of flambeau/kernels/network/convolution.py, im2col and col2im.
//
// Windows are never written out as one matrix. They are packed a block at a time into panels that
// fit the cache, straight from the padded image, and multiplied there.
#include "kernels/network/convolution.h"
#include "kernels/network/module.h"

#if NETWORK_VECTORS

#define NETWORK_LOOPS "kernels/network/convolution_loops.h"
#include "kernels/network/isa.h"

namespace network {

static bool is_depthwise(const Geometry &g) { return g.c == 1 && g.o <= 2 && g.groups > 1; }

// Is an image one window, without padding?
static bool is_one_window(const Geometry &g) {
    bool fits = g.positions == 1;
    for (int i = 0; i < 3; i++) fits = fits && g.size[i] == g.kernel[i] && !g.padding[i];
    return fits;
}

// Where the stride is 1 a spread is a correlation of the small image with reversed weights.
static bool turn(const Geometry &g, Geometry &turned) {
    if ((g.c < 4 && !(is_depthwise(g) && g.o == 1))) return false;
    turned = g;
    std::swap(turned.c, turned.o);
    for (int i = 0; i < 3; i++) {
        turned.size[i] = g.out[i];
        turned.out[i] = g.size[i];
        turned.padding[i] = g.dilation[i] * (g.kernel[i] - 1) - g.padding[i];
        if (g.stride[i] != 1 || turned.padding[i] < 0) return false;
    }
    turned.offsets.clear();
    turned.prepare();
    return true;
}

template <class T>
static void correlate_batches(Geometry &g, const T *x, const T *w, T *result) {
    npy_intp n = g.n, step = batch_of<T>(g),
             area = g.groups * g.c * g.size[0] * g.size[1] * g.size[2];
    for (npy_intp i = 0; i < n; i += step) {
        g.n = std::min(step, n - i);
        Padded<T> images(g, x + i * area);
        NETWORK_BEST(correlate<T>)(g, images.data, images.end, w, g.n,
                                   result + i * g.groups * g.o * g.positions);
    }
}

// (groups, o, c, taps) to (groups, c, o, taps reversed)
template <class T>
static void reverse_weights(const Geometry &g, const T *w, T *to) {
    npy_intp each = g.c * g.taps;
    parallel_for(
        g.groups * g.o, std::max<npy_intp>(1, PARALLEL_FROM / (each + 1)),
        [&](int64_t first, int64_t last) {
            for (npy_intp row = first; row < last; row++) {
                const T *from = w + row * each;
                T *place = to + (row / g.o * g.c * g.o + row % g.o) * g.taps;
                for (npy_intp c = 0; c < g.c; c++, place += g.o * g.taps)
                    for (npy_intp k = 0; k < g.taps; k++) place[g.taps - 1 - k] = *from++;
            }
        },
        1);
}

// Along one axis, the elements of a spread at `phase` modulo the stride are a correlation of the
// small image with every stride-th tap, reversed.
struct Phase {
    npy_intp first_tap, taps, count, left, right;  // and how far windows reach beyond the image

    Phase(const Geometry &g, int axis, npy_intp phase) {
        npy_intp stride = g.stride[axis], at = phase + g.padding[axis];
        first_tap = at % stride;
        taps = (g.kernel[axis] - first_tap + stride - 1) / stride;
        count = phase < g.size[axis] ? (g.size[axis] - phase + stride - 1) / stride : 0;
        left = g.dilation[axis] * (taps - 1) - at / stride;
        right = count - 1 + at / stride - (g.out[axis] - 1);
    }
};

// The weights of one combination of phases: (groups, o, c, taps) to (groups, c, o, its taps
// reversed).
template <class T>
static void phase_weights(const Geometry &g, const Phase *phase, const T *w, T *to) {
    for (npy_intp unit = 0; unit < g.groups * g.c; unit++)
        for (npy_intp o = 0; o < g.o; o++) {
            const T *from = w + ((unit / g.c * g.o + o) * g.c + unit % g.c) * g.taps;
            for (npy_intp i = phase[0].taps - 1; i >= 0; i--)
                for (npy_intp j = phase[1].taps - 1; j >= 0; j--)
                    for (npy_intp k = phase[2].taps - 1; k >= 0; k--) {
                        npy_intp a = phase[0].first_tap + i * g.stride[0],
                                 b = phase[1].first_tap + j * g.stride[1],
                                 c = phase[2].first_tap + k * g.stride[2];
                        *to++ = from[(a * g.kernel[1] + b) * g.kernel[2] + c];
                    }
        }
}

// Puts planes of one combination of phases to their places.
template <class T>
static void interleave(const Geometry &g, const npy_intp *at, const Phase *phase, npy_intp planes,
                       const T *from, T *result) {
    npy_intp area = g.size[0] * g.size[1] * g.size[2], width = phase[2].count, step = g.stride[2];
    npy_intp positions = phase[0].count * phase[1].count * width;
    parallel_for(
        planes, std::max<npy_intp>(1, PARALLEL_FROM / (positions + 1)),
        [&](int64_t first, int64_t last) {
            const T *line = from + first * positions;
            for (npy_intp plane = first; plane < last; plane++)
                for (npy_intp i = 0; i < phase[0].count; i++)
                    for (npy_intp j = 0; j < phase[1].count; j++, line += width) {
                        npy_intp row = (i * g.stride[0] + at[0]) * g.size[1] + j * g.stride[1] + at[1];
                        T *to = result + plane * area + row * g.size[2] + at[2];
                        for (npy_intp k = 0; k < width; k++) to[k * step] = line[k];
                    }
        },
        1);
}

// A spread with strides, phase by phase; false where another way is better.
template <class T>
static bool spread_phases(const Geometry &g, const T *small, const T *w, T *result) {
    bool strided = false;
    npy_intp padding[3] = {0, 0, 0};
    for (int i = 0; i < 3; i++) {
        if (g.stride[i] > 1 && (g.dilation[i] != 1 || g.kernel[i] < g.stride[i])) return false;
        strided = strided || g.stride[i] > 1;
        for (npy_intp p = 0; p < g.stride[i]; p++) {
            Phase phase(g, i, p);
            padding[i] = std::max({padding[i], phase.left, phase.right});
        }
    }
    if (!strided || g.c < 4 || g.o < 4) return false;
    Geometry base = g;
    std::swap(base.c, base.o);
    for (int i = 0; i < 3; i++) {
        base.size[i] = g.out[i], base.padding[i] = padding[i];
        if (base.stride[i] > 1) base.dilation[i] = 1;
        base.stride[i] = 1;
    }
    npy_intp channels = g.groups * g.c, inner = g.groups * g.o * g.positions;
    npy_intp area = channels * g.size[0] * g.size[1] * g.size[2], most = 1;
    for (int i = 0; i < 3; i++) most *= (g.size[i] + g.stride[i] - 1) / g.stride[i];
    base.offsets.clear();
    base.prepare();
    npy_intp step = std::min(g.n, batch_of<T>(base));
    Buffer<T> weights(channels * g.o * g.taps), part(step * channels * most);
    for (npy_intp n = 0; n < g.n; n += step) {
        base.n = std::min(step, g.n - n);
        Padded<T> images(base, small + n * inner);
        for (npy_intp index = 0; index < g.stride[0] * g.stride[1] * g.stride[2]; index++) {
            npy_intp at[] = {index / g.stride[2] / g.stride[1], index / g.stride[2] % g.stride[1],
                             index % g.stride[2]};
            Phase phase[] = {Phase(g, 0, at[0]), Phase(g, 1, at[1]), Phase(g, 2, at[2])};
            if (!phase[0].count || !phase[1].count || !phase[2].count) continue;
            Geometry own = base;
            for (int i = 0; i < 3; i++) own.kernel[i] = phase[i].taps, own.out[i] = phase[i].count;
            own.offsets.clear();
            own.prepare();
            npy_intp shift = ((padding[0] - phase[0].left) * base.padded[1] + padding[1] -
                              phase[1].left) * base.row + padding[2] - phase[2].left;
            for (npy_intp &offset : own.offsets) offset += shift;
            phase_weights(g, phase, w, weights.get());
            NETWORK_BEST(correlate<T>)(own, images.data, images.end, weights.get(), own.n,
                                       part.get());
            interleave(g, at, phase, own.n * channels, part.get(), result + n * area);
        }
    }
    return true;
}

template <class T>
static PyObject *correlate_(PyObject *const *args) {
    Array x, w;
    Geometry g;
    if (!take<T>(args[0], x) || !take<T>(args[1], w) ||
        !geometry(g, x.dims(), w.dims(), nullptr, args + 2))
        return declined();
    std::vector<npy_intp> shape = small_shape(g, x.dims());
    Array result = Array::empty(shape, TypeNum<T>::value);
    if (!result) return nullptr;
    if (!result.size()) return result.release();
    {
        Unlocked unlocked;
        if (is_depthwise(g)) {
            NETWORK_BEST(depthwise_correlate<T>)(g, x.data<T>(), w.data<T>(), result.data<T>());
        } else {
            correlate_batches(g, x.data<T>(), w.data<T>(), result.data<T>());
        }
    }
    return result.release();
}
NETWORK_FLOATS(correlate, 0)

template <class T>
static PyObject *spread_(PyObject *const *args) {
    Array small, w;
    Geometry g, turned;
    std::vector<npy_intp> large;
    if (!take<T>(args[0], small) || !take<T>(args[1], w) || !take_ints(args[2], large) ||
        int(large.size()) != small.ndim() || small.ndim() < 3 || large[0] != small.dim(0) ||
        !geometry(g, large, w.dims(), small.shape() + 2, args + 3) ||
        small.dim(1) != g.groups * g.o)
        return declined();
    Array result = Array::empty(large, TypeNum<T>::value);
    if (!result) return nullptr;
    if (!result.size()) return result.release();
    Unlocked unlocked;
    if (!small.size()) {
        std::fill(result.data<T>(), result.data<T>() + result.size(), T(0));
    } else if (is_one_window(g)) {
        NETWORK_BEST(spread_points<T>)(g, small.data<T>(), w.data<T>(), result.data<T>());
    } else if (turn(g, turned)) {
        Buffer<T> weights(w.size());
        reverse_weights(g, w.data<T>(), weights.get());
        if (is_depthwise(g))
            NETWORK_BEST(depthwise_correlate<T>)(turned, small.data<T>(), weights.get(),
                                                 result.data<T>());
        else
            correlate_batches(turned, small.data<T>(), weights.get(), result.data<T>());
    } else if (is_depthwise(g)) {
        NETWORK_BEST(depthwise_spread<T>)(g, small.data<T>(), w.data<T>(), result.data<T>());
    } else if (!spread_phases(g, small.data<T>(), w.data<T>(), result.data<T>())) {
        NETWORK_BEST(spread<T>)(g, small.data<T>(), w.data<T>(), result.data<T>());
    }
    return result.release();
}
NETWORK_FLOATS(spread, 0)

template <class T>
static PyObject *weigh_(PyObject *const *args) {
    Array large, small;
    Geometry g;
    std::vector<npy_intp> shape;
    if (!take<T>(args[0], large) || !take<T>(args[1], small) || !take_ints(args[2], shape) ||
        small.ndim() != large.ndim() || small.ndim() < 3 || large.dim(0) != small.dim(0) ||
        !geometry(g, large.dims(), shape, small.shape() + 2, args + 3) ||
        small.dim(1) != g.groups * g.o)
        return declined();
    Array result = Array::empty(shape, TypeNum<T>::value);
    if (!result) return nullptr;
    Unlocked unlocked;
    T *to = result.data<T>();
    if (!small.size() || !large.size()) {
        std::fill(to, to + result.size(), T(0));
    } else if (is_depthwise(g)) {
        NETWORK_BEST(depthwise_weigh<T>)(g, large.data<T>(), small.data<T>(), to);
    } else {
        npy_intp n = g.n, step = batch_of<T>(g), count = result.size();
        npy_intp area = g.groups * g.c * g.size[0] * g.size[1] * g.size[2];
        Buffer<T> part(step < n ? count : 0);
        for (npy_intp i = 0; i < n; i += step) {
            g.n = std::min(step, n - i);
            Padded<T> images(g, large.data<T>() + i * area);
            T *place = i ? part.get() : to;
            NETWORK_BEST(weigh<T>)(g, images.data, images.end,
                                   small.data<T>() + i * g.groups * g.o * g.positions, place);
            if (i)
                for (npy_intp k = 0; k < count; k++) to[k] += part[k];
        }
    }
    return result.release();
}
NETWORK_FLOATS(weigh, 0)

static PyMethodDef methods[] = {NETWORK_METHOD(correlate, 6),
                                NETWORK_METHOD(spread, 7),
                                NETWORK_METHOD(weigh, 7),
                                {nullptr, nullptr, 0, nullptr}};

}  // namespace network

int register_network_convolution(PyObject *module) {
    return PyModule_AddFunctions(module, network::methods);
}

#else

int register_network_convolution(PyObject *) { return 0; }

#endif
