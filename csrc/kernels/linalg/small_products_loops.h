// Loops of small products for one instruction set; see isa.h. `Part` is a matrix with strides in elements.

#include "kernels/network/gemm.h"

template <class T>
struct Vector {
    typedef T type __attribute__((vector_size(VECTOR_BYTES)));
    typedef T loose __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
    static constexpr npy_intp count = VECTOR_BYTES / sizeof(T);
};

// The products of `rows` rows of k elements, `step` apart, with a vector.
template <class T, int rows>
static inline void dots(const T *a, npy_intp step, const T *v, npy_intp k, T *to) {
    using V = typename Vector<T>::type;
    using L = typename Vector<T>::loose;
    constexpr npy_intp n = Vector<T>::count;
    V sums[rows], more[rows];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) sums[r] = more[r] = V{};
    npy_intp l = 0;
    for (; l + 2 * n <= k; l += 2 * n) {
        V x = *(const L *)(v + l), y = *(const L *)(v + l + n);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            sums[r] += *(const L *)(a + r * step + l) * x;
            more[r] += *(const L *)(a + r * step + l + n) * y;
        }
    }
    if (l + n <= k) {
        V x = *(const L *)(v + l);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) sums[r] += *(const L *)(a + r * step + l) * x;
        l += n;
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        V both = sums[r] + more[r];
        T parts[n], sum = 0;
        *(L *)parts = both;
        for (npy_intp half = n / 2; half; half /= 2)
            for (npy_intp i = 0; i < half; i++) parts[i] += parts[i + half];
        for (npy_intp i = l; i < k; i++) sum += a[r * step + i] * v[i];
        to[r] = parts[0] + sum;
    }
}

template <class T>
static void matrix_vector(const T *a, npy_intp step, const T *v, npy_intp rows, npy_intp k, T *to) {
    npy_intp r = 0;
    for (; r + 4 <= rows; r += 4) dots<T, 4>(a + r * step, step, v, k, to + r);
    for (; r < rows; r++) dots<T, 1>(a + r * step, step, v, k, to + r);
}

// rows × (two vectors) of a product; of the last columns only `columns`, where `b` is filled up.
template <class T, int rows>
static inline void block(Part<T> a, const T *b, npy_intp b_row, npy_intp k, T *to, npy_intp step, npy_intp columns) {
    using V = typename Vector<T>::type;
    using L = typename Vector<T>::loose;
    constexpr npy_intp n = Vector<T>::count;
    V left[rows], right[rows];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) left[r] = right[r] = V{};
    for (npy_intp l = 0; l < k; l++) {
        V x = *(const L *)(b + l * b_row), y = *(const L *)(b + l * b_row + n);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            T factor = a.at[r * a.row + l * a.column];
            left[r] += factor * x;
            right[r] += factor * y;
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        T *at = to + r * step;
        if (columns == 2 * n) {
            *(L *)at = left[r], *(L *)(at + n) = right[r];
        } else {
            T parts[2 * n];
            *(L *)parts = left[r], *(L *)(parts + n) = right[r];
            for (npy_intp j = 0; j < columns; j++) at[j] = parts[j];
        }
    }
}

// … of one vector.
template <class T, int rows>
static inline void narrow_block(Part<T> a, const T *b, npy_intp b_row, npy_intp k, T *to, npy_intp step,
                                npy_intp columns) {
    using V = typename Vector<T>::type;
    using L = typename Vector<T>::loose;
    constexpr npy_intp n = Vector<T>::count;
    V left[rows];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) left[r] = V{};
    for (npy_intp l = 0; l < k; l++) {
        V x = *(const L *)(b + l * b_row);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) left[r] += a.at[r * a.row + l * a.column] * x;
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        T *at = to + r * step;
        if (columns == n) {
            *(L *)at = left[r];
        } else {
            T parts[n];
            *(L *)parts = left[r];
            for (npy_intp j = 0; j < columns; j++) at[j] = parts[j];
        }
    }
}

// A product where the rows of b are contiguous.
template <class T>
static void small_product(Part<T> a, Part<T> b, T *to, npy_intp n, npy_intp k, npy_intp m) {
    constexpr npy_intp lanes = Vector<T>::count;
    T filled[SMALL_DEPTH * 2 * lanes];
    for (npy_intp j = 0; j < m; j += 2 * lanes) {
        npy_intp columns = m - j < 2 * lanes ? m - j : 2 * lanes, wide = columns > lanes ? 2 * lanes : lanes;
        const T *right = b.at + j;
        npy_intp step = b.row;
        if (columns < wide) {
            for (npy_intp l = 0; l < k; l++) {
                for (npy_intp c = 0; c < columns; c++) filled[l * wide + c] = b.at[l * b.row + j + c];
                for (npy_intp c = columns; c < wide; c++) filled[l * wide + c] = 0;
            }
            right = filled, step = wide;
        }
        npy_intp i = 0;
        Part<T> left = a;
        for (; i + 4 <= n; i += 4, left.at += 4 * a.row)
            wide > lanes ? block<T, 4>(left, right, step, k, to + i * m + j, m, columns)
                         : narrow_block<T, 4>(left, right, step, k, to + i * m + j, m, columns);
        for (; i < n; i++, left.at += a.row)
            wide > lanes ? block<T, 1>(left, right, step, k, to + i * m + j, m, columns)
                         : narrow_block<T, 1>(left, right, step, k, to + i * m + j, m, columns);
    }
}

// to[l * width + r] = x[r * step + l]
template <class T>
static void pack_turned(const T *x, npy_intp step, npy_intp rows, npy_intp depth, npy_intp width, T *to) {
    constexpr npy_intp size = sizeof(T);
    const npy_intp fours = rows / 4 * 4;
    for (npy_intp r = 0; r < fours; r += 4) {
        npy_intp l = 0;
        for (; l + 4 <= depth; l += 4) {
            const char *from = (const char *)(x + r * step + l);
            char *place = (char *)(to + l * width + r);
            turn_four<std::conditional_t<size == 4, uint32_t, uint64_t>>(from, step * size, place, width * size);
        }
        for (; l < depth; l++)
            for (npy_intp k = r; k < r + 4; k++) to[l * width + k] = x[k * step + l];
    }
    for (npy_intp r = fours; r < rows; r++)
        for (npy_intp l = 0; l < depth; l++) to[l * width + r] = x[r * step + l];
}

// Any product of up to PACKED_DEPTH terms: both factors are copied as a tile reads them.
template <class T>
static void packed_product(Part<T> a, Part<T> b, T *to, npy_intp n, npy_intp k, npy_intp m) {
    constexpr npy_intp wide = Lanes<T>::wide;
    npy_intp high = tile_rows(n), panels = (m + wide - 1) / wide;
    Buffer<T> left(high * k), right(panels * wide * k);
    T spill[MAX_ROWS * wide];
    npy_intp whole = b.row == 1 ? m / wide * wide : 0;
    for (npy_intp j = 0; j < whole; j += wide)
        pack_turned(b.at + j * b.column, b.column, wide, k, wide, right.get() + j * k);
    pack_panels(k, m - whole, b.at + whole * b.column, b.row, b.column, right.get() + whole * k);
    for (npy_intp i = 0; i < n; i += high) {
        npy_intp rows = n - i < high ? n - i : high;
        if (a.column == 1) pack_turned(a.at + i * a.row, a.row, rows, k, rows, left.get());
        else
            for (npy_intp l = 0; l < k; l++)
                for (npy_intp r = 0; r < rows; r++) left[l * rows + r] = a.at[(i + r) * a.row + l * a.column];
        Tile<T> run = tile_of<T, 1>(rows);
        for (npy_intp j = 0; j < m; j += wide) {
            const T *panel = right.get() + j * k;
            T *place = to + i * m + j;
            if (j + wide <= m) {
                run(k, left.get(), rows, panel, wide, place, m, false);
                continue;
            }
            run(k, left.get(), rows, panel, wide, spill, wide, false);
            for (npy_intp r = 0; r < rows; r++)
                for (npy_intp c = 0; c < m - j; c++) place[r * m + c] = spill[r * wide + c];
        }
    }
}
