// Fourier transforms: c2c, r2c and c2r of flambeau/kernels/linalg/fourier.py, for lengths whose prime
// factors are at most 13.
#include "kernels/fourier/fourier.h"
#include "kernels/network/module.h"

#include <list>
#include <mutex>
#include <utility>

#if defined(__has_builtin)
#if NETWORK_VECTORS && __has_builtin(__builtin_shufflevector)
#define FOURIER 1
#endif
#endif

#ifdef FOURIER

#define NETWORK_LOOPS "kernels/fourier/fourier_loops.h"
#include "kernels/network/isa.h"

namespace network {

// The plans used last, as long as they are small.
template <class T>
static std::shared_ptr<const Plan<T>> plan_of(int64_t n, bool split) {
    static std::mutex mutex;
    static std::list<std::pair<bool, std::shared_ptr<const Plan<T>>>> kept;
    constexpr int64_t most = 1 << 22;
    std::lock_guard<std::mutex> lock(mutex);
    int64_t total = 0;
    for (auto &entry : kept) {
        if (entry.second->n == n && entry.first == split) return entry.second;
        total += entry.second->elements();
    }
    auto plan = std::make_shared<const Plan<T>>(n, split);
    if (total + plan->elements() > most) kept.clear();
    if (plan->elements() <= most) kept.emplace_front(split, plan);
    return plan;
}

template <class T>
struct ComplexNum;
template <>
struct ComplexNum<float> {
    static constexpr int value = NPY_CFLOAT;
};
template <>
struct ComplexNum<double> {
    static constexpr int value = NPY_CDOUBLE;
};

// (x, axis, forward, factor)
template <class T>
static PyObject *c2c_(PyObject *const *args) {
    Array x;
    Axis axis;
    double factor;
    if (type_of(args[0]) != ComplexNum<T>::value || !take_any(args[0], x) ||
        !axis.read(x, args[1]) || !PyBool_Check(args[2]) || !take_float(args[3], factor) ||
        !Plan<T>::fits(axis.n))
        return declined();
    Array result = Array::empty(x.dims(), ComplexNum<T>::value);
    if (!result) return nullptr;
    if (!x.size()) return result.release();
    bool exchange = args[2] == Py_False;
    const T *from = x.data<T>();
    T *to = result.data<T>();
    Unlocked unlocked;
    auto plan = plan_of<T>(axis.n, axis.inner == 1);
    if (axis.inner == 1)
        NETWORK_BEST(all_rows<T>)(*plan, from, to, axis.outer, exchange, T(factor));
    else
        NETWORK_BEST(all_columns<T>)
            (*plan, from, to, axis.outer, axis.inner, exchange, T(factor));
    return result.release();
}

static PyObject *c2c(PyObject *const *args) {
    if (type_of(args[0]) == NPY_CFLOAT) return c2c_<float>(args);
    return c2c_<double>(args);
}

// (x, factor): the last dimension, of even length
template <class T>
static PyObject *r2c_(PyObject *const *args) {
    Array x;
    double factor;
    if (!take<T>(args[0], x) || !take_float(args[1], factor) || !x.ndim()) return declined();
    std::vector<npy_intp> shape = x.dims();
    npy_intp n = shape.back() / 2;
    if (shape.back() % 2 || !n || !Plan<T>::fits(n)) return declined();
    shape.back() = n + 1;
    Array result = Array::empty(shape, ComplexNum<T>::value);
    if (!result) return nullptr;
    Unlocked unlocked;
    if (x.size())
        NETWORK_BEST(real_rows<T>)
            (*plan_of<T>(n, true), x.data<T>(), result.data<T>(), x.size() / (2 * n), T(factor));
    return result.release();
}
NETWORK_FLOATS(r2c, 0)

// (x, size, factor): the last dimension, to an even length
template <class T>
static PyObject *c2r_(PyObject *const *args) {
    Array x;
    npy_intp size;
    double factor;
    if (type_of(args[0]) != ComplexNum<T>::value || !take_any(args[0], x) ||
        !take_int(args[1], size) || !take_float(args[2], factor) || !x.ndim())
        return declined();
    std::vector<npy_intp> shape = x.dims();
    npy_intp n = size / 2;
    if (size % 2 || size < 2 || shape.back() != n + 1 || !Plan<T>::fits(n)) return declined();
    shape.back() = size;
    Array result = Array::empty(shape, TypeNum<T>::value);
    if (!result) return nullptr;
    Unlocked unlocked;
    if (x.size())
        NETWORK_BEST(rows_to_real<T>)
            (*plan_of<T>(n, true), x.data<T>(), result.data<T>(), x.size() / (n + 1), T(factor));
    return result.release();
}

static PyObject *c2r(PyObject *const *args) {
    if (type_of(args[0]) == NPY_CFLOAT) return c2r_<float>(args);
    return c2r_<double>(args);
}

static PyMethodDef methods[] = {NETWORK_METHOD(c2c, 4), NETWORK_METHOD(r2c, 2),
                                NETWORK_METHOD(c2r, 3), {nullptr, nullptr, 0, nullptr}};

}  // namespace network

int register_network_fourier(PyObject *module) {
    return PyModule_AddFunctions(module, network::methods);
}

#else

int register_network_fourier(PyObject *) { return 0; }

#endif
