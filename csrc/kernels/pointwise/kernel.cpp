// The call of a pointwise kernel.
#include "kernels/pointwise/kernel.h"

#include <structmember.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "arrays.h"
#include "kernels/moving/copying.h"
#include "kernels/moving/transposed.h"
#include "parallel.h"

#if FLAMBEAU_CLONES
#include <immintrin.h>
#endif

// ---- iteration ----------------------------------------------------------------------------------
// A run visits the elements in the order of the result's memory, in blocks. An operand whose block
// is contiguous is read where it lies; others are gathered into a small buffer first (which stays
// in the first-level cache), so that each loop needs only its contiguous form.

namespace {

constexpr npy_intp BLOCK = 512;
constexpr npy_intp SHORTEST_ROW = 32;  // for which a loop with constants is called

enum class Way { FLAT, ROWS, PARTS, TILES, BLOCKS };

struct Plan {
    Loop loop;
    int ndim, count, constants;  // operands that the loop reads one element of
    npy_intp shape[NPY_MAXDIMS];
    const Operand *operands;
    bool flat[MAX_OPERANDS], repeats[MAX_OPERANDS];
    Way way;
    npy_intp period;  // after so many elements what repeats has started again
};

struct Wide {
    uint64_t low, high;
};

// Copies n elements of a strided operand to a contiguous buffer, or back (`out`).
template <class T, bool out>
INLINE void copy_strided(char *strided, npy_intp step, T *buffer, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) {
        if (out)
            std::memcpy(strided + i * step, buffer + i, sizeof(T));
        else
            std::memcpy(buffer + i, strided + i * step, sizeof(T));
    }
}

template <class T, bool out>
INLINE void copy_row(char *strided, npy_intp step, T *buffer, npy_intp n) {
    if (!out && step == 0) {
        T element;
        std::memcpy(&element, strided, sizeof(T));
        std::fill(buffer, buffer + n, element);
    } else if (step == sizeof(T)) {  // the constant step lets the compiler vectorise
        copy_strided<T, out>(strided, sizeof(T), buffer, n);
    } else if (!out && step == 2 * sizeof(T)) {
        copy_strided<T, out>(strided, 2 * sizeof(T), buffer, n);
    } else {
        copy_strided<T, out>(strided, step, buffer, n);
    }
}

// Calls run(T()) for the type of elements of that size.
template <class Run>
void for_size(npy_intp size, Run run) {
    switch (size) {
        case 1: return run(uint8_t());
        case 2: return run(uint16_t());
        case 4: return run(uint32_t());
        case 8: return run(uint64_t());
        default: return run(Wide());
    }
}

template <class T>
CLONES void fill(T *buffer, const char *element, npy_intp n) {
    T value;
    std::memcpy(&value, element, sizeof(T));
    for (npy_intp i = 0; i < n; i++) buffer[i] = value;
}

void repeat(npy_intp size, char *buffer, const char *element, npy_intp n) {
    for_size(size, [&](auto t) { fill((decltype(t) *)buffer, element, n); });
}

struct Place {
    npy_intp at[NPY_MAXDIMS];
};

void locate(const Plan &plan, npy_intp index, Place &place) {
    for (int d = plan.ndim - 1; d >= 0; d--) {
        place.at[d] = index % plan.shape[d];
        index /= plan.shape[d];
    }
}

char *address(const Plan &plan, const Operand &o, const Place &place) {
    char *p = o.data;
    for (int d = 0; d < plan.ndim; d++) p += place.at[d] * o.strides[d];
    return p;
}

void advance(const Plan &plan, Place &place, npy_intp steps) {
    int d = plan.ndim - 1;
    place.at[d] += steps;
    while (d > 0 && place.at[d] >= plan.shape[d]) {
        npy_intp rows = place.at[d] < 2 * plan.shape[d] ? 1 : place.at[d] / plan.shape[d];
        place.at[d] -= rows * plan.shape[d];
        place.at[--d] += rows;
    }
}

// Elements that lie apart are no sooner gathered by the widest vectors.
#if FLAMBEAU_CLONES
#define GATHERING_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define GATHERING_CLONES
#endif

template <npy_intp n>
using Fixed = std::integral_constant<npy_intp, n>;

template <class T, bool out, class Length>
INLINE void copy_rows(char *p, npy_intp next, npy_intp step, T *buffer, npy_intp rows, Length row) {
    for (npy_intp r = 0; r < rows; r++)
        copy_row<T, out>(p + r * next, step, buffer + r * row, row);
}

// Copies `n` elements from `place` on between a strided operand and a contiguous buffer.
template <class T, bool out>
GATHERING_CLONES void transfer_elements(const Plan &plan, const Operand &o, Place place, T *buffer, npy_intp n) {
    int last = plan.ndim - 1;
    npy_intp row = plan.shape[last], step = o.strides[last];
    while (n > 0) {
        char *p = address(plan, o, place);
        npy_intp done = std::min(n, row - place.at[last]);
        if (last == 0 || done < row) {
            copy_row<T, out>(p, step, buffer, done);
        } else {  // whole rows
            npy_intp rows = std::min(n / row, plan.shape[last - 1] - place.at[last - 1]);
            npy_intp next = o.strides[last - 1];
            switch (row) {  // the compiler writes out the shortest
                case 2: copy_rows<T, out>(p, next, step, buffer, rows, Fixed<2>()); break;
                case 3: copy_rows<T, out>(p, next, step, buffer, rows, Fixed<3>()); break;
                case 4: copy_rows<T, out>(p, next, step, buffer, rows, Fixed<4>()); break;
                default: copy_rows<T, out>(p, next, step, buffer, rows, row);
            }
            done = rows * row;
        }
        buffer += done, n -= done;
        if (n > 0) advance(plan, place, done);
    }
}

void transfer(const Plan &plan, const Operand &o, const Place &place, char *buffer, npy_intp n,
              bool out) {
    for_size(o.size, [&](auto t) {
        using T = decltype(t);
        if (out)
            transfer_elements<T, true>(plan, o, place, (T *)buffer, n);
        else
            transfer_elements<T, false>(plan, o, place, (T *)buffer, n);
    });
}

// In blocks of whole periods, so that what repeats is gathered once.
int run_blocks(const Plan &plan, npy_intp begin, npy_intp end) {
    char *p[MAX_OPERANDS];
    alignas(64) char buffers[MAX_OPERANDS][BLOCK * 16];
    int result = plan.count - 1, bad = 0;
    npy_intp whole = BLOCK / plan.period * plan.period;
    bool scatter = !plan.flat[result], filled = false;
    Place place;
    locate(plan, begin, place);
    for (npy_intp i = begin; i < end;) {
        npy_intp n = std::min(end - i, whole - i % whole);
        for (int k = 0; k < plan.count; k++) {
            const Operand &o = plan.operands[k];
            p[k] = plan.flat[k] ? o.data + i * o.size : buffers[k];
            if (!plan.flat[k] && k != result && !(filled && plan.repeats[k]))
                transfer(plan, o, place, p[k], n, false);
        }
        filled = i % whole == 0;
        bad |= plan.loop(n, p);
        if (scatter) transfer(plan, plan.operands[result], place, p[result], n, true);
        i += n;
        if (i < end) advance(plan, place, n);
    }
    return bad;
}

// Row by row, where every operand steps evenly along them.
int run_rows(const Plan &plan, npy_intp begin, npy_intp end) {
    char *p[MAX_OPERANDS];
    int last = plan.ndim - 1, bad = 0;
    npy_intp row = plan.shape[last];
    Place place;
    locate(plan, begin, place);
    for (npy_intp i = begin; i < end;) {
        for (int k = 0; k < plan.count; k++) p[k] = address(plan, plan.operands[k], place);
        npy_intp n = std::min(end - i, row - place.at[last]), rows = 1;
        if (n == row) rows = std::min((end - i) / row, plan.shape[last - 1] - place.at[last - 1]);
        for (npy_intp r = 0; r < rows; r++) {
            bad |= plan.loop(n, p);
            for (int k = 0; k < plan.count; k++) p[k] += plan.operands[k].strides[last - 1];
        }
        i += rows * n;
        if (i < end) advance(plan, place, rows * n);
    }
    return bad;
}

// In parts of long rows: an operand that repeats one element there fills its buffer once a row.
int run_parts(const Plan &plan, npy_intp begin, npy_intp end) {
    char *p[MAX_OPERANDS];
    alignas(64) char buffers[MAX_OPERANDS][BLOCK * 16];
    int last = plan.ndim - 1, result = plan.count - 1, bad = 0;
    npy_intp row = plan.shape[last];
    const char *repeated[MAX_OPERANDS] = {};  // whose element fills the buffer already
    Place place;
    locate(plan, begin, place);
    for (npy_intp i = begin; i < end;) {
        npy_intp n = std::min({end - i, row - place.at[last], BLOCK});
        for (int k = 0; k < plan.count; k++) {
            const Operand &o = plan.operands[k];
            char *here = address(plan, o, place);
            npy_intp step = o.strides[last];
            p[k] = step == o.size ? here : buffers[k];
            if (step == o.size || k == result || here == repeated[k]) continue;
            if (step) {
                transfer(plan, o, place, p[k], n, false);
            } else {
                repeat(o.size, p[k], here, std::min(BLOCK, row));
                repeated[k] = here;
            }
        }
        bad |= plan.loop(n, p);
        if (p[result] == buffers[result])
            transfer(plan, plan.operands[result], place, p[result], n, true);
        i += n;
        if (i < end) advance(plan, place, n);
    }
    return bad;
}

constexpr npy_intp AHEAD = 12;  // columns that are fetched before they are read
constexpr npy_intp TILE = 16;  // rows: as many elements of four bytes lie in a line of the cache

// A tile of rows of `n` elements each, gathered along the columns, in which they lie: of whole tiles
// four columns at once.
template <class T>
void gather_tile(const char *from, npy_intp step, npy_intp rows, npy_intp n, T *to) {
    npy_intp j = 0;
    for (; rows == TILE && j + 4 <= n; j += 4, from += 4 * step) {
#if defined(__GNUC__) || defined(__clang__)
        for (npy_intp k = AHEAD; k < AHEAD + 4; k++) {  // each column lies in a page of its own
            __builtin_prefetch(from + k * step);
            __builtin_prefetch(from + k * step + TILE * npy_intp(sizeof(T)) - 1);
        }
#endif
        for (npy_intp r = 0; r < TILE; r += 4)
            turn_four<T>(from + r * npy_intp(sizeof(T)), step, (char *)(to + r * n + j), n * npy_intp(sizeof(T)));
    }
    for (; j < n; j++, from += step)
        for (npy_intp r = 0; r < rows; r++) to[r * n + j] = ((const T *)from)[r];
}

// Rows several at a time, where an operand lies by columns.
int run_tiles(const Plan &plan, npy_intp begin, npy_intp end) {
    char *p[MAX_OPERANDS], *here[MAX_OPERANDS];
    alignas(64) char buffers[MAX_OPERANDS][BLOCK * 16];
    int last = plan.ndim - 1, bad = 0;
    npy_intp row = plan.shape[last], wide = BLOCK;
    for (int k = 0; k < plan.count; k++) wide = std::min(wide, BLOCK * 16 / TILE / plan.operands[k].size);
    Place place;
    locate(plan, begin, place);
    for (npy_intp i = begin; i < end;) {
        npy_intp rows = std::min({(end - i) / row, plan.shape[last - 1] - place.at[last - 1], TILE});
        if (place.at[last] || !rows) {  // to the end of the row
            npy_intp n = std::min(end - i, row - place.at[last]);
            bad |= run_parts(plan, i, i + n);
            i += n;
            if (i < end) advance(plan, place, n);
            continue;
        }
        for (int k = 0; k < plan.count; k++) here[k] = address(plan, plan.operands[k], place);
        for (npy_intp c = 0; c < row; c += wide) {
            npy_intp n = std::min(wide, row - c);
            for (int k = 0; k < plan.count; k++) {
                const Operand &o = plan.operands[k];
                if (o.strides[last] == o.size) continue;
                const char *from = here[k] + c * o.strides[last];
                for_size(o.size, [&](auto t) {
                    gather_tile(from, o.strides[last], rows, n, (decltype(t) *)buffers[k]);
                });
            }
            for (npy_intp r = 0; r < rows; r++) {
                for (int k = 0; k < plan.count; k++) {
                    const Operand &o = plan.operands[k];
                    p[k] = o.strides[last] == o.size ? here[k] + r * o.strides[last - 1] + c * o.size
                                                     : buffers[k] + r * n * o.size;
                }
                bad |= plan.loop(n, p);
            }
        }
        i += rows * row;
        if (i < end) advance(plan, place, rows * row);
    }
    return bad;
}

// Do all operands lie by rows, or else, read only, by columns?
bool fits_tiles(const Plan &plan) {
    int last = plan.ndim - 1;
    if (last < 1 || plan.shape[last] < BLOCK / TILE || plan.shape[last - 1] < TILE) return false;
    bool by_columns = false;
    for (int k = 0; k < plan.count; k++) {
        const Operand &o = plan.operands[k];
        if (o.strides[last] == o.size) continue;
        bool across = o.strides[last] && o.strides[last - 1] == o.size && o.size <= 8;
        if (k == plan.count - 1 || !across) return false;
        by_columns = true;
    }
    return by_columns;
}

int run_range(const Plan &plan, npy_intp begin, npy_intp end) {
    if (plan.way != Way::FLAT) {
        auto run = plan.way == Way::ROWS    ? run_rows
                   : plan.way == Way::TILES ? run_tiles
                   : plan.way == Way::PARTS ? run_parts
                                            : run_blocks;
        return run(plan, begin, end);
    }
    char *p[MAX_OPERANDS];
    for (int k = 0; k < plan.count; k++)
        p[k] = plan.operands[k].data + (plan.constants >> k & 1 ? 0 : begin * plan.operands[k].size);
    return plan.loop(end - begin, p);
}

// How an operand may be read: as it lies, or again and again the first `period` elements of it.
void inspect(Plan &plan, int k) {
    const Operand &o = plan.operands[k];
    npy_intp expected = o.size, period = 1;
    int varying = 0;  // dimensions from here on repeat
    while (varying < plan.ndim && o.strides[varying] == 0) varying++;
    plan.flat[k] = true;
    for (int d = plan.ndim - 1; d >= 0; d--) {
        plan.flat[k] &= o.strides[d] == expected;
        expected *= plan.shape[d];
        if (d >= varying) period *= plan.shape[d];
    }
    plan.repeats[k] = period <= BLOCK / 2 && k < plan.count - 1;
    if (plan.repeats[k]) plan.period = std::max(plan.period, period);
}

// Is there a loop for operands that repeat one element along the rows, where the others lie evenly?
void choose_constants(Plan &plan, const ConstantLoop *constant) {
    int last = plan.ndim - 1, constants = 0;
    for (int k = 0; k < plan.count; k++) {
        const Operand &o = plan.operands[k];
        if (o.strides[last] == 0 && k < plan.count - 1) constants |= 1 << k;
        else if (o.strides[last] != o.size) return;
    }
    if (!constants || (last && plan.shape[last] < SHORTEST_ROW)) return;
    for (int i = 0; i < 2; i++)
        if (constant[i].loop && constant[i].which == constants) {
            plan.loop = constant[i].loop, plan.constants = constants;
            plan.way = last ? Way::ROWS : Way::FLAT;
        }
}

// Rows are worth a call of the loop each where they are long. Where an operand would have to be
// gathered they may be shorter.
Way choose_way(const Plan &plan) {
    int last = plan.ndim - 1;
    bool flat = true, gathers = false, even = true;
    for (int k = 0; k < plan.count; k++) {
        const Operand &o = plan.operands[k];
        flat &= plan.flat[k];
        gathers |= !plan.flat[k] && !plan.repeats[k];
        even &= o.strides[last] == o.size;
    }
    if (flat) return Way::FLAT;
    if (fits_tiles(plan)) return Way::TILES;
    if (plan.shape[last] < (!gathers ? BLOCK : even ? 64 : 128)) return Way::BLOCKS;
    return even ? Way::ROWS : Way::PARTS;
}

}  // namespace

// Joins neighbouring dimensions that every operand steps through evenly. Changes `shape` and strides.
static int coalesce(int ndim, npy_intp *shape, int count, Operand *o) {
    int kept = 0;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] == 1) continue;
        bool joins = kept > 0;
        for (int k = 0; joins && k < count; k++)
            joins = o[k].strides[kept - 1] == o[k].strides[d] * shape[d];
        if (joins) {
            shape[kept - 1] *= shape[d];
        } else {
            shape[kept++] = shape[d];
        }
        for (int k = 0; k < count; k++) o[k].strides[kept - 1] = o[k].strides[d];
    }
    if (kept == 0) {
        shape[0] = 1;
        for (int k = 0; k < count; k++) o[k].strides[0] = o[k].size;
        kept = 1;
    }
    return kept;
}

int run_loop(Loop loop, int ndim, npy_intp *shape, int count, Operand *operands,
             const ConstantLoop *constant) {
    Plan plan;
    plan.loop = loop;
    plan.constants = 0;
    plan.ndim = coalesce(ndim, shape, count, operands);
    plan.count = count;
    plan.operands = operands;
    plan.period = 1;
    npy_intp n = 1;
    for (int d = 0; d < plan.ndim; d++) n *= plan.shape[d] = shape[d];
    for (int k = 0; k < count; k++) inspect(plan, k);
    plan.way = choose_way(plan);
    if (constant && n > 1) choose_constants(plan, constant);
    if (n < PARALLEL_FROM) return run_range(plan, 0, n);
    int bad = 0;
    PyThreadState *state = PyEval_SaveThread();
    parallel_for(n, PARALLEL_FROM / 2, [&](int64_t begin, int64_t end) {
        if (run_range(plan, begin, end)) bad = 1;
    });
    PyEval_RestoreThread(state);
    return bad;
}

// ---- half precision -----------------------------------------------------------------------------

#if FLAMBEAU_CLONES
// These functions have names of their own, because the compiler has no loop that it would turn into
// these instructions.
__attribute__((target("avx,f16c"))) static void widen_by_eight(const Half *from, float *to, npy_intp n) {
    for (npy_intp i = 0; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
}
__attribute__((target("avx,f16c"))) static void narrow_by_eight(const float *from, Half *to, npy_intp n) {
    for (npy_intp i = 0; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
}
__attribute__((target("avx512f"))) static void widen_by_sixteen(const Half *from, float *to, npy_intp n) {
    for (npy_intp i = 0; i + 16 <= n; i += 16)
        _mm512_storeu_ps(to + i, _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256((const __m256i *)(from + i))));
}
__attribute__((target("avx512f"))) static void narrow_by_sixteen(const float *from, Half *to, npy_intp n) {
    for (npy_intp i = 0; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(to + i), _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(from + i), 0));
}
// How many elements are converted at once: 16, 8, or 1.
static int half_lanes() {
    static const int lanes = __builtin_cpu_supports("avx512f")                                    ? 16
                             : __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c") ? 8
                                                                                                  : 1;
    return lanes;
}
#endif

void widen_all(const Half *from, float *to, npy_intp n) {
    npy_intp done = 0;
#if FLAMBEAU_CLONES
    int lanes = half_lanes();
    if (lanes == 16) widen_by_sixteen(from, to, n);
    if (lanes == 8) widen_by_eight(from, to, n);
    if (lanes > 1) done = n / lanes * lanes;
#endif
    for (npy_intp i = done; i < n; i++) to[i] = widen(from[i]);
}

void narrow_all(const float *from, Half *to, npy_intp n) {
    npy_intp done = 0;
#if FLAMBEAU_CLONES
    int lanes = half_lanes();
    if (lanes == 16) narrow_by_sixteen(from, to, n);
    if (lanes == 8) narrow_by_eight(from, to, n);
    if (lanes > 1) done = n / lanes * lanes;
#endif
    for (npy_intp i = done; i < n; i++) to[i] = Narrow<Half, float>::from(from[i]);
}

CLONES static void widen_brains(const BFloat *from, float *to, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) to[i] = widen(from[i]);
}
CLONES static void narrow_brains(const float *from, BFloat *to, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) to[i] = Narrow<BFloat, float>::from(from[i]);
}
void widen_all(const BFloat *from, float *to, npy_intp n) { widen_brains(from, to, n); }
void narrow_all(const float *from, BFloat *to, npy_intp n) { narrow_brains(from, to, n); }

// ---- dtypes -------------------------------------------------------------------------------------

static int bfloat16_num = -1;
static PyArray_Descr *bfloat16_descr = nullptr;
static DType by_number[NPY_NTYPES_LEGACY];

static void fill_numbers() {
    std::fill(std::begin(by_number), std::end(by_number), NONE);
    auto whole = [](int num, size_t size, bool is_signed) {
        DType first = is_signed ? I1 : U1;
        int log = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
        by_number[num] = DType(first + log);
    };
    whole(NPY_BYTE, 1, true), whole(NPY_UBYTE, 1, false);
    whole(NPY_SHORT, sizeof(short), true), whole(NPY_USHORT, sizeof(short), false);
    whole(NPY_INT, sizeof(int), true), whole(NPY_UINT, sizeof(int), false);
    whole(NPY_LONG, sizeof(long), true), whole(NPY_ULONG, sizeof(long), false);
    whole(NPY_LONGLONG, sizeof(long long), true), whole(NPY_ULONGLONG, sizeof(long long), false);
    by_number[NPY_BOOL] = B1;
    by_number[NPY_HALF] = F2;
    by_number[NPY_FLOAT] = F4;
    by_number[NPY_DOUBLE] = F8;
    by_number[NPY_CFLOAT] = C8;
    by_number[NPY_CDOUBLE] = C16;
}

DType dtype_of(int num) {
    if (num >= 0 && num < NPY_NTYPES_LEGACY) return by_number[num];
    return num == bfloat16_num ? BF : NONE;
}

int type_num_of(DType dtype) {
    static const int numbers[DTYPES] = {
        NPY_BOOL, NPY_UINT8, NPY_UINT16, NPY_UINT32, NPY_UINT64, NPY_INT8,   NPY_INT16, NPY_INT32,
        NPY_INT64, NPY_HALF, -1,         NPY_FLOAT,  NPY_DOUBLE, NPY_CFLOAT, NPY_CDOUBLE};
    return dtype == BF ? bfloat16_num : numbers[dtype];
}

PyArray_Descr *descr_of(DType dtype) {
    if (dtype == BF) {
        if (!bfloat16_descr) PyErr_SetString(PyExc_TypeError, "bfloat16 is not registered");
        Py_XINCREF(bfloat16_descr);
        return bfloat16_descr;
    }
    return PyArray_DescrFromType(type_num_of(dtype));
}

npy_intp size_of(DType dtype) {
    static const npy_intp sizes[DTYPES] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
    return sizes[dtype];
}

// ---- the call -----------------------------------------------------------------------------------

namespace {

bool is_number(PyObject *x) {
    return PyFloat_CheckExact(x) || PyLong_CheckExact(x) || PyBool_Check(x) || PyComplex_CheckExact(x);
}

// A number in a half type. False if that rounds it: the twin has it in float32.
template <class T>
static bool store_half(double value, char *to) {
    T half = Narrow<T, float>::from(float(value));
    *(T *)to = half;
    return widen(half) == value || value != value;
}

// A Python number as one element of `dtype`, wrapped around where it does not fit. False: cannot.
bool store_number(PyObject *x, DType dtype, char *to) {
    if (dtype <= I8) {
        uint64_t whole;
        if (PyLong_Check(x)) {
            whole = PyLong_AsUnsignedLongLongMask(x);
            if (PyErr_Occurred()) return false;
        } else if (PyFloat_CheckExact(x)) {
            double value = PyFloat_AS_DOUBLE(x);
            if (!(value > -9.2e18 && value < 9.2e18)) return false;
            whole = uint64_t(int64_t(value));
        } else {
            return false;
        }
        if (dtype == B1) {
            bool truth = PyObject_IsTrue(x);
            std::memcpy(to, &truth, 1);
        } else if (dtype == U1 || dtype == I1) {
            *(uint8_t *)to = uint8_t(whole);
        } else if (dtype == U2 || dtype == I2) {
            *(uint16_t *)to = uint16_t(whole);
        } else if (dtype == U4 || dtype == I4) {
            *(uint32_t *)to = uint32_t(whole);
        } else {
            *(uint64_t *)to = whole;
        }
        return true;
    }
    double re, im = 0;
    if (PyFloat_CheckExact(x)) {
        re = PyFloat_AS_DOUBLE(x);
    } else if (PyComplex_CheckExact(x)) {
        if (dtype != C8 && dtype != C16) return false;
        re = PyComplex_RealAsDouble(x), im = PyComplex_ImagAsDouble(x);
    } else {
        re = PyLong_AsDouble(x);
        if (re == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return false;
        }
    }
    switch (dtype) {
        case F2: return store_half<Half>(re, to);
        case BF: return store_half<BFloat>(re, to);
        case F4: *(float *)to = float(re); break;
        case F8: *(double *)to = re; break;
        case C8: *(Complex64 *)to = {float(re), float(im)}; break;
        default: *(Complex128 *)to = {re, im};
    }
    return true;
}

}  // namespace

// The order of dimensions, outermost first, in which the operands lie in memory: the leader decides,
// the other ones in turn where it repeats itself.
void order_dimensions(int ndim, const npy_intp *shape, int count, const Operand *o, int *order, int leader) {
    for (int d = 0; d < ndim; d++) order[d] = d;
    // Is dimension `a` inside (steps shorter than) dimension `b`? 1 yes, -1 no, 0 undecided.
    auto inside = [&](int a, int b) {
        for (int i = 0; i < count; i++) {
            int k = i > leader ? i : i == 0 ? leader : i - 1;
            npy_intp s = std::abs(o[k].strides[a]), t = std::abs(o[k].strides[b]);
            if (s == 0 || t == 0) continue;
            if (s != t) return s < t ? 1 : -1;
            if (shape[a] < shape[b]) return 1;
        }
        return 0;
    };
    for (int i = ndim - 2; i >= 0; i--) {
        int at = i;
        for (int j = i + 1; j < ndim; j++) {
            int c = inside(order[at], order[j]);
            if (c > 0) {
                std::swap(order[at], order[j]);
                at = j;
            } else if (c < 0) {
                break;
            }
        }
    }
}

// Do its elements fill their memory without overlap or gaps, in this order of dimensions?
bool fills(PyArrayObject *x, const int *order) {
    npy_intp expected = PyArray_ITEMSIZE(x);
    for (int i = PyArray_NDIM(x) - 1; i >= 0; i--) {
        npy_intp length = PyArray_DIM(x, order[i]);
        if (length == 1) continue;
        if (PyArray_STRIDE(x, order[i]) != expected) return false;
        expected *= length;
    }
    return true;
}

namespace {

// The first array, if all have its shape and strides.
PyArrayObject *alike(int count, PyArrayObject **x) {
    PyArrayObject *first = nullptr;
    for (int i = 0; i < count; i++) {
        if (!x[i]) continue;
        if (!first) first = x[i];
        int ndim = PyArray_NDIM(first);
        if (PyArray_NDIM(x[i]) != ndim || PyArray_ITEMSIZE(x[i]) != PyArray_ITEMSIZE(first) ||
            !PyArray_CompareLists(PyArray_DIMS(x[i]), PyArray_DIMS(first), ndim) ||
            !PyArray_CompareLists(PyArray_STRIDES(x[i]), PyArray_STRIDES(first), ndim))
            return nullptr;
    }
    return first;
}

// Has an empty result the strides of a new one? Not where operands broadcast and lie in another order.
bool is_empty_by_rows(int ndim, const npy_intp *shape, int count, PyArrayObject **x, const int *order) {
    bool same = true;
    for (int i = 0; i < count; i++)
        if (x[i]) same &= PyArray_NDIM(x[i]) == ndim && PyArray_CompareLists(PyArray_DIMS(x[i]), shape, ndim);
    for (int d = 0; d < ndim && !same; d++)
        if (order[d] != d) return false;
    return true;
}

struct Extent {
    char *low, *high;
};

Extent extent(PyArrayObject *x) {
    char *low = PyArray_BYTES(x), *high = low + PyArray_ITEMSIZE(x);
    for (int d = 0; d < PyArray_NDIM(x); d++) {
        npy_intp reach = (PyArray_DIM(x, d) - 1) * PyArray_STRIDE(x, d);
        (reach < 0 ? low : high) += reach;
    }
    return {low, high};
}

bool same_view(PyArrayObject *a, PyArrayObject *b) {
    int ndim = PyArray_NDIM(a);
    return PyArray_BYTES(a) == PyArray_BYTES(b) && ndim == PyArray_NDIM(b) &&
           PyArray_ITEMSIZE(a) == PyArray_ITEMSIZE(b) &&
           PyArray_CompareLists(PyArray_DIMS(a), PyArray_DIMS(b), ndim) &&
           PyArray_CompareLists(PyArray_STRIDES(a), PyArray_STRIDES(b), ndim);
}

// Would writing `out` change elements of `x` that are still to be read?
bool clashes(PyArrayObject *x, PyArrayObject *out) {
    if (PyArray_SIZE(x) == 0 || PyArray_SIZE(out) == 0 || same_view(x, out)) return false;
    Extent a = extent(x), b = extent(out);
    return a.low < b.high && b.low < a.high;
}

PyObject *division_by_zero() {
    PyErr_SetString(PyExc_RuntimeError, "ZeroDivisionError");
    return nullptr;
}

PyObject *no_twin(Kernel *k) {
    PyErr_Format(PyExc_TypeError, "%U: no kernel for these operands", k->name);
    return nullptr;
}

PyObject *call_twin(Kernel *k, PyObject *const *args, size_t nargsf, PyObject *names) {
    return k->twin ? PyObject_Vectorcall(k->twin, args, nargsf, names) : no_twin(k);
}

PyArrayObject *run_strided(const Entry &e, int nin, PyArrayObject **x, char (*numbers)[16],
                           PyArrayObject *out) {
    int ndim = out ? PyArray_NDIM(out) : 0;
    for (int i = 0; i < nin; i++)
        if (x[i]) ndim = std::max(ndim, PyArray_NDIM(x[i]));
    npy_intp shape[NPY_MAXDIMS];
    for (int d = 0; d < ndim; d++) shape[d] = 1;
    for (int i = 0; i < nin; i++) {
        if (!x[i]) continue;
        int shift = ndim - PyArray_NDIM(x[i]);
        for (int d = shift; d < ndim; d++) {
            npy_intp length = PyArray_DIM(x[i], d - shift);
            if (length == 1 || length == shape[d]) continue;
            if (shape[d] != 1) {
                PyErr_SetString(PyExc_ValueError, "operands could not be broadcast together");
                return nullptr;
            }
            shape[d] = length;
        }
    }
    npy_intp n = 1;
    if (out) {
        if (PyArray_NDIM(out) != ndim) goto mismatch;
        for (int d = 0; d < ndim; d++) {
            if (shape[d] != 1 && shape[d] != PyArray_DIM(out, d)) goto mismatch;
            shape[d] = PyArray_DIM(out, d);
        }
    }
    Operand o[MAX_OPERANDS];
    for (int d = 0; d < ndim; d++) n *= shape[d];
    for (int i = 0; i < nin; i++) {
        o[i].size = size_of(e.in[i]);
        if (!x[i]) {
            o[i].data = numbers[i];
            for (int d = 0; d < ndim; d++) o[i].strides[d] = 0;
            continue;
        }
        o[i].data = PyArray_BYTES(x[i]);
        int shift = ndim - PyArray_NDIM(x[i]);
        for (int d = 0; d < ndim; d++) {
            bool repeats = d < shift || (PyArray_DIM(x[i], d - shift) == 1 && shape[d] != 1);
            o[i].strides[d] = repeats ? 0 : PyArray_STRIDE(x[i], d - shift);
        }
    }
    o[nin].size = size_of(e.out);
    int order[NPY_MAXDIMS];
    if (out) {
        Py_INCREF(out);
        for (int d = 0; d < ndim; d++) o[nin].strides[d] = PyArray_STRIDE(out, d);
        order_dimensions(ndim, shape, 1, o + nin, order, 0);
    } else {
        order_dimensions(ndim, shape, nin, o, order, e.leader);
        npy_intp step = o[nin].size, *strides = o[nin].strides;
        PyArrayObject *like = alike(nin, x);
        bool by_rows = !n && is_empty_by_rows(ndim, shape, nin, x, order);
        bool same = like && fills(like, order);     // then the strides are theirs
        for (int d = ndim - 1; d >= 0; d--) {
            int k = order[d];
            strides[k] = same ? PyArray_STRIDE(like, k) / PyArray_ITEMSIZE(like) * o[nin].size : step;
            step *= shape[k];               // by 0 too: no stride of an empty array says more
        }
        PyArray_Descr *descr = descr_of(e.out);
        if (!descr) return nullptr;
        out = (PyArrayObject *)new_array(descr, ndim, shape, by_rows ? nullptr : strides);
        if (!out) return nullptr;
    }
    o[nin].data = PyArray_BYTES(out);
    if (n) {
        Operand sorted[MAX_OPERANDS];
        npy_intp sorted_shape[NPY_MAXDIMS];
        for (int d = 0; d < ndim; d++) sorted_shape[d] = shape[order[d]];
        for (int k = 0; k <= nin; k++) {
            sorted[k].data = o[k].data, sorted[k].size = o[k].size;
            for (int d = 0; d < ndim; d++) sorted[k].strides[d] = o[k].strides[order[d]];
        }
        if (run_loop(e.loop, ndim, sorted_shape, nin + 1, sorted, e.constant)) {
            Py_DECREF(out);
            division_by_zero();
            return nullptr;
        }
    }
    return out;
mismatch:
    PyErr_SetString(PyExc_ValueError, "the result does not fit the shape of out");
    return nullptr;
}

// From here on an operand that lies by columns where the first lies by rows is copied in tiles first.
constexpr npy_intp FAR = 1 << 19;

bool lies_across(PyArrayObject *x, PyArrayObject *first) {
    int nd = PyArray_NDIM(x);
    return nd == PyArray_NDIM(first) && PyArray_CompareLists(PyArray_DIMS(x), PyArray_DIMS(first), nd) &&
           PyArray_DIM(x, nd - 1) > 1 && PyArray_STRIDE(x, nd - 1) > PyArray_STRIDE(x, nd - 2) &&
           PyArray_STRIDE(x, nd - 2) > 0;
}

// Any shapes and strides. `x[i]` null: operand i is the number in `numbers[i]`.
PyArrayObject *run_general(const Entry &e, int nin, PyArrayObject **x, char (*numbers)[16],
                           PyArrayObject *out) {
    PyArrayObject *first = x[0], *given[MAX_IN], *copies[MAX_IN] = {};
    bool far = first && PyArray_NDIM(first) > 1 && PyArray_SIZE(first) >= FAR && PyArray_IS_C_CONTIGUOUS(first) &&
               (!out || PyArray_IS_C_CONTIGUOUS(out));
    if (!far) return run_strided(e, nin, x, numbers, out);
    bool good = true;
    for (int i = 0; i < nin; i++) {
        given[i] = x[i];
        if (i && x[i] && lies_across(x[i], first)) good &= (given[i] = copies[i] = row_major(x[i])) != nullptr;
    }
    PyArrayObject *found = good ? run_strided(e, nin, given, numbers, out) : nullptr;
    for (PyArrayObject *copy : copies) Py_XDECREF((PyObject *)copy);
    return found;
}

// One shape, C-contiguous: no iteration is needed. Null without an error: not this case.
PyArrayObject *run_simple(const Entry &e, int nin, PyArrayObject **x, char (*numbers)[16]) {
    PyArrayObject *first = x[0];
    if (!first || !PyArray_IS_C_CONTIGUOUS(first)) return nullptr;
    npy_intp n = PyArray_SIZE(first);
    if (n > BLOCK && n >= PARALLEL_FROM) return nullptr;
    char *p[MAX_OPERANDS];
    alignas(16) char buffers[MAX_IN][16 * 16];
    p[0] = PyArray_BYTES(first);
    for (int i = 1; i < nin; i++) {
        if (x[i] && (PyArray_NDIM(x[i]) || PyArray_NDIM(first) == 0)) {
            if (!PyArray_IS_C_CONTIGUOUS(x[i]) || PyArray_NDIM(x[i]) != PyArray_NDIM(first) ||
                !PyArray_CompareLists(PyArray_DIMS(x[i]), PyArray_DIMS(first), PyArray_NDIM(first)))
                return nullptr;
            p[i] = PyArray_BYTES(x[i]);
        } else {
            if (n > 16 || (!n && x[i])) return nullptr;
            npy_intp size = size_of(e.in[i]);
            repeat(size, buffers[i], x[i] ? PyArray_BYTES(x[i]) : numbers[i], n);
            p[i] = buffers[i];
        }
    }
    PyArray_Descr *descr = PyArray_DESCR(first);
    if (e.out == e.in[0]) {
        Py_INCREF(descr);
    } else {
        descr = descr_of(e.out);
        if (!descr) return nullptr;
    }
    PyArrayObject *out = (PyArrayObject *)PyArray_NewFromDescr(
        &PyArray_Type, descr, PyArray_NDIM(first), PyArray_DIMS(first), nullptr, nullptr, 0, nullptr);
    if (!out) return nullptr;
    p[nin] = PyArray_BYTES(out);
    if (e.loop(n, p)) {
        Py_DECREF(out);
        division_by_zero();
        return nullptr;
    }
    return out;
}

// Arrays of halves and numbers, which stay in float32 as in PyTorch: block by block in float.
struct InFloat {
    const Entry &e;
    DType half;
    int nin, constant = 0;  // constant: which operands are numbers
    const char *from[MAX_IN];
    float number[MAX_IN];
    char *to;
    Loop loop;
    bool repeated = true;  // numbers are repeated, since the loop takes elements

    void run(npy_intp begin, npy_intp end) const {
        constexpr npy_intp block = 512;
        alignas(64) float buffers[MAX_OPERANDS][block];
        char *p[MAX_OPERANDS];
        for (int i = 0; i <= nin; i++) p[i] = (char *)buffers[i];
        for (int i = 0; i < nin; i++)
            if (constant >> i & 1) std::fill(buffers[i], buffers[i] + (repeated ? block : 1), number[i]);
        bool narrows = e.out == F4;
        for (npy_intp at = begin; at < end; at += block) {
            npy_intp n = end - at < block ? end - at : block;
            for (int i = 0; i < nin; i++) {
                if (constant >> i & 1) continue;
                if (half == F2) widen_all((const Half *)from[i] + at, buffers[i], n);
                else widen_all((const BFloat *)from[i] + at, buffers[i], n);
            }
            if (!narrows) p[nin] = to + at;
            loop(n, p);
            if (!narrows) continue;
            if (half == F2) narrow_all(buffers[nin], (Half *)to + at, n);
            else narrow_all(buffers[nin], (BFloat *)to + at, n);
        }
    }
};

// The call in float, where all arrays are of one shape, row by row. Null without an error: another case.
PyArrayObject *run_in_float(const Kernel *k, DType half, PyArrayObject **x, PyObject *const *args,
                            Py_ssize_t given, PyArrayObject *out) {
    const Entry &e = k->table[F4];
    InFloat run{e, half, k->nin};
    if (!e.loop || (e.out != F4 && e.out != B1)) return nullptr;
    PyArrayObject *first = nullptr;
    for (int i = 0; i < k->nin; i++) {
        if (e.in[i] != F4) return nullptr;
        if (i < given && x[i]) {
            if (dtype_of(PyArray_TYPE(x[i])) != half || !PyArray_IS_C_CONTIGUOUS(x[i])) return nullptr;
            if (!first) first = x[i];
            if (!PyArray_SAMESHAPE(first, x[i])) return nullptr;
            run.from[i] = PyArray_BYTES(x[i]);
            continue;
        }
        double value = i < given ? PyFloat_AsDouble(args[i]) : k->defaults[i];
        if (value == -1 && PyErr_Occurred()) return PyErr_Clear(), nullptr;
        char element[2];
        bool exact = half == F2 ? store_half<Half>(value, element) : store_half<BFloat>(value, element);
        if (e.out != F4 && !exact) return nullptr;  // compared are halves
        run.number[i] = float(value), run.constant |= 1 << i;
    }
    if (!first || !run.constant) return nullptr;
    DType kind = e.out == F4 ? half : e.out;
    if (out && (!PyArray_IS_C_CONTIGUOUS(out) || !PyArray_SAMESHAPE(first, out) ||
                dtype_of(PyArray_TYPE(out)) != kind))
        return nullptr;
    run.loop = e.loop;
    for (const ConstantLoop &c : e.constant)
        if (c.loop && c.which == run.constant) run.loop = c.loop, run.repeated = false;
    if (out) {
        Py_INCREF(out);
    } else {
        PyArray_Descr *descr = descr_of(kind);
        if (descr)
            out = (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, descr, PyArray_NDIM(first), PyArray_DIMS(first),
                                                        nullptr, nullptr, 0, nullptr);
        if (!out) return nullptr;
    }
    run.to = PyArray_BYTES(out);
    npy_intp n = PyArray_SIZE(first);
    PyThreadState *state = n >= PARALLEL_FROM ? PyEval_SaveThread() : nullptr;
    parallel_for(n, PARALLEL_FROM / 2, [&](int64_t begin, int64_t end) { run.run(begin, end); });
    if (state) PyEval_RestoreThread(state);
    return out;
}

PyObject *kernel_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Kernel *k = (Kernel *)self;
    Py_ssize_t given = PyVectorcall_NARGS(nargsf);
    PyObject *out_object = nullptr;
    if (names && PyTuple_GET_SIZE(names)) {
        if (PyTuple_GET_SIZE(names) != 1 ||
            PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "out") || given > k->nin)
            return call_twin(k, args, nargsf, names);
        out_object = args[given];
    } else if (given == k->nin + 1) {
        out_object = args[--given];
    }
    if (given > k->nin || given < k->nrequired) return call_twin(k, args, nargsf, names);

    PyArrayObject *x[MAX_IN];
    char numbers[MAX_IN][16];
    DType dtype = NONE;
    for (int i = 0; i < given; i++) {
        if (is_plain(args[i])) {
            x[i] = (PyArrayObject *)args[i];
            if (dtype == NONE && i >= k->key) dtype = dtype_of(PyArray_TYPE(x[i]));
        } else if (is_number(args[i])) {
            x[i] = nullptr;
        } else {
            return call_twin(k, args, nargsf, names);
        }
    }
    if (dtype == NONE || !k->table[dtype].loop) return call_twin(k, args, nargsf, names);
    const Entry &e = k->table[dtype];
    if ((dtype == F2 || dtype == BF) && k->nin > 1 && !k->key) {
        PyArrayObject *out = nullptr;
        bool fits = !out_object || out_object == Py_None;
        if (!fits && is_plain(out_object) && PyArray_ISWRITEABLE((PyArrayObject *)out_object)) {
            out = (PyArrayObject *)out_object, fits = true;
            for (int i = 0; i < given; i++)
                if (x[i] && PyArray_DATA(x[i]) != PyArray_DATA(out) && clashes(x[i], out)) fits = false;
        }
        PyArrayObject *found = fits ? run_in_float(k, dtype, x, args, given, out) : nullptr;
        if (found || PyErr_Occurred()) return (PyObject *)found;
    }
    for (int i = 0; i < k->nin; i++) {
        if (i >= given) {
            x[i] = nullptr;
            PyObject *value = PyFloat_FromDouble(k->defaults[i]);
            bool stored = value && store_number(value, e.in[i], numbers[i]);
            Py_XDECREF(value);
            if (!stored) return call_twin(k, args, nargsf, names);
        } else if (!x[i]) {
            if (!store_number(args[i], e.in[i], numbers[i])) {
                if (PyErr_Occurred()) return nullptr;
                return call_twin(k, args, nargsf, names);
            }
        } else if (dtype_of(PyArray_TYPE(x[i])) != e.in[i]) {
            return call_twin(k, args, nargsf, names);
        }
    }
    if (!out_object || out_object == Py_None) {
        PyArrayObject *r = run_simple(e, k->nin, x, numbers);
        if (r || PyErr_Occurred()) return (PyObject *)r;
        return (PyObject *)run_general(e, k->nin, x, numbers, nullptr);
    }
    if (!PyArray_Check(out_object)) return call_twin(k, args, nargsf, names);
    PyArrayObject *out = (PyArrayObject *)out_object;
    if (PyArray_FailUnlessWriteable(out, "output array") < 0) return nullptr;
    bool apart = is_plain(out_object) && dtype_of(PyArray_TYPE(out)) == e.out;
    for (int i = 0; apart && i < k->nin; i++)
        if (x[i] && clashes(x[i], out)) apart = false;
    if (apart) return (PyObject *)run_general(e, k->nin, x, numbers, out);
    PyArrayObject *r = run_general(e, k->nin, x, numbers, nullptr);
    if (!r) return nullptr;
    int failed;
    if (is_plain(out_object) && dtype_of(PyArray_TYPE(out)) == e.out) {
        failed = PyArray_CopyInto(out, r);
        Py_DECREF(r);
    } else {  // another dtype: the twin knows how to convert without a warning
        Py_DECREF(r);
        return call_twin(k, args, nargsf, names);
    }
    if (failed) return nullptr;
    Py_INCREF(out);
    return (PyObject *)out;
}

void kernel_dealloc(PyObject *self) {
    Kernel *k = (Kernel *)self;
    Py_XDECREF(k->name);
    Py_XDECREF(k->twin);
    Py_TYPE(self)->tp_free(self);
}

PyObject *kernel_repr(PyObject *self) {
    return PyUnicode_FromFormat("<native kernel %U>", ((Kernel *)self)->name);
}

PyObject *kernel_doc(PyObject *self, void *) {
    PyObject *twin = ((Kernel *)self)->twin;
    if (!twin) Py_RETURN_NONE;
    return PyObject_GetAttrString(twin, "__doc__");
}

PyObject *kernel_dtypes(PyObject *self, void *) {
    static const char *names[DTYPES] = {"bool",  "uint8", "uint16",  "uint32",   "uint64",
                                        "int8",  "int16", "int32",   "int64",    "float16",
                                        "bfloat16", "float32", "float64", "complex64", "complex128"};
    PyObject *list = PyList_New(0);
    for (int d = 0; list && d < DTYPES; d++)
        if (((Kernel *)self)->table[d].loop) {
            PyObject *s = PyUnicode_FromString(names[d]);
            if (!s || PyList_Append(list, s)) Py_CLEAR(list);
            Py_XDECREF(s);
        }
    return list;
}

PyMemberDef kernel_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Kernel, call), READONLY, nullptr},
    {"__name__", T_OBJECT_EX, offsetof(Kernel, name), READONLY, nullptr},
    {"reference", T_OBJECT, offsetof(Kernel, twin), READONLY, "the twin in NumPy"},
    {"__wrapped__", T_OBJECT_EX, offsetof(Kernel, twin), READONLY, nullptr},
    {"nin", T_INT, offsetof(Kernel, nin), READONLY, "how many operands it takes"},
    {nullptr, 0, 0, 0, nullptr}};

PyGetSetDef kernel_getset[] = {{"__doc__", kernel_doc, nullptr, nullptr, nullptr},
                               {"dtypes", kernel_dtypes, nullptr, "dtypes with a loop", nullptr},
                               {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- functions with a twin, and quiet -----------------------------------------------------------

struct Function {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *name, *twin;
    Native native;
};

PyObject *function_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Function *f = (Function *)self;
    PyObject *r = f->native(args, PyVectorcall_NARGS(nargsf), names);
    if (r != Py_NotImplemented || !f->twin) return r;
    Py_DECREF(r);
    return PyObject_Vectorcall(f->twin, args, nargsf, names);
}

void function_dealloc(PyObject *self) {
    Py_XDECREF(((Function *)self)->name);
    Py_XDECREF(((Function *)self)->twin);
    Py_TYPE(self)->tp_free(self);
}

PyObject *function_doc(PyObject *self, void *) {
    PyObject *twin = ((Function *)self)->twin;
    if (!twin) Py_RETURN_NONE;
    return PyObject_GetAttrString(twin, "__doc__");
}

PyMemberDef function_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Function, call), READONLY, nullptr},
    {"__name__", T_OBJECT_EX, offsetof(Function, name), READONLY, nullptr},
    {"reference", T_OBJECT, offsetof(Function, twin), READONLY, "the twin in NumPy"},
    {"__wrapped__", T_OBJECT_EX, offsetof(Function, twin), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyGetSetDef function_getset[] = {{"__doc__", function_doc, nullptr, nullptr, nullptr},
                                 {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject FunctionType = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject *quiet_variable, *quiet_value;

struct Quiet {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *function, *dict;
};

PyObject *quiet_run(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    PyObject *token = PyContextVar_Set(quiet_variable, quiet_value);
    if (!token) return nullptr;
    PyObject *r = PyObject_Vectorcall(((Quiet *)self)->function, args, nargsf, names);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    int failed = PyContextVar_Reset(quiet_variable, token);
    Py_DECREF(token);
    if (failed) {
        Py_XDECREF(r), Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
        return nullptr;
    }
    PyErr_Restore(type, value, trace);
    if (r && PyArray_IsScalar(r, Generic)) Py_SETREF(r, PyArray_FromAny(r, nullptr, 0, 0, 0, nullptr));
    return r;
}

int quiet_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(((Quiet *)self)->function);
    Py_VISIT(((Quiet *)self)->dict);
    return 0;
}

void quiet_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    Py_XDECREF(((Quiet *)self)->function);
    Py_XDECREF(((Quiet *)self)->dict);
    Py_TYPE(self)->tp_free(self);
}

PyMemberDef quiet_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Quiet, call), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Quiet, dict), READONLY, nullptr},
    {"__wrapped__", T_OBJECT_EX, offsetof(Quiet, function), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyTypeObject QuietType = {PyVarObject_HEAD_INIT(nullptr, 0)};

void describe_type(PyTypeObject &t, const char *name, size_t size, size_t offset, destructor dealloc,
                   PyMemberDef *members, PyGetSetDef *getset) {
    t.tp_name = name;
    t.tp_basicsize = size;
    t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
    t.tp_vectorcall_offset = offset;
    t.tp_call = PyVectorcall_Call;
    t.tp_dealloc = dealloc;
    t.tp_members = members;
    t.tp_getset = getset;
}

}  // namespace

PyTypeObject KernelType = {PyVarObject_HEAD_INIT(nullptr, 0)};

static int add_object(PyObject *module, PyObject *name, PyObject *object) {
    return PyObject_SetAttr(module, name, object);
}

Kernel *make_kernel(PyObject *module, const char *name, int nin) {
    Kernel *k = PyObject_New(Kernel, &KernelType);
    if (!k) return nullptr;
    k->call = kernel_call;
    k->name = PyUnicode_InternFromString(name);
    k->twin = nullptr;
    k->nin = k->nrequired = nin;
    k->key = 0;
    for (Entry &e : k->table) e = Entry();
    if (!k->name || add_object(module, k->name, (PyObject *)k)) Py_CLEAR(k);
    Py_XDECREF((PyObject *)k);  // the module holds it
    return k;
}

int make_function(PyObject *module, const char *name, Native native) {
    Function *f = PyObject_New(Function, &FunctionType);
    if (!f) return -1;
    f->call = function_call;
    f->name = PyUnicode_InternFromString(name);
    f->twin = nullptr;
    f->native = native;
    int failed = f->name ? add_object(module, f->name, (PyObject *)f) : -1;
    Py_DECREF(f);
    return failed;
}

// adopt(name, twin): the native object of that name, which now knows its twin; else the twin itself.
static PyObject *adopt(PyObject *module, PyObject *args) {
    PyObject *name, *twin;
    if (!PyArg_ParseTuple(args, "UO", &name, &twin)) return nullptr;
    PyObject *object = PyObject_GetAttr(module, name);
    if (!object) {
        PyErr_Clear();
        Py_INCREF(twin);
        return twin;
    }
    PyObject **slot = Py_TYPE(object) == &KernelType     ? &((Kernel *)object)->twin
                      : Py_TYPE(object) == &FunctionType ? &((Function *)object)->twin
                                                         : nullptr;
    if (slot) {
        Py_INCREF(twin);
        Py_XSETREF(*slot, twin);
    }
    if (Py_TYPE(object) == &KernelType && PyObject_HasAttrString(twin, "leader")) {  // else the first leads
        PyObject *leader = PyObject_GetAttrString(twin, "leader");
        long place = leader ? PyLong_AsLong(leader) : -1;
        Py_XDECREF(leader);
        if (place < 0 || place >= ((Kernel *)object)->nin) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "no operand of that number leads");
            Py_DECREF(object);
            return nullptr;
        }
        for (Entry &e : ((Kernel *)object)->table) e.leader = int(place);
    }
    return object;
}

static PyObject *make_quiet(PyObject *, PyObject *function) {
    Quiet *q = PyObject_GC_New(Quiet, &QuietType);
    if (!q) return nullptr;
    q->call = quiet_run;
    q->dict = nullptr;
    Py_INCREF(function);
    q->function = function;
    PyObject_GC_Track(q);
    return (PyObject *)q;
}

// set_quiet(variable, value): NumPy's context variable for floating-point errors, and "ignore" in it.
static PyObject *set_quiet(PyObject *, PyObject *args) {
    PyObject *variable, *value;
    if (!PyArg_ParseTuple(args, "OO", &variable, &value)) return nullptr;
    Py_INCREF(variable), Py_INCREF(value);
    Py_XSETREF(quiet_variable, variable);
    Py_XSETREF(quiet_value, value);
    Py_RETURN_NONE;
}

static PyObject *register_bfloat16(PyObject *, PyObject *descr) {
    if (!PyArray_DescrCheck(descr)) {
        PyErr_SetString(PyExc_TypeError, "expected a dtype");
        return nullptr;
    }
    Py_INCREF(descr);
    Py_XSETREF(bfloat16_descr, (PyArray_Descr *)descr);
    bfloat16_num = bfloat16_descr->type_num;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"adopt", adopt, METH_VARARGS, "adopt(name, twin): the native version, or the twin"},
    {"quiet", make_quiet, METH_O, "quiet(f): f, called while floating-point errors are ignored"},
    {"set_quiet", set_quiet, METH_VARARGS, nullptr},
    {"register_bfloat16", register_bfloat16, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

int register_kernel_types(PyObject *module) {
    fill_numbers();
    describe_type(KernelType, "flambeau.kernels._native.Kernel", sizeof(Kernel),
                  offsetof(Kernel, call), kernel_dealloc, kernel_members, kernel_getset);
    KernelType.tp_repr = kernel_repr;
    describe_type(FunctionType, "flambeau.kernels._native.Function", sizeof(Function),
                  offsetof(Function, call), function_dealloc, function_members, function_getset);
    describe_type(QuietType, "flambeau.kernels._native.Quiet", sizeof(Quiet), offsetof(Quiet, call),
                  quiet_dealloc, quiet_members, nullptr);
    QuietType.tp_flags |= Py_TPFLAGS_HAVE_GC;
    QuietType.tp_traverse = quiet_traverse;
    QuietType.tp_getattro = PyObject_GenericGetAttr;
    QuietType.tp_setattro = PyObject_GenericSetAttr;
    if (PyType_Ready(&KernelType) < 0 || PyType_Ready(&FunctionType) < 0 ||
        PyType_Ready(&QuietType) < 0)
        return -1;
    return PyModule_AddFunctions(module, methods);
}
