// Windows of images as columns, and back: flambeau/ops/rearrange.py.
#include "kernels/checked/checked.h"

namespace checked {

struct Blocks {
    npy_intp kernel[2], dilation[2], padding[2], stride[2], size[2], out[2], planes;

    // Of arguments kernel_size, dilation, padding, stride; `size` is known.
    bool read(PyObject *const *args) {
        Held held;
        if (!per_axis(args[0], 2, kernel, held) || !per_axis(args[1], 2, dilation, held) ||
            !per_axis(args[2], 2, padding, held) || !per_axis(args[3], 2, stride, held))
            return false;
        for (int d = 0; d < 2; d++) {
            npy_intp room = size[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
            if (kernel[d] < 1 || dilation[d] < 1 || padding[d] < 0 || stride[d] < 1 || room < 0)
                return false;
            out[d] = room / stride[d] + 1;
        }
        return true;
    }
    npy_intp taps() const { return kernel[0] * kernel[1]; }
    npy_intp positions() const { return out[0] * out[1]; }

    // body(where in the column, where in the image) for each element of a window that lies inside,
    // then outside(where in the column) for each that does not.
    template <class Inside, class Outside>
    INLINE void each(Inside inside, Outside outside) const {
        npy_intp at = 0;
        for (npy_intp a = 0; a < kernel[0]; a++)
            for (npy_intp b = 0; b < kernel[1]; b++)
                for (npy_intp i = 0; i < out[0]; i++) {
                    npy_intp row = i * stride[0] - padding[0] + a * dilation[0];
                    bool has_row = row >= 0 && row < size[0];
                    for (npy_intp j = 0; j < out[1]; j++, at++) {
                        npy_intp column = j * stride[1] - padding[1] + b * dilation[1];
                        if (has_row && column >= 0 && column < size[1])
                            inside(at, row * size[1] + column);
                        else
                            outside(at);
                    }
                }
    }
};

template <class T>
static void unfold(const Blocks &g, const T *from, T *to) {
    for (npy_intp p = 0; p < g.planes; p++) {
        g.each([&](npy_intp at, npy_intp place) { to[at] = from[place]; },
               [&](npy_intp at) { to[at] = 0; });
        from += g.size[0] * g.size[1], to += g.taps() * g.positions();
    }
}

template <class T>
static void fold(const Blocks &g, const T *from, T *to) {
    std::fill(to, to + g.planes * g.size[0] * g.size[1], T(0));
    for (npy_intp p = 0; p < g.planes; p++) {
        g.each([&](npy_intp at, npy_intp place) { to[place] += from[at]; }, [](npy_intp) {});
        to += g.size[0] * g.size[1], from += g.taps() * g.positions();
    }
}

static PyObject *wrong() { return PyErr_Occurred() ? nullptr : moving::misfit(); }

// (self, kernel_size, dilation, padding, stride)
static PyObject *im2col(PyObject *const *args) {
    PyArrayObject *x = floats(args[0]);
    int rank = x ? PyArray_NDIM(x) : 0;
    if ((rank != 3 && rank != 4) || !has_elements(x, 3)) return moving::misfit();
    Blocks g;
    std::copy(PyArray_DIMS(x) + rank - 2, PyArray_DIMS(x) + rank, g.size);
    if (!g.read(args + 1)) return wrong();
    npy_intp channels = PyArray_DIM(x, rank - 3), n = rank == 4 ? PyArray_DIM(x, 0) : 1;
    g.planes = n * channels;
    npy_intp shape[] = {n, channels * g.taps(), g.positions()};
    Array dense, result = Array::empty(rank - 1, shape + 4 - rank, PyArray_TYPE(x));
    if (!result || !network::take_any(args[0], dense)) return nullptr;
    network::Unlocked unlocked(result.size() > PARALLEL_FROM);
    if (PyArray_TYPE(x) == NPY_FLOAT) unfold(g, dense.data<float>(), result.data<float>());
    else unfold(g, dense.data<double>(), result.data<double>());
    return result.release();
}

// (self, output_size, kernel_size, dilation, padding, stride)
static PyObject *col2im(PyObject *const *args) {
    PyArrayObject *x = floats(args[0]);
    int rank = x ? PyArray_NDIM(x) : 0;
    if ((rank != 2 && rank != 3) || !has_elements(x, 2)) return moving::misfit();
    Blocks g;
    Held held;
    if (!PyTuple_CheckExact(args[1]) || PyTuple_GET_SIZE(args[1]) != 2 ||
        !per_axis(args[1], 2, g.size, held) || !g.read(args + 2))
        return wrong();
    npy_intp n = rank == 3 ? PyArray_DIM(x, 0) : 1, rows = PyArray_DIM(x, rank - 2);
    if (rows % g.taps() || PyArray_DIM(x, rank - 1) != g.positions()) return moving::misfit();
    npy_intp shape[] = {n, rows / g.taps(), g.size[0], g.size[1]};
    g.planes = n * shape[1];
    Array dense, result = Array::empty(rank + 1, shape + 3 - rank, PyArray_TYPE(x));
    if (!result || !network::take_any(args[0], dense)) return nullptr;
    network::Unlocked unlocked(result.size() > PARALLEL_FROM);
    if (PyArray_TYPE(x) == NPY_FLOAT) fold(g, dense.data<float>(), result.data<float>());
    else fold(g, dense.data<double>(), result.data<double>());
    return result.release();
}

static PyMethodDef methods[] = {CHECKED_METHOD(im2col, 5), CHECKED_METHOD(col2im, 6),
                                {nullptr, nullptr, 0, nullptr}};

int register_columns(PyObject *module) { return PyModule_AddFunctions(module, methods); }

}  // namespace checked
