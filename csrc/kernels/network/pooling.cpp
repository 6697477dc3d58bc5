// Pooling: flambeau/kernels/network/pooling.py, over images of up to three dimensions.
#include "kernels/network/module.h"

#include <atomic>

namespace network {

namespace {

struct Windows {
    int dims;
    npy_intp planes, size[3], out[3], kernel[3], stride[3], padding[3], dilation[3], area,
        positions;
    std::vector<npy_intp> shape;  // of the result

    // From the shape of the image and the arguments kernel, stride, padding and (or null) dilation.
    bool read(const npy_intp *x, int ndim, PyObject *kernel_, PyObject *stride_, PyObject *padding_,
              PyObject *dilation_, bool ceil_mode) {
        std::vector<npy_intp> k, s, p, d;
        if (!take_ints(kernel_, k) || !take_ints(stride_, s) || !take_ints(padding_, p))
            return false;
        if (!dilation_)
            d.assign(k.size(), 1);
        else if (!take_ints(dilation_, d))
            return false;
        dims = int(k.size());
        if (dims < 1 || dims > 3 || dims > ndim || int(s.size()) != dims || int(p.size()) != dims ||
            int(d.size()) != dims)
            return false;
        planes = product(x, x + ndim - dims);
        shape.assign(x, x + ndim);
        for (int i = 0; i < 3; i++) {
            int j = i - (3 - dims);
            size[i] = j < 0 ? 1 : x[ndim - dims + j];
            kernel[i] = j < 0 ? 1 : k[j];
            stride[i] = j < 0 ? 1 : s[j];
            padding[i] = j < 0 ? 0 : p[j];
            dilation[i] = j < 0 ? 1 : d[j];
            npy_intp span = size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1;
            if (span < 0 || stride[i] < 1 || kernel[i] < 1 || padding[i] < 0 || dilation[i] < 1)
                return false;
            out[i] = (ceil_mode ? (span + stride[i] - 1) / stride[i] : span / stride[i]) + 1;
            if (ceil_mode && (out[i] - 1) * stride[i] >= size[i] + padding[i]) out[i]--;
            if (j >= 0) shape[ndim - dims + j] = out[i];
        }
        area = size[0] * size[1] * size[2];
        positions = out[0] * out[1] * out[2];
        return true;
    }
    npy_intp work() const { return positions * kernel[0] * kernel[1] * kernel[2] + area; }
    npy_intp grain() const { return std::max<npy_intp>(1, PARALLEL_FROM / (work() + 1)); }
};

// One row of results: the largest of rows of the image, each read at `width` windows.
template <class T>
CLONES void max_rows(const Windows &g, const T *x, npy_intp first, npy_intp last, T *values,
                     int64_t *indices) {
    npy_intp width = g.out[2], s = g.stride[2];
    for (npy_intp line = first; line < last; line++) {
        npy_intp plane = line / (g.out[0] * g.out[1]), i = line / g.out[1] % g.out[0],
                 j = line % g.out[1];
        const T *image = x + plane * g.area;
        T *v = values + line * width;
        int64_t *at = indices + line * width;
        npy_intp a0 = i * g.stride[0] - g.padding[0], b0 = j * g.stride[1] - g.padding[1];
        npy_intp a = a0 < 0 ? a0 + (-a0 + g.dilation[0] - 1) / g.dilation[0] * g.dilation[0] : a0;
        npy_intp b = b0 < 0 ? b0 + (-b0 + g.dilation[1] - 1) / g.dilation[1] * g.dilation[1] : b0;
        for (npy_intp q = 0; q < width; q++) {
            npy_intp c = q * s - g.padding[2];
            if (c < 0) c += (-c + g.dilation[2] - 1) / g.dilation[2] * g.dilation[2];
            v[q] = -std::numeric_limits<T>::infinity();
            at[q] = (a * g.size[1] + b) * g.size[2] + c;
        }
        for (npy_intp ka = 0; ka < g.kernel[0]; ka++)
            for (npy_intp kb = 0; kb < g.kernel[1]; kb++) {
                npy_intp row = a0 + ka * g.dilation[0], column = b0 + kb * g.dilation[1];
                if (row < 0 || row >= g.size[0] || column < 0 || column >= g.size[1]) continue;
                npy_intp start = (row * g.size[1] + column) * g.size[2];
                for (npy_intp kc = 0; kc < g.kernel[2]; kc++) {
                    npy_intp shift = kc * g.dilation[2] - g.padding[2];
                    npy_intp begin = shift < 0 ? (-shift + s - 1) / s : 0;
                    npy_intp end = g.size[2] - shift > 0
                                       ? std::min(width, (g.size[2] - shift - 1) / s + 1)
                                       : 0;
                    const T *from = image + start + shift;
                    int64_t position = start + shift;
                    if (s == 1) {
                        INDEPENDENT
                        for (npy_intp q = begin; q < end; q++) {
                            bool better = (from[q] > v[q]) | (from[q] != from[q]);
                            v[q] = better ? from[q] : v[q];
                            at[q] = better ? position + q : at[q];
                        }
                    } else if (s == 2) {
                        INDEPENDENT
                        for (npy_intp q = begin; q < end; q++) {
                            T y = from[2 * q];
                            bool better = (y > v[q]) | (y != y);
                            v[q] = better ? y : v[q];
                            at[q] = better ? position + 2 * q : at[q];
                        }
                    } else {
                        for (npy_intp q = begin; q < end; q++) {
                            T y = from[q * s];
                            bool better = (y > v[q]) | (y != y);
                            v[q] = better ? y : v[q];
                            at[q] = better ? position + q * s : at[q];
                        }
                    }
                }
            }
    }
}

// As `max_rows`, of lines with one axis of windows, without indices.
template <class T>
CLONES void max_values(const Windows &g, const T *x, npy_intp first, npy_intp last, T *values) {
    npy_intp width = g.out[2], s = g.stride[2], size = g.size[2], step = g.dilation[2];
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    for (npy_intp line = first; line < last; line++) {
        const T *image = x + line * size;
        T *v = values + line * width;
        for (npy_intp q = 0; q < width; q++) v[q] = lowest;
        for (npy_intp k = 0; k < g.kernel[2]; k++) {
            npy_intp shift = k * step - g.padding[2];
            npy_intp begin = shift < 0 ? (-shift + s - 1) / s : 0;
            npy_intp end = size > shift ? std::min(width, (size - shift - 1) / s + 1) : 0;
            const T *from = image + shift;
            auto larger = [v](npy_intp q, T y) { v[q] = (y > v[q]) | (y != y) ? y : v[q]; };
            if (s == 1) {
                INDEPENDENT
                for (npy_intp q = begin; q < end; q++) larger(q, from[q]);
            } else if (s == 2) {
                INDEPENDENT
                for (npy_intp q = begin; q < end; q++) larger(q, from[2 * q]);
            } else if (s == 3) {
                INDEPENDENT
                for (npy_intp q = begin; q < end; q++) larger(q, from[3 * q]);
            } else {
                INDEPENDENT
                for (npy_intp q = begin; q < end; q++) larger(q, from[q * s]);
            }
        }
    }
}

// The largest of each of a few long windows, which are read along.
template <class T>
CLONES void max_long_windows(const Windows &g, const T *x, npy_intp first, npy_intp last,
                             T *values) {
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    constexpr int lanes = 64 / sizeof(T);
    for (npy_intp i = first * g.out[2]; i < last * g.out[2]; i++) {
        npy_intp start = i % g.out[2] * g.stride[2] - g.padding[2];
        npy_intp end = std::min(start + g.kernel[2], g.size[2]);
        const T *line = x + i / g.out[2] * g.size[2];
        npy_intp at = std::max<npy_intp>(start, 0);
        T best[lanes], most = lowest;
        for (int t = 0; t < lanes; t++) best[t] = lowest;
        for (; at + lanes <= end; at += lanes)
            for (int t = 0; t < lanes; t++) {
                T y = line[at + t];
                best[t] = (y > best[t]) | (y != y) ? y : best[t];
            }
        // NaN stays: what comes after it is not larger
        for (int t = 0; t < lanes; t++)
            if (best[t] > most || best[t] != best[t]) most = best[t];
        for (; at < end; at++)
            if (line[at] > most || line[at] != line[at]) most = line[at];
        values[i] = most;
    }
}

template <class T>
PyObject *max_pool_values_(PyObject *const *args) {
    Array x;
    Windows g;
    int up = PyObject_IsTrue(args[5]);
    if (!take<T>(args[0], x) ||
        !g.read(x.shape(), x.ndim(), args[1], args[2], args[3], args[4], up) || g.dims != 1)
        return declined();
    Array values = Array::empty(g.shape, TypeNum<T>::value);
    if (!values) return nullptr;
    Unlocked unlocked;
    npy_intp each = g.out[2] * g.kernel[2];
    bool along = g.dilation[2] == 1 && g.kernel[2] > 8 && g.kernel[2] > 2 * g.out[2];
    parallel_for(g.planes, std::max<npy_intp>(1, PARALLEL_FROM / (each + 1)),
                 [&](int64_t first, int64_t last) {
                     auto run = along ? max_long_windows<T> : max_values<T>;
                     run(g, x.data<T>(), first, last, values.data<T>());
                 });
    return values.release();
}
NETWORK_FLOATS(max_pool_values, 0)

template <class T>
PyObject *max_pool_(PyObject *const *args) {
    Array x;
    Windows g;
    int up = PyObject_IsTrue(args[5]);
    if (!take<T>(args[0], x) ||
        !g.read(x.shape(), x.ndim(), args[1], args[2], args[3], args[4], up))
        return declined();
    Array values = Array::empty(g.shape, TypeNum<T>::value),
          indices = Array::empty(g.shape, NPY_INT64);
    if (!values || !indices) return nullptr;
    {
        Unlocked unlocked;
        npy_intp lines = g.planes * g.out[0] * g.out[1];
        npy_intp each = g.out[2] * g.kernel[0] * g.kernel[1] * g.kernel[2];
        parallel_for(lines, std::max<npy_intp>(1, PARALLEL_FROM / 2 / (each + 1)),
                     [&](int64_t first, int64_t last) {
                         max_rows(g, x.data<T>(), first, last, values.data<T>(),
                                  indices.data<int64_t>());
                     });
    }
    return results(values, indices);
}
NETWORK_FLOATS(max_pool, 0)

// dims last axes of the shape: how many elements one image has; -1 where that makes no sense.
npy_intp area_of(const std::vector<npy_intp> &shape, npy_intp dims) {
    if (dims < 1 || dims > npy_intp(shape.size())) return -1;
    return product(shape.data() + shape.size() - dims, shape.data() + shape.size());
}

PyObject *bad_index(int64_t index, const npy_intp *size, int dims) {
    std::string text;
    for (int i = 0; i < dims; i++) text += (i ? "x" : "") + std::to_string(size[i]);
    PyErr_Format(PyExc_RuntimeError,
                 "Found an invalid max index: %lld (output volumes are of size %s)",
                 (long long)index, text.c_str());
    return nullptr;
}

template <class T>
PyObject *max_pool_backward_(PyObject *const *args) {
    Array g, indices;
    std::vector<npy_intp> shape;
    npy_intp dims;
    if (!take<T>(args[0], g) || !take<int64_t>(args[1], indices) || !take_ints(args[2], shape) ||
        !take_int(args[3], dims) || !same_shape(g, indices))
        return declined();
    npy_intp area = area_of(shape, dims), count = area_of(g.dims(), dims);
    if (area < 0 || count < 0) return declined();
    Array result = Array::empty(shape, TypeNum<T>::value);
    if (!result) return nullptr;
    npy_intp planes = product(shape) / std::max<npy_intp>(1, area);
    if (planes * count != g.size()) return declined();
    std::atomic<int64_t> wrong{-1};
    {
        Unlocked unlocked;
        const T *from = g.data<T>();
        const int64_t *at = indices.data<int64_t>();
        T *to = result.data<T>();
        parallel_for(
            planes, std::max<npy_intp>(1, PARALLEL_FROM / (area + count + 1)),
            [&](int64_t first, int64_t last) {
                for (npy_intp p = first; p < last; p++) {
                    T *image = to + p * area;
                    std::fill(image, image + area, T(0));
                    for (npy_intp i = p * count; i < (p + 1) * count; i++) {
                        if (uint64_t(at[i]) < uint64_t(area))
                            image[at[i]] += from[i];
                        else
                            wrong = at[i];
                    }
                }
            },
            1);
    }
    if (wrong != -1) return bad_index(wrong, shape.data() + shape.size() - dims, int(dims));
    return result.release();
}
NETWORK_FLOATS(max_pool_backward, 0)

template <class T>
PyObject *max_unpool_(PyObject *const *args) {
    Array x, indices;
    std::vector<npy_intp> size;
    if (!take<T>(args[0], x) || !take<int64_t>(args[1], indices) || !take_ints(args[2], size) ||
        !same_shape(x, indices) || int(size.size()) > x.ndim())
        return declined();
    std::vector<npy_intp> shape = x.dims();
    npy_intp dims = size.size(), count = area_of(shape, dims), area = product(size);
    if (count < 0) return declined();
    std::copy(size.begin(), size.end(), shape.end() - dims);
    Array result = Array::zeros(shape, TypeNum<T>::value);
    if (!result) return nullptr;
    const T *from = x.data<T>();
    const int64_t *at = indices.data<int64_t>();
    for (npy_intp i = 0; i < x.size(); i++) {
        if (uint64_t(at[i]) >= uint64_t(area)) return bad_index(at[i], size.data(), int(dims));
        result.data<T>()[i / count * area + at[i]] = from[i];
    }
    return result.release();
}
NETWORK_FLOATS(max_unpool, 0)

template <class T>
PyObject *max_unpool_backward_(PyObject *const *args) {
    Array g, indices;
    npy_intp dims;
    if (!take<T>(args[0], g) || !take<int64_t>(args[1], indices) || !take_int(args[2], dims) ||
        g.ndim() != indices.ndim())
        return declined();
    npy_intp area = area_of(g.dims(), dims), count = area_of(indices.dims(), dims);
    if (area <= 0 || count <= 0 || g.size() / area != indices.size() / count) return declined();
    Array result = Array::empty(indices.dims(), TypeNum<T>::value);
    if (!result) return nullptr;
    const T *from = g.data<T>();
    const int64_t *at = indices.data<int64_t>();
    T *to = result.data<T>();
    std::atomic<bool> wrong{false};
    {
        Unlocked unlocked;
        parallel_for(
            indices.size() / count, std::max<npy_intp>(1, PARALLEL_FROM / count),
            [&](int64_t first, int64_t last) {
                for (npy_intp p = first; p < last; p++)
                    for (npy_intp i = p * count; i < (p + 1) * count; i++) {
                        if (uint64_t(at[i]) < uint64_t(area))
                            to[i] = from[p * area + at[i]];
                        else
                            wrong = true;
                    }
            },
            1);
    }
    if (wrong) return declined();
    return result.release();
}
NETWORK_FLOATS(max_unpool_backward, 0)

// ---- averages
// -------------------------------------------------------------------------------------

// How many elements the window at place i of an axis counts.
npy_intp counted(const Windows &g, int axis, npy_intp i, bool with_padding) {
    npy_intp start = i * g.stride[axis] - g.padding[axis];
    npy_intp end = std::min(start + g.kernel[axis], g.size[axis] + g.padding[axis]);
    if (!with_padding) {
        start = std::max<npy_intp>(start, 0);
        end = std::min(end, g.size[axis]);
    }
    return end - start;
}

template <class T>
CLONES void add_strided(const T *from, npy_intp s, npy_intp begin, npy_intp end, T *to) {
    if (s == 1) {
        INDEPENDENT
        for (npy_intp q = begin; q < end; q++) to[q] += from[q];
    } else if (s == 2) {
        INDEPENDENT
        for (npy_intp q = begin; q < end; q++) to[q] += from[2 * q];
    } else {
        for (npy_intp q = begin; q < end; q++) to[q] += from[q * s];
    }
}

template <class T>
CLONES void spread_strided(const T *from, npy_intp s, npy_intp begin, npy_intp end, T *to) {
    if (s == 1) {
        INDEPENDENT
        for (npy_intp q = begin; q < end; q++) to[q] += from[q];
    } else {
        INDEPENDENT
        for (npy_intp q = begin; q < end; q++) to[q * s] += from[q];
    }
}

// Calls body(row of the image, tap's shift, first window, last window) for all that a line of
// windows reads.
template <class Body>
INLINE void each_tap(const Windows &g, npy_intp i, npy_intp j, Body body) {
    npy_intp s = g.stride[2];
    for (npy_intp ka = 0; ka < g.kernel[0]; ka++)
        for (npy_intp kb = 0; kb < g.kernel[1]; kb++) {
            npy_intp row = i * g.stride[0] - g.padding[0] + ka,
                     column = j * g.stride[1] - g.padding[1] + kb;
            if (row < 0 || row >= g.size[0] || column < 0 || column >= g.size[1]) continue;
            for (npy_intp kc = 0; kc < g.kernel[2]; kc++) {
                npy_intp shift = kc - g.padding[2];
                npy_intp begin = shift < 0 ? (-shift + s - 1) / s : 0;
                npy_intp end =
                    g.size[2] - shift > 0 ? std::min(g.out[2], (g.size[2] - shift - 1) / s + 1) : 0;
                body((row * g.size[1] + column) * g.size[2] + shift, begin, end);
            }
        }
}

bool read_average(Windows &g, const npy_intp *shape, int ndim, PyObject *const *args,
                  bool &with_padding, double &divisor) {
    int up = PyObject_IsTrue(args[3]);
    with_padding = PyObject_IsTrue(args[4]);
    divisor = 0;
    if (args[5] != Py_None && !take_float(args[5], divisor)) return false;
    return g.read(shape, ndim, args[0], args[1], args[2], nullptr, up);
}

template <class T>
CLONES void divide_row(npy_intp n, const T *x, const T *by, T *to) {
    INDEPENDENT
    for (npy_intp q = 0; q < n; q++) to[q] = x[q] / by[q];
}

// The divisors of one line of windows.
template <class T>
void divisors(const Windows &g, npy_intp i, npy_intp j, bool with_padding, double divisor, T *to) {
    npy_intp outer = counted(g, 0, i, with_padding) * counted(g, 1, j, with_padding);
    for (npy_intp q = 0; q < g.out[2]; q++)
        to[q] = divisor ? T(divisor) : T(outer * counted(g, 2, q, with_padding));
}

// … of all windows, line by line.
template <class T>
Buffer<T> divisors(const Windows &g, bool with_padding, double divisor) {
    Buffer<T> by(g.positions);
    for (npy_intp line = 0; line < g.out[0] * g.out[1]; line++)
        divisors(g, line / g.out[1], line % g.out[1], with_padding, divisor,
                 by.get() + line * g.out[2]);
    return by;
}

template <class T>
PyObject *avg_pool_(PyObject *const *args) {
    Array x;
    Windows g;
    bool with_padding;
    double divisor;
    if (!take<T>(args[0], x) ||
        !read_average(g, x.shape(), x.ndim(), args + 1, with_padding, divisor))
        return declined();
    Array result = Array::empty(g.shape, TypeNum<T>::value);
    if (!result) return nullptr;
    Unlocked unlocked;
    npy_intp width = g.out[2], lines = g.out[0] * g.out[1];
    Buffer<T> by = divisors<T>(g, with_padding, divisor);
    const T *from = x.data<T>();
    T *to = result.data<T>();
    parallel_for(
        g.planes, g.grain(),
        [&](int64_t first, int64_t last) {
            for (npy_intp p = first; p < last; p++)
                for (npy_intp line = 0; line < lines; line++) {
                    T *row = to + p * g.positions + line * width;
                    std::fill(row, row + width, T(0));
                    each_tap(g, line / g.out[1], line % g.out[1],
                             [&](npy_intp start, npy_intp begin, npy_intp end) {
                                 add_strided(from + p * g.area + start, g.stride[2], begin, end,
                                             row);
                             });
                    divide_row(width, row, by.get() + line * width, row);
                }
        },
        1);
    return result.release();
}
NETWORK_FLOATS(avg_pool, 0)

template <class T>
PyObject *avg_pool_backward_(PyObject *const *args) {
    Array grad;
    Windows g;
    bool with_padding;
    double divisor;
    std::vector<npy_intp> shape;
    if (!take<T>(args[0], grad) || !take_ints(args[1], shape) ||
        !read_average(g, shape.data(), int(shape.size()), args + 2, with_padding, divisor) ||
        grad.dims() != g.shape)
        return declined();
    Array result = Array::empty(shape, TypeNum<T>::value);
    if (!result) return nullptr;
    Unlocked unlocked;
    npy_intp width = g.out[2], lines = g.out[0] * g.out[1];
    Buffer<T> by = divisors<T>(g, with_padding, divisor);
    const T *from = grad.data<T>();
    T *to = result.data<T>();
    parallel_for(
        g.planes, g.grain(),
        [&](int64_t first, int64_t last) {
            Buffer<T> share(width);
            for (npy_intp p = first; p < last; p++) {
                T *image = to + p * g.area;
                std::fill(image, image + g.area, T(0));
                for (npy_intp line = 0; line < lines; line++) {
                    divide_row(width, from + p * g.positions + line * width,
                               by.get() + line * width, share.get());
                    each_tap(g, line / g.out[1], line % g.out[1],
                             [&](npy_intp start, npy_intp begin, npy_intp end) {
                                 spread_strided(share.get(), g.stride[2], begin, end,
                                                image + start);
                             });
                }
            }
        },
        1);
    return result.release();
}
NETWORK_FLOATS(avg_pool_backward, 0)

// ---- adaptive
// -------------------------------------------------------------------------------------

struct Adaptive {
    npy_intp planes, size[3], out[3], area, positions;
    std::vector<npy_intp> shape;

    bool read(const std::vector<npy_intp> &x, const std::vector<npy_intp> &to) {
        int dims = int(to.size()), ndim = int(x.size());
        if (dims < 1 || dims > 3 || dims > ndim) return false;
        shape = x;
        planes = product(x.data(), x.data() + ndim - dims);
        for (int i = 0; i < 3; i++) {
            int j = i - (3 - dims);
            size[i] = j < 0 ? 1 : x[ndim - dims + j];
            out[i] = j < 0 ? 1 : to[j];
            if (out[i] < 0 || size[i] < 1) return false;
            if (j >= 0) shape[ndim - dims + j] = out[i];
        }
        area = size[0] * size[1] * size[2];
        positions = out[0] * out[1] * out[2];
        return true;
    }
    npy_intp start(int axis, npy_intp i) const { return i * size[axis] / out[axis]; }
    npy_intp end(int axis, npy_intp i) const {
        return ((i + 1) * size[axis] + out[axis] - 1) / out[axis];
    }

    // body(place, a0, a1, b0, b1, c0, c1) for each window of one image
    template <class Body>
    INLINE void each(Body body) const {
        npy_intp place = 0;
        for (npy_intp i = 0; i < out[0]; i++)
            for (npy_intp j = 0; j < out[1]; j++)
                for (npy_intp k = 0; k < out[2]; k++)
                    body(place++, start(0, i), end(0, i), start(1, j), end(1, j), start(2, k),
                         end(2, k));
    }
    npy_intp grain() const { return std::max<npy_intp>(1, PARALLEL_FROM / (area + positions + 1)); }
};

template <class T>
CLONES T sum_of(const T *x, npy_intp n) {
    T lanes[16] = {};
    npy_intp i = 0;
    for (; i + 16 <= n; i += 16)
        for (int t = 0; t < 16; t++) lanes[t] += x[i + t];
    T sum = 0;
    for (; i < n; i++) sum += x[i];
    for (int t = 0; t < 16; t++) sum += lanes[t];
    return sum;
}

template <class T>
PyObject *adaptive_avg_pool_(PyObject *const *args) {
    Array x;
    std::vector<npy_intp> out;
    Adaptive g;
    if (!take<T>(args[0], x) || !take_ints(args[1], out) || !g.read(x.dims(), out))
        return declined();
    Array result = Array::empty(g.shape, TypeNum<T>::value);
    if (!result) return nullptr;
    Unlocked unlocked;
    const T *from = x.data<T>();
    T *to = result.data<T>();
    parallel_for(
        g.planes, g.grain(),
        [&](int64_t first, int64_t last) {
            for (npy_intp p = first; p < last; p++) {
                const T *image = from + p * g.area;
                g.each([&](npy_intp place, npy_intp a0, npy_intp a1, npy_intp b0, npy_intp b1,
                           npy_intp c0, npy_intp c1) {
                    T sum = 0;
                    if (c1 - c0 == g.size[2] && b1 - b0 == g.size[1]) {
                        sum = sum_of(image + a0 * g.size[1] * g.size[2],
                                     (a1 - a0) * g.size[1] * g.size[2]);
                    } else {
                        for (npy_intp a = a0; a < a1; a++)
                            for (npy_intp b = b0; b < b1; b++) {
                                const T *row = image + (a * g.size[1] + b) * g.size[2];
                                for (npy_intp c = c0; c < c1; c++) sum += row[c];
                            }
                    }
                    to[p * g.positions + place] = sum / T((a1 - a0) * (b1 - b0) * (c1 - c0));
                });
            }
        },
        1);
    return result.release();
}
NETWORK_FLOATS(adaptive_avg_pool, 0)

template <class T>
PyObject *adaptive_avg_pool_backward_(PyObject *const *args) {
    Array grad;
    std::vector<npy_intp> shape;
    npy_intp dims;
    Adaptive g;
    if (!take<T>(args[0], grad) || !take_ints(args[1], shape) || !take_int(args[2], dims) ||
        dims < 1 || dims > grad.ndim() || shape.size() != size_t(grad.ndim()))
        return declined();
    std::vector<npy_intp> out(grad.shape() + grad.ndim() - dims, grad.shape() + grad.ndim());
    if (!g.read(shape, out) || g.shape != grad.dims()) return declined();
    Array result = Array::empty(shape, TypeNum<T>::value);
    if (!result) return nullptr;
    Unlocked unlocked;
    const T *from = grad.data<T>();
    T *to = result.data<T>();
    parallel_for(
        g.planes, g.grain(),
        [&](int64_t first, int64_t last) {
            for (npy_intp p = first; p < last; p++) {
                T *image = to + p * g.area;
                std::fill(image, image + g.area, T(0));
                g.each([&](npy_intp place, npy_intp a0, npy_intp a1, npy_intp b0, npy_intp b1,
                           npy_intp c0, npy_intp c1) {
                    T share = from[p * g.positions + place] / T((a1 - a0) * (b1 - b0) * (c1 - c0));
                    for (npy_intp a = a0; a < a1; a++)
                        for (npy_intp b = b0; b < b1; b++) {
                            T *row = image + (a * g.size[1] + b) * g.size[2];
                            for (npy_intp c = c0; c < c1; c++) row[c] += share;
                        }
                });
            }
        },
        1);
    return result.release();
}
NETWORK_FLOATS(adaptive_avg_pool_backward, 0)

template <class T>
PyObject *adaptive_max_pool_(PyObject *const *args) {
    Array x;
    std::vector<npy_intp> out;
    Adaptive g;
    if (!take<T>(args[0], x) || !take_ints(args[1], out) || !g.read(x.dims(), out))
        return declined();
    Array values = Array::empty(g.shape, TypeNum<T>::value),
          indices = Array::empty(g.shape, NPY_INT64);
    if (!values || !indices) return nullptr;
    {
        Unlocked unlocked;
        const T *from = x.data<T>();
        T *to = values.data<T>();
        int64_t *where = indices.data<int64_t>();
        parallel_for(
            g.planes, g.grain(),
            [&](int64_t first, int64_t last) {
                for (npy_intp p = first; p < last; p++) {
                    const T *image = from + p * g.area;
                    g.each([&](npy_intp place, npy_intp a0, npy_intp a1, npy_intp b0, npy_intp b1,
                               npy_intp c0, npy_intp c1) {
                        int64_t best = (a0 * g.size[1] + b0) * g.size[2] + c0;
                        T largest = -std::numeric_limits<T>::infinity();
                        for (npy_intp a = a0; a < a1; a++)
                            for (npy_intp b = b0; b < b1; b++)
                                for (npy_intp c = c0; c < c1; c++) {
                                    int64_t at = (a * g.size[1] + b) * g.size[2] + c;
                                    T y = image[at];
                                    if (y > largest || y != y) {
                                        largest = y;
                                        best = at;
                                    }
                                }
                        to[p * g.positions + place] = largest;
                        where[p * g.positions + place] = best;
                    });
                }
            },
            1);
    }
    return results(values, indices);
}
NETWORK_FLOATS(adaptive_max_pool, 0)

// ---- windows at pseudo-random steps --------------------------------------------------------------

// Where the windows along an axis start.
template <class T>
std::vector<npy_intp> fractional_starts(T sample, npy_intp size, npy_intp out, npy_intp kernel) {
    std::vector<npy_intp> starts(out, size - kernel);
    if (out == 1) return starts;
    volatile T alpha = T(size - kernel) / T(out - 1);
    npy_intp base = npy_intp(T(sample * alpha));
    for (npy_intp i = 0; i < out - 1; i++) starts[i] = npy_intp(T((T(i) + sample) * alpha)) - base;
    return starts;
}

// (x, kernel_size, output_size, samples)
template <class T>
PyObject *fractional_max_pool_(PyObject *const *args) {
    Array x, samples;
    std::vector<npy_intp> kernel, out;
    if (!take<T>(args[0], x) || !take_ints(args[1], kernel) || !take_ints(args[2], out) ||
        !take<T>(args[3], samples))
        return declined();
    int dims = int(out.size()), rank = x.ndim();
    if (dims < 2 || dims > 3 || kernel.size() != out.size() || rank < dims + 1) return declined();
    npy_intp planes = product(x.shape(), x.shape() + rank - dims), size[3], k[3], o[3];
    if (samples.size() != planes * dims) return declined();
    std::vector<npy_intp> shape = x.dims();
    for (int d = 0; d < 3; d++) {
        int at = d - (3 - dims);
        size[d] = at < 0 ? 1 : x.dim(rank - dims + at);
        k[d] = at < 0 ? 1 : kernel[at], o[d] = at < 0 ? 1 : out[at];
        if (k[d] < 1 || o[d] < 1 || size[d] < k[d]) return declined();
        if (at >= 0) shape[rank - dims + at] = o[d];
    }
    Array values = Array::empty(shape, TypeNum<T>::value), places = Array::empty(shape, NPY_INT64);
    if (!values || !places) return nullptr;
    bool fits = true;
    {
        Unlocked unlocked;
        npy_intp area = size[0] * size[1] * size[2], count = o[0] * o[1] * o[2];
        const T *from = x.data<T>(), *sample = samples.data<T>();
        for (npy_intp p = 0; p < planes; p++, from += area, sample += dims) {
            std::vector<npy_intp> starts[3];
            for (int d = 0; d < 3; d++) {
                int at = d - (3 - dims);
                starts[d] = at < 0 ? std::vector<npy_intp>(1, 0)
                                   : fractional_starts<T>(sample[dims == 3 ? at : dims - 1 - at],
                                                          size[d], o[d], k[d]);
                for (npy_intp start : starts[d]) fits &= start >= 0 && start + k[d] <= size[d];
            }
            if (!fits) break;
            T *to = values.data<T>() + p * count;
            int64_t *where = places.data<int64_t>() + p * count;
            for (npy_intp a : starts[0])
                for (npy_intp b : starts[1])
                    for (npy_intp c : starts[2]) {
                        npy_intp best = (a * size[1] + b) * size[2] + c;
                        T largest = from[best];
                        for (npy_intp i = a; i < a + k[0]; i++)
                            for (npy_intp j = b; j < b + k[1]; j++) {
                                npy_intp row = (i * size[1] + j) * size[2];
                                for (npy_intp q = row + c; q < row + c + k[2]; q++)
                                    if (from[q] > largest || from[q] != from[q])
                                        largest = from[q], best = q;
                            }
                        *to++ = largest, *where++ = best;
                    }
        }
    }
    return fits ? results(values, places) : declined();
}
NETWORK_FLOATS(fractional_max_pool, 0)

PyMethodDef methods[] = {
    NETWORK_METHOD(fractional_max_pool, 4),
    NETWORK_METHOD(max_pool, 6), NETWORK_METHOD(max_pool_values, 6),          NETWORK_METHOD(max_pool_backward, 4),
    NETWORK_METHOD(max_unpool, 3),        NETWORK_METHOD(max_unpool_backward, 3),
    NETWORK_METHOD(avg_pool, 7),          NETWORK_METHOD(avg_pool_backward, 8),
    NETWORK_METHOD(adaptive_avg_pool, 2), NETWORK_METHOD(adaptive_avg_pool_backward, 3),
    NETWORK_METHOD(adaptive_max_pool, 2), {nullptr, nullptr, 0, nullptr}};

}  // namespace

}  // namespace network

int register_network_pooling(PyObject *module) {
    return PyModule_AddFunctions(module, network::methods);
}
