// Changes that hold for a while, made and taken back in one step each: Python looks for signals
// (Ctrl-C) between its instructions, and finds none inside of a function in C. What a thread has
// entered and not left is in a list, so that a call which fails can take back what was skipped.
// flambeau/_support/scopes.py describes the interface, and has the twin in Python.
#include "tensors.h"

#include <vector>

namespace fast {

// ---- changes ------------------------------------------------------------------------------------

// A change is a tuple: (variable, value) sets a ContextVar, (list, item) appends to a list,
// (list, item, absent) removes from it, (dictionary, key, value) sets an item or, if that is
// `absent`, removes it. A record holds the changes that take them back.
static PyObject *absent;

int set_variable(PyObject *variable, PyObject *value) {
    PyObject *token = PyContextVar_Set(variable, value);
    Py_XDECREF(token);
    return token ? 0 : -1;
}

static int set_item(PyObject *dictionary, PyObject *key, PyObject *value) {
    if (value == absent)
        return PyDict_Contains(dictionary, key) ? PyObject_DelItem(dictionary, key) : 0;
    return PyDict_CheckExact(dictionary) ? PyDict_SetItem(dictionary, key, value)
                                         : PyObject_SetItem(dictionary, key, value);
}

static int remove_item(PyObject *list, PyObject *item) {
    for (Py_ssize_t i = PyList_GET_SIZE(list) - 1; i >= 0; i--)
        if (PyList_GET_ITEM(list, i) == item) return PyList_SetSlice(list, i, i + 1, nullptr);
    return 0;
}

// Make one change; what takes it back, or a null pointer.
static PyObject *make_change(PyObject *change) {
    Py_ssize_t n = PyTuple_Check(change) ? PyTuple_GET_SIZE(change) : 0;
    if (n != 2 && n != 3) return PyErr_Format(PyExc_TypeError, "%R is no change", change);
    PyObject *what = PyTuple_GET_ITEM(change, 0), *item = PyTuple_GET_ITEM(change, 1);
    if (n == 2 && PyContextVar_CheckExact(what)) {
        PyObject *old = nullptr;
        if (PyContextVar_Get(what, nullptr, &old) < 0) return nullptr;
        if (!old) return PyErr_Format(PyExc_LookupError, "%R has no value", what);
        Ref before(old), entry(PyTuple_Pack(2, what, old));
        return entry && set_variable(what, item) == 0 ? entry.release() : nullptr;
    }
    if (PyList_CheckExact(what)) {
        Ref entry(n == 2 ? PyTuple_Pack(3, what, item, absent) : PyTuple_Pack(2, what, item));
        if (!entry) return nullptr;
        int failed = n == 2 ? PyList_Append(what, item) : remove_item(what, item);
        return failed ? nullptr : entry.release();
    }
    if (n == 3 && PyDict_Check(what)) {
        PyObject *old = PyDict_GetItemWithError(what, item);
        if (!old && PyErr_Occurred()) return nullptr;
        Ref entry(PyTuple_Pack(3, what, item, old ? old : absent));
        return entry && set_item(what, item, PyTuple_GET_ITEM(change, 2)) == 0 ? entry.release()
                                                                               : nullptr;
    }
    return PyErr_Format(PyExc_TypeError, "%R is no change", change);
}

static void undo_all(PyObject *record) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    for (Py_ssize_t i = PyTuple_GET_SIZE(record) - 1; i >= 0; i--)
        if (PyObject *entry = PyTuple_GET_ITEM(record, i)) {
            Ref done(make_change(entry));
            if (!done) PyErr_WriteUnraisable(entry);
        }
    PyErr_Restore(type, value, trace);
}

static PyObject *make_changes(PyObject *changes) {
    if (!PyTuple_Check(changes)) return PyErr_Format(PyExc_TypeError, "changes are a tuple");
    Py_ssize_t n = PyTuple_GET_SIZE(changes);
    PyObject *record = PyTuple_New(n);
    for (Py_ssize_t i = 0; record && i < n; i++) {
        PyObject *entry = make_change(PyTuple_GET_ITEM(changes, i));
        if (!entry) {
            undo_all(record);
            Py_CLEAR(record);
        } else {
            PyTuple_SET_ITEM(record, i, entry);
        }
    }
    return record;
}

// ---- scopes -------------------------------------------------------------------------------------

struct Scope {
    PyObject_HEAD
    PyObject *early;  // the record of changes that were made before it is entered
};
static PyTypeObject ScopeType = {PyVarObject_HEAD_INIT(nullptr, 0)};
static PyObject *name_changes, *name_gives, *name_left, *name_early, *name_acquire, *name_release;

struct Entered {
    Scope *scope;
    PyObject *record;
};
// What this thread has entered and not left, with a reference to each.
static thread_local std::vector<Entered> entered;

// What the class of a scope says, which no instance says otherwise: a new reference.
static PyObject *said(PyObject *self, PyObject *name) {
    PyObject *found = _PyType_Lookup(Py_TYPE(self), name);
    if (!found) return PyErr_Format(PyExc_AttributeError, "%U", name);
    descrgetfunc get = Py_TYPE(found)->tp_descr_get;
    return get ? get(found, self, (PyObject *)Py_TYPE(self)) : incref(found);
}

// Make the changes of a scope; their record.
static PyObject *change(Scope *self) {
    PyObject *found = PyObject_GetAttr((PyObject *)self, name_changes);
    if (found && !PyTuple_Check(found)) {
        Ref method(found);
        found = PyObject_CallNoArgs(found);
    }
    Ref changes(found);
    return found ? make_changes(found) : nullptr;
}

static void restore(Scope *self) {
    Ref record(self->early);
    self->early = nullptr;
    if (record) undo_all(record.get());
}

static int enter_scope(Scope *self) {
    PyObject *record = change(self);
    if (!record) {
        restore(self);
        return -1;
    }
    if (self->early) {  // what was in force since then may have been something else
        Py_DECREF(record);
        record = self->early;
        self->early = nullptr;
    }
    entered.push_back({(Scope *)incref((PyObject *)self), record});
    return 0;
}

static void leave_at(size_t i) {
    Entered one = entered[i];
    entered.erase(entered.begin() + i);
    undo_all(one.record);
    Py_DECREF(one.record);
    Py_DECREF((PyObject *)one.scope);
}

// Without Python code, so that nothing can interrupt it.
static void leave_scope(Scope *self) {
    for (size_t i = entered.size(); i--;)
        if (entered[i].scope == self) return leave_at(i);
}

// What a subclass wants to do once it has been left; it may be interrupted.
static int has_left(PyObject *self) {
    Ref method(said(self, name_left));
    if (!method || method.get() == Py_None) return method ? 0 : -1;
    Ref done(PyObject_CallNoArgs(method.get()));
    return done ? 0 : -1;
}

bool is_scope(PyObject *object) { return PyObject_TypeCheck(object, &ScopeType); }

size_t entered_scopes() { return entered.size(); }

void leave_down_to(size_t height) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    while (entered.size() > height) {
        Ref scope(incref((PyObject *)entered.back().scope));
        leave_at(entered.size() - 1);
        if (has_left(scope.get()) < 0) PyErr_WriteUnraisable(scope.get());
    }
    PyErr_Restore(type, value, trace);
}

// What Python says of a method without arguments, by the class that the program knows.
static PyObject *enter(PyObject *self, PyObject *const *, Py_ssize_t n, PyObject *names) {
    if (names && PyTuple_GET_SIZE(names))
        return PyErr_Format(PyExc_TypeError, "%s.__enter__() got an unexpected keyword argument '%U'",
                            Py_TYPE(self)->tp_name, PyTuple_GET_ITEM(names, 0));
    if (n)
        return PyErr_Format(PyExc_TypeError, "%s.__enter__() takes 1 positional argument but %zd were given",
                            Py_TYPE(self)->tp_name, n + 1);
    Ref gives(said(self, name_gives));  // before the changes: it may be computed
    if (!gives || enter_scope((Scope *)self) < 0) return nullptr;
    return incref(gives.get() == Py_NotImplemented ? self : gives.get());
}

static PyObject *leave(PyObject *self, PyObject *) {
    leave_scope((Scope *)self);
    if (has_left(self) < 0) return nullptr;
    Py_RETURN_NONE;
}

static PyObject *take_back(PyObject *self, PyObject *) {
    restore((Scope *)self);
    Py_RETURN_NONE;
}

static PyObject *state(PyObject *self, PyObject *) {
    PyObject **dict = _PyObject_GetDictPtr(self);
    return incref(dict && *dict ? *dict : Py_None);
}

static int init(PyObject *self, PyObject *, PyObject *) {
    if (_PyType_Lookup(Py_TYPE(self), name_early) != Py_True || ((Scope *)self)->early) return 0;
    return (((Scope *)self)->early = change((Scope *)self)) ? 0 : -1;
}

// `with set_grad_enabled(False):` that is interrupted before it is entered has no effect.
static void finalize(PyObject *self) {
    if (PyErr_Occurred()) restore((Scope *)self);
}

static int traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(((Scope *)self)->early);
    return 0;
}

static int clear(PyObject *self) {
    Py_CLEAR(((Scope *)self)->early);
    return 0;
}

static void dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    if (PyObject_CallFinalizerFromDealloc(self) < 0) return;
    clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyMethodDef scope_methods[] = {{"__enter__", (PyCFunction)(void (*)())enter, METH_FASTCALL | METH_KEYWORDS,
                                       "__enter__($self)\n--\n\nMake the changes."},
                                      {"__exit__", leave, METH_VARARGS,
                                       "__exit__($self, exc_type, exc_value, traceback)\n--\n\n"
                                       "Take the changes back."},
                                      {"_take_back", take_back, METH_NOARGS, nullptr},
                                      {"__getstate__", state, METH_NOARGS, nullptr},
                                      {nullptr, nullptr, 0, nullptr}};

// ---- calls --------------------------------------------------------------------------------------

// Call `args[0]` with the rest; if it fails, leave what it has entered.
static PyObject *call(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    size_t height = entered.size();
    PyObject *result = PyObject_Vectorcall(args[0], args + 1, n - 1, names);
    if (!result) leave_down_to(height);
    return result;
}

static bool given(Py_ssize_t n, Py_ssize_t least) {
    if (n >= least) return true;
    PyErr_Format(PyExc_TypeError, "expected at least %zd arguments", least);
    return false;
}

static PyObject *restoring(PyObject *, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    return given(n, 1) ? call(args, n, names) : nullptr;
}

static PyObject *enclosed(PyObject *, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    size_t height = entered.size();
    PyObject *result = given(n, 1) ? PyObject_Vectorcall(args[0], args + 1, n - 1, names) : nullptr;
    leave_down_to(height);
    return result;
}

static PyObject *within(PyObject *, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (!given(n, 3)) return nullptr;
    PyObject *old = nullptr;
    if (PyContextVar_Get(args[0], nullptr, &old) < 0) return nullptr;
    Ref before(old);
    if (!old) return PyErr_Format(PyExc_LookupError, "%R has no value", args[0]);
    if (old != args[1] && set_variable(args[0], args[1]) < 0) return nullptr;
    PyObject *result = call(args + 2, n - 2, names);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (set_variable(args[0], old) < 0) PyErr_WriteUnraisable(args[0]);
    PyErr_Restore(type, value, trace);
    return result;
}

static PyObject *inside(PyObject *, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (!given(n, 2)) return nullptr;
    if (!PyObject_TypeCheck(args[0], &ScopeType))
        return PyErr_Format(PyExc_TypeError, "%R is no scope", args[0]);
    if (enter_scope((Scope *)args[0]) < 0) return nullptr;
    PyObject *result = call(args + 1, n - 1, names);
    leave_scope((Scope *)args[0]);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (has_left(args[0]) < 0) {
        Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
        Py_CLEAR(result);
    } else {
        PyErr_Restore(type, value, trace);
    }
    return result;
}

static PyObject *locked(PyObject *, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (!given(n, 2)) return nullptr;
    Ref acquired(PyObject_CallMethodNoArgs(args[0], name_acquire));
    if (!acquired) return nullptr;
    PyObject *result = call(args + 1, n - 1, names);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    Ref released(PyObject_CallMethodNoArgs(args[0], name_release));
    if (!released) PyErr_WriteUnraisable(args[0]);
    PyErr_Restore(type, value, trace);
    return result;
}

#define FUNCTION(name) \
    {#name, (PyCFunction)(void (*)())name, METH_FASTCALL | METH_KEYWORDS, nullptr}
static PyMethodDef methods[] = {FUNCTION(restoring), FUNCTION(enclosed), FUNCTION(within),
                                FUNCTION(inside), FUNCTION(locked), {nullptr, nullptr, 0, nullptr}};

int register_scopes(PyObject *module) {
    PyTypeObject &t = ScopeType;
    t.tp_name = "flambeau._support.scopes.Scope";
    t.tp_basicsize = sizeof(Scope);
    t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
    t.tp_new = PyType_GenericNew;
    t.tp_init = init;
    t.tp_dealloc = dealloc;
    t.tp_finalize = finalize;
    t.tp_traverse = traverse;
    t.tp_clear = clear;
    t.tp_methods = scope_methods;
    name_changes = PyUnicode_InternFromString("_changes");
    name_gives = PyUnicode_InternFromString("_gives");
    name_left = PyUnicode_InternFromString("_has_left");
    name_early = PyUnicode_InternFromString("_early");
    name_acquire = PyUnicode_InternFromString("acquire");
    name_release = PyUnicode_InternFromString("release");
    absent = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
    if (!absent || PyType_Ready(&t) < 0 ||
        PyDict_SetItem(t.tp_dict, name_changes, Ref(PyTuple_New(0)).get()) < 0 ||
        PyDict_SetItem(t.tp_dict, name_gives, Py_NotImplemented) < 0 ||
        PyDict_SetItem(t.tp_dict, name_left, Py_None) < 0 ||
        PyDict_SetItem(t.tp_dict, name_early, Py_False) < 0 ||
        PyModule_AddFunctions(module, methods) < 0 || PyModule_AddObjectRef(module, "absent", absent))
        return -1;
    return PyModule_AddObjectRef(module, "Scope", (PyObject *)&t);
}

}  // namespace fast
