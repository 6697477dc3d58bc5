// A small matrix product for tiles in cache: the core of convolution, attention and recurrence.
//
// Included inside a namespace for one instruction set, after VECTOR_BYTES and the tile sizes are
// defined; so no include guard, and no system headers.

template <class T>
struct Lanes {
    typedef T type __attribute__((vector_size(VECTOR_BYTES)));
    typedef T loose __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
    static constexpr int count = VECTOR_BYTES / sizeof(T);
    static constexpr int wide = 2 * count;  // columns of a tile
};

// c[rows x wide] (+)= a * b over `depth`. Element (i, k) of a is a[i * ROW + k * step], ROW 1 where
// the rows of a tile stand side by side; row k of b is at b + k * b_step.
template <class T, int rows, int ROW>
static void tile(int64_t depth, const T *a, int64_t step, const T *b, int64_t b_step, T *c,
                 int64_t c_step, bool add) {
    using V = typename Lanes<T>::type;
    using L = typename Lanes<T>::loose;
    constexpr int n = Lanes<T>::count;
    V left[rows], right[rows];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) left[i] = right[i] = V{};
    for (int64_t k = 0; k < depth; k++) {
        V b0 = *(const L *)(b + k * b_step), b1 = *(const L *)(b + k * b_step + n);
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            T x = a[i * ROW + k * step];
            left[i] += x * b0;
            right[i] += x * b1;
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        L *to = (L *)(c + i * c_step), *next = (L *)(c + i * c_step + n);
        *to = add ? *to + left[i] : left[i];
        *next = add ? *next + right[i] : right[i];
    }
}

template <class T>
using Tile = void (*)(int64_t, const T *, int64_t, const T *, int64_t, T *, int64_t, bool);

// The tile function for a number of rows, 1 to MAX_ROWS.
template <class T, int ROW>
static Tile<T> tile_of(int64_t rows) {
    static constexpr Tile<T> table[] = {
        nullptr,          tile<T, 1, ROW>,  tile<T, 2, ROW>,  tile<T, 3, ROW>,  tile<T, 4, ROW>,
#if MAX_ROWS > 4
        tile<T, 5, ROW>,  tile<T, 6, ROW>,
#endif
#if MAX_ROWS > 6
        tile<T, 7, ROW>,  tile<T, 8, ROW>,  tile<T, 9, ROW>,  tile<T, 10, ROW>, tile<T, 11, ROW>,
        tile<T, 12, ROW>, tile<T, 13, ROW>, tile<T, 14, ROW>,
#endif
    };
    return table[rows];
}

// Rows of a tile so that all tiles over m rows are about equally high.
static inline int64_t tile_rows(int64_t m) {
    int64_t tiles = (m + MAX_ROWS - 1) / MAX_ROWS;
    return tiles ? (m + tiles - 1) / tiles : 1;
}

// c[m x columns] (+)= a * b, where b stands in panels of `wide` columns, b_panel apart, and c has
// room for whole panels. Element (i, k) of a is a[i * ROW + k * step].
template <class T, int ROW>
static void product_of_panels(int64_t m, int64_t panels, int64_t depth, const T *a, int64_t step,
                              const T *b, int64_t b_panel, T *c, int64_t c_step, bool add) {
    constexpr int wide = Lanes<T>::wide;
    int64_t high = tile_rows(m);
    for (int64_t i = 0; i < m; i += high) {
        int64_t rows = m - i < high ? m - i : high;
        Tile<T> run = tile_of<T, ROW>(rows);
        for (int64_t p = 0; p < panels; p++)
            run(depth, a + i * ROW, step, b + p * b_panel, wide, c + i * c_step + p * wide, c_step,
                add);
    }
}

// Packs columns of a matrix (element (k, j) at b[k * row + j * column]) into panels, filled up with
// zeros.
template <class T>
static void pack_panels(int64_t depth, int64_t columns, const T *b, int64_t row, int64_t column,
                        T *to) {
    constexpr int wide = Lanes<T>::wide;
    for (int64_t j = 0; j < columns; j += wide) {
        int64_t here = columns - j < wide ? columns - j : wide;
        for (int64_t k = 0; k < depth; k++, to += wide) {
            const T *from = b + k * row + j * column;
            for (int64_t t = 0; t < here; t++) to[t] = from[t * column];
            for (int64_t t = here; t < wide; t++) to[t] = 0;
        }
    }
}

// sums[i][j] += sum over `depth` of a[i][.] * b[j][.], rows a_step and b_step apart. Reads whole
// vectors: depth is a multiple of their length.
template <class T, int rows, int columns>
static void dots(int64_t depth, const T *a, int64_t a_step, const T *b, int64_t b_step, T *sums,
                 int64_t step) {
    using V = typename Lanes<T>::type;
    using L = typename Lanes<T>::loose;
    constexpr int n = Lanes<T>::count;
    V total[rows][columns];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 16
        for (int j = 0; j < columns; j++) total[i][j] = V{};
    for (int64_t k = 0; k < depth; k += n) {
        V x[rows];
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) x[i] = *(const L *)(a + i * a_step + k);
#pragma GCC unroll 16
        for (int j = 0; j < columns; j++) {
            V y = *(const L *)(b + j * b_step + k);
#pragma GCC unroll 16
            for (int i = 0; i < rows; i++) total[i][j] += x[i] * y;
        }
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            T sum = 0;
            for (int t = 0; t < n; t++) sum += total[i][j][t];
            sums[i * step + j] += sum;
        }
}

template <class T>
static void dots_any(int64_t rows, int64_t columns, int64_t depth, const T *a, int64_t a_step,
                     const T *b, int64_t b_step, T *sums, int64_t step) {
    for (int64_t j = 0; j < columns; j += DOT_COLUMNS) {
        bool full = columns - j >= DOT_COLUMNS;
        for (int64_t i = 0; i < rows; i += DOT_ROWS) {
            const T *x = a + i * a_step, *y = b + j * b_step;
            T *to = sums + i * step + j;
            if (full && rows - i >= DOT_ROWS) {
                dots<T, DOT_ROWS, DOT_COLUMNS>(depth, x, a_step, y, b_step, to, step);
            } else {
                int64_t high = rows - i < DOT_ROWS ? rows - i : DOT_ROWS;
                int64_t across = full ? DOT_COLUMNS : columns - j;
                for (int64_t r = 0; r < high; r++) {
                    int64_t q = 0;
                    for (; q + 2 <= across; q += 2)
                        dots<T, 1, 2>(depth, x + r * a_step, a_step, y + q * b_step, b_step,
                                      to + r * step + q, step);
                    if (q < across)
                        dots<T, 1, 1>(depth, x + r * a_step, a_step, y + q * b_step, b_step,
                                      to + r * step + q, step);
                }
            }
        }
    }
}
