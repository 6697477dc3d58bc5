// Resampling: flambeau/kernels/resampling.py.
#include "network_module.h"

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
    const T *from = x.data<T>();
    T *to = result.data<T>();
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
    return result.release();
}
NETWORK_FLOATS(resample_axis, 0)

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

struct Sampling {
    npy_intp n, c, height, width, points;
    bool nearest, aligned;
    Padding padding;
};

// The pixel coordinate of a grid coordinate, and its derivative.
template <class T>
INLINE T locate(T coordinate, npy_intp size, bool aligned, Padding padding, T &slope) {
    T place = aligned ? (coordinate + 1) / 2 * T(size - 1) : ((coordinate + 1) * T(size) - 1) / 2;
    slope = aligned ? T(size - 1) / 2 : T(size) / 2;
    if (padding == ZEROS) {
        place = place == place ? place : T(-1e9);
        return place < T(-1e9) ? T(-1e9) : place > T(1e9) ? T(1e9) : place;
    }
    if (padding == REFLECTION) {
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
        T turns = std::floor(offset / span), extra = std::fmod(offset, span);
        bool odd = std::fmod(turns, T(2)) != 0;
        place = odd ? span - extra + low : extra + low;
        if (odd) slope = -slope;
    }
    if (!(place > 0 && place < T(size - 1))) slope = 0;
    if (place != place) return 0;
    return place < 0 ? T(0) : place > T(size - 1) ? T(size - 1) : place;
}

// Calls corner(offset, weight, derivative along x, derivative along y) for the neighbours inside
// the image.
template <class T, class Corner>
INLINE void each_corner(const Sampling &s, T x, T y, Corner corner) {
    auto inside = [&](int64_t i, int64_t j) {
        return i >= 0 && i < s.height && j >= 0 && j < s.width;
    };
    if (s.nearest) {
        int64_t i = int64_t(std::nearbyint(y)), j = int64_t(std::nearbyint(x));
        if (inside(i, j)) corner(i * s.width + j, T(1), T(0), T(0));
        return;
    }
    T left = std::floor(x), top = std::floor(y), u = x - left, v = y - top;
    int64_t j = int64_t(left), i = int64_t(top);
    if (inside(i, j)) corner(i * s.width + j, (1 - u) * (1 - v), v - 1, u - 1);
    if (inside(i, j + 1)) corner(i * s.width + j + 1, u * (1 - v), 1 - v, -u);
    if (inside(i + 1, j)) corner((i + 1) * s.width + j, (1 - u) * v, -v, 1 - u);
    if (inside(i + 1, j + 1)) corner((i + 1) * s.width + j + 1, u * v, v, u);
}

bool read_sampling(Sampling &s, const Array &x, const Array &grid, PyObject *const *args) {
    if (x.ndim() != 4 || grid.ndim() != 4 || grid.dim(3) != 2 || grid.dim(0) != x.dim(0) ||
        !PyUnicode_Check(args[0]) || !PyUnicode_Check(args[1]))
        return false;
    auto is = [](PyObject *text, const char *other) {
        return PyUnicode_CompareWithASCIIString(text, other) == 0;
    };
    s.nearest = is(args[0], "nearest");
    if (!s.nearest && !is(args[0], "bilinear")) return false;
    s.padding = is(args[1], "zeros") ? ZEROS : is(args[1], "border") ? BORDER : REFLECTION;
    s.aligned = PyObject_IsTrue(args[2]);
    s.n = x.dim(0);
    s.c = x.dim(1);
    s.height = x.dim(2);
    s.width = x.dim(3);
    s.points = grid.dim(1) * grid.dim(2);
    return s.height > 0 && s.width > 0;
}

template <class T>
PyObject *grid_sample_(PyObject *const *args) {
    Array x, grid;
    Sampling s;
    if (!take<T>(args[0], x) || !take<T>(args[1], grid) || !read_sampling(s, x, grid, args + 2))
        return declined();
    Array result = Array::empty({s.n, s.c, grid.dim(1), grid.dim(2)}, TypeNum<T>::value);
    if (!result) return nullptr;
    Unlocked unlocked;
    const T *image = x.data<T>(), *at = grid.data<T>();
    T *to = result.data<T>();
    npy_intp area = s.height * s.width;
    parallel_for(s.n * s.points, std::max<npy_intp>(1, PARALLEL_FROM / 4 / (s.c + 1)),
                 [&](int64_t first, int64_t last) {
                     for (npy_intp p = first; p < last; p++) {
                         npy_intp sample = p / s.points, point = p % s.points;
                         const T *from = image + sample * s.c * area;
                         T *place = to + sample * s.c * s.points + point, slope;
                         T column = locate(at[2 * p], s.width, s.aligned, s.padding, slope);
                         T row = locate(at[2 * p + 1], s.height, s.aligned, s.padding, slope);
                         npy_intp offsets[4];
                         T weights[4];
                         int count = 0;
                         each_corner(s, column, row, [&](npy_intp offset, T weight, T, T) {
                             offsets[count] = offset;
                             weights[count++] = weight;
                         });
                         for (npy_intp k = 0; k < s.c; k++, from += area) {
                             T sum = 0;
                             for (int t = 0; t < count; t++) sum += from[offsets[t]] * weights[t];
                             place[k * s.points] = sum;
                         }
                     }
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
        const T *image = x.data<T>(), *at = grid.data<T>(), *grad = g.data<T>();
        T *to = gx.data<T>(), *to_grid = g_grid.data<T>();
        npy_intp area = s.height * s.width;
        // Points of one image may meet in a pixel, so a thread takes whole images.
        parallel_for(
            s.n, std::max<npy_intp>(1, PARALLEL_FROM / 4 / (s.c * s.points + 1)),
            [&](int64_t first, int64_t last) {
                for (npy_intp p = first * s.points; p < last * s.points; p++) {
                    npy_intp sample = p / s.points, point = p % s.points;
                    const T *from = image + sample * s.c * area,
                            *own = grad + sample * s.c * s.points + point;
                    T *place = to + sample * s.c * area, slope_x, slope_y, along_x = 0, along_y = 0;
                    T column = locate(at[2 * p], s.width, s.aligned, s.padding, slope_x);
                    T row = locate(at[2 * p + 1], s.height, s.aligned, s.padding, slope_y);
                    each_corner(s, column, row, [&](npy_intp offset, T weight, T d_x, T d_y) {
                        T dot = 0;
                        for (npy_intp k = 0; k < s.c; k++) {
                            place[k * area + offset] += own[k * s.points] * weight;
                            dot += own[k * s.points] * from[k * area + offset];
                        }
                        along_x += dot * d_x;
                        along_y += dot * d_y;
                    });
                    to_grid[2 * p] = along_x * slope_x;
                    to_grid[2 * p + 1] = along_y * slope_y;
                }
            },
            1);
    }
    return results(gx, g_grid);
}
NETWORK_FLOATS(grid_sample_backward, 1)

PyMethodDef methods[] = {NETWORK_METHOD(resample_axis, 4),
                         NETWORK_METHOD(resample_axis_transposed, 5),
                         NETWORK_METHOD(grid_sample, 5),
                         NETWORK_METHOD(grid_sample_backward, 6),
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

}  // namespace network

int register_network_resampling(PyObject *module) {
    return PyModule_AddFunctions(module, network::methods);
}
