// The type of the callables, and what Python calls: bind once, then a make_… for each op.
#include "callable_type.h"
#include "calling/levels.h"

#include <structmember.h>

#include <utility>

namespace fast {

Core core;
PyObject *zero, *one;

PyTypeObject CallableType = {PyVarObject_HEAD_INIT(nullptr, 0)};

static int traverse(PyObject *self, visitproc visit, void *arg) {
    Callable *f = (Callable *)self;
    Py_VISIT(f->dict);
    Py_VISIT(f->closure);
    Py_VISIT(f->kernel);
    Py_VISIT(f->plain_kernel);
    Py_VISIT(f->op);
    Py_VISIT(f->node);
    return 0;
}

static int clear(PyObject *self) {
    Callable *f = (Callable *)self;
    Py_CLEAR(f->dict);
    return 0;
}

static void dealloc(PyObject *self) {
    Callable *f = (Callable *)self;
    PyObject_GC_UnTrack(self);
    if (f->weakrefs) PyObject_ClearWeakRefs(self);
    clear(self);
    free_batching(f->batching);
    Py_XDECREF(f->closure), Py_XDECREF(f->kernel), Py_XDECREF(f->op);
    Py_XDECREF(f->returns), Py_XDECREF(f->plain_kernel), Py_XDECREF(f->defaults);
    Py_XDECREF((PyObject *)f->node);
    PyObject_GC_Del(self);
}

static PyObject *get(PyObject *self, PyObject *object, PyObject *) {
    return is_none(object) ? incref(self) : PyMethod_New(self, object);
}

static PyObject *attribute(PyObject *self, const char *name) {
    PyObject *dict = ((Callable *)self)->dict, *found = dict ? PyDict_GetItemString(dict, name) : nullptr;
    return found ? incref(found) : PyUnicode_FromString("?");
}

static PyObject *repr(PyObject *self) {
    Ref name(attribute(self, "__qualname__"));
    return PyUnicode_FromFormat("<function %U at %p>", name.get(), self);
}

// A global of its module, as functions are.
static PyObject *reduce(PyObject *self, PyObject *) { return attribute(self, "__qualname__"); }

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Callable, call), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Callable, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Callable, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
static PyGetSetDef getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
static PyMethodDef callable_methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr},
                                         {nullptr, nullptr, 0, nullptr}};

// ---- making callables ---------------------------------------------------------------------------

static int read_plan(Callable *f, PyObject *plan) {
    static const char *kinds[] = {"tensor", "param",   "shape",   "dtype",  "geometry",
                                  "by_columns", "result", "tensors", "shapes", "dtypes"};
    constexpr int count = sizeof(kinds) / sizeof(*kinds);
    f->nsaved = int(PyTuple_GET_SIZE(plan));
    if (f->nsaved > MAX_SAVED) {
        PyErr_SetString(PyExc_ValueError, "too many saved values");
        return -1;
    }
    for (int i = 0; i < f->nsaved; i++) {
        const char *kind;
        int where;
        unsigned long long users;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(plan, i), "siK", &kind, &where, &users)) return -1;
        int k = 0;
        while (k < count && std::strcmp(kind, kinds[k])) k++;
        if (k == count) {
            PyErr_Format(PyExc_ValueError, "unknown kind of saved value: %s", kind);
            return -1;
        }
        f->saved[i] = {Saved::Kind(k), int8_t(where), users};
    }
    return 0;
}

static const struct {
    const char *name;
    vectorcallfunc call;
} kinds[] = {{"elementwise", call_elementwise}, {"canonical", call_canonical}, {"apply", call_apply}, {"inplace", call_inplace}};

// make(kind, closure, kernel, op, node class, tensors, plan, dtypes, differentiable, view, replay,
//      class of several results, which of those have gradients,
//      floating, wide, checked, apart, raw, fixed, kernel for the default parameters, these)
static PyObject *make(PyObject *, PyObject *args) {
    const char *kind;
    PyObject *closure, *kernel, *op, *node, *plan, *returns = Py_None;
    PyObject *plain_kernel = Py_None, *defaults = nullptr;
    int tensors, differentiable, view, replay, floating = 0, wide = 0, checked = 0, apart = 0, raw = 0,
                                               fixed = 0;
    unsigned int dtypes;
    unsigned long long results = ~0ULL;
    if (!PyArg_ParseTuple(args, "sOOOOiO!Ippp|OKppiippOO!", &kind, &closure, &kernel, &op, &node, &tensors,
                          &PyTuple_Type, &plan, &dtypes, &differentiable, &view, &replay, &returns,
                          &results, &floating, &wide, &checked, &apart, &raw, &fixed, &plain_kernel,
                          &PyTuple_Type, &defaults))
        return nullptr;
    if (returns != Py_None &&
        !(PyType_Check(returns) && (PyType_IsSubtype((PyTypeObject *)returns, &PyTuple_Type) ||
                                    returns == (PyObject *)&PyList_Type)))
        return PyErr_Format(PyExc_TypeError, "several results are a list or a tuple");
    vectorcallfunc call = nullptr;
    for (auto &k : kinds)
        if (!std::strcmp(kind, k.name)) call = k.call;
    if (!call || (call == call_apply && !PyTuple_Check(kernel)) ||
        (call == call_inplace && Py_TYPE(kernel) != &CallableType) ||
        (call == call_elementwise && !defaults))
        return PyErr_Format(PyExc_ValueError, "no such kind of callable: %s", kind);
    Callable *f = PyObject_GC_New(Callable, &CallableType);
    if (!f) return nullptr;
    f->call = call, f->dict = f->weakrefs = nullptr, f->batching = nullptr;
    f->pointwise = call == call_elementwise, f->floating = floating, f->wide = wide;
    f->checked = checked, f->apart = apart, f->raw = raw, f->fixed = fixed;
    f->plain_kernel = plain_kernel == Py_None ? nullptr : incref(plain_kernel);
    f->defaults = defaults ? incref(defaults) : nullptr;
    f->closure = incref(closure), f->kernel = incref(kernel), f->op = incref(op);
    f->returns = incref(returns), f->results = results;
    f->node = (PyTypeObject *)incref(node);
    f->tensors = tensors, f->dtypes = dtypes;
    f->differentiable = differentiable, f->view = view, f->replay = replay;
    int failed = read_plan(f, plan);
    PyObject_GC_Track((PyObject *)f);
    if (failed) Py_CLEAR(f);
    return (PyObject *)f;
}

static int find_slot(PyTypeObject *type, const char *name, Py_ssize_t *offset) {
    PyObject *descriptor = PyDict_GetItemString(type->tp_dict, name);
    if (!descriptor || Py_TYPE(descriptor) != &PyMemberDescr_Type) {
        PyErr_Format(PyExc_TypeError, "%s has no slot %s", type->tp_name, name);
        return -1;
    }
    *offset = ((PyMemberDescrObject *)descriptor)->d_member->offset;
    return 0;
}

// bind(objects): a dictionary of what core/calling/fast.py gives us to know.
static PyObject *bind(PyObject *, PyObject *objects) {
    if (!PyDict_Check(objects)) return PyErr_Format(PyExc_TypeError, "expected a dict");
    struct {
        const char *name;
        PyObject **place;
    } wanted[] = {{"Tensor", (PyObject **)&core.tensor}, {"View", (PyObject **)&core.view},
                  {"Node", (PyObject **)&core.node}, {"CopySlices", (PyObject **)&core.slices},
                  {"Untracked", (PyObject **)&core.untracked}, {"plain", &core.plain},
                  {"floating", &core.floating},
                  {"passive", &core.passive}, {"internal", &core.internal}, {"interceptors", &core.interceptors},
                  {"saved_tensor_hooks", &core.saved_tensor_hooks},
                  {"node_watchers", &core.node_watchers},
                  {"LEAF", &core.leaf}, {"LAZY", &core.lazy}, {"grad_mode", &core.grad_mode},
                  {"order", &core.order}, {"gradient_edge", &core.gradient_edge},
                  {"defaults", &core.defaults}, {"device", &core.device}, {"cpu", &core.cpu},
                  {"inference", &core.inference}, {"deriving", &core.deriving}, {"unpack_result", &core.unpack_result},
                  {"replay_of", &core.replay_of},
                  {"package", &core.package}, {"late_bound", &core.late_bound},
                  {"Output", &core.output}};
    for (auto &w : wanted) {
        PyObject *found = PyDict_GetItemString(objects, w.name);
        if (!found) return PyErr_Format(PyExc_KeyError, "%s", w.name);
        *w.place = incref(found);  // for good
    }
    if (!PyType_Check(core.tensor) || !PyType_Check(core.view) || !PyType_Check(core.node) ||
        !PyType_Check(core.untracked) ||
        !PyAnySet_Check(core.plain) || !PyAnySet_Check(core.floating) ||
        !PyAnySet_Check(core.passive) || !PyAnySet_Check(core.internal) ||
        !PyList_Check(core.interceptors) ||
        !PyList_Check(core.saved_tensor_hooks) || !PyList_Check(core.node_watchers) ||
        !PyIter_Check(core.order) || !PyUnicode_Check(core.package) ||
        !PyType_IsSubtype(core.node, &PlaceType) || !PyType_Check(core.slices) ||
        !PyType_IsSubtype(core.slices, core.node))
        return PyErr_Format(PyExc_TypeError, "bind: an object of a wrong type");
    PyTypeObject *n = core.node;
    if (find_slot(core.tensor, "_array", &core.array) || find_slot(core.tensor, "_base", &core.base) ||
        find_slot(core.tensor, "_counter", &core.counter) ||
        find_slot(core.tensor, "_edge", &core.edge) ||
        find_slot(core.tensor, "_view", &core.view_slot) || find_slot(n, "dtype", &core.node_dtype) ||
        find_slot(n, "edges", &core.edges) || find_slot(n, "order", &core.node_order) ||
        find_slot(n, "saved", &core.saved) || find_slot(n, "shape", &core.node_shape) ||
        find_slot(core.view, "node", &core.view_node) ||
        find_slot(core.view, "version", &core.version) || find_slot(core.view, "made", &core.made) ||
        find_slot(core.view, "replay", &core.replay))
        return nullptr;
    Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {{"fast_make", make, METH_VARARGS, nullptr},
                                       {"fast_bind", bind, METH_O, nullptr},
                                       {"read_numbers", (PyCFunction)(void (*)())read_numbers,
                                        METH_FASTCALL, nullptr},
                                       {nullptr, nullptr, 0, nullptr}};

}  // namespace fast

int register_fast(PyObject *module) {
    using namespace fast;
    zero = PyLong_FromLong(0), one = PyLong_FromLong(1);
    PyTypeObject &t = CallableType;
    describe_callable<Callable>(t, "flambeau.function", dealloc, traverse, fast::clear, members, getset);
    t.tp_flags |= Py_TPFLAGS_METHOD_DESCRIPTOR;
    t.tp_weaklistoffset = offsetof(Callable, weakrefs);
    t.tp_descr_get = get;
    t.tp_repr = repr;
    t.tp_methods = callable_methods;
    if (!zero || !one || PyType_Ready(&t) < 0 || register_places(module) < 0 ||
        register_scopes(module) < 0 || register_levels(module) < 0 ||
        PyModule_AddObjectRef(module, "Callable", (PyObject *)&t) < 0)
        return -1;
    return PyModule_AddFunctions(module, module_methods);
}
