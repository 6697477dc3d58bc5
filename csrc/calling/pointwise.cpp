// Pointwise ops: tensors and numbers in one type, the kernel, the node. Their twin is
// `flambeau/dispatch/pointwise.py`.
#include "calling/pointwise.h"

#include "calling/levels.h"

#include <utility>

#include "kernels/pointwise/kernel.h"

PyArrayObject *cast_array(PyArrayObject *x, DType to);

namespace fast {

// ---- the type of an expression: `core/promotion.py` ---------------------------------------------

static int category(DType d) { return d == B1 ? 0 : d <= I8 ? 1 : d <= F8 ? 2 : 3; }

static bool is_wide_unsigned(DType d) { return d == U2 || d == U4 || d == U8; }

// NONE: PyTorch refuses, or it is a type that has no loops here.
static DType join(DType a, DType b) {
    if (a == b) return a;
    if (category(a) > category(b)) std::swap(a, b);
    if ((is_wide_unsigned(a) || is_wide_unsigned(b)) && category(b) != 2) return NONE;
    if (a == B1) return b;
    if (category(b) == 1) {
        bool unsigned_a = a < I1, unsigned_b = b < I1;
        if (unsigned_a == unsigned_b) return size_of(a) > size_of(b) ? a : b;
        DType with_sign = unsigned_a ? b : a;
        return with_sign == I1 ? I2 : with_sign;
    }
    if (category(a) == 1) return b;
    if (category(b) == 3) return a == C16 || b == C16 || a == F8 ? C16 : C8;
    if (size_of(a) == size_of(b)) return F4;
    return size_of(a) > size_of(b) ? a : b;
}

static DType complex_of(DType d) { return d == F4 ? C8 : d == F8 ? C16 : NONE; }

static DType default_float() {
    static PyObject *name = PyUnicode_InternFromString("float"),
                    *numpy = PyUnicode_InternFromString("numpy");
    Ref dtype(PyObject_GetAttr(core.defaults, name));
    Ref descr(dtype ? PyObject_GetAttr(dtype.get(), numpy) : nullptr);
    if (!descr || !PyArray_DescrCheck(descr.get())) return NONE;
    return dtype_of(((PyArray_Descr *)descr.get())->type_num);
}

// The types of tensors with dimensions, of those without, and of numbers.
struct Tiers {
    DType tiers[3] = {NONE, NONE, NONE};
    bool refused = false;

    void add(int tier, DType d) {
        DType &t = tiers[tier];
        t = t == NONE ? d : join(t, d);
        refused |= t == NONE;
    }

    DType result() const {
        DType r = NONE;
        for (DType d : tiers) {
            if (refused || d == NONE) continue;
            if (r == NONE) {
                r = d;
            } else if (category(d) > category(r)) {
                r = category(d) < 3 ? join(r, d) : category(r) == 2 ? complex_of(r) : d;
                if (r == NONE) return NONE;
            }
        }
        return refused ? NONE : r;
    }
};

static DType type_of_number(PyObject *x) {
    if (PyBool_Check(x)) return B1;
    if (PyLong_CheckExact(x)) return I8;
    if (!PyFloat_CheckExact(x) && !PyComplex_CheckExact(x)) return NONE;
    DType d = default_float();
    return PyFloat_CheckExact(x) || d == NONE ? d : complex_of(d);
}

// ---- operands -----------------------------------------------------------------------------------

static bool is_half(DType d) { return d == F2 || d == BF; }

// Is the number, stored as an element by a kernel, what `convert` makes of it?
static bool is_exact(PyObject *x, DType dtype) {
    if (PyBool_Check(x)) return true;
    if (PyLong_CheckExact(x)) {
        int overflow;
        long long value = PyLong_AsLongLongAndOverflow(x, &overflow);
        if (overflow || dtype == B1) return false;
        if (dtype <= I8) return true;
        long long limit = dtype == F4 || dtype == C8 ? 1LL << 24 : 1LL << 53;
        return -limit <= value && value <= limit;
    }
    if (PyFloat_CheckExact(x)) return dtype >= F4;
    return PyComplex_CheckExact(x) && dtype >= C8;
}

// A number as an array without dimensions; null without an error: too large for that.
static PyObject *number_array(PyObject *x, DType dtype) {
    long long whole = 0;
    double parts[2] = {0, 0};
    DType own = I8;
    if (PyLong_Check(x)) {
        int overflow;
        whole = PyLong_AsLongLongAndOverflow(x, &overflow);
        if (overflow) return nullptr;
    } else {
        own = PyFloat_CheckExact(x) ? F8 : C16;
        parts[0] = own == F8 ? PyFloat_AS_DOUBLE(x) : PyComplex_RealAsDouble(x);
        if (own == C16) parts[1] = PyComplex_ImagAsDouble(x);
    }
    PyArray_Descr *descr = descr_of(own);
    Ref array(descr ? PyArray_NewFromDescr(&PyArray_Type, descr, 0, nullptr, nullptr, nullptr, 0, nullptr)
                    : nullptr);
    if (!array) return nullptr;
    PyArrayObject *a = (PyArrayObject *)array.get();
    std::memcpy(PyArray_DATA(a), own == I8 ? (void *)&whole : (void *)parts, size_of(own));
    return own == dtype ? array.release() : (PyObject *)cast_array(a, dtype);
}

// In a half type: the number as it is rounded; null without an error: the twin keeps it in float32.
static PyObject *half_array(Callable *f, PyObject *x, DType dtype) {
    Ref array(number_array(x, dtype));
    if (!array || !f->wide) return array.release();
    Ref back((PyObject *)cast_array((PyArrayObject *)array.get(), F8));
    double value = PyFloat_CheckExact(x) ? PyFloat_AS_DOUBLE(x) : PyLong_AsDouble(x);
    if (!back || *(double *)PyArray_DATA((PyArrayObject *)back.get()) != value) return nullptr;
    return array.release();
}

// The operands of a kernel; false without an error: this call is the twin's.
struct Operands {
    PyObject *items[MAX_ARGS];
    Ref held[MAX_OPERANDS - 1];
    DType common = NONE;
    bool native;  // does the kernel take numbers that are exact in the common type?

    bool take(Callable *f, PyObject *const *values) {
        bool mixed = false, numbers = false;
        for (int i = 0; i < f->tensors; i++) {
            PyObject *value = items[i] = values[i];
            if (!is_plain_tensor(value)) {
                numbers |= value != Py_None;
                if (f->checked & 1 && PyBool_Check(value)) return false;
                if (f->checked & 4 && PyComplex_Check(value)) return false;
                continue;
            }
            PyObject *array = items[i] = slot(value, core.array);
            if (!array || !is_plain(array)) return false;
            DType d = dtype_of(PyArray_TYPE((PyArrayObject *)array));
            if (d == NONE || (f->apart >> i & 1 && d != B1)) return false;
            if (f->apart >> i & 1) continue;
            if (f->fixed && i && PyArray_NDIM((PyArrayObject *)array)) return false;
            if (f->checked & 1 && d == B1) return false;
            mixed |= common != NONE && d != common;
            common = d;
        }
        bool none = common == NONE;  // but a condition: `where(c, 1., 0.)`
        if (none && f->apart && numbers && !f->raw && !f->fixed) return convert(f, values, true) && f->dtypes >> common & 1;
        if (none || (mixed && f->checked & 2)) return false;
        mixed |= f->floating && category(common) < 2;
        for (int i = 0; numbers && !mixed && i < f->tensors; i++)
            mixed = !is_plain_tensor(values[i]) && values[i] != Py_None && !stays(f, values[i]);
        if (mixed && f->checked & 2 && !(f->dtypes >> common & 1)) return false;
        if (mixed && (f->fixed || !convert(f, values))) return false;
        return f->dtypes >> common & 1;
    }

    bool stays(Callable *f, PyObject *number) const {
        if (f->fixed && common <= I8 && common != B1) {
            if (!PyLong_CheckExact(number)) return false;
            int overflow;
            long value = PyLong_AsLongAndOverflow(number, &overflow);
            return !overflow && value >= 0 && value < 128;
        }
        return (native || f->raw) && !is_half(common) && is_exact(number, common);
    }

    // `one`: one of the numbers becomes an array, so that there is one.
    bool convert(Callable *f, PyObject *const *values, bool one = false) {
        Tiers tiers;
        for (int i = 0; i < f->tensors; i++) {
            if (values[i] == Py_None || f->apart >> i & 1) continue;
            bool number = !is_plain_tensor(values[i]);
            DType d = number ? type_of_number(values[i])
                             : dtype_of(PyArray_TYPE((PyArrayObject *)items[i]));
            if (d == NONE) return false;
            tiers.add(number ? 2 : PyArray_NDIM((PyArrayObject *)items[i]) == 0, d);
        }
        common = tiers.result();
        if (common != NONE && f->floating && category(common) < 2) common = default_float();
        if (common == NONE || (f->wide && is_half(common) && tiers.tiers[1] != NONE)) return false;
        for (int i = 0; i < f->tensors; i++) {
            if (values[i] == Py_None || f->apart >> i & 1) continue;
            if (is_plain_tensor(values[i])) {
                PyArrayObject *a = (PyArrayObject *)items[i];
                if (dtype_of(PyArray_TYPE(a)) == common) continue;
                held[i].take((PyObject *)cast_array(a, common));
            } else {
                if (f->raw || (!one && stays(f, values[i]))) continue;
                one = false;
                held[i].take(is_half(common) ? half_array(f, values[i], common)
                                             : number_array(values[i], common));
            }
            if (!held[i]) return false;
            items[i] = held[i].get();
        }
        return true;
    }
};

// ---- the call -----------------------------------------------------------------------------------

static bool is_same(PyObject *x, PyObject *y) {
    return x == y ||
           (PyFloat_CheckExact(x) && PyFloat_CheckExact(y) && PyFloat_AS_DOUBLE(x) == PyFloat_AS_DOUBLE(y));
}

static bool has_defaults(Callable *f, PyObject *const *given, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++)
        if (!is_same(given[i], PyTuple_GET_ITEM(f->defaults, i))) return false;
    return true;
}

// The common case of all: one tensor, or two of one type, or one and a number that is exact in it.
// False: another case.
static bool take_plainly(const Callable *f, PyObject *kernel, PyObject *const *values, PyObject **items) {
    if (f->tensors > 2 || f->apart || !is_plain_tensor(values[0])) return false;
    PyObject *x = items[0] = slot(values[0], core.array);
    if (!x || !is_plain(x)) return false;
    DType d = dtype_of(PyArray_TYPE((PyArrayObject *)x));
    if (d == NONE || (f->floating && d < F2) || !(f->dtypes >> d & 1)) return false;
    if (f->tensors == 1) return true;
    if (is_plain_tensor(values[1])) {
        PyObject *y = items[1] = slot(values[1], core.array);
        return y && is_plain(y) && dtype_of(PyArray_TYPE((PyArrayObject *)y)) == d;
    }
    items[1] = values[1];
    return PyFloat_CheckExact(values[1]) && Py_TYPE(kernel) == &KernelType && (d == F4 || d == F8);
}

static PyObject *finished(PyObject *result) {
    if (!result && (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError)))
        PyErr_Clear();  // the twin will say what is wrong
    return as_array(result);
}

// Does a kernel in Python take, after its operands, where its result is to go?
static bool takes_out(PyObject *kernel, Py_ssize_t operands) {
    if (!PyFunction_Check(kernel)) return false;
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(kernel);
    if (code->co_argcount != operands + 1) return false;
    Ref names(PyCode_GetVarnames(code));
    if (!names) return PyErr_Clear(), false;
    return PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names.get(), operands), "out") == 0;
}

PyObject *compute_pointwise(Callable *f, PyObject *const *canonical, Py_ssize_t n, PyArrayObject *into) {
    if (n != f->tensors + PyTuple_GET_SIZE(f->defaults) || n >= MAX_ARGS || f->tensors >= MAX_OPERANDS)
        return nullptr;
    Py_ssize_t count = f->tensors;
    bool plainly = f->plain_kernel && has_defaults(f, canonical + count, n - count);
    PyObject *kernel = plainly ? f->plain_kernel : f->kernel;
    PyObject *items[3];
    if (!into && (plainly || n == count) && take_plainly(f, kernel, canonical, items))
        return finished(PyObject_Vectorcall(kernel, items, count, nullptr));
    Operands operands;
    operands.native = Py_TYPE(kernel) == &KernelType;
    if (!operands.take(f, canonical)) return nullptr;
    if (!plainly)
        for (; count < n; count++) operands.items[count] = canonical[count];
    if (into) {
        DType d = dtype_of(PyArray_TYPE(into));
        Kernel *k = operands.native && d == operands.common ? (Kernel *)kernel : nullptr;
        if (k ? k->table[d].out == d && k->nin == count
              : d == operands.common && d != NONE && takes_out(kernel, count))
            operands.items[count++] = (PyObject *)into;
    }
    return finished(PyObject_Vectorcall(kernel, operands.items, count, nullptr));
}

static int record_pointwise(Callable *f, PyObject *const *canonical, PyObject *result) {
    bool tracked = false;
    for (int i = 0; i < f->tensors; i++)
        tracked |= is_plain_tensor(canonical[i]) && !is_none(slot(canonical[i], core.edge));
    if (!tracked || !f->differentiable) return 0;
    int recorded = grad_enabled();
    if (recorded <= 0 || !is_floating(slot(result, core.array))) return recorded < 0 ? -1 : 0;
    Ref edges(PyTuple_New(f->tensors));
    if (!edges) return -1;
    recorded = 0;
    for (int i = 0; i < f->tensors; i++) {
        PyObject *edge = is_plain_tensor(canonical[i]) ? edge_of(canonical[i]) : incref(Py_None);
        if (!edge) return -1;
        recorded |= edge != Py_None;
        PyTuple_SET_ITEM(edges.get(), i, edge);
    }
    return recorded ? record(f, canonical, edges.release(), result) : 0;
}

PyObject *run_pointwise(Callable *f, PyObject *const *canonical, Py_ssize_t n) {
    PyObject *array = compute_pointwise(f, canonical, n, nullptr);
    if (!array) return nullptr;
    Ref result(make_tensor(array));
    if (!result || record_pointwise(f, canonical, result.get()) < 0) return nullptr;
    return result.release();
}

PyObject *call_elementwise(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Callable *f = (Callable *)self;
    if (!names) {
        Py_ssize_t n = PyVectorcall_NARGS(nargsf);
        PyObject *result = watched() ? call_in_levels(f, args, n) : run_pointwise(f, args, n);
        if (result || PyErr_Occurred()) return result;
    }
    return fall_back(f, args, nargsf, names);
}

}  // namespace fast
