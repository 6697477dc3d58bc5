// Resampling: flambeau/kernels/network/resampling.py.
#include "kernels/checked/checked.h"
#include "kernels/network/module.h"

namespace network {

namespace {

// For each place along the axis the elements that it mixes, tap by tap: taps * out entries.
template <class T>
struct Taps {
    npy_intp out, count;
    std::vector<npy_intp> from;
    std::vector<T> weight;  // empty for one element as it is

    bool read(PyObject *indices_, PyObject *weights_, npy_intp size) {
        Array indices, weights;
        if (!take<int64_t>(indices_, indices) || !take_or_none<T>(weights_, weights) ||
            indices.ndim() != 2 || (weights && !same_shape(indices, weights)))
            return false;
        out = indices.dim(0);
        count = indices.dim(1);
        if (!weights && count != 1) return false;
        from.resize(out * count);
        if (weights) weight.resize(out * count);
        for (npy_intp i = 0; i < out; i++)
            for (npy_intp k = 0; k < count; k++) {
                int64_t at = indices.data<int64_t>()[i * count + k];
                if (uint64_t(at) >= uint64_t(size)) return false;
                from[k * out + i] = at;
                if (weights) weight[k * out + i] = weights.data<T>()[i * count + k];
            }
        return true;
    }
};

template <class T>
CLONES void mix_row(npy_intp n, T w, const T *x, bool first, T *to) {
    if (first) {
        INDEPENDENT
        for (npy_intp j = 0; j < n; j++) to[j] = w * x[j];
    } else {
        INDEPENDENT
        for (npy_intp j = 0; j < n; j++) to[j] += w * x[j];
    }
}

template <class T>
CLONES void mix_two(npy_intp n, T v, const T *x, T w, const T *y, T *to) {
    INDEPENDENT
    for (npy_intp j = 0; j < n; j++) to[j] = v * x[j] + w * y[j];
}

// One line, `x` along the last axis.
template <class T>
CLONES void mix_line(npy_intp out, npy_intp count, const npy_intp *from, const T *weight,
                     const T *x, T *to) {
    if (count == 2) {
        INDEPENDENT
        for (npy_intp i = 0; i < out; i++)
            to[i] = weight[i] * x[from[i]] + weight[out + i] * x[from[out + i]];
        return;
    }
    for (npy_intp k = 0; k < count; k++) {
        const npy_intp *at = from + k * out;
        const T *w = weight + k * out;
        if (k == 0) {
            INDEPENDENT
            for (npy_intp i = 0; i < out; i++) to[i] = w[i] * x[at[i]];
        } else {
            INDEPENDENT
            for (npy_intp i = 0; i < out; i++) to[i] += w[i] * x[at[i]];
        }
    }
}

// Along the middle one of three axes.
template <class T>
void mix(const Axis &a, const Taps<T> &taps, const T *from, T *to) {
    npy_intp out = taps.out,
             grain = std::max<npy_intp>(1, PARALLEL_FROM / 2 / (out * a.inner * taps.count + 1));
    parallel_for(
        a.outer, grain,
        [&](int64_t first, int64_t last) {
            for (npy_intp o = first; o < last; o++) {
                const T *image = from + o * a.n * a.inner;
                T *place = to + o * out * a.inner;
                if (a.inner == 1) {
                    if (taps.weight.empty())
                        for (npy_intp i = 0; i < out; i++) place[i] = image[taps.from[i]];
                    else
                        mix_line(out, taps.count, taps.from.data(), taps.weight.data(), image,
                                 place);
                    continue;
                }
                for (npy_intp i = 0; i < out; i++, place += a.inner) {
                    const npy_intp *at = taps.from.data() + i;
                    if (taps.weight.empty()) {
                        std::memcpy(place, image + at[0] * a.inner, sizeof(T) * a.inner);
                    } else if (taps.count == 2) {
                        mix_two(a.inner, taps.weight[i], image + at[0] * a.inner,
                                taps.weight[out + i], image + at[out] * a.inner, place);
                    } else {
                        for (npy_intp k = 0; k < taps.count; k++)
                            mix_row(a.inner, taps.weight[k * out + i],
                                    image + at[k * out] * a.inner, k == 0, place);
                    }
                }
            }
        },
        1);
}

template <class T>
PyObject *resample_axis_(PyObject *const *args) {
    Array x;
    Axis a;
    Taps<T> taps;
    if (!take<T>(args[0], x) || !a.read(x, args[1]) || !taps.read(args[2], args[3], a.n))
        return declined();
    std::vector<npy_intp> shape = x.dims();
    shape[PyLong_AsSsize_t(args[1])] = taps.out;
    Array result = Array::empty(shape, TypeNum<T>::value);
    if (!result) return nullptr;
    Unlocked unlocked;
    mix(a, taps, x.data<T>(), result.data<T>());
    return result.release();
}
NETWORK_FLOATS(resample_axis, 0)

// ---- interpolation of the usual kinds, which checks its arguments -------------------------------

enum Kind { NEAREST, NEAREST_EXACT, LINEAR };

// `_taps` of the twin. A product that is rounded on its own: `volatile` keeps it from being fused.
template <class T>
Taps<T> taps_of(Kind kind, npy_intp size, npy_intp out, bool aligned, double scale) {
    Taps<T> taps;
    taps.out = out, taps.count = kind == LINEAR ? 2 : 1;
    taps.from.resize(out * taps.count);
    if (kind != LINEAR) {
        float step = scale > 0 ? float(1 / scale) : float(size) / float(out);
        for (npy_intp i = 0; i < out; i++) {
            float place = (kind == NEAREST ? float(i) : float(i) + 0.5f) * step;
            taps.from[i] = std::min<npy_intp>(npy_intp(std::floor(place)), size - 1);
        }
        return taps;
    }
    taps.weight.resize(2 * out);
    T step = aligned ? (out > 1 ? T(size - 1) / T(out - 1) : T(0))
                     : (scale > 0 ? T(1 / scale) : T(size) / T(out));
    for (npy_intp i = 0; i < out; i++) {
        volatile T product = aligned ? T(i) * step : (T(i) + T(0.5)) * step;
        T place = std::max<T>(aligned ? product : product - T(0.5), 0);
        npy_intp low = std::min<npy_intp>(npy_intp(place), size - 1);
        T t = std::min<T>(std::max<T>(place - T(low), 0), 1);
        taps.from[i] = low, taps.from[out + i] = std::min<npy_intp>(low + 1, size - 1);
        taps.weight[i] = 1 - t, taps.weight[out + i] = t;
    }
    return taps;
}

template <class T>
PyObject *resized(const Array &x, Kind kind, const npy_intp *size, bool aligned,
                  const double *scales) {
    std::vector<npy_intp> shape = x.dims();
    Array now;
    for (int axis = x.ndim() - 1; axis > 1; axis--) {
        npy_intp own = shape[axis], wanted = size[axis - 2];
        if (kind == LINEAR && own == wanted) continue;
        Taps<T> taps = taps_of<T>(kind, own, wanted, aligned, scales[axis - 2]);
        Axis a;
        a.outer = product(shape.data(), shape.data() + axis), a.n = own;
        a.inner = product(shape.data() + axis + 1, shape.data() + shape.size());
        shape[axis] = wanted;
        Array result = Array::empty(shape, TypeNum<T>::value);
        if (!result) return nullptr;
        mix(a, taps, now ? now.data<T>() : x.data<T>(), result.data<T>());
        now = std::move(result);
    }
    return now ? now.release() : PyArray_NewCopy(x.array(), NPY_CORDER);
}

// (self, output_size, align_corners if linear, a scale for each dimension)
PyObject *upsample(Kind kind, PyObject *const *args, Py_ssize_t count) {
    PyArrayObject *given = checked::floats(args[0]);
    int n = given ? PyArray_NDIM(given) - 2 : 0, before = kind == LINEAR ? 3 : 2;
    npy_intp size[3];
    double scales[3] = {0, 0, 0};
    if (n < 1 || n > 3 || count != before + n || !PyTuple_CheckExact(args[1]) ||
        PyTuple_GET_SIZE(args[1]) != n || !checked::has_elements(given, n + 1) ||
        checked::has_channels_last(given))
        return moving::misfit();
    for (int d = 0; d < n; d++)
        if (!take_int(PyTuple_GET_ITEM(args[1], d), size[d]) || size[d] < 1 ||
            (args[before + d] != Py_None && !take_float(args[before + d], scales[d])))
            return moving::misfit();
    Array x;
    if (!take_any(args[0], x)) return nullptr;
    bool aligned = kind == LINEAR && args[2] == Py_True;
    return PyArray_TYPE(given) == NPY_FLOAT ? resized<float>(x, kind, size, aligned, scales)
                                            : resized<double>(x, kind, size, aligned, scales);
}

template <Kind kind>
PyObject *upsampled(PyObject *, PyObject *const *args, Py_ssize_t count) {
    try {
        return upsample(kind, args, count);
    } catch (const std::bad_alloc &) {
        return PyErr_NoMemory();
    }
}

template <class T>
PyObject *resample_axis_transposed_(PyObject *const *args) {
    Array g;
    Axis a;
    Taps<T> taps;
    npy_intp size;
    if (!take<T>(args[0], g) || !a.read(g, args[1]) || !take_int(args[2], size) ||
        !taps.read(args[3], args[4], size) || taps.out != a.n)
        return declined();
    std::vector<npy_intp> shape = g.dims();
    shape[PyLong_AsSsize_t(args[1])] = size;
    Array result = Array::empty(shape, TypeNum<T>::value);
    if (!result) return nullptr;
    Unlocked unlocked;
    const T *from = g.data<T>();
    T *to = result.data<T>();
    npy_intp out = taps.out,
             grain = std::max<npy_intp>(1, PARALLEL_FROM / 2 / (out * a.inner * taps.count + 1));
    parallel_for(
        a.outer, grain,
        [&](int64_t first, int64_t last) {
            for (npy_intp o = first; o < last; o++) {
                const T *grad = from + o * out * a.inner;
                T *image = to + o * size * a.inner;
                std::fill(image, image + size * a.inner, T(0));
                for (npy_intp k = 0; k < taps.count; k++)
                    for (npy_intp i = 0; i < out; i++) {
                        T w = taps.weight.empty() ? T(1) : taps.weight[k * out + i];
                        npy_intp at = taps.from[k * out + i];
                        if (a.inner == 1)
                            image[at] += w * grad[i];
                        else
                            mix_row(a.inner, w, grad + i * a.inner, false, image + at * a.inner);
                    }
            }
        },
        1);
    return result.release();
}
NETWORK_FLOATS(resample_axis_transposed, 0)

// ---- sampling at points
// ---------------------------------------------------------------------------

enum Padding { ZEROS, BORDER, REFLECTION };

// Points in images of two or three dimensions; `size` and `step` lead with the last one.
struct Sampling {
    npy_intp n, c, area, points, size[3], step[3];
    int dims, taps;  // in each dimension: 1 the nearest pixel, 2 linear, 4 cubic
    bool aligned;
    Padding padding;
};

// The pixel coordinate of a grid coordinate, and its derivative.
template <class T>
INLINE T unnormalized(T coordinate, npy_intp size, bool aligned, T &slope) {
    slope = aligned ? T(size - 1) / 2 : T(size) / 2;
    return aligned ? (coordinate + 1) / 2 * T(size - 1) : ((coordinate + 1) * T(size) - 1) / 2;
}

// A coordinate brought into the image; `slope` is multiplied by the derivative of that.
template <class T>
INLINE T brought_in(T place, npy_intp size, const Sampling &s, T &slope) {
    if (s.padding == ZEROS) {
        place = place == place ? place : T(-1e9);
        return place < T(-1e9) ? T(-1e9) : place > T(1e9) ? T(1e9) : place;
    }
    if (s.padding == REFLECTION) {
        T low = s.aligned ? T(0) : T(-0.5), span = s.aligned ? T(size - 1) : T(size);
        if (span <= 0) {
            slope = 0;
            return 0;
        }
        T offset = place - low;
        if (offset < 0) {
            offset = -offset;
            slope = -slope;
        }
        bool odd = false;
        if (!(offset < span)) {
            odd = std::fmod(std::floor(offset / span), T(2)) != 0;
            offset = std::fmod(offset, span);
        }
        place = odd ? span - offset + low : offset + low;
        if (odd) slope = -slope;
    }
    if (!(place > 0 && place < T(size - 1))) slope = 0;
    if (place != place) return 0;
    return place < 0 ? T(0) : place > T(size - 1) ? T(size - 1) : place;
}

// One of the pixels that a point mixes, along one dimension: -1 is outside of the image.
template <class T>
struct Tap {
    npy_intp index;
    T weight, slope;
};

template <class T>
INLINE Tap<T> tap_at(npy_intp index, npy_intp size, T weight, T slope) {
    return {index >= 0 && index < size ? index : -1, weight, slope};
}

template <class T, int K, int D>
INLINE void read_taps(const Sampling &s, T coordinate, npy_intp size, Tap<T> (&taps)[K], T &slope) {
    T place = unnormalized(coordinate, size, s.aligned, slope);
    if (K < 4) place = brought_in(place, size, s, slope);
    if constexpr (K == 1) {
        taps[0] = tap_at(npy_intp(std::rint(place)), size, T(1), T(0));
        return;
    }
    T low = std::floor(place), t = place - low;
    if constexpr (K == 2) {
        npy_intp index = npy_intp(low);
        taps[0] = tap_at(index, size, D == 3 ? low + 1 - place : 1 - t, T(-1));
        taps[1] = tap_at(index + 1, size, t, T(1));
    }
    if constexpr (K == 4) {  // Keys's kernel, a = -3/4, and its slope
        const T a = T(-0.75);
        auto near = [&](T d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
        auto far = [&](T d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
        auto near_slope = [&](T d) { return 3 * (a + 2) * d * d - 2 * (a + 3) * d; };
        auto far_slope = [&](T d) { return 3 * a * d * d - 10 * a * d + 8 * a; };
        T weights[4] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
        T slopes[4] = {far_slope(t + 1), near_slope(t), -near_slope(1 - t), -far_slope(2 - t)};
        low = low > T(-1e9) ? low < T(1e9) ? low : T(1e9) : T(-1e9);  // NaN is outside
        for (int k = 0; k < K; k++) {
            T unused = 1, index = brought_in(low + T(k - 1), size, s, unused);
            taps[k] = tap_at(npy_intp(index), size, weights[k], slopes[k]);
        }
    }
}

// The taps of a point in each dimension, the last one first.
template <class T, int K, int D>
struct Point {
    Tap<T> taps[D][K];
    T slopes[D];

    INLINE Point(const Sampling &s, const T *at) {
        for (int d = 0; d < D; d++) read_taps<T, K, D>(s, at[d], s.size[d], taps[d], slopes[d]);
    }

    // Calls corner(offset, chosen taps) for each pixel inside the image.
    template <class Corner>
    INLINE void each_corner(const Sampling &s, Corner corner) const {
        const Tap<T> *chosen[D];
        for (int z = 0; z < (D == 3 ? K : 1); z++) {
            chosen[D - 1] = &taps[D - 1][z];
            if (D == 3 && chosen[D - 1]->index < 0) continue;
            for (int y = 0; y < K; y++) {
                chosen[1] = &taps[1][y];
                if (chosen[1]->index < 0) continue;
                for (int x = 0; x < K; x++) {
                    chosen[0] = &taps[0][x];
                    if (chosen[0]->index < 0) continue;
                    npy_intp offset = 0;
                    for (int d = 0; d < D; d++) offset += chosen[d]->index * s.step[d];
                    corner(offset, chosen);
                }
            }
        }
    }
};

template <class T, int K, int D>
CLONES void sample_points(const Sampling &s, const T *image, const T *grid, T *to, npy_intp first,
                          npy_intp last) {
    for (npy_intp p = first; p < last; p++) {
        npy_intp sample = p / s.points;
        const T *from = image + sample * s.c * s.area;
        T *place = to + sample * s.c * s.points + p % s.points;
        Point<T, K, D> point(s, grid + p * D);
        npy_intp offsets[16];
        T weights[16];
        const Tap<T> *rows[16];
        int count = 0;
        point.each_corner(s, [&](npy_intp offset, auto &chosen) {
            T weight = chosen[0]->weight;
            for (int d = 1; K < 4 && d < D; d++) weight *= chosen[d]->weight;
            offsets[count] = offset;
            rows[count] = chosen[1];
            weights[count++] = weight;
        });
        // what is outside counts as 0 times its weight, which NaN makes NaN
        T nothing = K < 4 ? T(0) : T(0) * (point.taps[0][0].weight + point.taps[1][0].weight);
        for (npy_intp k = 0; k < s.c; k++, from += s.area) {
            T sum = nothing;
            if (K < 4) {
                for (int t = 0; t < count; t++) sum += from[offsets[t]] * weights[t];
            } else {  // row by row
                for (int t = 0; t < count;) {
                    T line = 0;
                    const Tap<T> *row = rows[t];
                    for (; t < count && rows[t] == row; t++) line += from[offsets[t]] * weights[t];
                    sum += line * row->weight;
                }
            }
            place[k * s.points] = sum;
        }
    }
}

template <class T, int K, int D>
CLONES void sample_backward(const Sampling &s, const T *g, const T *image, const T *grid, T *gx,
                            T *g_grid, npy_intp first, npy_intp last) {
    for (npy_intp p = first; p < last; p++) {
        npy_intp sample = p / s.points;
        const T *from = image + sample * s.c * s.area,
                *own = g + sample * s.c * s.points + p % s.points;
        T *place = gx + sample * s.c * s.area, along[D] = {};
        Point<T, K, D> point(s, grid + p * D);
        point.each_corner(s, [&](npy_intp offset, auto &chosen) {
            T weight = chosen[0]->weight, dot = 0;
            for (int d = 1; d < D; d++) weight *= chosen[d]->weight;
            for (npy_intp k = 0; k < s.c; k++) {
                place[k * s.area + offset] += own[k * s.points] * weight;
                dot += own[k * s.points] * from[k * s.area + offset];
            }
            for (int d = 0; d < D; d++) {
                T derivative = chosen[d]->slope;
                for (int other = D - 1; other >= 0; other--)
                    if (other != d) derivative *= chosen[other]->weight;
                along[d] += dot * derivative;
            }
        });
        for (int d = 0; d < D; d++) g_grid[p * D + d] = along[d] * point.slopes[d];
    }
}

bool read_sampling(Sampling &s, const Array &x, const Array &grid, PyObject *const *args) {
    s.dims = x.ndim() - 2;
    if ((s.dims != 2 && s.dims != 3) || grid.ndim() != x.ndim() ||
        grid.dim(grid.ndim() - 1) != s.dims || grid.dim(0) != x.dim(0) ||
        !PyUnicode_Check(args[0]) || !PyUnicode_Check(args[1]))
        return false;
    auto is = [](PyObject *text, const char *other) {
        return PyUnicode_CompareWithASCIIString(text, other) == 0;
    };
    s.taps = is(args[0], "nearest") ? 1 : is(args[0], "bilinear") ? 2 : 4;
    if (s.taps == 4 && (s.dims == 3 || !is(args[0], "bicubic"))) return false;
    s.padding = is(args[1], "zeros") ? ZEROS : is(args[1], "border") ? BORDER : REFLECTION;
    s.aligned = PyObject_IsTrue(args[2]);
    s.n = x.dim(0);
    s.c = x.dim(1);
    s.area = 1;
    for (int d = 0; d < s.dims; d++) {
        s.size[d] = x.dim(x.ndim() - 1 - d);
        s.step[d] = s.area;
        s.area *= s.size[d];
    }
    s.points = product(grid.shape() + 1, grid.shape() + 1 + s.dims);
    return s.area > 0;
}

// Calls run with the numbers of taps and dimensions as constants.
template <class Run>
void for_taps(const Sampling &s, Run run) {
    using std::integral_constant;
    integral_constant<int, 1> one;
    integral_constant<int, 2> two;
    integral_constant<int, 3> three;
    if (s.taps == 4) return run(integral_constant<int, 4>(), two);
    if (s.dims == 2) return s.taps == 1 ? run(one, two) : run(two, two);
    return s.taps == 1 ? run(one, three) : run(two, three);
}

template <class T>
PyObject *grid_sample_(PyObject *const *args) {
    Array x, grid;
    Sampling s;
    if (!take<T>(args[0], x) || !take<T>(args[1], grid) || !read_sampling(s, x, grid, args + 2))
        return declined();
    std::vector<npy_intp> shape = grid.dims();
    shape.pop_back();
    shape.insert(shape.begin() + 1, s.c);
    Array result = Array::empty(shape, TypeNum<T>::value);
    if (!result) return nullptr;
    Unlocked unlocked;
    npy_intp grain = std::max<npy_intp>(1, PARALLEL_FROM / 4 / (s.c + 1));
    for_taps(s, [&](auto taps, auto dims) {
        parallel_for(s.n * s.points, grain, [&](int64_t first, int64_t last) {
            sample_points<T, taps, dims>(s, x.data<T>(), grid.data<T>(), result.data<T>(), first,
                                         last);
        });
    });
    return result.release();
}
NETWORK_FLOATS(grid_sample, 0)

template <class T>
PyObject *grid_sample_backward_(PyObject *const *args) {
    Array g, x, grid;
    Sampling s;
    if (!take<T>(args[0], g) || !take<T>(args[1], x) || !take<T>(args[2], grid) ||
        !read_sampling(s, x, grid, args + 3) || g.size() != s.n * s.c * s.points)
        return declined();
    Array gx = Array::zeros(x.dims(), TypeNum<T>::value),
          g_grid = Array::empty(grid.dims(), TypeNum<T>::value);
    if (!gx || !g_grid) return nullptr;
    {
        Unlocked unlocked;
        // Points of one image may meet in a pixel, so a thread takes whole images.
        npy_intp grain = std::max<npy_intp>(1, PARALLEL_FROM / 4 / (s.c * s.points + 1));
        for_taps(s, [&](auto taps, auto dims) {
            parallel_for(
                s.n, grain,
                [&](int64_t first, int64_t last) {
                    sample_backward<T, taps, dims>(s, g.data<T>(), x.data<T>(), grid.data<T>(),
                                                   gx.data<T>(), g_grid.data<T>(),
                                                   first * s.points, last * s.points);
                },
                1);
        });
    }
    return results(gx, g_grid);
}
NETWORK_FLOATS(grid_sample_backward, 1)

#define UPSAMPLE_METHOD(name, kind)                                                              \
    {"network_checked_upsample_" #name, (PyCFunction)(void (*)(void))upsampled<kind>, METH_FASTCALL, \
     nullptr}

// (input, grid, interpolation_mode, padding_mode, align_corners), the modes as numbers
PyObject *grid_sampler(PyObject *const *args) {
    static PyObject *modes[] = {PyUnicode_InternFromString("bilinear"),
                                PyUnicode_InternFromString("nearest"),
                                PyUnicode_InternFromString("bicubic")};
    static PyObject *paddings[] = {PyUnicode_InternFromString("zeros"),
                                   PyUnicode_InternFromString("border"),
                                   PyUnicode_InternFromString("reflection")};
    npy_intp mode, padding;
    PyArrayObject *x = checked::floats(args[0]), *grid = checked::floats(args[1]);
    if (!x || !grid || PyArray_TYPE(x) != PyArray_TYPE(grid) || !take_int(args[2], mode) ||
        !take_int(args[3], padding) || mode < 0 || mode > 2 || padding < 0 || padding > 2 ||
        PyArray_NDIM(x) < 4 || !checked::has_elements(x, PyArray_NDIM(x) - 2))
        return moving::misfit();
    PyObject *given[] = {args[0], args[1], modes[mode], paddings[padding], args[4]};
    PyObject *found = grid_sample(given);
    if (found != Py_NotImplemented) return found;
    Py_DECREF(found);
    return moving::misfit();
}

PyMethodDef methods[] = {UPSAMPLE_METHOD(nearest, NEAREST),
                         UPSAMPLE_METHOD(nearest_exact, NEAREST_EXACT),
                         UPSAMPLE_METHOD(linear, LINEAR), CHECKED_METHOD(grid_sampler, 5),
                         NETWORK_METHOD(resample_axis, 4),
                         NETWORK_METHOD(resample_axis_transposed, 5),
                         NETWORK_METHOD(grid_sample, 5),
                         NETWORK_METHOD(grid_sample_backward, 6),
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

}  // namespace network

int register_network_resampling(PyObject *module) {
    return PyModule_AddFunctions(module, network::methods);
}
