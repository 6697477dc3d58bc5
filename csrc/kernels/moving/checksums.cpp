// CRC-32, the checksum of zip archives: flambeau/kernels/checksums.py.
//
// A message is a polynomial over the field of two elements, bits reversed, and the checksum its
// remainder. Where processors multiply such polynomials, 64 bytes are folded at a time into the 64
// that follow, by multiplying with powers of x modulo the divisor (Gopal et al., "Fast CRC computation
// for generic polynomials using PCLMULQDQ", 2009).
#include "common.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define CARRYLESS 1
#else
#define CARRYLESS 0
#endif

namespace {

struct Table {
    uint32_t of_byte[256];
    Table() {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t r = i;
            for (int k = 0; k < 8; k++) r = r & 1 ? r >> 1 ^ 0xEDB88320u : r >> 1;
            of_byte[i] = r;
        }
    }
};

uint32_t by_bytes(uint32_t state, const uint8_t *p, size_t n) {
    static const Table table;
    for (size_t i = 0; i < n; i++) state = table.of_byte[(state ^ p[i]) & 255] ^ state >> 8;
    return state;
}

#if CARRYLESS
#define WITH_PRODUCTS __attribute__((target("pclmul,sse4.1")))

// Moves `x` over by the distance that the two powers of x in `powers` say, and adds `next`.
WITH_PRODUCTS inline __m128i fold(__m128i x, __m128i powers, __m128i next) {
    __m128i low = _mm_clmulepi64_si128(x, powers, 0x00), high = _mm_clmulepi64_si128(x, powers, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

WITH_PRODUCTS inline __m128i load(const uint8_t *p) { return _mm_loadu_si128((const __m128i *)p); }

// n: a multiple of 16, at least 64.
WITH_PRODUCTS uint32_t by_products(uint32_t state, const uint8_t *p, size_t n) {
    const __m128i over_64 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
    const __m128i over_16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    const __m128i over_8 = _mm_set_epi64x(0, 0x0163cd6124);
    const __m128i divisor = _mm_set_epi64x(0x01f7011641, 0x01db710641);   // and its inverse
    const __m128i words = _mm_setr_epi32(-1, 0, -1, 0);

    __m128i x[4];
    for (int i = 0; i < 4; i++) x[i] = load(p + 16 * i);
    x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128(int(state)));
    for (p += 64, n -= 64; n >= 64; p += 64, n -= 64)
        for (int i = 0; i < 4; i++) x[i] = fold(x[i], over_64, load(p + 16 * i));
    __m128i y = x[0];
    for (int i = 1; i < 4; i++) y = fold(y, over_16, x[i]);
    for (; n >= 16; p += 16, n -= 16) y = fold(y, over_16, load(p));

    y = _mm_xor_si128(_mm_srli_si128(y, 8), _mm_clmulepi64_si128(y, over_16, 0x10));       // 128 to 96 bits
    y = _mm_xor_si128(_mm_srli_si128(y, 4), _mm_clmulepi64_si128(_mm_and_si128(y, words), over_8, 0x00));
    __m128i q = _mm_clmulepi64_si128(_mm_and_si128(y, words), divisor, 0x10);              // Barrett: 64 to 32
    q = _mm_clmulepi64_si128(_mm_and_si128(q, words), divisor, 0x00);
    return uint32_t(_mm_extract_epi32(_mm_xor_si128(y, q), 1));
}

bool has_products() {
    static const bool found = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
    return found;
}
#endif

// crc32(buffer, value): None where zlib is as fast.
PyObject *crc32(PyObject *, PyObject *args) {
    Py_buffer buffer;
    unsigned int value;
    if (!PyArg_ParseTuple(args, "y*I", &buffer, &value)) return nullptr;
#if CARRYLESS
    if (has_products()) {
        const uint8_t *p = (const uint8_t *)buffer.buf;
        size_t n = size_t(buffer.len), most = n >= 64 ? n / 16 * 16 : 0;
        uint32_t state = ~uint32_t(value);
        Py_BEGIN_ALLOW_THREADS
        if (most) state = by_products(state, p, most);
        state = by_bytes(state, p + most, n - most);
        Py_END_ALLOW_THREADS
        PyBuffer_Release(&buffer);
        return PyLong_FromUnsignedLong(~state & 0xFFFFFFFFu);
    }
#endif
    PyBuffer_Release(&buffer);
    Py_RETURN_NONE;
}

PyMethodDef methods[] = {{"crc32", crc32, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

}  // namespace

int register_checksums(PyObject *module) { return PyModule_AddFunctions(module, methods); }
