// Loops of recurrent layers for one instruction set; see isa.h.
#include "kernels/network/gemm.h"

static inline npy_intp whole_panels(npy_intp columns, npy_intp wide) {
    return (columns + wide - 1) / wide * wide;
}

// c (+)= a * b for the rows of a, `a_step` apart; b in panels, c with room for whole panels.
template <class T>
static void rows_product(npy_intp m, npy_intp depth, const T *a, npy_intp a_step, const T *b,
                         npy_intp columns, T *c, npy_intp c_step, bool add) {
    constexpr npy_intp wide = Lanes<T>::wide;
    npy_intp high = tile_rows(m), tiles = (m + high - 1) / high,
             panels = (columns + wide - 1) / wide;
    npy_intp work = 2 * high * depth * columns;
    parallel_for(
        tiles, std::max<npy_intp>(1, 600000 / (work + 1)),
        [&](int64_t first, int64_t last) {
            Buffer<T> packed(high * depth);
            for (npy_intp i = first * high; i < last * high && i < m; i += high) {
                npy_intp rows = std::min(high, m - i);
                for (npy_intp r = 0; r < rows; r++)
                    for (npy_intp k = 0; k < depth; k++)
                        packed[k * rows + r] = a[(i + r) * a_step + k];
                Tile<T> run = tile_of<T, 1>(rows);
                for (npy_intp p = 0; p < panels; p++)
                    run(depth, packed.get(), rows, b + p * wide * depth, wide,
                        c + i * c_step + p * wide, c_step, add);
            }
        },
        1);
}

// One sequence's step: `gates` before their activations, in whose place `act` gets them activated.
template <class T, class Gate>
static void lstm_step(npy_intp h, Gate gate, const T *before, T *act, T *cell, T *out) {
    INDEPENDENT
    for (npy_intp j = 0; j < h; j++) {
        T in = fast_sigmoid(gate(j)), keep = fast_sigmoid(gate(h + j));
        T fresh = fast_tanh(gate(2 * h + j)), show = fast_sigmoid(gate(3 * h + j));
        T now = keep * before[j] + in * fresh;
        act[j] = in;
        act[h + j] = keep;
        act[2 * h + j] = fresh;
        act[3 * h + j] = show;
        cell[j] = now;
        out[j] = show * fast_tanh(now);
    }
}

// Its gradient, of h' (two shares) and of the cell; the latter becomes that of the cell before.
template <class T>
static void lstm_step_backward(npy_intp h, const T *act, const T *before, const T *now, const T *g,
                               const T *more, const T *gc, T *g_gates, T *g_before) {
    INDEPENDENT
    for (npy_intp j = 0; j < h; j++) {
        T in = act[j], keep = act[h + j], fresh = act[2 * h + j], show = act[3 * h + j];
        T own = more ? g[j] + more[j] : g[j], th = fast_tanh(now[j]);
        T d = gc[j] + own * show * (1 - th * th);
        g_gates[j] = d * fresh * in * (1 - in);
        g_gates[h + j] = d * before[j] * keep * (1 - keep);
        g_gates[2 * h + j] = d * in * (1 - fresh * fresh);
        g_gates[3 * h + j] = own * th * show * (1 - show);
        g_before[j] = d * keep;
    }
}

// Calls `run` with each of n sequences, on several threads if there are enough gates, `width` each.
template <class Run>
static void each_sequence(npy_intp n, npy_intp width, Run run) {
    parallel_for(
        n, std::max<npy_intp>(1, PARALLEL_FROM / 4 / (width + 1)),
        [&](int64_t first, int64_t last) {
            for (npy_intp i = first; i < last; i++) run(i);
        },
        1);
}

template <class T>
static void lstm_cells(npy_intp n, npy_intp h, const T *gates, const T *c, T *out, T *cells,
                       T *act) {
    each_sequence(n, 4 * h, [&](npy_intp i) {
        const T *x = gates + i * 4 * h;
        lstm_step(
            h, [x](npy_intp j) INLINE_LAMBDA { return x[j]; }, c + i * h, act + i * 4 * h,
            cells + i * h, out + i * h);
    });
}

template <class T>
static void lstm_cells_backward(npy_intp n, npy_intp h, const T *gh, const T *gc, const T *act,
                                const T *c, const T *now, T *g_gates, T *g_c) {
    each_sequence(n, 4 * h, [&](npy_intp i) {
        lstm_step_backward(h, act + i * 4 * h, c + i * h, now + i * h, gh + i * h,
                           (const T *)nullptr, gc + i * h, g_gates + i * 4 * h, g_c + i * h);
    });
}

// Calls `run` at each time t, in order, with the state before it, h (n, h), and that times the
// weights w (width, h): rows of `sums`, `step` apart. States are h0, then what `run` writes to y.
template <class T, class Run>
static void through_time(const Steps &s, npy_intp width, const T *w, const T *h0, const T *y,
                         Run run) {
    npy_intp step = whole_panels(width, Lanes<T>::wide);
    Buffer<T> panels(step * s.h), sums(s.n * step);
    pack_panels(s.h, width, w, 1, s.h, panels.get());
    const T *h = h0;
    for (npy_intp i = 0; i < s.t; i++) {
        npy_intp t = s.at(i);
        rows_product(s.n, s.h, h, s.h, panels.get(), width, sums.get(), step, false);
        run(t, h, (const T *)sums.get(), step);
        h = y + t * s.n * s.h;
    }
}

// … in reverse: `sums` are what comes to the state after step i from later ones, at first gh, and
// `run` writes the gradients in the gates; gh becomes the gradient in the first state.
template <class T, class Run>
static void back_through_time(const Steps &s, npy_intp width, const T *w, T *gh, const T *g_gates,
                              Run run) {
    npy_intp step = whole_panels(s.h, Lanes<T>::wide);
    Buffer<T> panels(step * width), sums(s.n * step);
    pack_panels(width, s.h, w, s.h, 1, panels.get());
    for (npy_intp n = 0; n < s.n; n++)
        std::copy(gh + n * s.h, gh + (n + 1) * s.h, sums.get() + n * step);
    for (npy_intp i = s.t - 1; i >= 0; i--) {
        npy_intp t = s.at(i);
        run(i, t, (const T *)sums.get(), step);
        rows_product(s.n, width, g_gates + t * s.n * width, width, panels.get(), s.h, sums.get(),
                     step, false);
    }
    for (npy_intp n = 0; n < s.n; n++)
        std::copy(sums.get() + n * step, sums.get() + n * step + s.h, gh + n * s.h);
}

// gates (t, n, 4 h) before the recurrent share; y and cells (t, n, h), saved (t, n, 4 h).
template <class T>
static void lstm_forward(const Steps &s, const T *gates, const T *h0, const T *c0, const T *w, T *y,
                         T *cells, T *saved) {
    npy_intp width = 4 * s.h, block = s.n * s.h;
    const T *c = c0;
    through_time(s, width, w, h0, y, [&](npy_intp t, const T *, const T *sums, npy_intp step) {
        each_sequence(s.n, width, [&](npy_intp n) {
            const T *row = sums + n * step, *x = gates + (t * s.n + n) * width,
                    *before = c + n * s.h;
            T *to = saved + (t * s.n + n) * width, *cell = cells + t * block + n * s.h,
              *out = y + t * block + n * s.h;
            lstm_step(
                s.h, [row, x](npy_intp j) INLINE_LAMBDA { return row[j] + x[j]; }, before, to,
                cell, out);
        });
        c = cells + t * block;
    });
}

// Of gradients gy (t, n, h) and those of the last state, gh and gc, which become those of the
// first.
template <class T>
static void lstm_backward(const Steps &s, const T *gy, const T *c0, const T *w, const T *cells,
                          const T *saved, T *gh, T *gc, T *g_gates) {
    npy_intp width = 4 * s.h, block = s.n * s.h;
    back_through_time(s, width, w, gh, g_gates, [&](npy_intp i, npy_intp t, const T *sums,
                                                    npy_intp step) {
        const T *c = i ? cells + s.at(i - 1) * block : c0;
        each_sequence(s.n, width, [&](npy_intp n) {
            const T *row = saved + (t * s.n + n) * width, *before = c + n * s.h,
                    *now = cells + t * block + n * s.h;
            const T *own = gy + t * block + n * s.h, *later = sums + n * step;
            T *to = g_gates + (t * s.n + n) * width, *grad = gc + n * s.h;
            lstm_step_backward(s.h, row, before, now, own, later, grad, to, grad);
        });
    });
}

// A plain layer: y (t, n, h) from gates (t, n, h) before the recurrent share; relu or tanh.
template <class T>
static void rnn_forward(const Steps &s, const T *gates, const T *h0, const T *w, bool relu, T *y) {
    npy_intp block = s.n * s.h;
    through_time(s, s.h, w, h0, y, [&](npy_intp t, const T *, const T *sums, npy_intp step) {
        for (npy_intp n = 0; n < s.n; n++) {
            const T *row = sums + n * step, *x = gates + t * block + n * s.h;
            T *out = y + t * block + n * s.h;
            if (relu) {
                INDEPENDENT
                for (npy_intp j = 0; j < s.h; j++) {
                    T z = x[j] + row[j];
                    out[j] = z < 0 ? T(0) : z;          // NaN stays
                }
            } else {
                INDEPENDENT
                for (npy_intp j = 0; j < s.h; j++) out[j] = fast_tanh(x[j] + row[j]);
            }
        }
    });
}

// Of gradients gy (t, n, h) and that of the last state, gh, which becomes that of the first.
template <class T>
static void rnn_backward(const Steps &s, const T *gy, const T *w, const T *y, bool relu, T *gh,
                         T *g_gates) {
    npy_intp block = s.n * s.h;
    back_through_time(s, s.h, w, gh, g_gates, [&](npy_intp, npy_intp t, const T *sums,
                                                  npy_intp step) {
        for (npy_intp n = 0; n < s.n; n++) {
            npy_intp row = t * block + n * s.h;
            const T *own = gy + row, *later = sums + n * step, *now = y + row;
            T *to = g_gates + row;
            INDEPENDENT
            for (npy_intp j = 0; j < s.h; j++) {
                T g = own[j] + later[j];
                to[j] = relu ? (now[j] > 0 ? g : T(0)) : g * (1 - now[j] * now[j]);
            }
        }
    });
}

// One sequence's step, from the input's share and the state's, to each of which a bias may be added
// already.
template <class T, class Own>
static void gru_step(npy_intp h, const T *x, Own own_share, const T *before, T *act, T *out) {
    INDEPENDENT
    for (npy_intp j = 0; j < h; j++) {
        T reset = fast_sigmoid(x[j] + own_share(j)),
          update = fast_sigmoid(x[h + j] + own_share(h + j));
        T own = own_share(2 * h + j), fresh = fast_tanh(x[2 * h + j] + reset * own);
        act[j] = reset;
        act[h + j] = update;
        act[2 * h + j] = fresh;
        act[3 * h + j] = own;
        out[j] = (before[j] - fresh) * update + fresh;
    }
}

// Its gradients in both shares, and what goes directly to the state before.
template <class T>
static void gru_step_backward(npy_intp h, const T *act, const T *before, const T *g, const T *more,
                              T *gi, T *gs, T *g_before) {
    INDEPENDENT
    for (npy_intp j = 0; j < h; j++) {
        T reset = act[j], update = act[h + j], fresh = act[2 * h + j],
          own = more ? g[j] + more[j] : g[j];
        T d = own * (1 - update) * (1 - fresh * fresh);
        T dz = own * (before[j] - fresh) * update * (1 - update);
        T dr = d * act[3 * h + j] * reset * (1 - reset);
        gi[j] = gs[j] = dr;
        gi[h + j] = gs[h + j] = dz;
        gi[2 * h + j] = d;
        gs[2 * h + j] = d * reset;
        g_before[j] = own * update;
    }
}

template <class T>
static void gru_cells(npy_intp n, npy_intp h, const T *gi, const T *gs, const T *state, T *out,
                      T *act) {
    each_sequence(n, 4 * h, [&](npy_intp i) {
        const T *own = gs + i * 3 * h;
        gru_step(
            h, gi + i * 3 * h, [own](npy_intp j) INLINE_LAMBDA { return own[j]; }, state + i * h,
            act + i * 4 * h, out + i * h);
    });
}

template <class T>
static void gru_cells_backward(npy_intp n, npy_intp h, const T *g, const T *act, const T *state,
                               T *gi, T *gs, T *g_state) {
    each_sequence(n, 4 * h, [&](npy_intp i) {
        gru_step_backward(h, act + i * 4 * h, state + i * h, g + i * h, (const T *)nullptr,
                          gi + i * 3 * h, gs + i * 3 * h, g_state + i * h);
    });
}

// shares (t, n, 3 h) of the input; bias (3 h) of the state's share or null; saved (t, n, 4 h).
template <class T>
static void gru_forward(const Steps &s, const T *shares, const T *h0, const T *w, const T *bias,
                        T *y, T *saved) {
    npy_intp width = 3 * s.h, block = s.n * s.h;
    Buffer<T> zeros(bias ? 0 : width);
    if (!bias) std::fill(zeros.get(), zeros.get() + width, T(0));
    const T *b = bias ? bias : zeros.get();
    through_time(s, width, w, h0, y, [&](npy_intp t, const T *h, const T *sums, npy_intp step) {
        each_sequence(s.n, width, [&](npy_intp n) {
            const T *row = sums + n * step, *x = shares + (t * s.n + n) * width,
                    *before = h + n * s.h;
            T *to = saved + (t * s.n + n) * 4 * s.h, *out = y + t * block + n * s.h;
            gru_step(
                s.h, x, [row, b](npy_intp j) INLINE_LAMBDA { return row[j] + b[j]; }, before, to,
                out);
        });
    });
}

// gi and gs (t, n, 3 h): the gradients in the two shares; gh as in lstm_backward.
template <class T>
static void gru_backward(const Steps &s, const T *gy, const T *h0, const T *w, const T *y,
                         const T *saved, T *gh, T *gi, T *gs) {
    constexpr npy_intp wide = Lanes<T>::wide;
    npy_intp width = 3 * s.h, step = whole_panels(s.h, wide), block = s.n * s.h;
    Buffer<T> panels(step * width), sums(s.n * step);
    pack_panels(width, s.h, w, s.h, 1, panels.get());
    for (npy_intp i = s.t - 1; i >= 0; i--) {
        npy_intp t = s.at(i);
        const T *h = i ? y + s.at(i - 1) * block : h0;
        for (npy_intp n = 0; n < s.n; n++) {
            const T *row = saved + (t * s.n + n) * 4 * s.h, *before = h + n * s.h,
                    *own = gy + t * block + n * s.h;
            T *to = gi + (t * s.n + n) * width, *state = gs + (t * s.n + n) * width,
              *grad = gh + n * s.h;
            gru_step_backward(s.h, row, before, own, (const T *)grad, to, state, grad);
        }
        rows_product(s.n, width, gs + t * s.n * width, width, panels.get(), s.h, sums.get(), step,
                     false);
        for (npy_intp n = 0; n < s.n; n++)
            for (npy_intp j = 0; j < s.h; j++) gh[n * s.h + j] += sums[n * step + j];
    }
}
