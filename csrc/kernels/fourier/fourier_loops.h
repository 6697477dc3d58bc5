// Loops of Fourier transforms for one instruction set; see isa.h.
//
// Each lane of a vector belongs to another signal, so that a transform is the scalar algorithm on
// vectors. Real and imaginary parts are vectors of their own; complex numbers in memory are pairs.

template <class T>
struct Lane {
    static constexpr int count = VECTOR_BYTES / sizeof(T);
    typedef T V __attribute__((vector_size(VECTOR_BYTES)));
    typedef T L __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
    V re, im;
};

template <class T>
INLINE Lane<T> operator+(Lane<T> a, Lane<T> b) { return {a.re + b.re, a.im + b.im}; }
template <class T>
INLINE Lane<T> operator-(Lane<T> a, Lane<T> b) { return {a.re - b.re, a.im - b.im}; }
template <class T>
INLINE Lane<T> operator*(Lane<T> a, T c) { return {a.re * c, a.im * c}; }
template <class T>
INLINE Lane<T> times(Lane<T> a, const T *w) {
    return {a.re * w[0] - a.im * w[1], a.re * w[1] + a.im * w[0]};
}
template <class T>
INLINE Lane<T> times_minus_i(Lane<T> a) { return {a.im, -a.re}; }

// ---- moving between memory and lanes ------------------------------------------------------------

struct Even {
    static constexpr int at(int i, int) { return 2 * i; }
};
struct Odd {
    static constexpr int at(int i, int) { return 2 * i + 1; }
};
struct Low {
    static constexpr int at(int i, int n) { return i / 2 + (i & 1) * n; }
};
struct High {
    static constexpr int at(int i, int n) { return n / 2 + i / 2 + (i & 1) * n; }
};
struct Reversed {
    static constexpr int at(int i, int n) { return n - 1 - i; }
};
template <int h>
struct Left {  // exchanging blocks of h x h
    static constexpr int at(int i, int n) { return i & h ? n + i - h : i; }
};
template <int h>
struct Right {
    static constexpr int at(int i, int n) { return i & h ? n + i : i + h; }
};

template <class Rule, class V, int... I>
INLINE V shuffled(V a, V b, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(a, b, Rule::at(I, int(sizeof...(I)))...);
}
template <class T, class Rule>
INLINE typename Lane<T>::V shuffle(typename Lane<T>::V a, typename Lane<T>::V b) {
    return shuffled<Rule>(a, b, std::make_integer_sequence<int, Lane<T>::count>());
}

template <class T>
INLINE Lane<T> load(const T *x) {
    using L = typename Lane<T>::L;
    typename Lane<T>::V a = *(const L *)x, b = *(const L *)(x + Lane<T>::count);
    return {shuffle<T, Even>(a, b), shuffle<T, Odd>(a, b)};
}
template <class T>
INLINE void store(Lane<T> x, T *to) {
    using L = typename Lane<T>::L;
    *(L *)to = shuffle<T, Low>(x.re, x.im);
    *(L *)(to + Lane<T>::count) = shuffle<T, High>(x.re, x.im);
}
template <class T>
INLINE Lane<T> reversed(Lane<T> a) {
    return {shuffle<T, Reversed>(a.re, a.re), shuffle<T, Reversed>(a.im, a.im)};
}
// The first `n` numbers; the other lanes are zero, and are not written.
template <class T>
INLINE Lane<T> load_some(const T *x, int n) {
    Lane<T> a{};
    for (int i = 0; i < n; i++) a.re[i] = x[2 * i], a.im[i] = x[2 * i + 1];
    return a;
}
template <class T>
INLINE void store_some(Lane<T> a, T *to, int n) {
    for (int i = 0; i < n; i++) to[2 * i] = a.re[i], to[2 * i + 1] = a.im[i];
}
// The inverse transform is the forward one of numbers whose parts are exchanged.
template <class T>
INLINE Lane<T> exchanged(Lane<T> a, bool exchange) {
    return exchange ? Lane<T>{a.im, a.re} : a;
}

template <class T, int h>
INLINE void exchange_blocks(typename Lane<T>::V *r) {
    if constexpr (h > 0) {
#pragma GCC unroll 16
        for (int i = 0; i < Lane<T>::count; i++)
            if (!(i & h)) {
                typename Lane<T>::V a = r[i], b = r[i + h];
                r[i] = shuffle<T, Left<h>>(a, b);
                r[i + h] = shuffle<T, Right<h>>(a, b);
            }
        exchange_blocks<T, h / 2>(r);
    }
}
template <class T>
INLINE void transpose(typename Lane<T>::V *r) { exchange_blocks<T, Lane<T>::count / 2>(r); }

// As many lanes as a vector holds, from read(r), transposed and given to write(r, lane).
template <class T, class Read, class Write>
INLINE void transpose_lanes(Read read, Write write) {
    constexpr int wide = Lane<T>::count;
    typename Lane<T>::V re[wide], im[wide];
#pragma GCC unroll 16
    for (int r = 0; r < wide; r++) {
        Lane<T> a = read(r);
        re[r] = a.re, im[r] = a.im;
    }
    transpose<T>(re);
    transpose<T>(im);
#pragma GCC unroll 16
    for (int r = 0; r < wide; r++) write(r, Lane<T>{re[r], im[r]});
}

// Rows `step` numbers apart to lanes: to[j] holds element j of each.
template <class T>
static void load_rows(const T *x, int64_t step, int64_t n, int rows, bool exchange, Lane<T> *to) {
    constexpr int wide = Lane<T>::count;
    int64_t j = 0;
    for (; j + wide <= n; j += wide)
        transpose_lanes<T>(
            [&](int r) {
                return exchanged(load(x + 2 * ((r < rows ? r : 0) * step + j)), exchange);
            },
            [&](int r, const Lane<T> &a) { to[j + r] = a; });
    for (; j < n; j++) {
        Lane<T> a{};
        for (int r = 0; r < rows; r++) {
            const T *p = x + 2 * (r * step + j);
            a.re[r] = p[0], a.im[r] = p[1];
        }
        to[j] = exchanged(a, exchange);
    }
}

template <class T>
static void store_rows(const Lane<T> *from, int64_t step, int64_t n, int rows, bool exchange,
                       T factor, T *x) {
    constexpr int wide = Lane<T>::count;
    int64_t j = 0;
    for (; j + wide <= n; j += wide)
        transpose_lanes<T>([&](int r) { return exchanged(from[j + r] * factor, exchange); },
                           [&](int r, const Lane<T> &a) {
                               if (r < rows) store<T>(a, x + 2 * (r * step + j));
                           });
    for (; j < n; j++) {
        Lane<T> a = exchanged(from[j] * factor, exchange);
        for (int r = 0; r < rows; r++) {
            T *p = x + 2 * (r * step + j);
            p[0] = a.re[r], p[1] = a.im[r];
        }
    }
}

// Columns side by side to lanes: element j of each is at x + 2 * j * step.
template <class T>
static void load_columns(const T *x, int64_t step, int64_t n, int columns, bool exchange,
                         Lane<T> *to) {
    if (columns == Lane<T>::count)
        for (int64_t j = 0; j < n; j++) to[j] = exchanged(load(x + 2 * j * step), exchange);
    else
        for (int64_t j = 0; j < n; j++)
            to[j] = exchanged(load_some(x + 2 * j * step, columns), exchange);
}

template <class T>
static void store_columns(const Lane<T> *from, int64_t step, int64_t n, int columns, bool exchange,
                          T factor, T *x) {
    if (columns == Lane<T>::count)
        for (int64_t j = 0; j < n; j++)
            store(exchanged(from[j] * factor, exchange), x + 2 * j * step);
    else
        for (int64_t j = 0; j < n; j++)
            store_some(exchanged(from[j] * factor, exchange), x + 2 * j * step, columns);
}

// ---- transforms in lanes ------------------------------------------------------------------------

template <class T>
INLINE void sums2(Lane<T> *a) {
    Lane<T> b = a[0] - a[1];
    a[0] = a[0] + a[1];
    a[1] = b;
}
template <class T>
INLINE void sums3(Lane<T> *a) {
    Lane<T> sum = a[1] + a[2], half = a[0] - sum * T(0.5);
    Lane<T> turned = times_minus_i((a[1] - a[2]) * T(0.86602540378443864676));
    a[0] = a[0] + sum;
    a[1] = half + turned;
    a[2] = half - turned;
}
template <class T>
INLINE void sums4(Lane<T> &a0, Lane<T> &a1, Lane<T> &a2, Lane<T> &a3) {
    Lane<T> s = a0 + a2, d = a0 - a2, t = a1 + a3, e = times_minus_i(a1 - a3);
    a0 = s + t, a1 = d + e, a2 = s - t, a3 = d - e;
}
template <class T>
INLINE void sums5(Lane<T> *a) {
    const T c1 = T(0.30901699437494742410), c2 = T(-0.80901699437494742410);
    const T s1 = T(0.95105651629515357212), s2 = T(0.58778525229247312917);
    Lane<T> p = a[1] + a[4], q = a[2] + a[3], r = a[1] - a[4], s = a[2] - a[3];
    Lane<T> m = a[0] + p * c1 + q * c2, n = a[0] + p * c2 + q * c1;
    Lane<T> x = times_minus_i(r * s1 + s * s2), y = times_minus_i(r * s2 - s * s1);
    a[0] = a[0] + p + q;
    a[1] = m + x, a[4] = m - x, a[2] = n + y, a[3] = n - y;
}
template <class T>
INLINE void sums8(Lane<T> *a) {
    const T half = T(0.70710678118654752440);
    sums4(a[0], a[2], a[4], a[6]);
    sums4(a[1], a[3], a[5], a[7]);
    Lane<T> b = Lane<T>{a[3].re + a[3].im, a[3].im - a[3].re} * half;
    Lane<T> c = times_minus_i(a[5]);
    Lane<T> d = Lane<T>{a[7].im - a[7].re, -a[7].re - a[7].im} * half;
    Lane<T> odd[4] = {a[1], b, c, d}, even[4] = {a[0], a[2], a[4], a[6]};
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) a[k] = even[k] + odd[k], a[k + 4] = even[k] - odd[k];
}
// Of an odd number: results k and radix - k differ in the sign of what the differences give.
template <class T>
INLINE void sums_odd(Lane<T> *a, const T *roots, int radix) {
    Lane<T> sum[LARGEST_RADIX / 2], rest[LARGEST_RADIX / 2], total = a[0];
    int half = radix / 2;
    for (int i = 0; i < half; i++) {
        sum[i] = a[i + 1] + a[radix - 1 - i], rest[i] = a[i + 1] - a[radix - 1 - i];
        total = total + sum[i];
    }
    for (int k = 1; k <= half; k++) {
        Lane<T> even = a[0], odd{};
        for (int i = 0, at = k; i < half; i++, at = at + k < radix ? at + k : at + k - radix) {
            even = even + sum[i] * roots[2 * at];
            odd = odd + rest[i] * roots[2 * at + 1];
        }
        odd = {-odd.im, odd.re};
        a[k] = even + odd, a[radix - k] = even - odd;
    }
    a[0] = total;
}
template <class T, int radix>
INLINE void sums(Lane<T> *a, const T *roots) {
    if constexpr (radix == 2) sums2(a);
    if constexpr (radix == 3) sums3(a);
    if constexpr (radix == 4) sums4(a[0], a[1], a[2], a[3]);
    if constexpr (radix == 5) sums5(a);
    if constexpr (radix == 8) sums8(a);
    if constexpr (radix == 7) sums_odd(a, roots, radix);
}

// y[q + s (radix p + k)] = w^(p k) sum_i x[q + s (p + m i)] exp(-2 pi i k / radix) (Stockham).
template <class T, int radix>
static void pass(const Lane<T> *x, Lane<T> *y, int64_t m, int64_t s, const T *roots) {
    const T *own = roots + 2 * (radix - 1) * m;
    for (int64_t p = 0; p < m; p++, roots += 2 * (radix - 1))
        for (int64_t q = 0; q < s; q++) {
            Lane<T> a[radix];
#pragma GCC unroll 8
            for (int i = 0; i < radix; i++) a[i] = x[q + s * (p + m * i)];
            sums<T, radix>(a, own);
            Lane<T> *to = y + q + s * radix * p;
            to[0] = a[0];
#pragma GCC unroll 8
            for (int k = 1; k < radix; k++) to[s * k] = times(a[k], roots + 2 * (k - 1));
        }
}

// The same of a prime from 11 to LARGEST_RADIX.
template <class T>
static void prime_pass(int radix, const Lane<T> *x, Lane<T> *y, int64_t m, int64_t s, const T *roots) {
    const T *own = roots + 2 * (radix - 1) * m;
    for (int64_t p = 0; p < m; p++, roots += 2 * (radix - 1))
        for (int64_t q = 0; q < s; q++) {
            Lane<T> a[LARGEST_RADIX];
            a[0] = x[q + s * p];
            for (int i = 1; i < radix; i++) a[i] = x[q + s * (p + m * i)];
            sums_odd(a, own, radix);
            Lane<T> *to = y + q + s * radix * p;
            to[0] = a[0];
            for (int k = 1; k < radix; k++) to[s * k] = times(a[k], roots + 2 * (k - 1));
        }
}

// The transforms of what is in `x`; where they are, `x` or `y`.
template <class T>
static Lane<T> *transform(const Passes<T> &all, Lane<T> *x, Lane<T> *y) {
    for (const Pass &one : all.passes) {
        const T *roots = all.roots.data() + one.at;
        switch (one.radix) {
            case 2: pass<T, 2>(x, y, one.m, one.s, roots); break;
            case 3: pass<T, 3>(x, y, one.m, one.s, roots); break;
            case 4: pass<T, 4>(x, y, one.m, one.s, roots); break;
            case 5: pass<T, 5>(x, y, one.m, one.s, roots); break;
            case 7: pass<T, 7>(x, y, one.m, one.s, roots); break;
            case 8: pass<T, 8>(x, y, one.m, one.s, roots); break;
            default: prime_pass(one.radix, x, y, one.m, one.s, roots); break;
        }
        std::swap(x, y);
    }
    return x;
}

// ---- rows and columns of matrices ---------------------------------------------------------------

// Columns first to last of a row seen as a (first, second) matrix, each transformed, turned and laid
// in `work` so that `count` results side by side are the lanes of the second step.
template <class T>
static void first_step(const Plan<T> &plan, const T *x, bool exchange, int64_t from, int64_t to,
                       Lane<T> *work, Lane<T> *buffers) {
    constexpr int wide = Lane<T>::count;
    int64_t high = (plan.first + wide - 1) / wide * wide;
    for (int64_t group = from; group < to; group++) {
        int64_t j = group * wide;
        int columns = int(std::min<int64_t>(wide, plan.second - j));
        load_columns(x + 2 * j, plan.second, plan.first, columns, exchange, buffers);
        Lane<T> *made = transform(plan.a, buffers, buffers + high);
        for (int64_t k = 0; k < high; k += wide) {
            typename Lane<T>::V re[wide], im[wide];
            const T *w = plan.turns_re.data() + k * plan.padded + j;
            const T *v = plan.turns_im.data() + k * plan.padded + j;
#pragma GCC unroll 16
            for (int i = 0; i < wide; i++) {
                if (k + i >= plan.first) {
                    re[i] = im[i] = typename Lane<T>::V{};
                    continue;
                }
                using L = typename Lane<T>::L;
                typename Lane<T>::V c = *(const L *)(w + i * plan.padded);
                typename Lane<T>::V d = *(const L *)(v + i * plan.padded);
                Lane<T> a = made[k + i];
                re[i] = a.re * c - a.im * d;
                im[i] = a.re * d + a.im * c;
            }
            transpose<T>(re);
            transpose<T>(im);
            Lane<T> *place = work + k / wide * plan.second + j;
            for (int i = 0; i < columns; i++) place[i] = {re[i], im[i]};
        }
    }
}

template <class T>
static void second_step(const Plan<T> &plan, Lane<T> *work, bool exchange, T factor, int64_t from,
                        int64_t to, T *result, Lane<T> *buffer) {
    constexpr int wide = Lane<T>::count;
    for (int64_t group = from; group < to; group++) {
        int columns = int(std::min<int64_t>(wide, plan.first - group * wide));
        Lane<T> *made = transform(plan.b, work + group * plan.second, buffer);
        store_columns(made, plan.first, plan.second, columns, exchange, factor,
                      result + 2 * group * wide);
    }
}

template <class T>
static int64_t groups_of(int64_t n) { return (n + Lane<T>::count - 1) / Lane<T>::count; }

// How many elements of type Lane the buffers of `rows_between` take.
template <class T>
static int64_t buffers_of(const Plan<T> &plan) {
    int64_t high = groups_of<T>(plan.first) * Lane<T>::count;
    if (plan.second == 1) return 2 * high;
    return std::max(2 * high, plan.second) + groups_of<T>(plan.first) * plan.second;
}

template <class T>
static void rows_between(const Plan<T> &plan, const T *x, int64_t x_step, T *result,
                         int64_t result_step, int64_t rows, bool exchange, T factor,
                         Lane<T> *buffers) {
    constexpr int wide = Lane<T>::count;
    if (plan.second == 1) {
        for (int64_t i = 0; i < rows; i += wide) {
            int count = int(std::min<int64_t>(wide, rows - i));
            load_rows(x + 2 * i * x_step, x_step, plan.n, count, exchange, buffers);
            Lane<T> *made = transform(plan.a, buffers, buffers + plan.n);
            store_rows(made, result_step, plan.n, count, exchange, factor,
                       result + 2 * i * result_step);
        }
        return;
    }
    int64_t high = groups_of<T>(plan.first) * wide;
    Lane<T> *work = buffers + std::max(2 * high, plan.second);
    for (int64_t i = 0; i < rows; i++) {
        first_step(plan, x + 2 * i * x_step, exchange, 0, groups_of<T>(plan.second), work, buffers);
        second_step(plan, work, exchange, factor, 0, groups_of<T>(plan.first),
                    result + 2 * i * result_step, buffers);
    }
}

// One long row by all threads.
template <class T>
static void long_row(const Plan<T> &plan, const T *x, T *result, bool exchange, T factor) {
    int64_t groups = groups_of<T>(plan.first), high = groups * Lane<T>::count;
    Buffer<Lane<T>> work(groups * plan.second);
    int64_t grain = 8192 / plan.first + 1;
    parallel_for(groups_of<T>(plan.second), grain, [&](int64_t from, int64_t to) {
        Buffer<Lane<T>> buffers(2 * high);
        first_step(plan, x, exchange, from, to, work.get(), buffers.get());
    }, 1);
    parallel_for(groups, grain, [&](int64_t from, int64_t to) {
        Buffer<Lane<T>> buffer(plan.second);
        second_step(plan, work.get(), exchange, factor, from, to, result, buffer.get());
    }, 1);
}

// Rows of n complex numbers.
template <class T>
static void all_rows(const Plan<T> &plan, const T *x, T *result, int64_t rows, bool exchange,
                     T factor) {
    if (rows == 1 && plan.second > 1) return long_row(plan, x, result, exchange, factor);
    parallel_for(rows, 16384 / plan.n + 1, [&](int64_t from, int64_t to) {
        Buffer<Lane<T>> buffers(buffers_of(plan));
        rows_between(plan, x + 2 * from * plan.n, plan.n, result + 2 * from * plan.n, plan.n,
                     to - from, exchange, factor, buffers.get());
    });
}

// The middle dimension of (outer, n, inner).
template <class T>
static void all_columns(const Plan<T> &plan, const T *x, T *result, int64_t outer, int64_t inner,
                        bool exchange, T factor) {
    int64_t groups = groups_of<T>(inner);
    parallel_for(outer * groups, 1024 / plan.n + 1, [&](int64_t from, int64_t to) {
        Buffer<Lane<T>> buffers(2 * plan.n);
        for (int64_t i = from; i < to; i++) {
            int64_t j = i % groups * Lane<T>::count, at = 2 * (i / groups * plan.n * inner + j);
            int columns = int(std::min<int64_t>(Lane<T>::count, inner - j));
            load_columns(x + at, inner, plan.n, columns, exchange, buffers.get());
            Lane<T> *made = transform(plan.a, buffers.get(), buffers.get() + plan.n);
            store_columns(made, inner, plan.n, columns, exchange, factor, result + at);
        }
    }, 1);
}

// ---- real numbers, as half as many complex ones -------------------------------------------------

// With z the transform of x[0] + i x[1], x[2] + i x[3], … (n of them), the spectrum of x:
// (z[k] + conj z[n - k]) / 2 - i exp(-pi i k / n) (z[k] - conj z[n - k]) / 2; in place, n + 1 long.
// `into_halves` goes the other way, to twice z.
template <class T, bool into>
INLINE void pair_up(Lane<T> a, Lane<T> b, typename Lane<T>::V c, typename Lane<T>::V d, T factor,
                    Lane<T> &low, Lane<T> &high) {
    Lane<T> sum = {a.re + b.re, a.im - b.im}, rest = {a.re - b.re, a.im + b.im};
    if (into) d = -d;
    Lane<T> turned = {rest.re * c - rest.im * d, rest.re * d + rest.im * c};
    turned = times_minus_i(turned);
    if (into) turned = {-turned.re, -turned.im};
    low = (sum + turned) * factor;
    high = Lane<T>{sum.re - turned.re, (b.im - a.im) + turned.im} * factor;
}

template <class T, bool into>
static void pairs(const Plan<T> &plan, const T *x, T *y, T factor) {
    constexpr int wide = Lane<T>::count;
    using L = typename Lane<T>::L;
    int64_t n = plan.n, k = 1;
    for (; k + wide <= n - k - wide + 1; k += wide) {
        int64_t mirror = n - k - wide + 1;
        Lane<T> low, high;
        pair_up<T, into>(load(x + 2 * k), reversed(load(x + 2 * mirror)),
                         *(const L *)(plan.half_re.data() + k),
                         *(const L *)(plan.half_im.data() + k), factor, low, high);
        store(low, y + 2 * k);
        store(reversed(high), y + 2 * mirror);
    }
    for (; 2 * k <= n; k++) {
        Lane<T> low, high;
        pair_up<T, into>(load_some(x + 2 * k, 1), load_some(x + 2 * (n - k), 1),
                         typename Lane<T>::V{} + plan.half_re[k],
                         typename Lane<T>::V{} + plan.half_im[k], factor, low, high);
        store_some(low, y + 2 * k, 1);
        store_some(high, y + 2 * (n - k), 1);
    }
}

template <class T>
static void into_spectrum(const Plan<T> &plan, T *z, T factor) {
    T re = z[0], im = z[1];
    pairs<T, false>(plan, z, z, factor / 2);
    z[0] = (re + im) * factor, z[1] = 0;
    z[2 * plan.n] = (re - im) * factor, z[2 * plan.n + 1] = 0;
}

template <class T>
static void into_halves(const Plan<T> &plan, const T *x, T *z) {
    pairs<T, true>(plan, x, z, T(1));
    T first = x[0], last = x[2 * plan.n];
    z[0] = first + last, z[1] = first - last;
}

// The same for what is in lanes.
template <class T, bool into>
static void pairs_in_lanes(const Plan<T> &plan, Lane<T> *z) {
    using V = typename Lane<T>::V;
    int64_t n = plan.n;
    V first = z[0].re, last = into ? z[n].re : z[0].im;
    if (into) {
        z[0] = {first + last, first - last};
    } else {
        z[0] = {first + last, V{}};
        z[n] = {first - last, V{}};
    }
    for (int64_t k = 1; 2 * k <= n; k++)
        pair_up<T, into>(z[k], z[n - k], V{} + plan.half_re[k], V{} + plan.half_im[k],
                         into ? T(1) : T(0.5), z[k], z[n - k]);
}

// Rows of 2 n real numbers to rows of n + 1 complex ones, and back.
template <class T>
static void real_rows(const Plan<T> &plan, const T *x, T *result, int64_t rows, T factor) {
    int64_t n = plan.n;
    parallel_for(rows, 16384 / n + 1, [&](int64_t from, int64_t to) {
        Buffer<Lane<T>> buffers(buffers_of(plan) + 2);
        for (int64_t i = from; i < to; i += Lane<T>::count) {
            int count = int(std::min<int64_t>(Lane<T>::count, to - i));
            T *place = result + 2 * i * (n + 1);
            if (plan.second == 1) {
                load_rows(x + 2 * i * n, n, n, count, false, buffers.get());
                Lane<T> *made = transform(plan.a, buffers.get(), buffers.get() + n + 1);
                pairs_in_lanes<T, false>(plan, made);
                store_rows(made, n + 1, n + 1, count, false, factor, place);
                continue;
            }
            rows_between(plan, x + 2 * i * n, n, place, n + 1, count, false, T(1), buffers.get());
            for (int r = 0; r < count; r++) into_spectrum(plan, place + 2 * r * (n + 1), factor);
        }
    });
}

template <class T>
static void rows_to_real(const Plan<T> &plan, const T *x, T *result, int64_t rows, T factor) {
    int64_t n = plan.n;
    parallel_for(rows, 16384 / n + 1, [&](int64_t from, int64_t to) {
        Buffer<Lane<T>> buffers(buffers_of(plan) + 2);
        Buffer<T> halves(plan.second == 1 ? 0 : 2 * n * Lane<T>::count);
        for (int64_t i = from; i < to; i += Lane<T>::count) {
            int count = int(std::min<int64_t>(Lane<T>::count, to - i));
            T *place = result + 2 * i * n;
            if (plan.second == 1) {
                load_rows(x + 2 * i * (n + 1), n + 1, n + 1, count, false, buffers.get());
                pairs_in_lanes<T, true>(plan, buffers.get());
                for (int64_t k = 0; k < n; k++) buffers[k] = exchanged(buffers[k], true);
                Lane<T> *made = transform(plan.a, buffers.get(), buffers.get() + n + 1);
                store_rows(made, n, n, count, true, factor, place);
                continue;
            }
            for (int r = 0; r < count; r++)
                into_halves(plan, x + 2 * (i + r) * (n + 1), halves.get() + 2 * r * n);
            rows_between(plan, halves.get(), n, place, n, count, true, factor, buffers.get());
        }
    });
}
