// Reading and writing where arrays of integers, or a mask, say: the loops of `x[index]`.
#pragma once
#include "kernels/moving/strided.h"

#include <vector>

namespace moving {

constexpr int MAX_INDICES = 8;

// Places of an array with extents, strides and data of its own: a view that may have no array yet.
struct Target {
    int nd;
    const npy_intp *shape, *strides;
    char *data;
    npy_intp item;
};

// What indices say of a target: the offset of each place, and the extents around them.
struct Places {
    int nd = 0, before = 0;              // dimensions of the result; those in front of the indices
    int indexed = 0;                     // … and those that the indices give
    npy_intp shape[NPY_MAXDIMS];         // of the result
    npy_intp strides[NPY_MAXDIMS];       // in the target, of those that no index stands for
    npy_intp count = 1;
    std::vector<npy_intp> offsets;       // `count` of them

    // False: a case that is not done here, or an index out of bounds. `where[i]` is the dimension
    // at which index i begins; masks are one for each dimension that they cover.
    bool read(const Target &target, PyObject *const *indices, int n, const int *where);
};

// The elements there, as a row-major array of the type of `like`.
PyArrayObject *take(const Target &target, const Places &places, PyArrayObject *like);

// The elements where a mask of the same shape is true; NotImplemented where this has no loop for them.
PyObject *masked(PyArrayObject *x, PyArrayObject *mask);

// Writes values, which broadcast, there; false, before anything is written, if they do not fit.
// `add` adds to what is there, in order; false too where that is not done here.
bool put(const Target &target, const Places &places, PyArrayObject *values, bool add);
void fill_places(const Target &target, const Places &places, const char *value);

// Writes a value where a mask of the target's first dimensions is true; false if it has others.
bool fill_masked(const Target &target, PyArrayObject *mask, int at, const char *value);

}  // namespace moving
