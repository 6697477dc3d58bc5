// Loops of attention for one instruction set; see isa.h.
//
// Queries are taken `wide` at a time, one in each lane of two vectors. Their scores stand
// transposed, a row for each key, so that softmax runs along the rows without any shuffling.
#include "kernels/network/gemm.h"

template <class T>
static void transpose(npy_intp rows, npy_intp columns, const char *from, npy_intp row, T factor,
                      T *to, npy_intp step) {
    for (npy_intp i = 0; i < rows; i++) {
        const T *line = (const T *)(from + i * row);
        for (npy_intp j = 0; j < columns; j++) to[j * step + i] = line[j] * factor;
    }
}

static inline npy_intp whole(npy_intp n, npy_intp unit) { return (n + unit - 1) / unit * unit; }

// How many keys the queries up to `last` see.
static inline npy_intp seen(const Attention &a, npy_intp last) {
    return a.causal && last < a.keys ? last : a.keys;
}

// Applies masks to scores (keys, wide) of the queries [first, first + count).
template <class T>
static void apply_masks(const Attention &a, npy_intp h, npy_intp first, npy_intp count,
                        npy_intp keys, T *scores) {
    constexpr npy_intp wide = Lanes<T>::wide;
    constexpr T none = -std::numeric_limits<T>::infinity();
    if (a.causal)
        for (npy_intp s = first + 1; s < keys; s++)
            for (npy_intp q = 0; q < wide && first + q < s; q++) scores[s * wide + q] = none;
    if (!a.mask.data) return;
    const char *mask = a.mask.head(a.lead, h) + first * a.mask.row;
    for (npy_intp q = 0; q < count; q++, mask += a.mask.row) {
        const char *at = mask;
        if (a.boolean)
            for (npy_intp s = 0; s < keys; s++, at += a.mask.column) {
                if (!*at) scores[s * wide + q] = none;
            }
        else
            for (npy_intp s = 0; s < keys; s++, at += a.mask.column)
                scores[s * wide + q] += *(const T *)at;
    }
}

// Of scores (keys, wide): the maxima, and in place exp(score - maximum), whose sums are returned.
template <class T>
static void softmax_lanes(npy_intp keys, T *scores, T *largest, T *sum) {
    constexpr npy_intp wide = Lanes<T>::wide;
    T m[wide], total[wide], shift[wide];
    for (npy_intp q = 0; q < wide; q++) m[q] = -std::numeric_limits<T>::infinity(), total[q] = 0;
    for (npy_intp s = 0; s < keys; s++)
        for (npy_intp q = 0; q < wide; q++) {
            T y = scores[s * wide + q];
            m[q] = y > m[q] ? y : m[q];
        }
    for (npy_intp q = 0; q < wide; q++)
        shift[q] = m[q] == -std::numeric_limits<T>::infinity() ? T(0) : m[q];
    for (npy_intp s = 0; s < keys; s++)
        for (npy_intp q = 0; q < wide; q++) {
            T e = fast_exp(scores[s * wide + q] - shift[q]);
            scores[s * wide + q] = e;
            total[q] += e;
        }
    for (npy_intp q = 0; q < wide; q++) largest[q] = m[q], sum[q] = total[q];
}

// Queries [begin, stop) of head h: out (queries, depth) and the logsumexp of their scores.
template <class T>
static void attend_head(const Attention &a, npy_intp h, npy_intp begin, npy_intp stop, T *out,
                        T *logs) {
    constexpr npy_intp wide = Lanes<T>::wide;
    npy_intp across = whole(a.depth, wide), last = seen(a, stop);
    Buffer<T> turned(a.width * last), values(across * last), query(a.width * wide),
        scores(last * wide), part(wide * across);
    const char *q = a.q.head(a.lead, h);
    transpose(last, a.width, a.k.head(a.lead, h), a.k.row, T(1), turned.get(), last);
    pack_panels(last, a.depth, (const T *)a.v.head(a.lead, h), a.v.row / npy_intp(sizeof(T)), 1,
                values.get());
    std::fill(query.get(), query.get() + a.width * wide, T(0));
    for (npy_intp first = begin; first < stop; first += wide) {
        npy_intp count = std::min(wide, stop - first), keys = seen(a, first + count);
        T largest[wide], sum[wide];
        transpose(count, a.width, q + first * a.q.row, a.q.row, T(a.scale), query.get(), wide);
        product_of_panels<T, 1>(keys, 1, a.width, turned.get(), last, query.get(), 0, scores.get(),
                                wide, false);
        apply_masks(a, h, first, count, keys, scores.get());
        softmax_lanes(keys, scores.get(), largest, sum);
        product_of_panels<T, 1>(count, across / wide, keys, scores.get(), wide, values.get(),
                                last * wide, part.get(), across, false);
        for (npy_intp i = 0; i < count; i++) {
            T scale = sum[i] == 0 ? T(0) : 1 / sum[i];
            T *to = out + (first + i) * a.depth;
            for (npy_intp j = 0; j < a.depth; j++) to[j] = part[i * across + j] * scale;
            logs[first + i] = std::log(sum[i]) + largest[i];
        }
    }
}

// scores[s] = the product of the query and row s of the keys.
template <class T>
static void score_rows(npy_intp keys, npy_intp width, const T *query, const char *k, npy_intp row,
                       T *scores) {
    using V = typename Lanes<T>::type;
    using L = typename Lanes<T>::loose;
    constexpr npy_intp lanes = Lanes<T>::count, together = 4;
    npy_intp whole = width / lanes * lanes;
    for (npy_intp s = 0; s < keys; s += together) {
        const T *rows[together];
        V sums[together] = {};
        for (int i = 0; i < together; i++) rows[i] = (const T *)(k + std::min(s + i, keys - 1) * row);
        for (npy_intp j = 0; j < whole; j += lanes) {
            V x = *(const L *)(query + j);
#pragma GCC unroll 4
            for (int i = 0; i < together; i++) sums[i] += x * *(const L *)(rows[i] + j);
        }
        T parts[lanes][together];
        for (int i = 0; i < together; i++)
            for (int t = 0; t < lanes; t++) parts[t][i] = sums[i][t];
        for (int t = lanes / 2; t; t /= 2)
            for (int u = 0; u < t; u++)
                for (int i = 0; i < together; i++) parts[u][i] += parts[u + t][i];
        for (npy_intp i = 0; i < together && s + i < keys; i++) {
            T total = parts[0][i];
            for (npy_intp j = whole; j < width; j++) total += query[j] * rows[i][j];
            scores[s + i] = total;
        }
    }
}

// out = the sum of the rows of the values, each times its weight.
template <class T>
static void weigh_rows(npy_intp keys, npy_intp depth, const T *weights, const char *v, npy_intp row,
                       T *out) {
    using V = typename Lanes<T>::type;
    using L = typename Lanes<T>::loose;
    constexpr npy_intp lanes = Lanes<T>::count;
    npy_intp j = 0;
    for (; j + 4 * lanes <= depth; j += 4 * lanes) {
        V sums[4] = {};
        for (npy_intp s = 0; s < keys; s++) {
            const T *value = (const T *)(v + s * row) + j;
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) sums[i] += weights[s] * *(const L *)(value + i * lanes);
        }
        for (int i = 0; i < 4; i++) *(L *)(out + j + i * lanes) = sums[i];
    }
    for (; j + lanes <= depth; j += lanes) {
        V even{}, odd{};
        npy_intp s = 0;
        for (; s + 2 <= keys; s += 2) {
            even += weights[s] * *(const L *)((const T *)(v + s * row) + j);
            odd += weights[s + 1] * *(const L *)((const T *)(v + (s + 1) * row) + j);
        }
        if (s < keys) even += weights[s] * *(const L *)((const T *)(v + s * row) + j);
        *(L *)(out + j) = even + odd;
    }
    for (; j < depth; j++) {
        T sum = 0;
        for (npy_intp s = 0; s < keys; s++) sum += weights[s] * ((const T *)(v + s * row))[j];
        out[j] = sum;
    }
}

// A few queries: each reads the keys and the values as they stand.
template <class T>
static void attend_few(const Attention &a, npy_intp h, T *out, T *logs) {
    constexpr T none = -std::numeric_limits<T>::infinity();
    Buffer<T> scores(a.keys), query(a.width);
    const char *k = a.k.head(a.lead, h), *v = a.v.head(a.lead, h);
    for (npy_intp i = 0; i < a.queries; i++, out += a.depth) {
        const T *q = (const T *)(a.q.head(a.lead, h) + i * a.q.row);
        npy_intp keys = seen(a, i + 1);
        for (npy_intp j = 0; j < a.width; j++) query[j] = q[j] * T(a.scale);
        score_rows(keys, a.width, query.get(), k, a.k.row, scores.get());
        if (a.mask.data) {
            const char *at = a.mask.head(a.lead, h) + i * a.mask.row;
            for (npy_intp s = 0; s < keys; s++, at += a.mask.column) {
                if (!a.boolean)
                    scores[s] += *(const T *)at;
                else if (!*at)
                    scores[s] = none;
            }
        }
        T largest = none, sum = 0;
        for (npy_intp s = 0; s < keys; s++) largest = scores[s] > largest ? scores[s] : largest;
        T shift = largest == none ? T(0) : largest;
        INDEPENDENT
        for (npy_intp s = 0; s < keys; s++) scores[s] = fast_exp(scores[s] - shift);
        NETWORK_SUM(sum)
        for (npy_intp s = 0; s < keys; s++) sum += scores[s];
        weigh_rows(keys, a.depth, scores.get(), v, a.v.row, out);
        T scale = sum == 0 ? T(0) : 1 / sum;
        for (npy_intp j = 0; j < a.depth; j++) out[j] *= scale;
        logs[i] = std::log(sum) + largest;
    }
}

template <class T>
static void attend(const Attention &a, T *out, T *logs) {
    constexpr npy_intp wide = Lanes<T>::wide;
    if (a.queries < 4) {
        npy_intp work = a.queries * a.keys * (a.width + a.depth);
        parallel_for(
            a.heads, std::max<npy_intp>(1, 50000 / (work + 1)),
            [&](int64_t from, int64_t to) {
                for (npy_intp h = from; h < to; h++)
                    attend_few(a, h, out + h * a.queries * a.depth, logs + h * a.queries);
            },
            1);
        return;
    }
    npy_intp pieces = 1, blocks = (a.queries + wide - 1) / wide, threads = max_threads();
    if (a.heads < 2 * threads) pieces = std::min(blocks, (2 * threads + a.heads - 1) / a.heads);
    npy_intp work = a.queries * a.keys * (a.width + a.depth) / pieces;
    parallel_for(
        a.heads * pieces, std::max<npy_intp>(1, 200000 / (work + 1)),
        [&](int64_t from, int64_t to) {
            for (npy_intp task = from; task < to; task++) {
                npy_intp h = task / pieces, piece = task % pieces;
                npy_intp begin = blocks * piece / pieces * wide;
                npy_intp stop = std::min(a.queries, blocks * (piece + 1) / pieces * wide);
                attend_head(a, h, begin, stop, out + h * a.queries * a.depth, logs + h * a.queries);
            }
        },
        1);
}

// The gradients of one head; gq, gk and gv are contiguous.
template <class T>
static void attend_backward_head(const Attention &a, npy_intp h, const T *out, const T *logs, T *gq,
                                 T *gk, T *gv) {
    constexpr npy_intp wide = Lanes<T>::wide;
    npy_intp across = whole(a.depth, wide), along = whole(a.width, wide), n = a.keys;
    Buffer<T> k_turned(a.width * n), v_turned(a.depth * n), k_panels(along * n),
        query(a.width * wide), grad(a.depth * wide), q_panels(along * wide),
        g_panels(across * wide), scores(n * wide), slopes(n * wide), part(wide * along),
        k_sum(n * along), v_sum(n * across);
    const char *q = a.q.head(a.lead, h), *k = a.k.head(a.lead, h), *v = a.v.head(a.lead, h),
               *g = a.g.head(a.lead, h);
    transpose(n, a.width, k, a.k.row, T(1), k_turned.get(), n);
    transpose(n, a.depth, v, a.v.row, T(1), v_turned.get(), n);
    pack_panels(n, a.width, (const T *)k, a.k.row / npy_intp(sizeof(T)), 1, k_panels.get());
    std::fill(k_sum.get(), k_sum.get() + n * along, T(0));
    std::fill(v_sum.get(), v_sum.get() + n * across, T(0));
    for (npy_intp first = 0; first < a.queries; first += wide) {
        npy_intp count = std::min(wide, a.queries - first), keys = seen(a, first + count);
        if (count < wide) {
            std::fill(query.get(), query.get() + a.width * wide, T(0));
            std::fill(grad.get(), grad.get() + a.depth * wide, T(0));
            std::fill(q_panels.get(), q_panels.get() + along * wide, T(0));
            std::fill(g_panels.get(), g_panels.get() + across * wide, T(0));
        }
        const char *q_here = q + first * a.q.row, *g_here = g + first * a.g.row;
        transpose(count, a.width, q_here, a.q.row, T(a.scale), query.get(), wide);
        transpose(count, a.depth, g_here, a.g.row, T(1), grad.get(), wide);
        pack_panels(count, a.width, (const T *)q_here, a.q.row / npy_intp(sizeof(T)), 1,
                    q_panels.get());
        pack_panels(count, a.depth, (const T *)g_here, a.g.row / npy_intp(sizeof(T)), 1,
                    g_panels.get());
        product_of_panels<T, 1>(keys, 1, a.width, k_turned.get(), n, query.get(), 0, scores.get(),
                                wide, false);
        apply_masks(a, h, first, count, keys, scores.get());
        product_of_panels<T, 1>(keys, 1, a.depth, v_turned.get(), n, grad.get(), 0, slopes.get(),
                                wide, false);
        T shift[wide], delta[wide] = {};
        for (npy_intp i = 0; i < wide; i++)
            shift[i] = i < count ? logs[first + i] : std::numeric_limits<T>::infinity();
        for (npy_intp i = 0; i < wide; i++)
            if (shift[i] == -std::numeric_limits<T>::infinity()) shift[i] = 0;
        for (npy_intp i = 0; i < count; i++) {
            const T *line = (const T *)(g_here + i * a.g.row),
                    *result = out + (first + i) * a.depth;
            for (npy_intp j = 0; j < a.depth; j++) delta[i] += line[j] * result[j];
        }
        T scale = T(a.scale);
        for (npy_intp s = 0; s < keys; s++)
            for (npy_intp i = 0; i < wide; i++) {
                T p = fast_exp(scores[s * wide + i] - shift[i]);
                scores[s * wide + i] = p;
                slopes[s * wide + i] = p * (slopes[s * wide + i] - delta[i]) * scale;
            }
        // Rows are packed `count` high: so is the depth of the products.
        product_of_panels<T, wide>(keys, across / wide, count, scores.get(), 1, g_panels.get(),
                                   count * wide, v_sum.get(), across, true);
        product_of_panels<T, wide>(keys, along / wide, count, slopes.get(), 1, q_panels.get(),
                                   count * wide, k_sum.get(), along, true);
        product_of_panels<T, 1>(count, along / wide, keys, slopes.get(), wide, k_panels.get(),
                                n * wide, part.get(), along, false);
        for (npy_intp i = 0; i < count; i++)
            std::copy(part.get() + i * along, part.get() + i * along + a.width,
                      gq + (first + i) * a.width);
    }
    for (npy_intp s = 0; s < n; s++) {
        std::copy(k_sum.get() + s * along, k_sum.get() + s * along + a.width, gk + s * a.width);
        std::copy(v_sum.get() + s * across, v_sum.get() + s * across + a.depth, gv + s * a.depth);
    }
}

template <class T>
static void attend_backward(const Attention &a, const T *out, const T *logs, T *gq, T *gk, T *gv) {
    npy_intp work = a.queries * a.keys * (a.width + a.depth);
    parallel_for(
        a.heads, std::max<npy_intp>(1, 100000 / (work + 1)),
        [&](int64_t from, int64_t to) {
            for (npy_intp h = from; h < to; h++)
                attend_backward_head(a, h, out + h * a.queries * a.depth, logs + h * a.queries,
                                     gq + h * a.queries * a.width, gk + h * a.keys * a.width,
                                     gv + h * a.keys * a.depth);
        },
        1);
}
