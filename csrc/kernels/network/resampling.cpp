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

constexpr int BLOCK = 64;  // points at a time

// Points in images of two or three dimensions; `size` and `step` lead with the last one.
struct Sampling {
    npy_intp n, c, area, points, size[3], step[3];
    int dims, taps;  // in each dimension: 1 the nearest pixel, 2 linear, 4 cubic
    bool aligned;
    Padding padding;

    npy_intp blocks() const { return (points + BLOCK - 1) / BLOCK; }
};

// The pixel coordinate of a grid coordinate, and its derivative.
template <class T>
INLINE T unnormalized(T coordinate, npy_intp size, bool aligned, T &slope) {
    slope = aligned ? T(size - 1) / 2 : T(size) / 2;
    return aligned ? (coordinate + 1) / 2 * T(size - 1) : ((coordinate + 1) * T(size) - 1) / 2;
}

// A coordinate reflected at the borders until it is inside.
template <class T>
INLINE T reflected(T place, npy_intp size, bool aligned, T &slope) {
    T low = aligned ? T(0) : T(-0.5), span = aligned ? T(size - 1) : T(size);
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
    if (odd) slope = -slope;
    return odd ? span - offset + low : offset + low;
}

template <class T>
INLINE T kept_near(T place) {  // NaN is far outside
    place = place > T(-1e9) ? place : T(-1e9);
    return place < T(1e9) ? place : T(1e9);
}

// Coordinates brought into the image; `slope` is multiplied by the derivative of that.
template <class T>
CLONES void bring_in(const Sampling &s, npy_intp size, T *__restrict place, T *__restrict slope) {
    constexpr int n = BLOCK;
    T last = T(size - 1);
    if (s.padding == ZEROS) {
        for (int i = 0; i < n; i++) place[i] = kept_near(place[i]);
        return;
    }
    if (s.padding == REFLECTION)
        for (int i = 0; i < n; i++) place[i] = reflected(place[i], size, s.aligned, slope[i]);
    for (int i = 0; i < n; i++) {
        T at = place[i];
        slope[i] = (at > 0) & (at < last) ? slope[i] : T(0);
        at = at > 0 ? at : T(0);
        place[i] = at < last ? at : last;
    }
}

// Of a block of points: the pixels that each mixes along one dimension, tap by tap, their weights
// and the weights' derivatives. A pixel outside of the image has the index of one inside, and
// weight 0 times what it would be.
template <class T>
struct Line {
    int32_t index[4][BLOCK], inside[4][BLOCK];
    T weight[4][BLOCK], derivative[4][BLOCK], slope[BLOCK];

    INLINE void set(int k, int i, T place, npy_intp size) {
        int32_t at = int32_t(place), last = int32_t(size - 1);
        bool in = (at >= 0) & (at <= last);
        index[k][i] = at < 0 ? 0 : at > last ? last : at;
        inside[k][i] = in;
        weight[k][i] = in ? weight[k][i] : weight[k][i] * T(0);
    }
};

// Keys's kernel, a = -3/4, and its slope.
template <class T>
INLINE void cubic_weights(Line<T> &line, int i, T t) {
    const T a = T(-0.75);
    auto near = [&](T d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    auto far = [&](T d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    auto near_slope = [&](T d) { return 3 * (a + 2) * d * d - 2 * (a + 3) * d; };
    auto far_slope = [&](T d) { return 3 * a * d * d - 10 * a * d + 8 * a; };
    line.weight[0][i] = far(t + 1), line.derivative[0][i] = far_slope(t + 1);
    line.weight[1][i] = near(t), line.derivative[1][i] = near_slope(t);
    line.weight[2][i] = near(1 - t), line.derivative[2][i] = -near_slope(1 - t);
    line.weight[3][i] = far(2 - t), line.derivative[3][i] = -far_slope(2 - t);
}

template <class T>
CLONES void read_line(const Sampling &s, const T *grid, int d, int given, Line<T> &line) {
    constexpr int n = BLOCK;  // always: so many are a few vectors
    const npy_intp size = s.size[d];
    const int taps = s.taps, dims = s.dims;
    const bool aligned = s.aligned;
    T place[BLOCK], low[BLOCK];
    for (int i = 0; i < given; i++) place[i] = grid[i * dims + d];
    for (int i = given; i < n; i++) place[i] = 0;
    for (int i = 0; i < n; i++)
        place[i] = unnormalized(place[i], size, aligned, line.slope[i]);
    if (taps < 4) bring_in(s, size, place, line.slope);
    if (taps == 1)
        for (int i = 0; i < n; i++) low[i] = std::rint(place[i]);
    else
        for (int i = 0; i < n; i++) low[i] = std::floor(place[i]);
    if (taps == 1) {
        for (int i = 0; i < n; i++) line.weight[0][i] = 1, line.derivative[0][i] = 0;
    } else if (taps == 2) {
        for (int i = 0; i < n; i++) {
            T t = place[i] - low[i];
            line.weight[0][i] = dims == 3 ? low[i] + 1 - place[i] : 1 - t;
            line.weight[1][i] = t;
            line.derivative[0][i] = -1, line.derivative[1][i] = 1;
        }
    } else {
        for (int i = 0; i < n; i++) {
            cubic_weights(line, i, place[i] - low[i]);
            low[i] = kept_near(low[i]) - 1;
        }
    }
    for (int k = 0; k < taps; k++) {
        T unused[BLOCK];
        for (int i = 0; i < n; i++) place[i] = low[i] + T(k), unused[i] = 1;
        if (taps == 4) bring_in(s, size, place, unused);
        for (int i = 0; i < n; i++) line.set(k, i, place[i], size);
    }
}

// A block of points of one image: the pixels that each mixes, `count` of them.
template <class T>
struct Corners {
    Line<T> lines[3];
    int count;
    int32_t offset[16][BLOCK], inside[16][BLOCK];
    T weight[16][BLOCK];
    bool all_inside;

    // The mixture at one point without any pixel that is outside.
    T at(const T *from, int p) const {
        T sum = 0;
        for (int c = 0; c < count; c++)
            sum += inside[c][p] ? from[offset[c][p]] * weight[c][p] : weight[c][p] * T(0);
        return sum;
    }
};

// The tap of corner c along dimension d.
inline int tap_of(const Sampling &s, int c, int d) {
    for (; d; d--) c /= s.taps;
    return c % s.taps;
}

template <class T>
CLONES void read_corners(const Sampling &s, const T *grid, int given, Corners<T> &corners) {
    constexpr int n = BLOCK;
    for (int d = 0; d < s.dims; d++) read_line(s, grid, d, given, corners.lines[d]);
    corners.count = s.taps * s.taps * (s.dims == 3 ? s.taps : 1);
    int32_t all = 1;
    for (int c = 0; c < corners.count; c++) {
        int32_t *__restrict offset = corners.offset[c], *__restrict inside = corners.inside[c];
        T *__restrict weight = corners.weight[c];
        for (int d = 0; d < s.dims; d++) {
            const Line<T> &line = corners.lines[d];
            int k = tap_of(s, c, d);
            int32_t step = int32_t(s.step[d]);
            if (d == 0) {
                std::copy(line.index[k], line.index[k] + n, offset);
                std::copy(line.inside[k], line.inside[k] + n, inside);
                std::copy(line.weight[k], line.weight[k] + n, weight);
                continue;
            }
            for (int p = 0; p < n; p++) {
                offset[p] += line.index[k][p] * step;
                inside[p] &= line.inside[k][p];
                weight[p] *= line.weight[k][p];
            }
        }
        for (int p = 0; p < n; p++) all &= inside[p];
    }
    corners.all_inside = all;
}

// The same for four pixels of a plane, without derivatives.
template <class T>
CLONES void read_square(const Sampling &s, const T *grid, int given, Corners<T> &corners) {
    constexpr int n = BLOCK;
    const npy_intp width = s.size[0], height = s.size[1];
    const int32_t right = int32_t(width - 1), bottom = int32_t(height - 1);
    const int32_t step = int32_t(s.step[1]);
    const bool aligned = s.aligned;
    T x[n] = {}, y[n] = {}, across[n], down[n];
    for (int p = 0; p < given; p++) x[p] = grid[2 * p], y[p] = grid[2 * p + 1];
    for (int p = 0; p < n; p++) {
        x[p] = unnormalized(x[p], width, aligned, across[p]);
        y[p] = unnormalized(y[p], height, aligned, down[p]);
    }
    bring_in(s, width, x, across);
    bring_in(s, height, y, down);
    int32_t all = 1;
    for (int p = 0; p < n; p++) {
        T low_x = std::floor(x[p]), low_y = std::floor(y[p]);
        T east = x[p] - low_x, south = y[p] - low_y, west = 1 - east, north = 1 - south;
        int32_t x0 = int32_t(low_x), y0 = int32_t(low_y), x1 = x0 + 1, y1 = y0 + 1;
        int32_t in_x0 = (x0 >= 0) & (x0 <= right), in_x1 = (x1 >= 0) & (x1 <= right);
        int32_t in_y0 = (y0 >= 0) & (y0 <= bottom), in_y1 = (y1 >= 0) & (y1 <= bottom);
        west *= T(in_x0), east *= T(in_x1), north *= T(in_y0), south *= T(in_y1);
        x0 = x0 < 0 ? 0 : x0 > right ? right : x0, x1 = x1 < 0 ? 0 : x1 > right ? right : x1;
        y0 = y0 < 0 ? 0 : y0 > bottom ? bottom : y0, y1 = y1 < 0 ? 0 : y1 > bottom ? bottom : y1;
        y0 *= step, y1 *= step;
        corners.offset[0][p] = y0 + x0, corners.offset[1][p] = y0 + x1;
        corners.offset[2][p] = y1 + x0, corners.offset[3][p] = y1 + x1;
        corners.inside[0][p] = in_y0 & in_x0, corners.inside[1][p] = in_y0 & in_x1;
        corners.inside[2][p] = in_y1 & in_x0, corners.inside[3][p] = in_y1 & in_x1;
        corners.weight[0][p] = west * north, corners.weight[1][p] = east * north;
        corners.weight[2][p] = west * south, corners.weight[3][p] = east * south;
        all &= in_x0 & in_x1 & in_y0 & in_y1;
    }
    corners.count = 4;
    corners.all_inside = all;
}

template <class T>
CLONES void mix_one(const int32_t *offset, const T *weight, const T *from, int n, T *to) {
    for (int p = 0; p < n; p++) to[p] = from[offset[p]] * weight[p];
}

template <class T>
CLONES void mix_four(const int32_t (*offset)[BLOCK], const T (*weight)[BLOCK], const T *from, int n,
                     T *to) {
    const int32_t *a = offset[0], *b = offset[1], *c = offset[2], *d = offset[3];
    const T *u = weight[0], *v = weight[1], *w = weight[2], *z = weight[3];
    INDEPENDENT
    for (int p = 0; p < n; p++)
        to[p] = from[a[p]] * u[p] + from[b[p]] * v[p] + from[c[p]] * w[p] + from[d[p]] * z[p];
}

// Adds what four pixels of each point make, times a factor, to `to`.
template <class T>
CLONES void add_four(const int32_t (*offset)[BLOCK], const T (*weight)[BLOCK], const T *factor,
                     const T *from, int n, T *to) {
    const int32_t *a = offset[0], *b = offset[1], *c = offset[2], *d = offset[3];
    const T *u = weight[0], *v = weight[1], *w = weight[2], *z = weight[3];
    INDEPENDENT
    for (int p = 0; p < n; p++)
        to[p] += (from[a[p]] * u[p] + from[b[p]] * v[p] + from[c[p]] * w[p] + from[d[p]] * z[p]) *
                 factor[p];
}

// The mixtures of a block of points; those of 16 pixels row by row.
template <class T>
void mix_corners(const Corners<T> &corners, const T *from, int n, T *to) {
    static const std::vector<T> ones(BLOCK, T(1));
    if (corners.count == 1) {
        mix_one(corners.offset[0], corners.weight[0], from, n, to);
    } else if (corners.count == 4) {
        mix_four(corners.offset, corners.weight, from, n, to);
    } else {
        std::fill(to, to + n, T(0));
        for (int c = 0; c < corners.count; c += 4) {
            bool rows = corners.count == 16;
            add_four(corners.offset + c, rows ? corners.lines[0].weight : corners.weight + c,
                     rows ? corners.lines[1].weight[c / 4] : ones.data(), from, n, to);
        }
    }
    if (!corners.all_inside)  // an infinite pixel may have been multiplied by 0
        for (int p = 0; p < n; p++)
            if (to[p] != to[p]) to[p] = corners.at(from, p);
}

// Calls body(sample, first point, how many) for blocks that do not reach from one image into the
// next.
template <class Body>
void each_block(const Sampling &s, npy_intp first, npy_intp last, Body body) {
    npy_intp blocks = s.blocks();
    for (npy_intp b = first; b < last; b++) {
        npy_intp begin = b % blocks * BLOCK;
        body(b / blocks, begin, int(std::min<npy_intp>(BLOCK, s.points - begin)));
    }
}

// The points of a block that meet the image at all, where they are few: the rest need no arithmetic.
struct Few {
    int count = 0, points[BLOCK];

    template <class T>
    bool find(const Corners<T> &corners, int n) {
        if (corners.all_inside) return false;
        int32_t meets[BLOCK] = {};
        for (int c = 0; c < corners.count; c++)
            for (int p = 0; p < BLOCK; p++) meets[p] |= corners.inside[c][p];
        count = 0;
        for (int p = 0; p < n; p++)
            if (meets[p]) points[count++] = p;
        return count <= n / 4;
    }
};

template <class T>
void sample_points(const Sampling &s, const T *image, const T *grid, T *to, npy_intp first,
                   npy_intp last) {
    Corners<T> corners;
    Few few;
    bool square = s.dims == 2 && s.taps == 2;
    each_block(s, first, last, [&](npy_intp sample, npy_intp begin, int n) {
        (square ? read_square<T> : read_corners<T>)(
            s, grid + (sample * s.points + begin) * s.dims, n, corners);
        const T *from = image + sample * s.c * s.area;
        T *place = to + sample * s.c * s.points + begin;
        bool scattered = few.find(corners, n);
        for (npy_intp k = 0; k < s.c; k++, from += s.area, place += s.points) {
            if (!scattered) {
                mix_corners(corners, from, n, place);
                continue;
            }
            std::fill(place, place + n, T(0));
            for (int i = 0; i < few.count; i++) place[few.points[i]] = corners.at(from, few.points[i]);
        }
    });
}

template <class T>
CLONES void add_products(const int32_t *offset, const T *own, const T *from, int n, T *dot) {
    INDEPENDENT
    for (int p = 0; p < n; p++) dot[p] += own[p] * from[offset[p]];
}

template <class T>
void sample_backward(const Sampling &s, const T *g, const T *image, const T *grid, T *gx,
                     T *g_grid, npy_intp first, npy_intp last) {
    Corners<T> corners;
    Few few;
    each_block(s, first, last, [&](npy_intp sample, npy_intp begin, int n) {
        read_corners(s, grid + (sample * s.points + begin) * s.dims, n, corners);
        bool scattered = few.find(corners, n);
        T dots[16][BLOCK] = {};
        for (npy_intp k = 0; k < s.c; k++) {
            const T *from = image + (sample * s.c + k) * s.area,
                    *own = g + (sample * s.c + k) * s.points + begin;
            T *place = gx + (sample * s.c + k) * s.area;
            for (int c = 0; c < corners.count; c++) {
                const int32_t *offset = corners.offset[c], *inside = corners.inside[c];
                const T *weight = corners.weight[c];
                if (scattered) {
                    for (int i = 0; i < few.count; i++) {
                        int p = few.points[i];
                        if (!inside[p]) continue;
                        if (s.taps > 1) dots[c][p] += own[p] * from[offset[p]];
                        place[offset[p]] += own[p] * weight[p];
                    }
                    continue;
                }
                if (s.taps > 1) add_products(offset, own, from, n, dots[c]);
                for (int p = 0; p < n; p++)
                    if (corners.all_inside || inside[p]) place[offset[p]] += own[p] * weight[p];
            }
        }
        T *slopes = g_grid + (sample * s.points + begin) * s.dims;
        for (int d = 0; d < s.dims; d++) {
            T along[BLOCK] = {};
            for (int c = 0; c < corners.count; c++) {
                const T *derivative = corners.lines[d].derivative[tap_of(s, c, d)];
                const T *others[2] = {nullptr, nullptr};
                for (int other = s.dims - 1, i = 0; other >= 0; other--)
                    if (other != d) others[i++] = corners.lines[other].weight[tap_of(s, c, other)];
                for (int p = 0; p < n; p++) {
                    T product = derivative[p] * others[0][p];
                    if (others[1]) product *= others[1][p];
                    along[p] += corners.inside[c][p] ? dots[c][p] * product : T(0);
                }
            }
            for (int p = 0; p < n; p++) slopes[p * s.dims + d] = along[p] * corners.lines[d].slope[p];
        }
    });
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
    return s.area > 0 && s.area < INT32_MAX;
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
    npy_intp grain = std::max<npy_intp>(1, PARALLEL_FROM / 4 / (BLOCK * s.c + 1));
    parallel_for(s.n * s.blocks(), grain, [&](int64_t first, int64_t last) {
        sample_points(s, x.data<T>(), grid.data<T>(), result.data<T>(), first, last);
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
        parallel_for(
            s.n, grain,
            [&](int64_t first, int64_t last) {
                sample_backward(s, g.data<T>(), x.data<T>(), grid.data<T>(), gx.data<T>(),
                                g_grid.data<T>(), first * s.blocks(), last * s.blocks());
            },
            1);
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
