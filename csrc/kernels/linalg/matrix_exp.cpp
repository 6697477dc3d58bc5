// exp of matrices: a quotient of polynomials (Padé) of the matrix scaled down, squared again and
// again (Higham, The scaling and squaring method for the matrix exponential revisited, 2005).
// Products and solutions are BLAS's and LAPACK's, whose addresses `kernels/linalg/fortran.py` finds.
#include "common.h"

#include <complex>
#include <vector>

namespace {

struct Approximant {
    int degree;
    double limit;  // up to this norm it is exact
    std::vector<double> coefficients;
};

// b_j = (2m - j)! m! / ((2m)! j! (m - j)!), each from the one before
Approximant approximant(int m, double limit) {
    std::vector<double> b(m + 1, 1.0);
    for (int j = 1; j <= m; j++) b[j] = b[j - 1] * (m - j + 1) / (double(j) * (2 * m - j + 1));
    return {m, limit, b};
}

const Approximant &choose(double norm) {
    static const Approximant all[] = {
        approximant(3, 1.495585217958292e-2), approximant(5, 2.53939833006323e-1),
        approximant(7, 9.504178996162932e-1), approximant(9, 2.097847961257068),
        approximant(13, 5.371920351148152)};
    int i = 0;
    while (i < 4 && norm > all[i].limit) i++;
    return all[i];
}

// `Int` is the integer of the library.
template <class T, class Int>
struct Exponential {
    using Gemm = void (*)(const char *, const char *, const Int *, const Int *, const Int *,
                          const T *, const T *, const Int *, const T *, const Int *, const T *, T *,
                          const Int *, size_t, size_t);
    using Gesv = void (*)(const Int *, const Int *, T *, const Int *, Int *, T *, const Int *, Int *);
    Gemm gemm;
    Gesv gesv;
    Int n;
    size_t count;
    std::vector<T> square, power, next, even, odd;
    std::vector<Int> pivots;

    Exponential(void *gemm, void *gesv, npy_intp n)
        : gemm((Gemm)gemm), gesv((Gesv)gesv), n(Int(n)), count(size_t(n) * n), square(count),
          power(count), next(count), even(count), odd(count), pivots(n) {}

    void multiply(const T *a, const T *b, T *result) {
        const T one(1), zero(0);
        gemm("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, result, &n, 1, 1);
    }

    double norm(const T *x) const {
        double largest = 0;
        for (Int i = 0; i < n; i++) {
            double sum = 0;
            for (Int j = 0; j < n; j++) sum += std::abs(x[size_t(i) * n + j]);
            if (!(sum <= largest)) largest = sum;  // NaN, too
        }
        return largest;
    }

    void operator()(T *x) {
        double size = norm(x);
        const Approximant &p = choose(size);
        int times = 0;
        if (size > p.limit) std::frexp(size / p.limit, &times);
        Int info = 1;
        if (std::isfinite(size)) {
            double scale = std::ldexp(1.0, -times);
            for (size_t i = 0; i < count; i++) x[i] *= scale;
            quotient(x, p);
            gesv(&n, &n, power.data(), &n, pivots.data(), even.data(), &n, &info);
        }
        if (info) {
            for (size_t i = 0; i < count; i++) x[i] = std::numeric_limits<double>::quiet_NaN();
            return;
        }
        for (; times > 0; times--) multiply(even.data(), even.data(), next.data()), even.swap(next);
        std::copy(even.begin(), even.end(), x);
    }

    // The numerator into `even`, the denominator into `power`.
    void quotient(const T *x, const Approximant &p) {
        const std::vector<double> &b = p.coefficients;
        multiply(x, x, square.data());
        power = square;
        for (size_t i = 0; i < count; i++) even[i] = b[2] * power[i], odd[i] = b[3] * power[i];
        for (int k = 4; k < p.degree; k += 2) {
            multiply(power.data(), square.data(), next.data());
            power.swap(next);
            for (size_t i = 0; i < count; i++)
                even[i] += b[k] * power[i], odd[i] += b[k + 1] * power[i];
        }
        for (Int i = 0; i < n; i++) even[size_t(i) * (n + 1)] += 1.0, odd[size_t(i) * (n + 1)] += b[1];
        multiply(x, odd.data(), next.data());
        for (size_t i = 0; i < count; i++) power[i] = even[i] - next[i], even[i] += next[i];
    }
};

template <class T, class Int>
void run(void *gemm, void *gesv, PyArrayObject *array) {
    npy_intp items = PyArray_DIM(array, 0), n = PyArray_DIM(array, 1);
    T *x = (T *)PyArray_DATA(array);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS;
    Exponential<T, Int> exponential(gemm, gesv, n);
    for (npy_intp item = 0; item < items; item++) exponential(x + item * n * n);
    NPY_END_THREADS;
}

// matrix_exp(addresses of gemm and of gesv, are their integers of 64 bits?, matrices), in place
PyObject *matrix_exp(PyObject *, PyObject *args) {
    PyObject *gemm, *gesv;
    PyArrayObject *array;
    int is_wide;
    if (!PyArg_ParseTuple(args, "OOpO!", &gemm, &gesv, &is_wide, &PyArray_Type, &array))
        return nullptr;
    void *first = PyLong_AsVoidPtr(gemm), *second = PyLong_AsVoidPtr(gesv);
    if (!first || !second) return PyErr_Occurred() ? nullptr : PyErr_Format(PyExc_ValueError, "null");
    int type = PyArray_TYPE(array);
    if (PyArray_NDIM(array) != 3 || PyArray_DIM(array, 1) != PyArray_DIM(array, 2) ||
        !PyArray_ISCARRAY(array) || (type != NPY_DOUBLE && type != NPY_CDOUBLE))
        return PyErr_Format(PyExc_ValueError, "expected contiguous square matrices in double");
    if (type == NPY_DOUBLE)
        is_wide ? run<double, int64_t>(first, second, array)
                : run<double, int32_t>(first, second, array);
    else
        is_wide ? run<std::complex<double>, int64_t>(first, second, array)
                : run<std::complex<double>, int32_t>(first, second, array);
    Py_RETURN_NONE;
}

PyMethodDef methods[] = {{"matrix_exp", matrix_exp, METH_VARARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

int register_matrix_exp(PyObject *module) { return PyModule_AddFunctions(module, methods); }
