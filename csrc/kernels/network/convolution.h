// The geometry of a convolution, and where its windows lie in memory.
#pragma once
#include "kernels/network/network.h"

namespace network {

// Everything has three dimensions here; missing ones have size 1. A padded image stores each row
// split by column modulo the stride, so that neighbouring windows read neighbouring elements
// whatever the stride is.
struct Geometry {
    npy_intp n, groups, c, o;  // c and o: channels of one group
    npy_intp size[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
    npy_intp windows[3];       // `out`, before axes are merged
    npy_intp taps, positions;  // kernel elements; windows of one image
    npy_intp padded[3], row, plane, image;
    bool direct;                    // the image can be read where it is
    std::vector<npy_intp> offsets;  // of the element (channel, tap) of the first window

    void prepare() {
        bool pointwise = true, any_padding = false;
        for (int i = 0; i < 3; i++) {
            pointwise = pointwise && kernel[i] == 1 && stride[i] == 1 && padding[i] == 0;
            any_padding = any_padding || padding[i] != 0;
        }
        pointwise = pointwise && std::equal(size, size + 3, out);
        if (pointwise) {
            size[2] = out[2] = size[0] * size[1] * size[2];
            size[0] = size[1] = out[0] = out[1] = 1;
        }
        taps = kernel[0] * kernel[1] * kernel[2];
        positions = out[0] * out[1] * out[2];
        for (int i = 0; i < 3; i++) padded[i] = size[i] + 2 * padding[i];
        row = (padded[2] + stride[2] - 1) / stride[2] * stride[2];
        direct = !any_padding && stride[2] == 1;
        plane = padded[0] * padded[1] * row;
        image = groups * c * plane;
        npy_intp phase = row / stride[2];
        for (npy_intp channel = 0; channel < c; channel++)
            for (npy_intp a = 0; a < kernel[0]; a++)
                for (npy_intp b = 0; b < kernel[1]; b++)
                    for (npy_intp d = 0; d < kernel[2]; d++) {
                        npy_intp column = d * dilation[2];
                        offsets.push_back(channel * plane +
                                          (a * dilation[0] * padded[1] + b * dilation[1]) * row +
                                          column % stride[2] * phase + column / stride[2]);
                    }
    }

    // Where the first element of the window of row (i, j) lies, before the tap's offset.
    npy_intp start(npy_intp i, npy_intp j) const {
        return (i * stride[0] * padded[1] + j * stride[1]) * row;
    }
};

// A run of windows side by side: `length` of them from place `at` of a panel on, the first at
// `from`.
struct Run {
    npy_intp at, from, length;
};

// The runs of the windows first, first + 1, … (counted through all images, each `image` after the
// last).
inline void find_runs(const Geometry &g, npy_intp first, npy_intp count, std::vector<Run> &runs) {
    runs.clear();
    npy_intp width = g.out[2];
    for (npy_intp at = 0; at < count;) {
        npy_intp p = first + at, sample = p / g.positions, within = p % g.positions;
        npy_intp line = within / width, column = within % width;
        npy_intp length = std::min(width - column, count - at);
        runs.push_back(
            {at, sample * g.image + g.start(line / g.out[1], line % g.out[1]) + column, length});
        at += length;
    }
}

inline void three(const npy_intp *from, int count, npy_intp fill, npy_intp *to) {
    for (int i = 0; i < 3; i++) to[i] = i < 3 - count ? fill : from[i - (3 - count)];
}

// Fills in the geometry from shapes of the large image and the weights; `out` is null to compute
// it.
inline bool geometry(Geometry &g, const std::vector<npy_intp> &large,
                     const std::vector<npy_intp> &w, const npy_intp *out, PyObject *const *args) {
    int dims = int(large.size()) - 2;
    std::vector<npy_intp> stride, padding, dilation;
    if (dims < 1 || dims > 3 || int(w.size()) != dims + 2 || !take_ints(args[0], stride) ||
        !take_ints(args[1], padding) || !take_ints(args[2], dilation) ||
        !take_int(args[3], g.groups) || int(stride.size()) != dims || int(padding.size()) != dims ||
        int(dilation.size()) != dims)
        return false;
    if (g.groups < 1 || large[1] % g.groups || w[0] % g.groups || large[1] / g.groups != w[1])
        return false;
    g.n = large[0];
    g.c = w[1];
    g.o = w[0] / g.groups;
    three(&large[2], dims, 1, g.size);
    three(&w[2], dims, 1, g.kernel);
    three(stride.data(), dims, 1, g.stride);
    three(padding.data(), dims, 0, g.padding);
    three(dilation.data(), dims, 1, g.dilation);
    if (out) three(out, dims, 1, g.out);
    for (int i = 0; i < 3; i++) {
        npy_intp reach = g.dilation[i] * (g.kernel[i] - 1) + 1, room = g.size[i] + 2 * g.padding[i];
        if (g.stride[i] < 1 || g.padding[i] < 0 || g.kernel[i] < 1 || room < reach) return false;
        npy_intp most = (room - reach) / g.stride[i] + 1;
        if (!out) g.out[i] = most;
        if (g.out[i] > most) return false;
    }
    std::copy(g.out, g.out + 3, g.windows);
    g.prepare();
    return true;
}

inline std::vector<npy_intp> small_shape(const Geometry &g, const std::vector<npy_intp> &large) {
    std::vector<npy_intp> shape = {g.n, g.groups * g.o};
    shape.insert(shape.end(), g.windows + 5 - large.size(), g.windows + 3);
    return shape;
}

// Copies `planes` planes into the padded, split layout.
template <class T>
void pad_planes(const Geometry &g, const T *x, npy_intp planes, T *to) {
    npy_intp s = g.stride[2], phase = g.row / s, width = g.size[2];
    std::fill(to, to + planes * g.plane, T(0));
    for (npy_intp p = 0; p < planes; p++)
        for (npy_intp i = 0; i < g.size[0]; i++)
            for (npy_intp j = 0; j < g.size[1]; j++, x += width) {
                T *line = to + p * g.plane +
                          ((i + g.padding[0]) * g.padded[1] + j + g.padding[1]) * g.row;
                if (s == 1) {
                    std::memcpy(line + g.padding[2], x, sizeof(T) * width);
                } else if (s == 2) {
                    npy_intp column = g.padding[2];
                    T *even = line + column % 2 * phase + column / 2,
                      *odd = line + (column + 1) % 2 * phase + (column + 1) / 2;
                    INDEPENDENT
                    for (npy_intp q = 0; q < width / 2; q++) {
                        even[q] = x[2 * q];
                        odd[q] = x[2 * q + 1];
                    }
                    if (width % 2) even[width / 2] = x[width - 1];
                } else {
                    for (npy_intp first = 0; first < s && first < width; first++) {
                        npy_intp column = first + g.padding[2];
                        T *start = line + column % s * phase + column / s;
                        for (npy_intp k = first, q = 0; k < width; k += s, q++) start[q] = x[k];
                    }
                }
            }
}

// The way back: the planes without padding.
template <class T>
void crop_planes(const Geometry &g, const T *from, npy_intp planes, T *x) {
    npy_intp s = g.stride[2], phase = g.row / s, width = g.size[2];
    for (npy_intp p = 0; p < planes; p++)
        for (npy_intp i = 0; i < g.size[0]; i++)
            for (npy_intp j = 0; j < g.size[1]; j++, x += width) {
                const T *line = from + p * g.plane +
                                ((i + g.padding[0]) * g.padded[1] + j + g.padding[1]) * g.row;
                if (s == 1) {
                    std::memcpy(x, line + g.padding[2], sizeof(T) * width);
                } else {
                    for (npy_intp first = 0; first < s && first < width; first++) {
                        npy_intp column = first + g.padding[2];
                        const T *start = line + column % s * phase + column / s;
                        for (npy_intp k = first, q = 0; k < width; k += s, q++) x[k] = start[q];
                    }
                }
            }
}

// The images as they are, or their padded copy.
template <class T>
struct Padded {
    Buffer<T> copy;
    const T *data, *end;
    Padded(const Geometry &g, const T *x) : copy(g.direct ? 0 : g.n * g.image + 128) {
        data = g.direct ? x : copy.get();
        end = data + g.n * g.image + (g.direct ? 0 : 128);
        if (g.direct) return;
        npy_intp planes = g.n * g.groups * g.c, area = g.size[0] * g.size[1] * g.size[2];
        parallel_for(
            planes, std::max<npy_intp>(1, PARALLEL_FROM / (g.plane + 1)),
            [&](int64_t first, int64_t last) {
                pad_planes(g, x + first * area, last - first, copy.get() + first * g.plane);
            },
            1);
        std::fill(copy.get() + g.n * g.image, copy.get() + g.n * g.image + 128, T(0));
    }
};

// Samples at a time whose padded copies stay below 64 MB.
template <class T>
npy_intp batch_of(const Geometry &g) {
    return g.direct
               ? g.n
               : std::max<npy_intp>(1, (npy_intp(64) << 20) / npy_intp(sizeof(T) * (g.image + 1)));
}

}  // namespace network
