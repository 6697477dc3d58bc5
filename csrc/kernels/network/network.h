// What the kernels of neural networks share: arguments, results, fast exponentials.
//
// Each kernel is a function of Python's fast calling convention, named after its NumPy twin in
// flambeau/kernels. It takes plain arrays of float or double and answers NotImplemented to
// everything else, which leaves the call to the twin.
#pragma once
#include "common.h"
#include "kernels/pointwise/coefficients.h"
#include "kernels/moving/copying.h"
#include "parallel.h"

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace network {

template <class T>
struct TypeNum;
template <>
struct TypeNum<float> {
    static constexpr int value = NPY_FLOAT;
};
template <>
struct TypeNum<double> {
    static constexpr int value = NPY_DOUBLE;
};
template <>
struct TypeNum<int64_t> {
    static constexpr int value = NPY_INT64;
};

// An owned reference to an array with contiguous data, or to nothing.
class Array {
    PyObject *object = nullptr;

 public:
    Array() = default;
    explicit Array(PyObject *owned) : object(owned) {}
    Array(Array &&other) noexcept : object(other.object) { other.object = nullptr; }
    Array &operator=(Array &&other) noexcept {
        std::swap(object, other.object);
        return *this;
    }
    ~Array() { Py_XDECREF(object); }

    static Array empty(int ndim, const npy_intp *shape, int type) {
        return Array(PyArray_SimpleNew(ndim, const_cast<npy_intp *>(shape), type));
    }
    static Array empty(const std::vector<npy_intp> &shape, int type) {
        return empty(int(shape.size()), shape.data(), type);
    }
    static Array zeros(const std::vector<npy_intp> &shape, int type) {
        return Array(
            PyArray_ZEROS(int(shape.size()), const_cast<npy_intp *>(shape.data()), type, 0));
    }

    explicit operator bool() const { return object != nullptr; }
    PyArrayObject *array() const { return (PyArrayObject *)object; }
    int ndim() const { return PyArray_NDIM(array()); }
    npy_intp dim(int i) const { return PyArray_DIM(array(), i); }
    const npy_intp *shape() const { return PyArray_SHAPE(array()); }
    npy_intp size() const { return PyArray_SIZE(array()); }
    std::vector<npy_intp> dims() const { return {shape(), shape() + ndim()}; }
    template <class T>
    T *data() const {
        return object ? (T *)PyArray_DATA(array()) : nullptr;
    }
    PyObject *release() {
        PyObject *result = object;
        object = nullptr;
        return result;
    }
};

inline bool is_plain_array(PyObject *x) { return PyArray_CheckExact(x) && is_plain(x); }

inline int type_of(PyObject *x) {
    return is_plain_array(x) ? PyArray_TYPE((PyArrayObject *)x) : -1;
}

inline bool is_int64(int type) {
    return type == NPY_INT64 || (sizeof(long long) == 8 && type == NPY_LONGLONG) ||
           (sizeof(long) == 8 && type == NPY_LONG);
}

// The array with contiguous data; false where it is not of that type or memory ran out.
inline bool take_any(PyObject *x, Array &to) {
    if (!is_plain_array(x)) return false;
    to = Array((PyObject *)row_major((PyArrayObject *)x));
    return bool(to);
}

template <class T>
bool take(PyObject *x, Array &to) {
    int type = type_of(x);
    bool fits = TypeNum<T>::value == NPY_INT64 ? is_int64(type) : type == TypeNum<T>::value;
    return fits && take_any(x, to);
}

template <class T>
bool take_or_none(PyObject *x, Array &to) {
    return x == Py_None || take<T>(x, to);
}

inline bool take_int(PyObject *x, npy_intp &to) {
    if (!PyLong_Check(x)) return false;
    to = PyLong_AsSsize_t(x);
    if (to != -1 || !PyErr_Occurred()) return true;
    PyErr_Clear();
    return false;
}

// Python ints in a tuple or a list; false for anything else.
inline bool take_ints(PyObject *x, std::vector<npy_intp> &to) {
    if (!PyTuple_Check(x) && !PyList_Check(x)) return false;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(x);
    PyObject **items = PySequence_Fast_ITEMS(x);
    to.resize(n);
    for (Py_ssize_t i = 0; i < n; i++)
        if (!take_int(items[i], to[i])) return false;
    return true;
}

inline bool take_float(PyObject *x, double &to) {
    to = PyFloat_AsDouble(x);
    if (to == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    return true;
}

inline bool same_shape(const Array &a, const Array &b) {
    return a.ndim() == b.ndim() && std::equal(a.shape(), a.shape() + a.ndim(), b.shape());
}

inline npy_intp product(const npy_intp *begin, const npy_intp *end) {
    npy_intp p = 1;
    while (begin != end) p *= *begin++;
    return p;
}

inline npy_intp product(const std::vector<npy_intp> &v) {
    return product(v.data(), v.data() + v.size());
}

inline PyObject *declined() {
    if (PyErr_Occurred()) return nullptr;
    Py_RETURN_NOTIMPLEMENTED;
}

// A tuple of results; null entries become None.
template <class... Arrays>
PyObject *results(Arrays &...arrays) {
    PyObject *items[] = {arrays.release()...};
    Py_ssize_t n = sizeof...(arrays);
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!items[i]) {
            Py_INCREF(Py_None);
            items[i] = Py_None;
        }
        if (tuple)
            PyTuple_SET_ITEM(tuple, i, items[i]);
        else
            Py_DECREF(items[i]);
    }
    return tuple;
}

// Python's lock, let go for as long as this lives (if `worth` it).
class Unlocked {
    PyThreadState *state;

 public:
    explicit Unlocked(bool worth = true) : state(worth ? PyEval_SaveThread() : nullptr) {}
    ~Unlocked() {
        if (state) PyEval_RestoreThread(state);
    }
};

// Memory without initialisation, aligned for vectors.
template <class T>
class Buffer {
    struct Free {
        void operator()(T *p) const { ::operator delete[](p, std::align_val_t(64)); }
    };
    std::unique_ptr<T[], Free> memory;

 public:
    explicit Buffer(int64_t n)
        : memory((T *)::operator new[](sizeof(T) * (n + 1), std::align_val_t(64))) {}
    T *get() const { return memory.get(); }
    T &operator[](int64_t i) const { return memory[i]; }
};

using Call = PyObject *(*)(PyObject *const *args);

// Checks the number of arguments and turns exhausted memory into MemoryError.
template <Call call, int count>
PyObject *entry(PyObject *, PyObject *const *args, Py_ssize_t n) {
    if (n != count) {
        PyErr_Format(PyExc_TypeError, "expected %d arguments, got %zd", count, n);
        return nullptr;
    }
    try {
        return call(args);
    } catch (const std::bad_alloc &) {
        return PyErr_NoMemory();
    }
}

// A method for a function `name_<T>(args)`, chosen by the dtype of argument `key`.
#define NETWORK_FLOATS(name, key)                          \
    static PyObject *name(PyObject *const *args) {         \
        switch (type_of(args[key])) {                      \
            case NPY_FLOAT: return name##_<float>(args);   \
            case NPY_DOUBLE: return name##_<double>(args); \
        }                                                  \
        Py_RETURN_NOTIMPLEMENTED;                          \
    }

#define NETWORK_METHOD(name, count) \
    {"network_" #name, (PyCFunction)(void (*)(void))entry<name, count>, METH_FASTCALL, nullptr}

// Vectorise a loop that sums up or takes maxima, in an order of the compiler's choice.
#ifdef _OPENMP
#define NETWORK_SUM(...) NETWORK_PRAGMA(omp simd reduction(+ : __VA_ARGS__))
#define NETWORK_MAX(...) NETWORK_PRAGMA(omp simd reduction(max : __VA_ARGS__))
#else
#define NETWORK_SUM(...)
#define NETWORK_MAX(...)
#endif
#define NETWORK_PRAGMA(x) _Pragma(#x)

// An array seen as (outer, n, inner) around one axis.
struct Axis {
    npy_intp outer, n, inner;

    bool read(const Array &x, PyObject *axis_) {
        npy_intp axis, ndim = x.ndim();
        if (!take_int(axis_, axis)) return false;
        if (axis < 0) axis += ndim;
        if (axis < 0 || axis >= ndim) return false;
        outer = product(x.shape(), x.shape() + axis);
        n = x.dim(int(axis));
        inner = product(x.shape() + axis + 1, x.shape() + ndim);
        return true;
    }

    // A number is a row of one element.
    bool read_row(const Array &x, PyObject *axis_) {
        npy_intp axis;
        if (x.ndim()) return read(x, axis_);
        outer = n = inner = 1;
        return take_int(axis_, axis) && (axis == 0 || axis == -1);
    }
};

// ---- exponentials that compilers vectorise
// --------------------------------------------------------

// exp(x) within 1 unit in the last place: 2^n * exp(r), |r| <= log(2) / 2, the power in two halves
// so that subnormal results come out right.
INLINE float fast_exp(float x) {
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    float shifted = x * 1.44269504089f + 12582912.0f;
    float n = shifted - 12582912.0f;
    float r = x - n * 0.693145751953125f;
    r = r - n * 1.42860682030941723e-6f;
    float p = EXP32[4];
    p = p * r + EXP32[3];
    p = p * r + EXP32[2];
    p = p * r + EXP32[1];
    p = p * r + EXP32[0];
    p = p * (r * r) + r + 1.0f;
    int32_t k = bits<int32_t>(shifted) - 0x4b400000;
    int32_t half = k >> 1;
    return p * bits<float>((half + 127) << 23) * bits<float>((k - half + 127) << 23);
}

INLINE double fast_exp(double x) {
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    double shifted = x * 1.44269504088896340736 + 6755399441055744.0;
    double n = shifted - 6755399441055744.0;
    double r = x - n * 0.693147180369123816490;
    r = r - n * 1.90821492927058770002e-10;
    double p = EXP64[10];
#pragma GCC unroll 10
    for (int i = 9; i >= 0; i--) p = p * r + EXP64[i];  // unrolled: else callers are no vectors
    p = p * (r * r) + r + 1.0;
    int64_t k = bits<int64_t>(shifted) - 0x4338000000000000;
    int64_t half = k >> 1;
    return p * bits<double>((half + 1023) << 52) * bits<double>((k - half + 1023) << 52);
}

template <class T>
INLINE T fast_sigmoid(T x) {
    return T(1) / (T(1) + fast_exp(-x));
}

// tanh(x) = 1 - 2 / (exp(2 |x|) + 1), with the sign of x; near 0 by its odd continued fraction.
template <class T>
INLINE T fast_tanh(T x) {
    T a = x < 0 ? -x : x;
    T large = T(1) - T(2) / (fast_exp(a + a) + T(1));
    T s = x * x;
    T small = x * (T(34459425) + s * (T(4729725) + s * (T(135135) + s * (T(990) + s)))) /
              (T(34459425) + s * (T(16216200) + s * (T(945945) + s * (T(13860) + s * T(45)))));
    T far = x < 0 ? -large : large;
    return a < T(0.625) ? small : far;
}

}  // namespace network
