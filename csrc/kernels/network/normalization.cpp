// Normalisations: flambeau/kernels/network/normalization.py.
//
// Layer and group norm work on rows, each normalised by itself; batch norm on channels, whose
// elements lie in runs of `inner`, one run a sample.
#include "kernels/network/module.h"

namespace network {

namespace {

template <class T>
INLINE T sum_of(npy_intp n, const T *x) {
    T sum = 0;
    NETWORK_SUM(sum)
    for (npy_intp i = 0; i < n; i++) sum += x[i];
    return sum;
}

template <class T>
INLINE T square_sum_of(npy_intp n, const T *x, T mean) {
    T sum = 0;
    NETWORK_SUM(sum)
    for (npy_intp i = 0; i < n; i++) sum += (x[i] - mean) * (x[i] - mean);
    return sum;
}

constexpr npy_intp SHORT = 16;  // runs of fewer elements are not worth a loop of their own

npy_intp grain_of(npy_intp each) { return std::max<npy_intp>(1, PARALLEL_FROM / 4 / (each + 1)); }

// ---- layer norm and rms norm
// ----------------------------------------------------------------------

template <class T>
struct Rows {
    npy_intp n, rows;
    const T *x, *weight, *bias;
    T eps;
};

// mean is null for the root mean square.
template <class T>
CLONES void norm_rows(const Rows<T> &r, npy_intp first, npy_intp last, T *y, T *means, T *scales) {
    npy_intp n = r.n;
    const T *weight = r.weight, *bias = r.bias;
    for (npy_intp row = first; row < last; row++) {
        const T *x = r.x + row * n;
        T *to = y + row * n;
        T mean = means ? sum_of(n, x) / T(n) : T(0);
        T scale = 1 / std::sqrt(square_sum_of(n, x, mean) / T(n) + r.eps);
        if (means) means[row] = mean;
        scales[row] = scale;
        if (weight && bias) {
            INDEPENDENT
            for (npy_intp i = 0; i < n; i++) to[i] = (x[i] - mean) * scale * weight[i] + bias[i];
        } else if (weight) {
            INDEPENDENT
            for (npy_intp i = 0; i < n; i++) to[i] = (x[i] - mean) * scale * weight[i];
        } else if (bias) {
            INDEPENDENT
            for (npy_intp i = 0; i < n; i++) to[i] = (x[i] - mean) * scale + bias[i];
        } else {
            INDEPENDENT
            for (npy_intp i = 0; i < n; i++) to[i] = (x[i] - mean) * scale;
        }
    }
}

// Writes gx, and adds to gw and gb (null for rms norm).
template <class T>
CLONES void norm_backward_rows(const Rows<T> &r, npy_intp first, npy_intp last, const T *g,
                               const T *means, const T *scales, T *gx, T *gw, T *gb) {
    npy_intp n = r.n;
    const T *weight = r.weight;
    for (npy_intp row = first; row < last; row++) {
        const T *x = r.x + row * n, *from = g + row * n;
        T *to = gx + row * n, mean = means ? means[row] : T(0), scale = scales[row], sum = 0,
          dot = 0;
        if (weight) {
            NETWORK_SUM(sum, dot)
            for (npy_intp i = 0; i < n; i++) {
                T h = from[i] * weight[i], z = (x[i] - mean) * scale;
                sum += h;
                dot += h * z;
            }
        } else {
            NETWORK_SUM(sum, dot)
            for (npy_intp i = 0; i < n; i++) {
                T h = from[i], z = (x[i] - mean) * scale;
                sum += h;
                dot += h * z;
            }
        }
        sum = means ? sum / T(n) : T(0);
        dot /= T(n);
        if (weight) {
            INDEPENDENT
            for (npy_intp i = 0; i < n; i++) {
                T z = (x[i] - mean) * scale;
                to[i] = scale * (from[i] * weight[i] - sum - z * dot);
                gw[i] += from[i] * z;
            }
        } else {
            INDEPENDENT
            for (npy_intp i = 0; i < n; i++) {
                T z = (x[i] - mean) * scale;
                to[i] = scale * (from[i] - sum - z * dot);
                gw[i] += from[i] * z;
            }
        }
        if (gb) {
            INDEPENDENT
            for (npy_intp i = 0; i < n; i++) gb[i] += from[i];
        }
    }
}

template <class T>
bool read_rows(Rows<T> &r, const Array &x, npy_intp n_dims, const Array &weight,
               const Array &bias) {
    if (n_dims < 1 || n_dims > x.ndim() || !x.size()) return false;
    r.n = product(x.shape() + x.ndim() - n_dims, x.shape() + x.ndim());
    r.rows = x.size() / r.n;
    r.x = x.data<T>();
    r.weight = weight.data<T>();
    r.bias = bias.data<T>();
    return (!weight || weight.size() == r.n) && (!bias || bias.size() == r.n);
}

std::vector<npy_intp> kept_shape(const Array &x, npy_intp n_dims) {
    std::vector<npy_intp> shape = x.dims();
    std::fill(shape.end() - n_dims, shape.end(), 1);
    return shape;
}

template <class T>
PyObject *layer_norm_(PyObject *const *args) {
    Array x, weight, bias;
    npy_intp n_dims;
    double eps;
    Rows<T> r;
    if (!take<T>(args[0], x) || !take_int(args[1], n_dims) || !take_or_none<T>(args[2], weight) ||
        !take_or_none<T>(args[3], bias) || !take_float(args[4], eps) ||
        !read_rows(r, x, n_dims, weight, bias))
        return declined();
    r.eps = T(eps);
    std::vector<npy_intp> shape = kept_shape(x, n_dims);
    Array y = Array::empty(x.dims(), TypeNum<T>::value),
          mean = Array::empty(shape, TypeNum<T>::value),
          scale = Array::empty(shape, TypeNum<T>::value);
    if (!y || !mean || !scale) return nullptr;
    {
        Unlocked unlocked;
        T *to = y.data<T>(), *m = mean.data<T>(), *s = scale.data<T>();
        parallel_for(r.rows, grain_of(r.n),
                     [&](int64_t first, int64_t last) { norm_rows(r, first, last, to, m, s); });
    }
    return results(y, mean, scale);
}
NETWORK_FLOATS(layer_norm, 0)

template <class T>
PyObject *rms_norm_(PyObject *const *args) {
    Array x, weight, bias;
    npy_intp n_dims;
    double eps = double(std::numeric_limits<T>::epsilon());
    Rows<T> r;
    if (!take<T>(args[0], x) || !take_int(args[1], n_dims) || !take_or_none<T>(args[2], weight) ||
        (args[3] != Py_None && !take_float(args[3], eps)) || !read_rows(r, x, n_dims, weight, bias))
        return declined();
    r.eps = T(eps);
    Array y = Array::empty(x.dims(), TypeNum<T>::value),
          scale = Array::empty(kept_shape(x, n_dims), TypeNum<T>::value);
    if (!y || !scale) return nullptr;
    {
        Unlocked unlocked;
        T *to = y.data<T>(), *s = scale.data<T>();
        parallel_for(r.rows, grain_of(r.n), [&](int64_t first, int64_t last) {
            norm_rows(r, first, last, to, (T *)nullptr, s);
        });
    }
    return results(y, scale);
}
NETWORK_FLOATS(rms_norm, 0)

// Sums that each of several pieces of the rows adds up by itself, so that the result depends on
// nothing but the number of threads.
template <class T, class Body>
void in_pieces(npy_intp rows, npy_intp grain, npy_intp width, T *total, Body body) {
    npy_intp pieces = std::max<npy_intp>(1, std::min<npy_intp>(max_threads(), rows / grain));
    Buffer<T> sums(pieces * width);
    std::fill(sums.get(), sums.get() + pieces * width, T(0));
    parallel_for(
        pieces, 1,
        [&](int64_t first, int64_t last) {
            for (npy_intp p = first; p < last; p++)
                body(rows * p / pieces, rows * (p + 1) / pieces, sums.get() + p * width);
        },
        1);
    std::fill(total, total + width, T(0));
    for (npy_intp p = 0; p < pieces; p++)
        for (npy_intp i = 0; i < width; i++) total[i] += sums[p * width + i];
}

template <class T>
PyObject *rows_backward(PyObject *g_, PyObject *x_, PyObject *dims_, PyObject *mean_,
                        PyObject *scale_, PyObject *weight_) {
    Array g, x, mean, scale, weight;
    npy_intp n_dims;
    Rows<T> r;
    if (!take<T>(g_, g) || !take<T>(x_, x) || !take_int(dims_, n_dims) ||
        (mean_ && !take<T>(mean_, mean)) || !take<T>(scale_, scale) ||
        !take_or_none<T>(weight_, weight) || !same_shape(g, x) ||
        !read_rows(r, x, n_dims, weight, Array()) || scale.size() != r.rows ||
        (mean && mean.size() != r.rows))
        return declined();
    std::vector<npy_intp> shape(x.shape() + x.ndim() - n_dims, x.shape() + x.ndim());
    Array gx = Array::empty(x.dims(), TypeNum<T>::value),
          gw = Array::empty(shape, TypeNum<T>::value), gb;
    if (mean) gb = Array::empty(shape, TypeNum<T>::value);
    if (!gx || !gw || (mean && !gb)) return nullptr;
    {
        Unlocked unlocked;
        npy_intp n = r.n;
        const T *from = g.data<T>(), *m = mean.data<T>(), *s = scale.data<T>();
        T *to = gx.data<T>();
        Buffer<T> sums(2 * n);
        in_pieces(
            r.rows, grain_of(n), 2 * n, sums.get(), [&](npy_intp first, npy_intp last, T *part) {
                norm_backward_rows(r, first, last, from, m, s, to, part, m ? part + n : nullptr);
            });
        std::copy(sums.get(), sums.get() + n, gw.data<T>());
        if (mean) std::copy(sums.get() + n, sums.get() + 2 * n, gb.data<T>());
    }
    return mean ? results(gx, gw, gb) : results(gx, gw);
}

template <class T>
PyObject *layer_norm_backward_(PyObject *const *args) {
    return rows_backward<T>(args[0], args[1], args[2], args[3], args[4], args[5]);
}
NETWORK_FLOATS(layer_norm_backward, 1)

template <class T>
PyObject *rms_norm_backward_(PyObject *const *args) {
    return rows_backward<T>(args[0], args[1], args[2], nullptr, args[3], args[4]);
}
NETWORK_FLOATS(rms_norm_backward, 1)

// ---- batch norm
// -----------------------------------------------------------------------------------

template <class T>
struct Channels {
    npy_intp n, c, inner;
    const T *x, *weight, *bias;
    T eps;

    bool read(const Array &array, const Array &w, const Array &b) {
        if (array.ndim() < 2 || !array.size()) return false;
        n = array.dim(0);
        c = array.dim(1);
        inner = array.size() / (n * c);
        x = array.data<T>();
        weight = w.data<T>();
        bias = b.data<T>();
        return (!w || w.size() == c) && (!b || b.size() == c);
    }
    // Channels side by side are taken together where a run is short.
    npy_intp unit() const { return inner < SHORT ? 16 : 1; }
    npy_intp grain() const { return std::max(unit(), grain_of(n * inner)); }
};

// Mean and biased variance of channels first to last.
template <class T>
CLONES void channel_statistics(const Channels<T> &b, npy_intp first, npy_intp last, T *mean,
                               T *var) {
    T count = T(b.n) * T(b.inner);
    if (b.inner == 1) {
        npy_intp width = last - first;
        T *m = mean + first, *v = var + first;
        for (npy_intp j = 0; j < width; j++) m[j] = v[j] = 0;
        for (npy_intp i = 0; i < b.n; i++) {
            const T *row = b.x + i * b.c + first;
            INDEPENDENT
            for (npy_intp j = 0; j < width; j++) m[j] += row[j];
        }
        for (npy_intp j = 0; j < width; j++) m[j] /= count;
        for (npy_intp i = 0; i < b.n; i++) {
            const T *row = b.x + i * b.c + first;
            INDEPENDENT
            for (npy_intp j = 0; j < width; j++) v[j] += (row[j] - m[j]) * (row[j] - m[j]);
        }
        for (npy_intp j = 0; j < width; j++) v[j] /= count;
        return;
    }
    for (npy_intp k = first; k < last; k++) {
        T sum = 0, squares = 0;
        for (npy_intp i = 0; i < b.n; i++) sum += sum_of(b.inner, b.x + (i * b.c + k) * b.inner);
        T m = sum / count;
        for (npy_intp i = 0; i < b.n; i++)
            squares += square_sum_of(b.inner, b.x + (i * b.c + k) * b.inner, m);
        mean[k] = m;
        var[k] = squares / count;
    }
}

template <class T>
CLONES void channel_apply(const Channels<T> &b, npy_intp first, npy_intp last, const T *mean,
                          const T *scale, T *y) {
    for (npy_intp i = 0; i < b.n; i++) {
        if (b.inner == 1) {
            const T *x = b.x + i * b.c;
            T *to = y + i * b.c;
            INDEPENDENT
            for (npy_intp k = first; k < last; k++) to[k] = (x[k] - mean[k]) * scale[k];
            if (b.bias) {
                INDEPENDENT
                for (npy_intp k = first; k < last; k++) to[k] += b.bias[k];
            }
            continue;
        }
        for (npy_intp k = first; k < last; k++) {
            const T *x = b.x + (i * b.c + k) * b.inner;
            T *to = y + (i * b.c + k) * b.inner, m = mean[k], s = scale[k],
              shift = b.bias ? b.bias[k] : T(0);
            INDEPENDENT
            for (npy_intp j = 0; j < b.inner; j++) to[j] = (x[j] - m) * s + shift;
        }
    }
}

template <class T>
PyObject *batch_norm_(PyObject *const *args) {
    Array x, weight, bias;
    double eps;
    Channels<T> b;
    if (!take<T>(args[0], x) || !take_or_none<T>(args[1], weight) ||
        !take_or_none<T>(args[2], bias) || !take_float(args[3], eps) || !b.read(x, weight, bias))
        return declined();
    int type = TypeNum<T>::value;
    Array y = Array::empty(x.dims(), type), mean = Array::empty({b.c}, type),
          var = Array::empty({b.c}, type), scale = Array::empty({b.c}, type);
    if (!y || !mean || !var || !scale) return nullptr;
    {
        Unlocked unlocked;
        T *m = mean.data<T>(), *v = var.data<T>(), *s = scale.data<T>(), *to = y.data<T>();
        Buffer<T> factor(b.c);
        parallel_for(
            b.c, b.grain(),
            [&](int64_t first, int64_t last) {
                npy_intp step = b.inner == 1 ? last - first : 1;
                for (npy_intp k = first; k < last;
                     k += step) {  // a channel at a time: it stays in the cache
                    channel_statistics(b, k, k + step, m, v);
                    for (npy_intp j = k; j < k + step; j++) {
                        s[j] = 1 / std::sqrt(v[j] + T(eps));
                        factor[j] = b.weight ? s[j] * b.weight[j] : s[j];
                    }
                    channel_apply(b, k, k + step, m, factor.get(), to);
                }
            },
            b.unit());
    }
    return results(y, mean, var, scale);
}
NETWORK_FLOATS(batch_norm, 0)

template <class T>
PyObject *batch_norm_eval_(PyObject *const *args) {
    Array x, mean, var, weight, bias;
    double eps;
    Channels<T> b;
    if (!take<T>(args[0], x) || !take<T>(args[1], mean) || !take<T>(args[2], var) ||
        !take_or_none<T>(args[3], weight) || !take_or_none<T>(args[4], bias) ||
        !take_float(args[5], eps) || !b.read(x, weight, bias) || mean.size() != b.c ||
        var.size() != b.c)
        return declined();
    Array y = Array::empty(x.dims(), TypeNum<T>::value);
    if (!y) return nullptr;
    Unlocked unlocked;
    Buffer<T> factor(b.c);
    for (npy_intp k = 0; k < b.c; k++) {
        factor[k] = 1 / std::sqrt(var.data<T>()[k] + T(eps));
        if (b.weight) factor[k] *= b.weight[k];
    }
    T *to = y.data<T>();
    parallel_for(
        b.c, b.grain(),
        [&](int64_t first, int64_t last) {
            channel_apply(b, first, last, mean.data<T>(), factor.get(), to);
        },
        b.unit());
    return y.release();
}
NETWORK_FLOATS(batch_norm_eval, 0)

// The sums of g and of g * z for each channel.
template <class T>
CLONES void channel_sums(const Channels<T> &b, npy_intp first, npy_intp last, const T *g,
                         const T *mean, const T *scale, T *gb, T *gw) {
    for (npy_intp k = first; k < last; k++) gb[k] = gw[k] = 0;
    for (npy_intp i = 0; i < b.n; i++) {
        if (b.inner == 1) {
            const T *x = b.x + i * b.c, *from = g + i * b.c;
            INDEPENDENT
            for (npy_intp k = first; k < last; k++) {
                gb[k] += from[k];
                gw[k] += from[k] * (x[k] - mean[k]);
            }
            continue;
        }
        for (npy_intp k = first; k < last; k++) {
            const T *x = b.x + (i * b.c + k) * b.inner, *from = g + (i * b.c + k) * b.inner;
            T sum = 0, dot = 0, m = mean[k];
            NETWORK_SUM(sum, dot)
            for (npy_intp j = 0; j < b.inner; j++) {
                sum += from[j];
                dot += from[j] * (x[j] - m);
            }
            gb[k] += sum;
            gw[k] += dot;
        }
    }
    for (npy_intp k = first; k < last; k++) gw[k] *= scale[k];
}

// gx = factor * (g - a - z * b) with a and b per channel.
template <class T>
CLONES void channel_grad(const Channels<T> &c, npy_intp first, npy_intp last, const T *g,
                         const T *mean, const T *scale, const T *factor, const T *a, const T *b,
                         T *gx) {
    for (npy_intp i = 0; i < c.n; i++) {
        if (c.inner == 1) {
            const T *x = c.x + i * c.c, *from = g + i * c.c;
            T *to = gx + i * c.c;
            INDEPENDENT
            for (npy_intp k = first; k < last; k++)
                to[k] = factor[k] * (from[k] - a[k] - (x[k] - mean[k]) * (scale[k] * b[k]));
            continue;
        }
        for (npy_intp k = first; k < last; k++) {
            const T *x = c.x + (i * c.c + k) * c.inner, *from = g + (i * c.c + k) * c.inner;
            T *to = gx + (i * c.c + k) * c.inner, f = factor[k], shift = a[k], m = mean[k],
              s = scale[k] * b[k];
            INDEPENDENT
            for (npy_intp j = 0; j < c.inner; j++) to[j] = f * (from[j] - shift - (x[j] - m) * s);
        }
    }
}

template <class T>
PyObject *channels_backward(const Array &g, const Array &x, const Channels<T> &b, const T *mean,
                            const T *scale, bool training) {
    int type = TypeNum<T>::value;
    Array gx = Array::empty(x.dims(), type), gw = Array::empty({b.c}, type),
          gb = Array::empty({b.c}, type);
    if (!gx || !gw || !gb) return nullptr;
    {
        Unlocked unlocked;
        Buffer<T> factor(b.c), shift(b.c), slope(b.c);
        const T *from = g.data<T>();
        T *to = gx.data<T>(), *w = gw.data<T>(), *sums = gb.data<T>(), count = T(b.n) * T(b.inner);
        parallel_for(
            b.c, b.grain(),
            [&](int64_t first, int64_t last) {
                npy_intp step = b.inner == 1 ? last - first : 1;
                for (npy_intp k = first; k < last; k += step) {
                    channel_sums(b, k, k + step, from, mean, scale, sums, w);
                    for (npy_intp j = k; j < k + step; j++) {
                        factor[j] = b.weight ? scale[j] * b.weight[j] : scale[j];
                        shift[j] = training ? sums[j] / count : T(0);
                        slope[j] = training ? w[j] / count : T(0);
                    }
                    channel_grad(b, k, k + step, from, mean, scale, factor.get(), shift.get(),
                                 slope.get(), to);
                }
            },
            b.unit());
    }
    return results(gx, gw, gb);
}

template <class T>
PyObject *batch_norm_backward_(PyObject *const *args) {
    Array g, x, mean, scale, weight;
    Channels<T> b;
    if (!take<T>(args[0], g) || !take<T>(args[1], x) || !take<T>(args[2], mean) ||
        !take<T>(args[3], scale) || !take_or_none<T>(args[4], weight) || !same_shape(g, x) ||
        !b.read(x, weight, Array()) || mean.size() != b.c || scale.size() != b.c)
        return declined();
    return channels_backward(g, x, b, mean.data<T>(), scale.data<T>(), true);
}
NETWORK_FLOATS(batch_norm_backward, 1)

// ---- group norm
// -----------------------------------------------------------------------------------

// A sample of a group whose channels are single elements, as a row of layer norm.
template <class T>
Rows<T> as_row(const Channels<T> &b, npy_intp channels, npy_intp groups, npy_intp row) {
    npy_intp start = row % groups * channels;
    return {channels, 1, b.x + row * channels, b.weight ? b.weight + start : nullptr,
            b.bias ? b.bias + start : nullptr, b.eps};
}

// Takes short runs for channels of one element each; `memory` holds their weights and biases.
template <class T>
void spread(Channels<T> &b, std::vector<T> &memory) {
    memory.resize(2 * b.c * b.inner);
    T *to = memory.data();
    for (const T **values : {&b.weight, &b.bias}) {
        if (*values)
            for (npy_intp k = 0; k < b.c; k++)
                std::fill(to + k * b.inner, to + (k + 1) * b.inner, (*values)[k]);
        if (*values) *values = to;
        to += b.c * b.inner;
    }
    b.c *= b.inner;
    b.inner = 1;
}

template <class T>
CLONES void group_rows(const Channels<T> &b, npy_intp channels, npy_intp groups, npy_intp first,
                       npy_intp last, T *y, T *means, T *scales) {
    npy_intp count = channels * b.inner;
    for (npy_intp row = first; row < last; row++) {
        if (b.inner == 1) {
            norm_rows(as_row(b, channels, groups, row), 0, 1, y + row * count, means + row,
                      scales + row);
            continue;
        }
        const T *x = b.x + row * count;
        T mean = sum_of(count, x) / T(count),
          scale = 1 / std::sqrt(square_sum_of(count, x, mean) / T(count) + b.eps);
        means[row] = mean;
        scales[row] = scale;
        for (npy_intp k = 0; k < channels; k++) {
            npy_intp channel = row % groups * channels + k;
            T s = b.weight ? scale * b.weight[channel] : scale,
              shift = b.bias ? b.bias[channel] : T(0);
            T *to = y + row * count + k * b.inner;
            const T *from = x + k * b.inner;
            INDEPENDENT
            for (npy_intp j = 0; j < b.inner; j++) to[j] = (from[j] - mean) * s + shift;
        }
    }
}

template <class T>
CLONES void group_backward_rows(const Channels<T> &b, npy_intp channels, npy_intp groups,
                                npy_intp first, npy_intp last, const T *g, const T *means,
                                const T *scales, T *gx, T *gw, T *gb) {
    npy_intp count = channels * b.inner;
    for (npy_intp row = first; row < last; row++) {
        if (b.inner == 1) {
            npy_intp start = row % groups * channels;
            norm_backward_rows(as_row(b, channels, groups, row), 0, 1, g + row * count, means + row,
                               scales + row, gx + row * count, gw + start, gb + start);
            continue;
        }
        T mean = means[row], scale = scales[row], a = 0, c = 0;
        for (npy_intp k = 0; k < channels; k++) {
            npy_intp channel = row % groups * channels + k;
            const T *x = b.x + row * count + k * b.inner, *from = g + row * count + k * b.inner;
            T sum = 0, dot = 0, w = b.weight ? b.weight[channel] : T(1);
            NETWORK_SUM(sum, dot)
            for (npy_intp j = 0; j < b.inner; j++) {
                sum += from[j];
                dot += from[j] * (x[j] - mean);
            }
            dot *= scale;
            gb[channel] += sum;
            gw[channel] += dot;
            a += w * sum;
            c += w * dot;
        }
        a /= T(count);
        c = c / T(count) * scale;
        for (npy_intp k = 0; k < channels; k++) {
            const T *x = b.x + row * count + k * b.inner, *from = g + row * count + k * b.inner;
            T *to = gx + row * count + k * b.inner,
              w = b.weight ? b.weight[row % groups * channels + k] : T(1);
            INDEPENDENT
            for (npy_intp j = 0; j < b.inner; j++)
                to[j] = scale * (from[j] * w - a - (x[j] - mean) * c);
        }
    }
}

template <class T>
PyObject *group_norm_(PyObject *const *args) {
    Array x, weight, bias;
    npy_intp groups;
    double eps;
    Channels<T> b;
    if (!take<T>(args[0], x) || !take_int(args[1], groups) || !take_or_none<T>(args[2], weight) ||
        !take_or_none<T>(args[3], bias) || !take_float(args[4], eps) || !b.read(x, weight, bias) ||
        groups < 1 || b.c % groups)
        return declined();
    b.eps = T(eps);
    int type = TypeNum<T>::value;
    Array y = Array::empty(x.dims(), type), mean = Array::empty({b.n, groups}, type),
          scale = Array::empty({b.n, groups}, type);
    if (!y || !mean || !scale) return nullptr;
    {
        Unlocked unlocked;
        T *to = y.data<T>(), *m = mean.data<T>(), *s = scale.data<T>();
        std::vector<T> memory;
        if (b.inner < SHORT) spread(b, memory);
        npy_intp channels = b.c / groups;
        parallel_for(
            b.n * groups, grain_of(channels * b.inner),
            [&](int64_t first, int64_t last) {
                group_rows(b, channels, groups, first, last, to, m, s);
            },
            1);
    }
    return results(y, mean, scale);
}
NETWORK_FLOATS(group_norm, 0)

template <class T>
PyObject *group_norm_backward_(PyObject *const *args) {
    Array g, x, mean, scale, weight;
    npy_intp groups;
    Channels<T> b;
    if (!take<T>(args[0], g) || !take<T>(args[1], x) || !take_int(args[2], groups) ||
        !take<T>(args[3], mean) || !take<T>(args[4], scale) || !take_or_none<T>(args[5], weight) ||
        !same_shape(g, x) || !b.read(x, weight, Array()) || groups < 1 || b.c % groups ||
        mean.size() != b.n * groups || scale.size() != b.n * groups)
        return declined();
    int type = TypeNum<T>::value;
    Array gx = Array::empty(x.dims(), type), gw = Array::empty({b.c}, type),
          gb = Array::empty({b.c}, type);
    if (!gx || !gw || !gb) return nullptr;
    {
        Unlocked unlocked;
        const T *from = g.data<T>(), *m = mean.data<T>(), *s = scale.data<T>();
        T *to = gx.data<T>();
        npy_intp runs = b.c;
        std::vector<T> memory;
        if (b.inner < SHORT) spread(b, memory);
        npy_intp channels = b.c / groups, each = b.c / runs;
        Buffer<T> sums(2 * b.c);
        in_pieces(b.n * groups, grain_of(channels * b.inner), 2 * b.c, sums.get(),
                  [&](npy_intp first, npy_intp last, T *part) {
                      group_backward_rows(b, channels, groups, first, last, from, m, s, to, part,
                                          part + b.c);
                  });
        for (npy_intp k = 0; k < runs; k++) {
            gw.data<T>()[k] = sum_of(each, sums.get() + k * each);
            gb.data<T>()[k] = sum_of(each, sums.get() + b.c + k * each);
        }
    }
    return results(gx, gw, gb);
}
NETWORK_FLOATS(group_norm_backward, 1)

template <class T>
PyObject *batch_norm_eval_backward_(PyObject *const *args) {
    Array g, x, mean, var, weight;
    double eps;
    Channels<T> b;
    if (!take<T>(args[0], g) || !take<T>(args[1], x) || !take<T>(args[2], mean) ||
        !take<T>(args[3], var) || !take_or_none<T>(args[4], weight) || !take_float(args[5], eps) ||
        !same_shape(g, x) || !b.read(x, weight, Array()) || mean.size() != b.c || var.size() != b.c)
        return declined();
    Buffer<T> scale(b.c);
    for (npy_intp k = 0; k < b.c; k++) scale[k] = 1 / std::sqrt(var.data<T>()[k] + T(eps));
    return channels_backward(g, x, b, mean.data<T>(), scale.get(), false);
}
NETWORK_FLOATS(batch_norm_eval_backward, 1)

PyMethodDef methods[] = {
    NETWORK_METHOD(layer_norm, 5),      NETWORK_METHOD(layer_norm_backward, 6),
    NETWORK_METHOD(rms_norm, 4),        NETWORK_METHOD(rms_norm_backward, 5),
    NETWORK_METHOD(batch_norm, 4),      NETWORK_METHOD(batch_norm_backward, 5),
    NETWORK_METHOD(batch_norm_eval, 6), NETWORK_METHOD(batch_norm_eval_backward, 6),
    NETWORK_METHOD(group_norm, 5),      NETWORK_METHOD(group_norm_backward, 6),
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

}  // namespace network

int register_network_normalization(PyObject *module) {
    return PyModule_AddFunctions(module, network::methods);
}
