// See matrices.h.
#include "kernels/linalg/matrices.h"

namespace linalg {

bool wide_integers;

void *Routine::find(int type) {
    static char none;
    static PyObject *address;
    void *&found = at[type == NPY_DOUBLE];
    if (found) return found == &none ? nullptr : found;
    PyObject *module = address ? nullptr : PyImport_ImportModule("flambeau.kernels.linalg.fortran");
    if (module) address = PyObject_GetAttrString(module, "address");
    Py_XDECREF(module);
    PyObject *given = address ? PyObject_CallFunction(address, "sN", name, PyArray_DescrFromType(type))
                              : nullptr;
    if (given && PyTuple_Check(given) && PyTuple_GET_SIZE(given) == 2) {
        found = PyLong_AsVoidPtr(PyTuple_GET_ITEM(given, 0));
        wide_integers = PyTuple_GET_ITEM(given, 1) == Py_True;
    }
    Py_XDECREF(given);
    if (!found) PyErr_Clear(), found = &none;
    return found == &none ? nullptr : found;
}

static PyObject *call_one_thread(const char *method) {
    static PyObject *context;
    PyObject *module = context ? nullptr : PyImport_ImportModule("flambeau.kernels.linalg.blas");
    PyObject *found = module ? PyObject_CallMethod(module, "one_thread", nullptr) : nullptr;
    Py_XDECREF(module);
    if (found) context = found;
    if (!context || context == Py_None) return nullptr;
    bool leave = *method == 'x';
    return leave ? PyObject_CallMethod(context, "__exit__", "OOO", Py_None, Py_None, Py_None)
                 : PyObject_CallMethod(context, "__enter__", nullptr);
}

OneThread::OneThread(const Matrices &m) {
    npy_intp longest = std::max(m.rows, m.columns);
    if (longest <= SMALL || (m.items == 1 && std::min(m.rows, m.columns) > ONE_THREAD)) return;
    PyObject *done = call_one_thread("enter");
    entered = done != nullptr;
    Py_XDECREF(done);
    PyErr_Clear();
}

OneThread::~OneThread() {
    if (!entered) return;
    PyObject *done = call_one_thread("x");
    Py_XDECREF(done);
    PyErr_Clear();
}

static bool read_type(PyObject *object, Matrices &m, int type) {
    if (!PyArray_CheckExact(object)) return false;
    m.array = (PyArrayObject *)object;
    int kind = PyArray_TYPE(m.array);
    return (kind == NPY_FLOAT || kind == NPY_DOUBLE) && (type < 0 || kind == type) &&
           PyArray_ISALIGNED(m.array) && PyArray_ISNOTSWAPPED(m.array);
}

static bool count(Matrices &m) {
    m.dims = PyArray_DIMS(m.array);
    for (int d = 0; d < m.lead; d++) m.items *= m.dims[d];
    return m.rows <= LONGEST_SIDE && m.columns <= LONGEST_SIDE && m.rows * m.columns <= MOST_ELEMENTS;
}

bool read(PyObject *object, Matrices &m, int type) {
    if (!read_type(object, m, type) || PyArray_NDIM(m.array) < 2) return false;
    m.lead = PyArray_NDIM(m.array) - 2;
    m.rows = PyArray_DIM(m.array, m.lead), m.columns = PyArray_DIM(m.array, m.lead + 1);
    m.row = PyArray_STRIDE(m.array, m.lead), m.column = PyArray_STRIDE(m.array, m.lead + 1);
    return count(m);
}

bool read_right(PyObject *object, Matrices &m, const Matrices &like, bool *vector) {
    if (!read_type(object, m, like.type())) return false;
    int nd = PyArray_NDIM(m.array);
    *vector = nd == like.lead + 1 && std::equal(like.dims, like.dims + nd, PyArray_DIMS(m.array));
    if (!*vector) return nd > 1 && read(object, m, like.type()) && same_lead(m, like);
    m.lead = nd - 1, m.rows = PyArray_DIM(m.array, m.lead), m.columns = 1;
    m.row = PyArray_STRIDE(m.array, m.lead), m.column = 0;
    return count(m);
}

bool same_lead(const Matrices &a, const Matrices &b) {
    return a.lead == b.lead && std::equal(a.dims, a.dims + a.lead, b.dims);
}

PyArrayObject *by_columns(const Matrices &like, npy_intp rows, npy_intp columns) {
    npy_intp dims[NPY_MAXDIMS];
    std::copy(like.dims, like.dims + like.lead, dims);
    dims[like.lead] = columns, dims[like.lead + 1] = rows;
    PyArrayObject *flat = (PyArrayObject *)PyArray_SimpleNew(like.lead + 2, dims, like.type());
    if (!flat) return nullptr;
    PyArrayObject *turned = (PyArrayObject *)PyArray_SwapAxes(flat, like.lead, like.lead + 1);
    Py_DECREF(flat);
    if (turned && !PyArray_SIZE(turned)) {  // NumPy's empty arrays have strides of zero
        npy_intp *strides = PyArray_STRIDES(turned), step = PyArray_ITEMSIZE(turned);
        for (int d = like.lead + 1; d >= 0; d--) strides[d] = step, step *= std::max<npy_intp>(dims[d], 1);
        std::swap(strides[like.lead], strides[like.lead + 1]);
    }
    return turned;
}

PyArrayObject *by_rows(const Matrices &like, npy_intp rows, npy_intp columns) {
    npy_intp dims[NPY_MAXDIMS];
    std::copy(like.dims, like.dims + like.lead, dims);
    dims[like.lead] = rows, dims[like.lead + 1] = columns;
    return (PyArrayObject *)PyArray_ZEROS(like.lead + 2, dims, like.type(), 0);
}

PyArrayObject *one_each(const Matrices &like, npy_intp n, int type) {
    npy_intp dims[NPY_MAXDIMS];
    std::copy(like.dims, like.dims + like.lead, dims);
    dims[like.lead] = n;
    return (PyArrayObject *)PyArray_ZEROS(like.lead + (n >= 0), dims, type, 0);
}

template <class T>
static void copy_columns(const Matrices &m, T *to) {
    npy_intp at[NPY_MAXDIMS] = {0};
    const char *from = PyArray_BYTES(m.array);
    for (npy_intp item = 0; item < m.items; item++) {
        for (npy_intp j = 0; j < m.columns; j++)
            for (npy_intp i = 0; i < m.rows; i++) *to++ = *(const T *)(from + i * m.row + j * m.column);
        for (int d = m.lead - 1; d >= 0; d--) {
            from += PyArray_STRIDE(m.array, d);
            if (++at[d] < m.dims[d]) break;
            from -= PyArray_STRIDE(m.array, d) * at[d];
            at[d] = 0;
        }
    }
}

PyArrayObject *copied(const Matrices &m, bool vector) {
    PyArrayObject *to = vector ? (PyArrayObject *)PyArray_SimpleNew(m.lead + 1, m.dims, m.type())
                               : by_columns(m, m.rows, m.columns);
    if (!to || m.empty()) return to;
    if (m.type() == NPY_FLOAT) copy_columns(m, (float *)PyArray_DATA(to));
    else copy_columns(m, (double *)PyArray_DATA(to));
    return to;
}

PyObject *results(std::initializer_list<PyArrayObject *> found) {
    bool whole = true;
    for (PyArrayObject *a : found) whole &= a != nullptr;
    PyObject *tuple = whole ? PyTuple_New(Py_ssize_t(found.size())) : nullptr;
    Py_ssize_t i = 0;
    for (PyArrayObject *a : found)
        if (tuple) PyTuple_SET_ITEM(tuple, i++, (PyObject *)a);
        else Py_XDECREF(a);
    return tuple;
}

PyObject *drop(std::initializer_list<PyArrayObject *> found) {
    for (PyArrayObject *a : found) Py_XDECREF(a);
    return declined();
}

}  // namespace linalg
