// Fourier transforms of small arrays, by products with the matrices of roots of unity, over any
// dimensions and for any lengths. Large ones are declined: the twins in ops/fft/transforms.py do them
// by the passes of fourier/fourier.cpp. Real and imaginary parts lie apart while it computes.
#include "kernels/linalg/matrices.h"

#include <memory>

namespace linalg {

// The length of a transform; products in all, and of lengths that there are passes for.
constexpr npy_intp LONGEST = 64, WORK = 1 << 16, LITTLE = 1 << 13;

static bool has_passes(npy_intp n) {
    for (npy_intp p : {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31})
        while (n % p == 0) n /= p;
    return n == 1;
}

// exp(-2 pi i j k / n), row by row.
struct Roots {
    std::vector<double> re, im;
    explicit Roots(npy_intp n) : re(n * n), im(n * n) {
        for (npy_intp j = 0; j < n; j++)
            for (npy_intp k = 0; k < n; k++) {
                // In long double, so that cos(2 pi / 3) is -1/2: sums that cancel give zero.
                long double angle = -6.283185307179586476925286766559L * (long double)(j * k % n) / (long double)n;
                re[j * n + k] = double(std::cos(angle)), im[j * n + k] = double(std::sin(angle));
                if (4 * (j * k % n) % n == 0) {  // exactly on an axis
                    int quarter = int(4 * (j * k % n) / n);
                    re[j * n + k] = (quarter == 0) - (quarter == 2);
                    im[j * n + k] = (quarter == 3) - (quarter == 1);
                }
            }
    }
};

static const Roots &roots_of(npy_intp n) {
    static std::unique_ptr<Roots> known[LONGEST + 1];
    if (!known[n]) known[n].reset(new Roots(n));
    return *known[n];
}

// An array whose dimensions are sorted as they lie in memory; all is computed in double precision.
struct Planes {
    int nd = 0;
    npy_intp dims[NPY_MAXDIMS];
    std::vector<double> re, im;
    bool real = true;

    npy_intp size() const {
        npy_intp n = 1;
        for (int d = 0; d < nd; d++) n *= dims[d];
        return n;
    }
};

// Sums and differences of the lines that mirror each other: j and last - j. The middle one has no
// partner, and neither has the first one when the mirror lies behind the row (`last` is no line).
static INLINE void fold(const double *lines, npy_intp last, bool first_alone, npy_intp inner, double *sums,
                        double *differences) {
    for (npy_intp j = 0; 2 * j <= last; j++) {
        bool alone = 2 * j == last || (j == 0 && first_alone);
        const double *one = lines + j * inner, *other = alone ? one : lines + (last - j) * inner;
        for (npy_intp i = 0; i < inner; i++) {
            sums[j * inner + i] = alone ? one[i] : one[i] + other[i];
            differences[j * inner + i] = alone ? 0 : one[i] - other[i];
        }
    }
}

// The first `half` results: the `count` lines of even or of odd results, each times its weight for k.
static INLINE void weigh(const double *const lines[2], npy_intp count, const double *weights, npy_intp n,
                         npy_intp half, npy_intp inner, double *to) {
    std::fill(to, to + half * inner, 0.0);
    if (inner == 1) {  // along the results: next to each other where even and odd ones do not differ
        npy_intp step = lines[0] == lines[1] ? 1 : 2;
        for (npy_intp first = 0; first < step; first++)
            for (npy_intp j = 0; j < count; j++) {
                const double *__restrict row = weights + j * n;
                double *__restrict result = to, value = lines[first][j];
                for (npy_intp k = first; k < half; k += step) result[k] += value * row[k];
            }
        return;
    }
    for (npy_intp k = 0; k < half; k++)
        for (npy_intp j = 0; j < count; j++) {
            const double *__restrict line = lines[k % 2] + j * inner;
            double *__restrict result = to + k * inner, w = weights[k * n + j];
            for (npy_intp i = 0; i < inner; i++) result[i] += line[i] * w;
        }
}

// What the real or the imaginary part of a row of n lines gives: `even` by the cosines, `odd` by the
// sines. The mirror images j and n - j have the same cosines and opposite sines; of the rest, if n is
// even, j and n / 2 - j have the same ones up to a sign, that of (-1)^k.
static INLINE void transform_part(const double *x, npy_intp n, npy_intp inner, const double *cosines,
                                  const double *sines, double *even, double *odd, double *room) {
    npy_intp half = n / 2 + 1, size = half * inner, count = n % 2 ? half : n / 4 + 1;
    double *sums = room, *differences = room + size;
    fold(x, n, true, inner, sums, differences);
    const double *with_cosines[2] = {sums, sums}, *with_sines[2] = {differences, differences};
    if (n % 2 == 0) {
        double *folded = room + 2 * size;
        fold(sums, n / 2, false, inner, folded, folded + size);
        fold(differences, n / 2, false, inner, folded + 2 * size, folded + 3 * size);
        with_cosines[0] = folded, with_cosines[1] = folded + size;
        with_sines[0] = folded + 3 * size, with_sines[1] = folded + 2 * size;
    }
    weigh(with_cosines, count, cosines, n, half, inner, even);
    weigh(with_sines, count, sines, n, half, inner, odd);
}

// Transforms along one dimension to `kept` values, forward or backward. The results k and n - k have
// their parts in common. An eighth of the products, and what is symmetric gives zeros that are exact.
CLONES static void transform_planes(const double *xr, const double *xi, bool real, double *re, double *im,
                                    npy_intp outer, npy_intp n, npy_intp inner, npy_intp kept,
                                    const double *cosines, const double *sines, double sign) {
    npy_intp half = n / 2 + 1, size = half * inner;
    std::vector<double> room(10 * size);  // of zeros, which the imaginary part of real input leaves
    double *even_r = room.data(), *odd_r = even_r + size, *even_i = odd_r + size, *odd_i = even_i + size;
    for (npy_intp o = 0; o < outer; o++, xr += n * inner, xi += n * inner, re += kept * inner, im += kept * inner) {
        transform_part(xr, n, inner, cosines, sines, even_r, odd_r, odd_i + size);
        if (!real) transform_part(xi, n, inner, cosines, sines, even_i, odd_i, odd_i + size);
        for (npy_intp k = 0; k < kept; k++) {
            npy_intp from = (k < half ? k : n - k) * inner;
            double turn = k < half ? sign : -sign;
            for (npy_intp i = 0; i < inner; i++) {
                re[k * inner + i] = even_r[from + i] - turn * odd_i[from + i];
                im[k * inner + i] = even_i[from + i] + turn * odd_r[from + i];
            }
        }
    }
}

static void transform(Planes &x, int dim, bool forward, npy_intp kept) {
    npy_intp outer = 1, inner = 1, n = x.dims[dim];
    for (int d = 0; d < x.nd; d++) (d < dim ? outer : inner) *= d == dim ? 1 : x.dims[d];
    const Roots &roots = roots_of(n);
    std::vector<double> re(outer * kept * inner), im(outer * kept * inner);
    transform_planes(x.re.data(), x.im.data(), x.real, re.data(), im.data(), outer, n, inner, kept,
                        roots.re.data(), roots.im.data(), forward ? 1 : -1);
    x.re.swap(re), x.im.swap(im), x.real = false, x.dims[dim] = kept;
}

// What a call asks for: dimensions from the front, sorted as they lie in memory.
struct Request {
    PyArrayObject *array;
    int nd, count = 0, dims[NPY_MAXDIMS], order[NPY_MAXDIMS], place[NPY_MAXDIMS];
    double factor;

    bool read(PyObject *object, PyObject *given) {
        array = (PyArrayObject *)object;
        if (!is_plain(object) || !PyTuple_Check(given) || !PyTuple_GET_SIZE(given) || !PyArray_SIZE(array)) return false;
        nd = PyArray_NDIM(array);
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); i++) {
            long d = PyLong_AsLong(PyTuple_GET_ITEM(given, i));
            if (d < 0 || d >= nd || count >= nd) return false;
            dims[count++] = int(d);
        }
        return true;
    }
    // The transformed dimensions innermost, each group by falling stride, but maybe the last one last.
    void sort(int transformed, bool keep_last) {
        int n = 0;
        bool chosen[NPY_MAXDIMS] = {};
        for (int i = count - transformed; i < count; i++) chosen[dims[i]] = true;
        auto falling = [&](int a, int b) { return PyArray_STRIDE(array, a) > PyArray_STRIDE(array, b); };
        for (int d = 0; d < nd; d++)
            if (!chosen[d]) order[n++] = d;
        std::stable_sort(order, order + n, falling);
        int first = n;
        for (int i = count - transformed; i < count - keep_last; i++) order[n++] = dims[i];
        std::stable_sort(order + first, order + n, falling);
        if (keep_last) order[n++] = dims[count - 1];
        for (int i = 0; i < nd; i++) place[order[i]] = i;
    }
    // Is there little enough to do?
    bool fits(npy_intp last) const {
        npy_intp size = PyArray_SIZE(array), each = 0;
        bool passes = true;
        for (int i = 0; i < count; i++) {
            npy_intp n = i + 1 == count && last ? last : PyArray_DIM(array, dims[i]);
            if (n > LONGEST) return false;
            each += n;
            passes &= has_passes(n);
        }
        return size * each <= (passes ? LITTLE : WORK);
    }
    bool read_factor(PyObject *normalization, npy_intp last) {
        double n = 1;
        for (int i = 0; i < count; i++) n *= double(i + 1 == count && last ? last : PyArray_DIM(array, dims[i]));
        long which = PyLong_AsLong(normalization);
        factor = which == 0 ? 1 : which == 1 ? 1 / std::sqrt(n) : 1 / n;
        return which >= 0 && which <= 2;
    }
};

template <class T>
static void load(const Request &q, Planes &x, bool complex) {
    x.nd = q.nd, x.real = !complex;
    npy_intp strides[NPY_MAXDIMS], at[NPY_MAXDIMS] = {0};
    for (int i = 0; i < q.nd; i++)
        x.dims[i] = PyArray_DIM(q.array, q.order[i]), strides[i] = PyArray_STRIDE(q.array, q.order[i]);
    npy_intp n = x.size();
    x.re.resize(n), x.im.assign(n, 0);
    const char *from = PyArray_BYTES(q.array);
    for (npy_intp i = 0; i < n; i++) {
        x.re[i] = *(const T *)from;
        if (complex) x.im[i] = *((const T *)from + 1);
        for (int d = q.nd - 1; d >= 0; d--) {
            from += strides[d];
            if (++at[d] < x.dims[d]) break;
            from -= strides[d] * at[d], at[d] = 0;
        }
    }
}

// The result, with its dimensions in their own order.
template <class T>
static PyObject *store(const Request &q, Planes &x, bool complex) {
    int type = sizeof(T) == 4 ? (complex ? NPY_CFLOAT : NPY_FLOAT) : complex ? NPY_CDOUBLE : NPY_DOUBLE;
    PyArrayObject *flat = (PyArrayObject *)PyArray_SimpleNew(q.nd, x.dims, type);
    if (!flat) return nullptr;
    T *to = (T *)PyArray_DATA(flat);
    double factor = q.factor;
    npy_intp n = x.size();
    if (complex)
        for (npy_intp i = 0; i < n; i++) to[2 * i] = T(x.re[i] * factor), to[2 * i + 1] = T(x.im[i] * factor);
    else
        for (npy_intp i = 0; i < n; i++) to[i] = T(x.re[i] * factor);
    npy_intp back[NPY_MAXDIMS];
    for (int d = 0; d < q.nd; d++) back[d] = q.place[d];
    PyArray_Dims turned{back, q.nd};
    PyObject *result = PyArray_Transpose(flat, &turned);
    Py_DECREF(flat);
    return result;
}

// The call (self, dim, normalization, flag) for float and double, or what they are parts of.
using Transform = PyObject *(*)(Request &, bool);
static PyObject *by_type(Args a, Py_ssize_t n, int single, int wide, Transform floats, Transform doubles) {
    Request q;
    if (n != 4 || !q.read(a[0], a[1]) || !q.fits(0) || !q.read_factor(a[2], 0)) return declined();
    int type = PyArray_TYPE(q.array);
    return type == single ? floats(q, is_true(a[3])) : type == wide ? doubles(q, is_true(a[3])) : declined();
}

// _fft_c2c(self, dim, normalization, forward)
template <class T>
static PyObject *c2c_of(Request &q, bool forward) {
    Planes x;
    q.sort(q.count, false);
    load<T>(q, x, true);
    for (int d = q.nd - 1; d >= q.nd - q.count; d--) transform(x, d, forward, x.dims[d]);
    return store<T>(q, x, true);
}

static PyObject *c2c(Args a, Py_ssize_t n, PyObject *) {
    return by_type(a, n, NPY_CFLOAT, NPY_CDOUBLE, c2c_of<float>, c2c_of<double>);
}

// The values that mirror those of the first half of the last dimension.
static void mirror(Planes &x, npy_intp n) {
    npy_intp half = x.dims[x.nd - 1], rows = x.size() / half;
    std::vector<double> re(rows * n), im(rows * n);
    for (npy_intp r = 0; r < rows; r++)
        for (npy_intp k = 0; k < n; k++) {
            npy_intp from = r * half + (k < half ? k : n - k);
            re[r * n + k] = x.re[from], im[r * n + k] = k < half ? x.im[from] : -x.im[from];
        }
    x.re.swap(re), x.im.swap(im), x.dims[x.nd - 1] = n;
}

// _fft_r2c(self, dim, normalization, onesided)
template <class T>
static PyObject *r2c_of(Request &q, bool onesided) {
    Planes x;
    q.sort(q.count, onesided);
    load<T>(q, x, false);
    npy_intp n = x.dims[q.nd - 1];
    transform(x, q.nd - 1, true, n / 2 + 1);
    if (!onesided) mirror(x, n);
    for (int d = q.nd - 2; d >= q.nd - q.count; d--) transform(x, d, true, x.dims[d]);
    return store<T>(q, x, true);
}

static PyObject *r2c(Args a, Py_ssize_t n, PyObject *) {
    return by_type(a, n, NPY_FLOAT, NPY_DOUBLE, r2c_of<float>, r2c_of<double>);
}

// _fft_c2r(self, dim, normalization, last_dim_size): the others first, then the last one to reals
template <class T>
static PyObject *c2r_of(Request &q, npy_intp size) {
    Planes x;
    q.sort(q.count, true);
    load<T>(q, x, true);
    for (int i = q.count - 2; i >= 0; i--) transform(x, q.place[q.dims[i]], false, x.dims[q.place[q.dims[i]]]);
    npy_intp half = x.dims[q.nd - 1], rows = x.size() / half;
    const Roots &roots = roots_of(size);
    std::vector<double> re(rows * size);
    for (npy_intp r = 0; r < rows; r++)
        for (npy_intp k = 0; k < half; k++) {  // an element and its mirror image at once
            bool alone = k == 0 || 2 * k == size;
            double xr = x.re[r * half + k] * (alone ? 1 : 2), xi = x.im[r * half + k] * (alone ? 0 : 2);
            const double *wr = roots.re.data() + k * size, *wi = roots.im.data() + k * size;
            double *to = re.data() + r * size;
            for (npy_intp j = 0; j < size; j++) to[j] += xr * wr[j] + xi * wi[j];
        }
    x.re.swap(re), x.dims[q.nd - 1] = size;
    return store<T>(q, x, false);
}

static PyObject *c2r(Args a, Py_ssize_t n, PyObject *) {
    Request q;
    npy_intp size = n == 4 && PyLong_CheckExact(a[3]) ? PyLong_AsLong(a[3]) : 0;
    if (size < 1 || !q.read(a[0], a[1]) || !q.fits(size) || !q.read_factor(a[2], size) ||
        PyArray_DIM(q.array, q.dims[q.count - 1]) != size / 2 + 1)
        return declined();
    if (PyArray_TYPE(q.array) == NPY_CFLOAT) return c2r_of<float>(q, size);
    return PyArray_TYPE(q.array) == NPY_CDOUBLE ? c2r_of<double>(q, size) : declined();
}

}  // namespace linalg

int register_fourier(PyObject *module) {
    using namespace linalg;
    return make_function(module, "fft_c2c", c2c) || make_function(module, "fft_r2c", r2c) ||
                   make_function(module, "fft_c2r", c2r)
               ? -1
               : 0;
}
