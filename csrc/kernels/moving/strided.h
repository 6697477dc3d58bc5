// Moving elements between strided ranges of memory, whatever their type: only their size counts.
#pragma once
#include "common.h"

namespace moving {

struct alignas(8) Sixteen {
    uint64_t low, high;
};

// Calls body(T()) for an unsigned type of that size; false where there is none.
template <class Body>
INLINE bool with_size(npy_intp item, Body body) {
    switch (item) {
        case 1: body(uint8_t()); return true;
        case 2: body(uint16_t()); return true;
        case 4: body(uint32_t()); return true;
        case 8: body(uint64_t()); return true;
        case 16: body(Sixteen()); return true;
    }
    return false;
}

// A range of dimensions that two operands share: extents, and the strides of each in bytes.
struct Range {
    int nd = 0;
    npy_intp shape[NPY_MAXDIMS], to[NPY_MAXDIMS], from[NPY_MAXDIMS];

    void add(npy_intp n, npy_intp to_stride, npy_intp from_stride) {
        shape[nd] = n, to[nd] = to_stride, from[nd] = from_stride;
        nd++;
    }
    npy_intp size() const {
        npy_intp n = 1;
        for (int d = 0; d < nd; d++) n *= shape[d];
        return n;
    }
    // Leaves out dimensions of 1 and merges those that are one for both operands.
    void simplify();
};

void copy(Range range, char *to, const char *from, npy_intp item);  // the operands do not overlap
void fill(Range range, char *to, const char *value, npy_intp item); // `from` strides are not read

// Do the extents of memory of two arrays meet?
bool may_overlap(PyArrayObject *a, PyArrayObject *b);

// A plain array without references to objects.
inline bool is_movable(PyObject *x) {
    return is_plain(x) && !PyDataType_REFCHK(PyArray_DESCR((PyArrayObject *)x)) &&
           PyArray_NDIM((PyArrayObject *)x) <= NPY_MAXDIMS / 2;
}

inline PyArrayObject *empty(PyArrayObject *like, int nd, const npy_intp *shape) {
    Py_INCREF(PyArray_DESCR(like));
    return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR(like), nd,
                                                 const_cast<npy_intp *>(shape), nullptr, nullptr, 0,
                                                 nullptr);
}

inline PyArrayObject *zeros(PyArrayObject *like, int nd, const npy_intp *shape) {
    PyArrayObject *r = empty(like, nd, shape);
    if (r) std::memset(PyArray_DATA(r), 0, PyArray_NBYTES(r));
    return r;
}

// A row-major copy.
PyArrayObject *copied(PyArrayObject *x);

// While it lives, a kernel is called whose result goes to that array, which is an operand of it.
class Writing {
    PyArrayObject *before;

 public:
    explicit Writing(PyArrayObject *to);
    Writing(const Writing &) = delete;
    ~Writing();
};

// What a kernel changes to make its result of x: a copy, or x itself where the result goes there
// anyway. To be asked for when nothing can fail any more.
PyArrayObject *to_update(PyArrayObject *x);
// The same for a result that is like x, but does not begin as a copy of it.
PyArrayObject *to_overwrite(PyArrayObject *x);

// Python's ints in a tuple; -1 for anything else.
int read_ints(PyObject *tuple, npy_intp *to);

// The array that has the memory that `x` looks at.
inline PyArrayObject *root_of(PyArrayObject *x) {
    while (PyArray_BASE(x) && PyArray_CheckExact(PyArray_BASE(x))) x = (PyArrayObject *)PyArray_BASE(x);
    return x;
}

// The strides of `x` seen with another shape of as many elements; false where there are none.
bool reshaped_strides(PyArrayObject *x, int nd, const npy_intp *shape, npy_intp *strides);

// (extents, strides, offset) of an array in the memory that it lies in, in elements; null without an
// error: that is not a tensor's.
PyObject *geometry_of(PyArrayObject *x);

// (x, padding, mode), of rearranging.cpp; NotImplemented for what it has no loop for.
PyObject *mirror_pad(PyObject *const *args, Py_ssize_t n, PyObject *names);

// Raised for arguments that do not fit: whoever called then says so in PyTorch's words.
extern PyObject *Misfit;
PyObject *misfit();

inline PyObject *declined() { Py_RETURN_NOTIMPLEMENTED; }

}  // namespace moving
