// The module flambeau.kernels._native: calls the registration function of each family of kernels.
#define FLAMBEAU_IMPORT_ARRAY
#include "common.h"
#include "parallel.h"

#include <cstdlib>
#include <string>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

int register_kernel_types(PyObject *module);
int register_arithmetic(PyObject *module);
int register_comparison(PyObject *module);
int register_functions(PyObject *module);
int register_special(PyObject *module);
int register_bessel(PyObject *module);
int register_polynomials(PyObject *module);
int register_activations(PyObject *module);
int register_conversion(PyObject *module);
int register_reductions(PyObject *module);
int register_statistics(PyObject *module);
int register_scans(PyObject *module);
int register_random(PyObject *module);
int register_views(PyObject *module);
int register_copying(PyObject *module);
int register_creation(PyObject *module);
int register_brain_products(PyObject *module);
int register_equations(PyObject *module);
int register_orthogonal(PyObject *module);
int register_products(PyObject *module);
int register_fourier(PyObject *module);
int register_fast(PyObject *module);
int register_calling(PyObject *module);
int register_members(PyObject *module);
int register_indexing(PyObject *module);
int register_places_kernels(PyObject *module);
int register_view_kernels(PyObject *module);
int register_rearranging(PyObject *module);
int register_slices(PyObject *module);
int register_windows(PyObject *module);
int register_fortran(PyObject *module);
int register_matrix_exp(PyObject *module);
int register_sparse(PyObject *module);
int register_optimizers(PyObject *module);
int register_update_rules(PyObject *module);
int register_checksums(PyObject *module);
int register_network(PyObject *module);

static PyObject *set_num_threads(PyObject *, PyObject *n) {
    long threads = PyLong_AsLong(n);
    if (threads == -1 && PyErr_Occurred()) return nullptr;
    set_max_threads(int(threads));
    Py_RETURN_NONE;
}

static PyObject *get_num_threads(PyObject *, PyObject *) { return PyLong_FromLong(max_threads()); }

// Whether this thread's arithmetic takes denormal numbers as zero and gives zero for them;
// gives False where no such mode is known here.
static PyObject *set_flush_denormal(PyObject *, PyObject *mode) {
    int on = PyObject_IsTrue(mode);
    if (on < 0) return nullptr;
#if defined(__SSE2__)
    const unsigned bits = 0x8040;  // flush to zero, denormals are zero
    _mm_setcsr(on ? _mm_getcsr() | bits : _mm_getcsr() & ~bits);
    Py_RETURN_TRUE;
#else
    Py_RETURN_FALSE;
#endif
}

static PyObject *simd(PyObject *, PyObject *) {
    const char *target = "baseline";
#if FLAMBEAU_CLONES
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
        target = "AVX-512";
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        target = "AVX2";
#endif
    return PyUnicode_FromString(target);
}

// The interpreter's errors name a class as PyTorch's built-in type: 'torch.Size', in full. Its
// `__name__` stays; a class is renamed once and lives as long as the process, so the text does too.
static PyObject *cite_type_as(PyObject *, PyObject *args) {
    PyTypeObject *type;
    const char *name;
    if (!PyArg_ParseTuple(args, "O!s", &PyType_Type, &type, &name)) return nullptr;
    type->tp_name = (new std::string(name))->c_str();
    Py_RETURN_NONE;
}

// Arrays of megabytes come and go with every training step. By default glibc maps each from the
// system and gives it back, and the page faults cost more than the loops that fill it: keep them.
// FLAMBEAU_KEEP_MEMORY=0 leaves the allocator as it is.
static void keep_memory() {
#ifdef __GLIBC__
    const char *choice = std::getenv("FLAMBEAU_KEEP_MEMORY");
    if (choice && choice[0] == '0') return;
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 128 << 20);
#endif
}

static PyMethodDef methods[] = {{"set_num_threads", set_num_threads, METH_O, nullptr},
                                {"get_num_threads", get_num_threads, METH_NOARGS, nullptr},
                                {"set_flush_denormal", set_flush_denormal, METH_O, nullptr},
                                {"simd", simd, METH_NOARGS, nullptr},
                                {"cite_type_as", cite_type_as, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_native", nullptr, -1, methods,
                                 nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit__native() {
    import_array();
    keep_memory();
    PyObject *module = PyModule_Create(&definition);
    if (!module) return nullptr;
#ifdef _OPENMP
    bool openmp = true;
#else
    bool openmp = false;
#endif
#if defined(__VERSION__)
    const char *compiler = __VERSION__;
#else
    const char *compiler = "";
#endif
    if (PyModule_AddObject(module, "openmp", PyBool_FromLong(openmp)) ||
        PyModule_AddIntConstant(module, "interface", FLAMBEAU_INTERFACE) ||
        PyModule_AddStringConstant(module, "compiler", compiler) || register_kernel_types(module) ||
        register_arithmetic(module) || register_comparison(module) || register_functions(module) ||
        register_special(module) || register_bessel(module) || register_polynomials(module) ||
        register_activations(module) ||
        register_conversion(module) ||
        register_reductions(module) || register_statistics(module) || register_scans(module) ||
        register_random(module) || register_views(module) || register_fast(module) ||
        register_calling(module) || register_members(module) || register_indexing(module) ||
        register_places_kernels(module) || register_view_kernels(module) || register_slices(module) ||
        register_windows(module) || register_rearranging(module) ||
        register_copying(module) || register_creation(module) || register_equations(module) || register_brain_products(module) ||
        register_orthogonal(module) || register_products(module) || register_fourier(module) ||
        register_fortran(module) || register_matrix_exp(module) || register_sparse(module) ||
        register_optimizers(module) || register_update_rules(module) || register_checksums(module) || register_network(module)) {
        Py_DECREF(module);
        return nullptr;
    }
    return module;
}
