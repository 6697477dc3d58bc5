#include "binding/binder.h"

#include "calling/levels.h"

namespace binding {

Known known;
static thread_local bool slices = false;

TakesSlices::TakesSlices() : before(slices) { slices = true; }
TakesSlices::~TakesSlices() { slices = before; }

static bool is_tensor(PyObject *value) {
    return fast::is_plain_tensor(value) || (slices && fast::is_slice(value));
}

// Is it of a type that no override, no number of NumPy's and no tensor has?
static bool is_builtin(PyTypeObject *type) {
    return type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type ||
           type == &PyUnicode_Type || type == &PyList_Type || type == &PyTuple_Type ||
           type == &PyComplex_Type || type == Py_TYPE(Py_None) || type == known.dtype ||
           type == known.device || type == known.size;
}

static Answer no_if(bool surely) { return surely ? Answer::NO : Answer::UNSURE; }

// Is it an integer that 64 bits hold? What is said of larger ones depends on the parameter.
static bool is_int64(PyObject *value) {
    if (!PyLong_CheckExact(value)) return false;
    int beyond;
    PyLong_AsLongLongAndOverflow(value, &beyond);
    return !beyond;
}

static Answer yes_if_int64(PyObject *value) { return is_int64(value) ? Answer::YES : Answer::UNSURE; }

static bool all_ints(PyObject *list) {
    PyObject **items = PySequence_Fast_ITEMS(list);
    for (Py_ssize_t i = 0, n = PySequence_Fast_GET_SIZE(list); i < n; i++)
        if (!is_int64(items[i])) return false;
    return true;
}

static bool all_numbers(PyObject *list, bool bools) {
    PyObject **items = PySequence_Fast_ITEMS(list);
    for (Py_ssize_t i = 0, n = PySequence_Fast_GET_SIZE(list); i < n; i++)
        if (bools ? !PyBool_Check(items[i]) : !PyFloat_CheckExact(items[i]) && !PyLong_CheckExact(items[i]))
            return false;
    return true;
}

static bool all_tensors(PyObject *list) {
    PyObject **items = PySequence_Fast_ITEMS(list);
    for (Py_ssize_t i = 0, n = PySequence_Fast_GET_SIZE(list); i < n; i++)
        if (!is_tensor(items[i])) return false;
    return true;
}

static bool holds_tensor(PyObject *list) {
    return PySequence_Fast_GET_SIZE(list) && is_tensor(PySequence_Fast_GET_ITEM(list, 0));
}

static bool holds_number(PyObject *list) {
    PyObject *first = PySequence_Fast_GET_SIZE(list) ? PySequence_Fast_GET_ITEM(list, 0) : Py_None;
    return PyFloat_CheckExact(first) || PyLong_CheckExact(first);
}

static Answer fits_list(const Parameter &p, PyObject *value) {
    PyTypeObject *type = Py_TYPE(value);
    if (type != &PyTuple_Type && type != &PyList_Type && type != known.size) {
        if (p.kind == INTS && p.size > 0 && type == &PyLong_Type) return yes_if_int64(value);
        return no_if(is_builtin(type) || is_tensor(value));
    }
    if (p.kind == TENSORS) return all_tensors(value) ? Answer::YES : no_if(holds_number(value));
    if (p.kind == SCALARS) return all_numbers(value, false) ? Answer::YES : no_if(holds_tensor(value));
    if (p.kind == FLOATS || p.kind == BOOLS)
        return all_numbers(value, p.kind == BOOLS) ? Answer::YES : Answer::UNSURE;
    return all_ints(value) ? Answer::YES : Answer::UNSURE;
}

static Answer fits(const Parameter &p, PyObject *value) {
    PyTypeObject *type = Py_TYPE(value);
    switch (p.kind) {
        case TENSOR:
            return is_tensor(value) ? Answer::YES : no_if(is_builtin(type));
        case OWN_TENSOR:
            if (is_tensor(value) || (!slices && PySet_Contains(fast::core.internal, (PyObject *)type) == 1))
                return Answer::YES;
            break;
        case TENSOR_OR_NUMBER:
            if (type == &PyFloat_Type || type == &PyBool_Type || type == &PyComplex_Type || is_tensor(value))
                return Answer::YES;
            if (type == &PyLong_Type) return yes_if_int64(value);
            break;
        case TENSORS:
        case FLOATS:
        case BOOLS:
        case SCALARS:
        case INTS: return fits_list(p, value);
        case SCALAR:
            if (type == &PyFloat_Type || type == &PyBool_Type || type == &PyComplex_Type) return Answer::YES;
            if (type == &PyLong_Type) return yes_if_int64(value);
            break;
        case INT:
            if (type == &PyLong_Type) return yes_if_int64(value);
            break;
        case FLOAT:
            if (type == &PyFloat_Type || type == &PyLong_Type) return Answer::YES;
            if (type == &PyBool_Type) return Answer::UNSURE;
            break;
        case BOOL:
            if (type == &PyBool_Type) return Answer::YES;
            break;
        case DTYPE:
            if (type == known.dtype) return Answer::YES;
            if (PyType_Check(value)) return Answer::UNSURE;  // `float` is one
            return no_if(type == fast::core.tensor || is_builtin(type));
        case DEVICE:
            if (type == known.device || type == &PyUnicode_Type) return Answer::YES;
            return no_if(type == known.dtype || type == fast::core.tensor);
        case LAYOUT:
            if (type == known.layout) return Answer::YES;
            break;
        case MEMORY_FORMAT:
            if (type == known.memory_format) return Answer::YES;
            break;
        case STRING:
            if (type == &PyUnicode_Type) return Answer::YES;
            break;
        case GENERATOR:
            if (type == known.generator) return Answer::YES;
            break;
        case ANY: return Answer::YES;
        case OTHER: return Answer::UNSURE;
    }
    return no_if(is_builtin(type));
}

static bool same_name(PyObject *given, PyObject *name) {
    return given == name || (!PyUnicode_CHECK_INTERNED(given) && PyUnicode_Compare(given, name) == 0);
}

// Where among the keywords of a call a parameter stands; -1: nowhere.
static Py_ssize_t find(PyObject *names, const Parameter &p) {
    Py_ssize_t n = PyTuple_GET_SIZE(names);
    for (Py_ssize_t i = 0; i < n; i++)
        if (same_name(PyTuple_GET_ITEM(names, i), p.name)) return i;
    for (Py_ssize_t k = 0; p.spellings && k < PyTuple_GET_SIZE(p.spellings); k++)
        for (Py_ssize_t i = 0; i < n; i++)
            if (same_name(PyTuple_GET_ITEM(names, i), PyTuple_GET_ITEM(p.spellings, k))) return i;
    return -1;
}

// Numbers given one by one as a tuple; null without an error: not all of them are plain numbers.
static PyObject *gathered(PyObject *const *args, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++)
        if (!PyLong_CheckExact(args[i])) return nullptr;
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; tuple && i < n; i++) PyTuple_SET_ITEM(tuple, i, fast::incref(args[i]));
    return tuple;
}

Answer bind(const Signature &s, PyObject *const *args, Py_ssize_t n, PyObject *names, Bound &bound) {
    if (n > s.positions && !s.one_by_one) return Answer::NO;
    bool unsure = false;
    Py_ssize_t at = 0, used = 0, keywords = names ? PyTuple_GET_SIZE(names) : 0;
    for (int i = 0; i < s.count; i++) {
        const Parameter &p = s.parameters[i];
        PyObject *value = nullptr;
        if (at < n) {
            if (p.by_name) return Answer::NO;
            value = args[at];
            if (s.one_by_one && p.kind == INTS && PyLong_CheckExact(value)) {
                bound.numbers.take(gathered(args + at, n - at));
                if (!bound.numbers) return Answer::UNSURE;
                bound.values[i] = bound.numbers.get();
                at = n;
                continue;
            }
            at++;
        } else if (used < keywords) {
            Py_ssize_t k = find(names, p);
            if (k >= 0) value = args[n + k], used++;
        }
        if (!value) {
            if (!p.value) return Answer::NO;
            bound.values[i] = p.value;
            continue;
        }
        if (value == Py_None && p.value && PyTuple_Check(p.value) && !PyTuple_GET_SIZE(p.value))
            value = p.value;  // of a list that is empty by default
        else if (value != Py_None || !p.nullable) {
            Answer answer = fits(p, value);
            if (answer == Answer::NO) return answer;
            unsure |= answer == Answer::UNSURE;  // unless another value surely does not fit
        }
        bound.values[i] = value;
    }
    if (at != n || used != keywords) return Answer::NO;
    return unsure ? Answer::UNSURE : Answer::YES;
}

int read(PyObject *description, bool method, Signature &s) {
    if (!PyList_Check(description) || PyList_GET_SIZE(description) > MAX_PARAMETERS) {
        PyErr_SetString(PyExc_ValueError, "a signature is a list of at most 24 parameters");
        return -1;
    }
    int count = int(PyList_GET_SIZE(description));
    s.parameters = (Parameter *)PyMem_Calloc(count ? count : 1, sizeof(Parameter));
    if (!s.parameters) return PyErr_NoMemory(), -1;
    for (int i = 0; i < count; i++, s.count++) {
        Parameter &p = s.parameters[i];
        int kind, size, nullable, by_name, has_default;
        PyObject *name, *spellings, *value;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(description, i), "iippUOpO", &kind, &size, &nullable,
                              &by_name, &name, &spellings, &has_default, &value))
            return -1;
        p.kind = Kind(kind), p.size = int8_t(size), p.nullable = nullable, p.by_name = by_name;
        p.name = fast::incref(name);
        PyUnicode_InternInPlace(&p.name);
        p.spellings = PyTuple_Check(spellings) ? fast::incref(spellings) : nullptr;
        p.value = has_default ? fast::incref(value) : nullptr;
        s.positions += !by_name;
    }
    s.one_by_one = s.positions == 1 + method && s.parameters[method].kind == INTS;
    return 0;
}

void release(Signature &s) {
    for (int i = 0; i < s.count; i++) {
        Py_XDECREF(s.parameters[i].name);
        Py_XDECREF(s.parameters[i].spellings);
        Py_XDECREF(s.parameters[i].value);
    }
    PyMem_Free(s.parameters);
}

}  // namespace binding
