// Loops of convolution for one instruction set; see isa.h.
#include "kernels/network/gemm.h"

// ---- correlate: small = weights * windows
// ---------------------------------------------------------

// One panel of windows: row k holds the elements at offsets[k] of `wide` windows side by side.
template <class T>
static void pack_windows(const T *x, const T *end, const npy_intp *offsets, npy_intp depth,
                         const std::vector<Run> &runs, npy_intp count, T *to) {
    constexpr npy_intp wide = Lanes<T>::wide;
    using L = typename Lanes<T>::loose;
    for (npy_intp k = 0; k < depth; k++, to += wide) {
        const T *from = x + offsets[k];
        for (const Run &run : runs) {
            const T *source = from + run.from;
            T *place = to + run.at;
            if (source + wide <= end) {  // copies too much, which the next run or row overwrites
                *(L *)place = *(const L *)source;
                if (run.length > wide / 2)
                    *(L *)(place + wide / 2) = *(const L *)(source + wide / 2);
            } else {
                for (npy_intp t = 0; t < run.length; t++) place[t] = source[t];
            }
        }
        for (npy_intp t = count; t < wide; t++) to[t] = 0;
    }
}

// Weights of one group, tile after tile: within a tile the rows of each k stand side by side.
template <class T>
static void pack_weights(npy_intp m, npy_intp depth, const T *w, npy_intp row, npy_intp column,
                         T *to) {
    npy_intp high = tile_rows(m), tiles = (m + high - 1) / high;
    parallel_for(
        tiles, std::max<npy_intp>(1, PARALLEL_FROM / (high * depth + 1)),
        [=](int64_t first, int64_t last) {
            for (npy_intp i = first * high; i < last * high && i < m; i += high) {
                npy_intp rows = std::min(high, m - i);
                for (npy_intp k0 = 0; k0 < depth; k0 += 64)  // a part that stays in the cache
                    for (npy_intp r = 0; r < rows; r++) {
                        const T *from = w + (i + r) * row;
                        T *place = to + i * depth + r;
                        npy_intp end = std::min(depth, k0 + 64);
                        for (npy_intp k = k0; k < end; k++) place[k * rows] = from[k * column];
                    }
            }
        },
        1);
}

constexpr npy_intp DEPTH = 256, PANELS = 8;

// x: padded images one after another, up to `end`; w (groups * o, c * taps); result (n, groups * o,
// positions).
template <class T>
static void correlate(const Geometry &g, const T *x, const T *end, const T *w, npy_intp n,
                      T *result) {
    constexpr npy_intp wide = Lanes<T>::wide;
    npy_intp depth = g.c * g.taps, total = n * g.positions;
    // Blocks of columns are as many as threads can share evenly, and about equally wide.
    npy_intp all = (total + wide - 1) / wide, blocks = (all + PANELS - 1) / PANELS;
    npy_intp threads = max_threads();
    if (blocks * g.groups < 4 * threads) blocks = (blocks + threads - 1) / threads * threads;
    npy_intp block = (all + blocks - 1) / std::max<npy_intp>(1, blocks) * wide;
    blocks = (total + block - 1) / std::max<npy_intp>(1, block);
    Buffer<T> weights(g.groups * g.o * depth);
    for (npy_intp group = 0; group < g.groups; group++)
        pack_weights(g.o, depth, w + group * g.o * depth, depth, 1,
                     weights.get() + group * g.o * depth);
    npy_intp work = 2 * g.o * depth * block;
    // Of small images most panels reach into the next: sums over a great depth are moved there once.
    constexpr npy_intp sums_row = PANELS * wide;
    bool apart = depth > DEPTH && g.positions < 8 * wide;
    parallel_for(
        g.groups * blocks, std::max<npy_intp>(1, 400000 / (work + 1)),
        [&](int64_t first, int64_t last) {
            Buffer<T> panels(PANELS * wide * DEPTH + 2 * wide), spill(MAX_ROWS * wide),
                sums(apart ? g.o * sums_row : 0);
            std::vector<Run> runs[PANELS];
            npy_intp high = tile_rows(g.o);
            for (npy_intp task = first; task < last; task++) {
                npy_intp group = task / blocks, begin = task % blocks * block;
                npy_intp stop = std::min(total, begin + block),
                         count = (stop - begin + wide - 1) / wide;
                for (npy_intp p = 0; p < count; p++)
                    find_runs(g, begin + p * wide, std::min(wide, stop - begin - p * wide),
                              runs[p]);
                for (npy_intp k = 0; k < depth || k == 0; k += DEPTH) {
                    npy_intp deep = std::min(DEPTH, depth - k);
                    for (npy_intp p = 0; p < count; p++)
                        pack_windows(x + group * g.c * g.plane, end, g.offsets.data() + k, deep,
                                     runs[p], std::min(wide, stop - begin - p * wide),
                                     panels.get() + p * wide * DEPTH);
                    for (npy_intp i = 0; i < g.o; i += high) {
                        npy_intp rows = std::min(high, g.o - i);
                        Tile<T> run = tile_of<T, 1>(rows);
                        const T *a = weights.get() + group * g.o * depth + i * depth + k * rows;
                        for (npy_intp p = 0; p < count; p++) {
                            npy_intp at = begin + p * wide, sample = at / g.positions,
                                     within = at % g.positions;
                            T *to = result + ((sample * g.groups + group) * g.o + i) * g.positions +
                                    within;
                            const T *b = panels.get() + p * wide * DEPTH;
                            if (apart) {
                                run(deep, a, rows, b, wide, sums.get() + i * sums_row + p * wide,
                                    sums_row, k > 0);
                                continue;
                            }
                            if (within + wide <= g.positions && at + wide <= stop) {
                                run(deep, a, rows, b, wide, to, g.positions, k > 0);
                                continue;
                            }
                            run(deep, a, rows, b, wide, spill.get(), wide, false);
                            for (npy_intp done = 0; at + done < stop && done < wide;) {
                                npy_intp q = at + done, s = q / g.positions,
                                         inside = q % g.positions;
                                npy_intp length =
                                    std::min({g.positions - inside, wide - done, stop - q});
                                T *place = result +
                                           ((s * g.groups + group) * g.o + i) * g.positions +
                                           inside;
                                for (npy_intp r = 0; r < rows; r++, place += g.positions) {
                                    const T *from = spill.get() + r * wide + done;
                                    if (k > 0)
                                        for (npy_intp t = 0; t < length; t++) place[t] += from[t];
                                    else
                                        for (npy_intp t = 0; t < length; t++) place[t] = from[t];
                                }
                                done += length;
                            }
                        }
                    }
                }
                for (npy_intp at = begin; apart && at < stop;) {
                    npy_intp sample = at / g.positions, inside = at % g.positions;
                    npy_intp length = std::min(g.positions - inside, stop - at);
                    T *place = result + (sample * g.groups + group) * g.o * g.positions + inside;
                    const T *from = sums.get() + at - begin;
                    for (npy_intp r = 0; r < g.o; r++)
                        std::copy(from + r * sums_row, from + r * sums_row + length,
                                  place + r * g.positions);
                    at += length;
                }
            }
        },
        1);
}

// ---- spread: windows += weights^T * small
// ---------------------------------------------------------

// Channels [c0, c1) of one group of one image, which is zero at first; `small` is (o, positions).
template <class T>
static void spread_image(const Geometry &g, const T *small, const T *w, npy_intp c0, npy_intp c1,
                         T *image) {
    constexpr npy_intp wide = Lanes<T>::wide;
    npy_intp m = (c1 - c0) * g.taps, row_length = g.c * g.taps, high = tile_rows(m);
    npy_intp origin = c0 * g.plane;
    Buffer<T> weights(m * g.o), panels(PANELS * wide * DEPTH + wide), part(MAX_ROWS * wide);
    for (npy_intp k = 0; k < g.o; k += DEPTH) {
        npy_intp deep = std::min(DEPTH, g.o - k);
        pack_weights(m, deep, w + k * row_length + c0 * g.taps, 1, row_length, weights.get());
        std::vector<Run> runs[PANELS];
        for (npy_intp begin = 0; begin < g.positions; begin += wide * PANELS) {
            npy_intp stop = std::min(g.positions, begin + wide * PANELS),
                     count = (stop - begin + wide - 1) / wide;
            pack_panels(deep, stop - begin, small + k * g.positions + begin, g.positions, 1,
                        panels.get());
            for (npy_intp p = 0; p < count; p++)
                find_runs(g, begin + p * wide, std::min(wide, stop - begin - p * wide), runs[p]);
            for (npy_intp i = 0; i < m; i += high) {
                npy_intp rows = std::min(high, m - i);
                Tile<T> run = tile_of<T, 1>(rows);
                for (npy_intp p = 0; p < count; p++) {
                    run(deep, weights.get() + i * deep, rows, panels.get() + p * wide * deep, wide,
                        part.get(), wide, false);
                    for (npy_intp r = 0; r < rows; r++) {
                        T *line = image + g.offsets[c0 * g.taps + i + r] - origin;
                        const T *from = part.get() + r * wide;
                        for (const Run &segment : runs[p]) {
                            T *to = line + segment.from;
                            const T *values = from + segment.at;
                            INDEPENDENT
                            for (npy_intp t = 0; t < segment.length; t++) to[t] += values[t];
                        }
                    }
                }
            }
        }
    }
}

// Of images of one position, each channel of the result is one window: a product of matrices,
// (n, o) by (o, c * taps), in each group.
template <class T>
static void spread_points(const Geometry &g, const T *small, const T *w, T *result) {
    constexpr npy_intp wide = Lanes<T>::wide;
    npy_intp columns = g.c * g.taps, panels = (columns + wide - 1) / wide;
    npy_intp high = tile_rows(g.n), work = 2 * g.n * g.o * wide;
    parallel_for(
        g.groups * panels, std::max<npy_intp>(1, 400000 / (work + 1)),
        [&](int64_t first, int64_t last) {
            Buffer<T> panel(g.o * wide), part(MAX_ROWS * wide);
            for (npy_intp task = first; task < last; task++) {
                npy_intp group = task / panels, j = task % panels * wide;
                npy_intp here = std::min(wide, columns - j);
                pack_panels(g.o, here, w + group * g.o * columns + j, columns, 1, panel.get());
                for (npy_intp i = 0; i < g.n; i += high) {
                    npy_intp rows = std::min(high, g.n - i);
                    Buffer<T> turned(g.o * rows);
                    const T *from = small + (i * g.groups + group) * g.o;
                    for (npy_intp r = 0; r < rows; r++, from += g.groups * g.o)
                        for (npy_intp k = 0; k < g.o; k++) turned[k * rows + r] = from[k];
                    tile_of<T, 1>(rows)(g.o, turned.get(), rows, panel.get(), wide, part.get(),
                                        wide, false);
                    for (npy_intp r = 0; r < rows; r++)
                        std::copy(part.get() + r * wide, part.get() + r * wide + here,
                                  result + ((i + r) * g.groups + group) * columns + j);
                }
            }
        },
        1);
}

template <class T>
static void spread(const Geometry &g, const T *small, const T *w, T *result) {
    npy_intp pieces = 1, least = g.taps > 0 ? (2 * MAX_ROWS + g.taps - 1) / g.taps : 1,
             wanted = 2 * max_threads();
    if (g.n * g.groups < wanted)
        pieces = std::min((wanted + g.n * g.groups - 1) / std::max<npy_intp>(1, g.n * g.groups),
                          g.c / std::max<npy_intp>(1, least));
    if (pieces < 1) pieces = 1;
    npy_intp step = (g.c + pieces - 1) / pieces, area = g.size[0] * g.size[1] * g.size[2];
    pieces = (g.c + step - 1) / step;
    npy_intp work = 2 * step * g.taps * g.o * g.positions;
    parallel_for(
        g.n * g.groups * pieces, std::max<npy_intp>(1, 400000 / (work + 1)),
        [&](int64_t first, int64_t last) {
            Buffer<T> image(g.direct ? 0 : step * g.plane);
            for (npy_intp task = first; task < last; task++) {
                npy_intp unit = task / pieces, c0 = task % pieces * step,
                         c1 = std::min(g.c, c0 + step);
                npy_intp group = unit % g.groups;
                T *to = result + (unit * g.c + c0) * area, *place = g.direct ? to : image.get();
                std::fill(place, place + (c1 - c0) * g.plane, T(0));
                spread_image(g, small + unit * g.o * g.positions, w + group * g.o * g.c * g.taps,
                             c0, c1, place);
                if (!g.direct) crop_planes(g, place, c1 - c0, to);
            }
        },
        1);
}

// ---- weigh: weights += small * windows^T
// ----------------------------------------------------------

// Copies runs into one row, whole vectors at a time where there is room.
template <class T>
static void copy_runs(const T *x, const T *end, const std::vector<Run> &runs, T *to) {
    constexpr npy_intp lanes = Lanes<T>::count;
    using L = typename Lanes<T>::loose;
    for (const Run &run : runs) {
        const T *source = x + run.from;
        T *place = to + run.at;
        npy_intp t = 0;
        for (; t < run.length && source + t + lanes <= end; t += lanes)
            *(L *)(place + t) = *(const L *)(source + t);
        for (; t < run.length; t++) place[t] = source[t];
    }
}

// Adds the share of the windows [begin, stop) to rows [k0, k1) of one group's weights (o, c *
// taps).
template <class T>
static void weigh_part(const Geometry &g, const T *x, const T *end, const T *small, npy_intp group,
                       npy_intp begin, npy_intp stop, npy_intp chunk, npy_intp k0, npy_intp k1,
                       T *w) {
    constexpr npy_intp lanes = Lanes<T>::count, rows = 48;
    npy_intp step = (chunk + lanes - 1) / lanes * lanes + lanes, depth = g.c * g.taps;
    Buffer<T> a(g.o * step + lanes), b(rows * step + lanes);
    std::vector<Run> runs, own;
    for (npy_intp at = begin; at < stop; at += chunk) {
        npy_intp count = std::min(chunk, stop - at), whole = (count + lanes - 1) / lanes * lanes;
        find_runs(g, at, count, runs);
        own.clear();
        for (npy_intp done = 0; done < count;) {
            npy_intp s = (at + done) / g.positions, inside = (at + done) % g.positions;
            npy_intp length = std::min(g.positions - inside, count - done);
            own.push_back({done, s * g.groups * g.o * g.positions + inside, length});
            done += length;
        }
        const T *small_end = small + g.n * g.groups * g.o * g.positions;
        for (npy_intp i = 0; i < g.o; i++) {
            copy_runs(small + (group * g.o + i) * g.positions, small_end, own, a.get() + i * step);
            std::fill(a.get() + i * step + count, a.get() + i * step + whole, T(0));
        }
        for (npy_intp k = k0; k < k1; k += rows) {
            npy_intp here = std::min(rows, k1 - k);
            for (npy_intp j = 0; j < here; j++) {
                copy_runs(x + group * g.c * g.plane + g.offsets[k + j], end, runs,
                          b.get() + j * step);
                std::fill(b.get() + j * step + count, b.get() + j * step + whole, T(0));
            }
            dots_any(g.o, here, whole, a.get(), step, b.get(), step, w + k, depth);
        }
    }
}

template <class T>
static void weigh(const Geometry &g, const T *x, const T *end, const T *small, T *result) {
    npy_intp depth = g.c * g.taps, total = g.n * g.positions, size = g.o * depth;
    npy_intp chunk =
        std::min<npy_intp>(1024, std::max<npy_intp>(128, 131072 / std::max<npy_intp>(1, g.o)));
    chunk = std::min(chunk, std::max<npy_intp>(1, total));
    npy_intp chunks = (total + chunk - 1) / chunk, threads = max_threads();
    std::fill(result, result + g.groups * size, T(0));
    if (2 * size * total * g.groups < 400000) threads = 1;
    if (g.groups >= threads) {
        parallel_for(
            g.groups, threads == 1 ? g.groups : 1,
            [&](int64_t first, int64_t last) {
                for (npy_intp group = first; group < last; group++)
                    weigh_part(g, x, end, small, group, 0, total, chunk, 0, depth,
                               result + group * size);
            },
            1);
    } else if (chunks >= 4 * threads && g.groups * size * threads <= 1 << 21) {
        Buffer<T> parts(threads * g.groups * size);
        std::fill(parts.get(), parts.get() + threads * g.groups * size, T(0));
        parallel_for(
            threads, 1,
            [&](int64_t first, int64_t last) {
                for (npy_intp t = first; t < last; t++)
                    for (npy_intp group = 0; group < g.groups; group++)
                        weigh_part(g, x, end, small, group, chunks * t / threads * chunk,
                                   std::min(total, chunks * (t + 1) / threads * chunk), chunk, 0,
                                   depth, parts.get() + (t * g.groups + group) * size);
            },
            1);
        for (npy_intp t = 0; t < threads; t++)
            for (npy_intp i = 0; i < g.groups * size; i++)
                result[i] += parts[t * g.groups * size + i];
    } else {
        npy_intp pieces = std::min<npy_intp>(2 * threads, (depth + 5) / 6);
        npy_intp step = ((depth + pieces - 1) / pieces + 5) / 6 * 6;
        pieces = (depth + step - 1) / step;
        parallel_for(
            g.groups * pieces, 1,
            [&](int64_t first, int64_t last) {
                for (npy_intp task = first; task < last; task++) {
                    npy_intp group = task / pieces, k0 = task % pieces * step;
                    weigh_part(g, x, end, small, group, 0, total, chunk, k0,
                               std::min(depth, k0 + step), result + group * size);
                }
            },
            1);
    }
}

// ---- one channel a group
// --------------------------------------------------------------------------

// `rows` vectors of windows at once, each from its own start: enough sums that none waits for another.
template <class T, int rows>
static void correlate_vectors(const Geometry &g, const T *const *starts, const T *w,
                              typename Lanes<T>::type *sums) {
    using V = typename Lanes<T>::type;
    using L = typename Lanes<T>::loose;
    V total[rows];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) total[i] = V{};
    const npy_intp *offsets = g.offsets.data();
    for (npy_intp k = 0; k < g.taps; k++) {
        npy_intp offset = offsets[k];
        T weight = w[k];
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) total[i] += weight * *(const L *)(starts[i] + offset);
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) sums[i] = total[i];
}

template <class T>
static void correlate_plane(const Geometry &g, const T *x, const T *w, T *result) {
    constexpr npy_intp lanes = Lanes<T>::count;
    constexpr int most = 8;
    using V = typename Lanes<T>::type;
    using L = typename Lanes<T>::loose;
    npy_intp width = g.out[2], lines = g.out[0] * g.out[1];
    const T *starts[most];
    T *places[most];
    npy_intp rooms[most];
    int count = 0;
    auto flush = [&] {
        V sums[most];
        for (int i = count; i < most; i++) starts[i] = starts[0];
        if (count > most / 2)
            correlate_vectors<T, most>(g, starts, w, sums);
        else
            correlate_vectors<T, most / 2>(g, starts, w, sums);
        for (int i = 0; i < count; i++) {
            if (rooms[i] >= lanes)
                *(L *)places[i] = sums[i];
            else
                for (npy_intp t = 0; t < rooms[i]; t++) places[i][t] = sums[i][t];
        }
        count = 0;
    };
    for (npy_intp line = 0; line < lines; line++, result += width) {
        const T *from = x + g.start(line / g.out[1], line % g.out[1]);
        for (npy_intp q = 0; q < width; q += lanes) {
            starts[count] = from + q, places[count] = result + q, rooms[count] = width - q;
            if (++count == most) flush();
        }
    }
    if (count) flush();
}

template <class T>
static void spread_plane(const Geometry &g, const T *small, const T *w, T *image) {
    npy_intp width = g.out[2];
    for (npy_intp line = 0; line < g.out[0] * g.out[1]; line++, small += width) {
        T *to = image + g.start(line / g.out[1], line % g.out[1]);
        for (npy_intp k = 0; k < g.taps; k++) {
            T *place = to + g.offsets[k], weight = w[k];
            INDEPENDENT
            for (npy_intp t = 0; t < width; t++) place[t] += weight * small[t];
        }
    }
}

// `small` has its rows padded with zeros to whole vectors, `step` apart.
template <class T>
static void weigh_plane(const Geometry &g, const T *x, const T *small, npy_intp step, T *w) {
    constexpr npy_intp lanes = Lanes<T>::count, batch = 9;
    using V = typename Lanes<T>::type;
    using L = typename Lanes<T>::loose;
    for (npy_intp k = 0; k < g.taps; k += batch) {
        npy_intp offsets[batch], count = std::min(batch, g.taps - k);
        for (npy_intp j = 0; j < batch; j++) offsets[j] = g.offsets[k + std::min(j, count - 1)];
        V total[batch], place, width{};
#pragma GCC unroll 9
        for (int j = 0; j < batch; j++) total[j] = V{};
        for (int t = 0; t < lanes; t++) place[t] = T(t);
        width += T(g.out[2] - (step - lanes));
        auto inside = place < width;
        for (npy_intp line = 0; line < g.out[0] * g.out[1]; line++) {
            const T *from = x + g.start(line / g.out[1], line % g.out[1]);
            for (npy_intp q = 0; q < step; q += lanes) {
                V y = *(const L *)(small + line * step + q);
                if (q + lanes <= g.out[2]) {
#pragma GCC unroll 9
                    for (int j = 0; j < batch; j++)
                        total[j] += y * *(const L *)(from + offsets[j] + q);
                } else {  // what lies behind a row may be infinite: it is left out, not multiplied
                          // by 0
#pragma GCC unroll 9
                    for (int j = 0; j < batch; j++) {
                        V z = *(const L *)(from + offsets[j] + q);
                        total[j] += y * (inside ? z : V{});
                    }
                }
            }
        }
        for (npy_intp j = 0; j < count; j++)
            for (npy_intp t = 0; t < lanes; t++) w[k + j] += total[j][t];
    }
}

// A padded copy of a plane with room behind it that may be read.
template <class T>
static void pad_plane(const Geometry &g, const T *x, T *to) {
    pad_planes(g, x, 1, to);
    std::fill(to + g.plane, to + g.plane + 2 * Lanes<T>::count, T(0));
}

template <class T>
static void depthwise_correlate(const Geometry &g, const T *x, const T *w, T *result) {
    npy_intp area = g.size[0] * g.size[1] * g.size[2];
    npy_intp work = 2 * g.o * g.taps * g.positions + area;
    parallel_for(
        g.n * g.groups, std::max<npy_intp>(1, 100000 / (work + 1)),
        [&](int64_t first, int64_t last) {
            Buffer<T> plane(g.plane + 2 * Lanes<T>::count);
            for (npy_intp unit = first; unit < last; unit++) {
                pad_plane(g, x + unit * area, plane.get());
                for (npy_intp i = 0; i < g.o; i++)
                    correlate_plane(g, plane.get(), w + (unit % g.groups * g.o + i) * g.taps,
                                    result + (unit * g.o + i) * g.positions);
            }
        },
        1);
}

template <class T>
static void depthwise_spread(const Geometry &g, const T *small, const T *w, T *result) {
    npy_intp area = g.size[0] * g.size[1] * g.size[2];
    npy_intp work = 2 * g.o * g.taps * g.positions + area;
    parallel_for(
        g.n * g.groups, std::max<npy_intp>(1, 100000 / (work + 1)),
        [&](int64_t first, int64_t last) {
            Buffer<T> plane(g.plane);
            for (npy_intp unit = first; unit < last; unit++) {
                std::fill(plane.get(), plane.get() + g.plane, T(0));
                for (npy_intp i = 0; i < g.o; i++)
                    spread_plane(g, small + (unit * g.o + i) * g.positions,
                                 w + (unit % g.groups * g.o + i) * g.taps, plane.get());
                crop_planes(g, plane.get(), 1, result + unit * area);
            }
        },
        1);
}

template <class T>
static void depthwise_weigh(const Geometry &g, const T *x, const T *small, T *result) {
    constexpr npy_intp lanes = Lanes<T>::count;
    npy_intp area = g.size[0] * g.size[1] * g.size[2], lines = g.out[0] * g.out[1];
    npy_intp step = (g.out[2] + lanes - 1) / lanes * lanes;
    npy_intp work = g.n * (2 * g.o * g.taps * g.positions + area);
    std::fill(result, result + g.groups * g.o * g.taps, T(0));
    parallel_for(
        g.groups, std::max<npy_intp>(1, 100000 / (work + 1)),
        [&](int64_t first, int64_t last) {
            Buffer<T> plane(g.plane + 2 * lanes), padded(lines * step);
            std::fill(padded.get(), padded.get() + lines * step, T(0));
            for (npy_intp group = first; group < last; group++)
                for (npy_intp sample = 0; sample < g.n; sample++) {
                    npy_intp unit = sample * g.groups + group;
                    pad_plane(g, x + unit * area, plane.get());
                    for (npy_intp i = 0; i < g.o; i++) {
                        const T *from = small + (unit * g.o + i) * g.positions;
                        for (npy_intp line = 0; line < lines; line++)
                            std::memcpy(padded.get() + line * step, from + line * g.out[2],
                                        sizeof(T) * g.out[2]);
                        weigh_plane(g, plane.get(), padded.get(), step,
                                    result + (group * g.o + i) * g.taps);
                    }
                }
        },
        1);
}
