// What kernels on matrices share: routines of BLAS and LAPACK, found by name at their first call, and
// small matrices of arrays, which are the last two dimensions.
#pragma once
#include "kernels/pointwise/kernel.h"
#include "parallel.h"

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <vector>

namespace linalg {

// Has the processor instructions for products of bfloat16?
bool multiplies_brains();


using Args = PyObject *const *;

// A routine for float32 and one for float64.
struct Routine {
    const char *name;
    void *at[2] = {nullptr, nullptr};
    void *find(int type);  // null without an error: there is none
};

extern bool wide_integers;  // have the integers of the library 64 bits?

inline PyObject *declined() {
    PyErr_Clear();
    Py_RETURN_NOTIMPLEMENTED;
}

// Up to SMALL rows and columns BLAS uses one thread of its own accord; LONGEST_SIDE and MOST_ELEMENTS bound what is
// computed here: beyond, several threads of BLAS on one matrix are faster.
constexpr npy_intp SMALL = 32, ONE_THREAD = 256, LONGEST_SIDE = 2048, MOST_ELEMENTS = 512 * 512;

struct Matrices {
    PyArrayObject *array = nullptr;
    npy_intp items = 1, rows = 0, columns = 0;
    int lead = 0;
    npy_intp *dims = nullptr;
    npy_intp row = 0, column = 0;  // strides

    int type() const { return PyArray_TYPE(array); }
    bool empty() const { return !items || !rows || !columns; }
    void turn() { std::swap(rows, columns), std::swap(row, column); }
};

// While it lives BLAS and LAPACK compute by one thread, where matrices of `m` might make them start
// more: threads of ours take a matrix each.
class OneThread {
    bool entered = false;

  public:
    explicit OneThread(const Matrices &m);
    ~OneThread();
};

// Runs body(from, to) for the matrices from `from` up to `to`, in several threads where there is work
// for them. Whether all bodies said that they have succeeded.
template <class Body>
bool each(const Matrices &m, Body body) {
    OneThread one(m);
    double work = double(m.rows + 2) * double(m.columns + 2) * double(std::min(m.rows, m.columns) + 8);
    npy_intp grain = npy_intp(std::max(1.0, 40000 / work));
    std::atomic<bool> good{true};
    PyThreadState *state = work * double(m.items) > 1e5 ? PyEval_SaveThread() : nullptr;
    parallel_for(m.items, grain, [&](int64_t from, int64_t to) {
        if (!body(npy_intp(from), npy_intp(to))) good = false;
    }, 1);
    if (state) PyEval_RestoreThread(state);
    return good;
}

// Reads an array of matrices of float32 or float64, none of which is large.
bool read(PyObject *object, Matrices &m, int type = -1);

// Reads what stands on the right of equations: matrices, or if it has the shape for it one vector for
// each of those of `like`.
bool read_right(PyObject *object, Matrices &m, const Matrices &like, bool *vector);

bool same_lead(const Matrices &a, const Matrices &b);

// New matrices in the leading dimensions of `like`, each column by column; row by row and of zeros;
// vectors of zeros, or single numbers (n < 0), one for each matrix.
PyArrayObject *by_columns(const Matrices &like, npy_intp rows, npy_intp columns);
PyArrayObject *by_rows(const Matrices &like, npy_intp rows, npy_intp columns);
PyArrayObject *one_each(const Matrices &like, npy_intp n, int type);

// A copy of the matrices, column by column; the copy of vectors (as matrices of one column) is in
// their shape.
PyArrayObject *copied(const Matrices &m, bool vector = false);

// Owned references, given as a tuple; if one is null all are dropped.
PyObject *results(std::initializer_list<PyArrayObject *> found);
PyObject *drop(std::initializer_list<PyArrayObject *> found);  // gives `declined`

inline bool is_true(PyObject *x) { return x == Py_True; }
inline char letter(PyObject *text) {
    const char *found = PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : nullptr;
    return found ? *found : 0;
}

// Runs `body<element, integer>(…)` for the type of the array and the integers of the library.
#define DISPATCH(type, body, ...)                                                                     \
    ((type) == NPY_FLOAT                                                                              \
         ? (linalg::wide_integers ? body<float, int64_t>(__VA_ARGS__) : body<float, int32_t>(__VA_ARGS__)) \
         : (linalg::wide_integers ? body<double, int64_t>(__VA_ARGS__) : body<double, int32_t>(__VA_ARGS__)))

// As DISPATCH for body(…, from, to), over all matrices of `m`; bodies say whether they succeed.
#define DISPATCH_EACH(m, body, ...)                                                                   \
    linalg::each(m, [&](npy_intp from, npy_intp to) {                                                 \
        return DISPATCH((m).type(), body, __VA_ARGS__, from, to);                                     \
    })

}  // namespace linalg
