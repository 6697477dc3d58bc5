// Distances between rows, and their gradients: flambeau/kernels/linalg/distances.py.
#include "kernels/network/module.h"

namespace network {

namespace {

template <class T>
INLINE T distance(const T *x, const T *y, npy_intp n, double p) {
    T total = 0;
    if (p == 2) {
        NETWORK_SUM(total)
        for (npy_intp i = 0; i < n; i++) total += (x[i] - y[i]) * (x[i] - y[i]);
        return std::sqrt(total);
    }
    if (p == 0) {
        for (npy_intp i = 0; i < n; i++) total += x[i] != y[i];
        return total;
    }
    if (p == 1) {
        NETWORK_SUM(total)
        for (npy_intp i = 0; i < n; i++) total += std::abs(x[i] - y[i]);
        return total;
    }
    if (std::isinf(p)) {
        for (npy_intp i = 0; i < n; i++) {
            T size = std::abs(x[i] - y[i]);
            total = size > total || size != size ? size : total;
        }
        return total;
    }
    for (npy_intp i = 0; i < n; i++) total += std::pow(std::abs(x[i] - y[i]), T(p));
    return std::pow(total, T(1 / p));
}

// The distances of one row to others.
template <class T>
CLONES void distances(const T *x, const T *y, npy_intp rows, npy_intp width, double p, T *to) {
    for (npy_intp j = 0; j < rows; j++) to[j] = distance(x, y + j * width, width, p);
}

// Euclidean ones of short rows, whose elements stand side by side in `turned`: (width, rows),
// `step` apart.
template <class T>
CLONES void short_distances(const T *x, const T *turned, npy_intp step, npy_intp rows, npy_intp width, T *to) {
    for (npy_intp j = 0; j < rows; j++) to[j] = (x[0] - turned[j]) * (x[0] - turned[j]);
    for (npy_intp k = 1; k < width; k++) {
        const T *y = turned + k * step, a = x[k];
        INDEPENDENT
        for (npy_intp j = 0; j < rows; j++) to[j] += (a - y[j]) * (a - y[j]);
    }
    for (npy_intp j = 0; j < rows; j++) to[j] = std::sqrt(to[j]);
}
constexpr npy_intp SHORT = 16;  // for matrices: from here on their product is faster
constexpr npy_intp TURNED = 512;  // for the pairs of one

template <class T>
INLINE T sign(T x) { return T((x > 0) - (x < 0)); }

// Adds the gradient of one distance, times g, to both rows (`gy` may be null).
template <class T>
void add_slopes(const T *x, const T *y, npy_intp n, double p, T distance, T g, T *gx, T *gy) {
    if (p == 0 || (distance == 0 && p != 1)) return;
    T share = 1;
    if (std::isinf(p)) {
        npy_intp ties = 0;
        for (npy_intp i = 0; i < n; i++) ties += std::abs(x[i] - y[i]) == distance;
        share = T(1) / T(ties > 1 ? ties : 1);
    }
    for (npy_intp i = 0; i < n; i++) {
        T d = x[i] - y[i], slope;
        if (p == 2) slope = d / distance;
        else if (p == 1) slope = sign(d);
        else if (std::isinf(p)) slope = std::abs(d) == distance ? sign(d) * share : T(0);
        else slope = d == 0 ? T(0) : sign(d) * std::pow(std::abs(d) / distance, T(p - 1));
        gx[i] += g * slope;
        if (gy) gy[i] -= g * slope;
    }
}

template <class Body>
bool floating(int type, Body body) {
    if (type == NPY_FLOAT) body(float());
    else if (type == NPY_DOUBLE) body(double());
    else return false;
    return true;
}

// (x, p): of all pairs of rows
PyObject *pdist(PyObject *const *a) {
    Array x;
    double p;
    if (!take_any(a[0], x) || x.ndim() != 2 || !take_float(a[1], p) ||
        p < 0)
        return declined();
    npy_intp rows = x.dim(0), width = x.dim(1), pairs = rows * (rows - 1) / 2;
    int type = PyArray_TYPE(x.array());
    Array found = Array::empty(1, &pairs, type);
    if (!found) return nullptr;
    bool done = floating(type, [&](auto zero) {
        using T = decltype(zero);
        const T *data = x.data<T>();
        T *to = found.data<T>();
        bool turns = p == 2 && width && width <= TURNED;
        std::vector<T> turned(turns ? rows * width : 0);
        for (npy_intp i = 0; turns && i < rows; i++)
            for (npy_intp k = 0; k < width; k++) turned[k * rows + i] = data[i * width + k];
        for (npy_intp i = 0; i + 1 < rows; i++, to += rows - i) {
            const T *row = data + i * width;
            if (turns) short_distances(row, turned.data() + i + 1, rows, rows - 1 - i, width, to);
            else distances(row, row + width, rows - 1 - i, width, p, to);
        }
    });
    return done ? found.release() : declined();
}

// (grad, x, distances, p)
PyObject *pdist_backward(PyObject *const *a) {
    Array g, x, lengths;
    double p;
    if (!take_any(a[1], x) || x.ndim() != 2 || !take_float(a[3], p))
        return declined();
    int type = PyArray_TYPE(x.array());
    if (type_of(a[0]) != type || type_of(a[2]) != type || !take_any(a[0], g) ||
        !take_any(a[2], lengths))
        return declined();
    npy_intp rows = x.dim(0), width = x.dim(1), at = 0;
    Array found = Array::zeros(x.dims(), type);
    if (!found) return nullptr;
    bool done = floating(type, [&](auto zero) {
        using T = decltype(zero);
        const T *data = x.data<T>();
        T *to = found.data<T>();
        for (npy_intp i = 0; i < rows; i++)
            for (npy_intp j = i + 1; j < rows; j++, at++)
                add_slopes(data + i * width, data + j * width, width, p, lengths.data<T>()[at],
                           g.data<T>()[at], to + i * width, to + j * width);
    });
    return done ? found.release() : declined();
}

// Two batches of matrices with rows of the same width.
struct Pair {
    Array x, y;
    npy_intp batch, m, n, width;
    int type;

    bool read(PyObject *x_, PyObject *y_) {
        if (!take_any(x_, x) || !take_any(y_, y)) return false;
        type = PyArray_TYPE(x.array());
        int ndim = x.ndim();
        if (PyArray_TYPE(y.array()) != type || ndim < 2 || y.ndim() != ndim ||
            !std::equal(x.shape(), x.shape() + ndim - 2, y.shape()) || x.dim(ndim - 1) != y.dim(ndim - 1))
            return false;
        batch = product(x.shape(), x.shape() + ndim - 2);
        m = x.dim(ndim - 2), n = y.dim(ndim - 2), width = x.dim(ndim - 1);
        return true;
    }
};

// (x, y, p): of each row to each row; by a product of matrices the twin does it
PyObject *cdist(PyObject *const *a) {
    Pair r;
    double p;
    if (!r.read(a[0], a[1]) || !take_float(a[2], p) || p < 0 ||
        (p == 2 && (r.m > 25 || r.n > 25) && !(r.width && r.width <= SHORT)))
        return declined();
    std::vector<npy_intp> shape = r.x.dims();
    shape.back() = r.n;
    Array found = Array::empty(shape, r.type);
    if (!found) return nullptr;
    bool done = floating(r.type, [&](auto zero) {
        using T = decltype(zero);
        const T *x = r.x.data<T>(), *y = r.y.data<T>();
        T *to = found.data<T>();
        bool turns = p == 2 && r.width && r.width <= SHORT && r.m > 8;
        std::vector<T> turned(turns ? r.batch * r.n * r.width : 0);
        for (npy_intp b = 0; turns && b < r.batch; b++)
            for (npy_intp j = 0; j < r.n; j++)
                for (npy_intp k = 0; k < r.width; k++)
                    turned[(b * r.width + k) * r.n + j] = y[(b * r.n + j) * r.width + k];
        npy_intp work = r.n * r.width;
        parallel_for(r.batch * r.m, PARALLEL_FROM / 2 / (work + 1) + 1, [&](int64_t begin, int64_t end) {
            for (npy_intp row = begin; row < end; row++) {
                npy_intp first = row / r.m * work;
                if (turns) short_distances(x + row * r.width, turned.data() + first, r.n, r.n, r.width, to + row * r.n);
                else distances(x + row * r.width, y + first, r.n, r.width, p, to + row * r.n);
            }
        });
    });
    return done ? found.release() : declined();
}

// (grad, x, y, distances, p)
PyObject *cdist_backward(PyObject *const *a) {
    Pair r;
    Array g, lengths;
    double p;
    if (!r.read(a[1], a[2]) || !take_float(a[4], p) ||
        (p == 2 && (r.m > 25 || r.n > 25)) || type_of(a[0]) != r.type ||
        type_of(a[3]) != r.type || !take_any(a[0], g) || !take_any(a[3], lengths))
        return declined();
    Array gx = Array::zeros(r.x.dims(), r.type);
    if (!gx) return nullptr;
    bool done = floating(r.type, [&](auto zero) {
        using T = decltype(zero);
        const T *x = r.x.data<T>(), *y = r.y.data<T>();
        for (npy_intp row = 0; row < r.batch * r.m; row++)
            for (npy_intp j = 0; j < r.n; j++) {
                npy_intp other = row / r.m * r.n + j, at = row * r.n + j;
                add_slopes(x + row * r.width, y + other * r.width, r.width, p, lengths.data<T>()[at],
                           g.data<T>()[at], gx.data<T>() + row * r.width, (T *)nullptr);
            }
    });
    return done ? gx.release() : declined();
}

PyMethodDef methods[] = {NETWORK_METHOD(cdist, 3),
                         NETWORK_METHOD(cdist_backward, 5),
                         NETWORK_METHOD(pdist, 2),
                         NETWORK_METHOD(pdist_backward, 4),
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

}  // namespace network

int register_network_distances(PyObject *module) {
    return PyModule_AddFunctions(module, network::methods);
}
