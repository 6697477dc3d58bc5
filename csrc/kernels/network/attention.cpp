// Scaled dot-product attention: flambeau/kernels/network/attention.py.
#include "kernels/network/attention.h"
#include "kernels/network/module.h"

#if NETWORK_VECTORS

#define NETWORK_LOOPS "kernels/network/attention_loops.h"
#include "kernels/network/isa.h"

namespace network {

// An array whose last axis is contiguous, copied if it is not.
static Array with_rows(PyObject *x, int type) {
    if (type_of(x) != type || PyArray_NDIM((PyArrayObject *)x) < 2) return Array();
    PyArrayObject *array = (PyArrayObject *)x;
    int ndim = PyArray_NDIM(array);
    npy_intp item = PyArray_ITEMSIZE(array);
    bool fits = PyArray_STRIDE(array, ndim - 1) == item || PyArray_DIM(array, ndim - 1) == 1;
    if (!fits || PyArray_STRIDE(array, ndim - 2) % item)
        return Array(PyArray_NewCopy(array, NPY_CORDER));
    Py_INCREF(x);
    return Array(x);
}

// Sees an array as matrices broadcast to the leading shape.
static bool view(const Array &x, const std::vector<npy_intp> &lead, npy_intp rows, npy_intp columns,
                 Heads &to) {
    int ndim = x.ndim(), extra = int(lead.size()) - (ndim - 2);
    if (ndim > int(lead.size()) + 2) return false;
    to.data = x.data<char>();
    to.strides.assign(lead.size(), 0);
    for (int i = 0; i < ndim - 2; i++) {
        if (x.dim(i) == 1 && lead[i + extra] != 1) continue;
        if (x.dim(i) != lead[i + extra]) return false;
        to.strides[i + extra] = PyArray_STRIDE(x.array(), i);
    }
    npy_intp *ends[] = {&to.row, &to.column}, sizes[] = {rows, columns};
    for (int i = 0; i < 2; i++) {
        int axis = ndim - 2 + i;
        *ends[i] = 0;
        if (axis < 0 || (x.dim(axis) == 1 && sizes[i] != 1)) continue;
        if (x.dim(axis) != sizes[i]) return false;
        *ends[i] = PyArray_STRIDE(x.array(), axis);
    }
    to.rows = rows;
    to.columns = columns;
    return true;
}

static bool broadcast(std::vector<npy_intp> &lead, const Array &x) {
    if (x.ndim() - 2 > int(lead.size())) lead.insert(lead.begin(), x.ndim() - 2 - lead.size(), 1);
    size_t extra = lead.size() - (x.ndim() - 2);
    for (int i = 0; i < x.ndim() - 2; i++) {
        npy_intp &to = lead[i + extra], size = x.dim(i);
        if (to == 1)
            to = size;
        else if (size != 1 && size != to)
            return false;
    }
    return true;
}

template <class T>
static bool read_attention(Attention &a, Array &q, Array &k, Array &v, Array &mask,
                           PyObject *const *qkv, PyObject *const *rest) {
    int type = TypeNum<T>::value;
    q = with_rows(qkv[0], type);
    k = with_rows(qkv[1], type);
    v = with_rows(qkv[2], type);
    if (!q || !k || !v) return false;
    a.lead.clear();
    if (!broadcast(a.lead, q) || !broadcast(a.lead, k) || !broadcast(a.lead, v)) return false;
    a.heads = product(a.lead);
    a.queries = q.dim(q.ndim() - 2);
    a.width = q.dim(q.ndim() - 1);
    a.keys = k.dim(k.ndim() - 2);
    a.depth = v.dim(v.ndim() - 1);
    if (!view(q, a.lead, a.queries, a.width, a.q) || !view(k, a.lead, a.keys, a.width, a.k) ||
        !view(v, a.lead, a.keys, a.depth, a.v))
        return false;
    if (a.heads < 1 || a.queries < 1 || a.keys < 1 || a.width < 1 || a.depth < 1) return false;
    if (rest[0] != Py_None) {
        int mask_type = type_of(rest[0]);
        if (mask_type != NPY_BOOL && mask_type != type) return false;
        a.boolean = mask_type == NPY_BOOL;
        Py_INCREF(rest[0]);
        mask = Array(rest[0]);
        if (mask.ndim() < 2 || !view(mask, a.lead, a.queries, a.keys, a.mask)) return false;
    }
    a.causal = PyObject_IsTrue(rest[1]);
    a.scale = 1 / std::sqrt(double(a.width));
    return rest[2] == Py_None || take_float(rest[2], a.scale);
}

template <class T>
static PyObject *scaled_dot_product_attention_(PyObject *const *args) {
    Attention a;
    Array q, k, v, mask;
    if (!read_attention<T>(a, q, k, v, mask, args, args + 3)) return declined();
    std::vector<npy_intp> shape = a.lead;
    shape.push_back(a.queries);
    Array logs = Array::empty(shape, TypeNum<T>::value);
    shape.push_back(a.depth);
    Array out = Array::empty(shape, TypeNum<T>::value);
    if (!logs || !out) return nullptr;
    {
        Unlocked unlocked;
        NETWORK_BEST(attend<T>)(a, out.data<T>(), logs.data<T>());
    }
    return results(out, logs);
}
NETWORK_FLOATS(scaled_dot_product_attention, 0)

template <class T>
static PyObject *scaled_dot_product_attention_backward_(PyObject *const *args) {
    Attention a;
    Array q, k, v, mask, g, out, logs;
    if (!read_attention<T>(a, q, k, v, mask, args + 1, args + 6) || !take<T>(args[4], out) ||
        !take<T>(args[5], logs) || a.queries < 4)  // a few are better off with whole products
        return declined();
    g = with_rows(args[0], TypeNum<T>::value);
    npy_intp rows = a.heads * a.queries;
    if (!g || q.size() != rows * a.width || k.size() != a.heads * a.keys * a.width ||
        v.size() != a.heads * a.keys * a.depth || out.size() != rows * a.depth ||
        logs.size() != rows || !view(g, a.lead, a.queries, a.depth, a.g))
        return declined();
    int type = TypeNum<T>::value;
    Array gq = Array::empty(q.dims(), type), gk = Array::empty(k.dims(), type),
          gv = Array::empty(v.dims(), type);
    if (!gq || !gk || !gv) return nullptr;
    {
        Unlocked unlocked;
        NETWORK_BEST(attend_backward<T>)(a, out.data<T>(), logs.data<T>(), gq.data<T>(),
                                         gk.data<T>(), gv.data<T>());
    }
    return results(gq, gk, gv);
}
NETWORK_FLOATS(scaled_dot_product_attention_backward, 1)

static PyMethodDef methods[] = {NETWORK_METHOD(scaled_dot_product_attention, 6),
                                NETWORK_METHOD(scaled_dot_product_attention_backward, 9),
                                {nullptr, nullptr, 0, nullptr}};

}  // namespace network

int register_network_attention(PyObject *module) {
    return PyModule_AddFunctions(module, network::methods);
}

#else

int register_network_attention(PyObject *) { return 0; }

#endif
