// Matrices of up to TINY rows and columns, column by column: what LAPACK does, without the cost of
// its calls, which is more than that of the arithmetic.
#pragma once
#include "common.h"

#include <algorithm>

namespace tiny {

constexpr npy_intp TINY = 16, FEW = 8;  // FEW: of those that are only substituted in

// ---- LU -----------------------------------------------------------------------------------------

// Both factors in one, exchanges of rows counted from 1; the first zero pivot, counted from 1.
template <class T, class I>
INLINE npy_intp lu_of(T *a, npy_intp rows, npy_intp columns, I *pivots) {
    npy_intp failed = 0;
    for (npy_intp k = 0; k < std::min(rows, columns); k++) {
        npy_intp best = k;
        T *column = a + k * rows, largest = std::fabs(column[k]);
        for (npy_intp i = k + 1; i < rows; i++)
            if (std::fabs(column[i]) > largest) largest = std::fabs(column[i]), best = i;
        pivots[k] = I(best + 1);
        if (column[best] == 0) {
            if (!failed) failed = k + 1;
            continue;
        }
        if (best != k)
            for (npy_intp j = 0; j < columns; j++) std::swap(a[j * rows + k], a[j * rows + best]);
        T pivot = column[k];
        for (npy_intp i = k + 1; i < rows; i++) column[i] /= pivot;
        for (npy_intp j = k + 1; j < columns; j++) {
            T *to = a + j * rows, factor = to[k];
            INDEPENDENT for (npy_intp i = k + 1; i < rows; i++) to[i] -= factor * column[i];
        }
    }
    return failed;
}

template <class T, class I>
CLONES npy_intp lu_large(T *a, npy_intp rows, npy_intp columns, I *pivots) {
    return lu_of(a, rows, columns, pivots);
}

template <class T, class I>
npy_intp lu(T *a, npy_intp rows, npy_intp columns, I *pivots) {
    if (rows == columns) {
        if (rows == 2) return lu_of(a, 2, 2, pivots);
        if (rows == 3) return lu_of(a, 3, 3, pivots);
        if (rows == 4) return lu_of(a, 4, 4, pivots);
    }
    return lu_large(a, rows, columns, pivots);
}

// ---- triangles ----------------------------------------------------------------------------------

// a x = b, or aᵀ x = b, in place of the k columns of b.
template <class T>
INLINE void substitute_in(const T *a, T *b, npy_intp n, npy_intp k, bool upper, bool turned, bool ones) {
    for (npy_intp c = 0; c < k; c++, b += n) {
        for (npy_intp step = 0; step < n; step++) {
            npy_intp j = upper != turned ? n - 1 - step : step;
            npy_intp first = upper ? 0 : j + 1, last = upper ? j : n;  // the others of column j
            const T *column = a + j * n;
            if (turned) {
                T sum = b[j];
                for (npy_intp i = first; i < last; i++) sum -= column[i] * b[i];
                b[j] = ones ? sum : sum / column[j];
            } else {
                T found = ones ? b[j] : b[j] / column[j];
                b[j] = found;
                INDEPENDENT for (npy_intp i = first; i < last; i++) b[i] -= found * column[i];
            }
        }
    }
}

template <class T>
CLONES void substitute_large(const T *a, T *b, npy_intp n, npy_intp k, bool upper, bool turned, bool ones) {
    substitute_in(a, b, n, k, upper, turned, ones);
}

template <class T>
void substitute(const T *a, T *b, npy_intp n, npy_intp k, bool upper, bool turned, bool ones) {
    if (n == 3) return substitute_in(a, b, 3, k, upper, turned, ones);
    substitute_large(a, b, n, k, upper, turned, ones);
}

// a x = b by LU, in place of both; the first zero pivot.
template <class T, class I>
npy_intp solve(T *a, T *b, npy_intp n, npy_intp k, I *pivots) {
    npy_intp failed = lu(a, n, n, pivots);
    if (failed) return failed;
    for (npy_intp i = 0; i < n; i++)
        if (pivots[i] != I(i + 1))
            for (npy_intp c = 0; c < k; c++) std::swap(b[c * n + i], b[c * n + pivots[i] - 1]);
    substitute(a, b, n, k, false, false, true);
    substitute(a, b, n, k, true, false, false);
    return 0;
}

// ---- Cholesky -----------------------------------------------------------------------------------

// The factor in place of the triangle that is read; where it is not positive, counted from 1.
template <class T>
CLONES npy_intp cholesky(T *a, npy_intp n, bool upper) {
    if (upper)
        for (npy_intp j = 0; j < n; j++)
            for (npy_intp i = 0; i < j; i++) std::swap(a[j * n + i], a[i * n + j]);
    npy_intp failed = 0;
    for (npy_intp j = 0; j < n && !failed; j++) {
        T *column = a + j * n;
        if (!(column[j] > 0)) {
            failed = j + 1;
            break;
        }
        T root = std::sqrt(column[j]);
        column[j] = root;
        for (npy_intp i = j + 1; i < n; i++) column[i] /= root;
        for (npy_intp c = j + 1; c < n; c++) {
            T *to = a + c * n, factor = column[c];
            INDEPENDENT for (npy_intp i = c; i < n; i++) to[i] -= factor * column[i];
        }
    }
    if (upper)
        for (npy_intp j = 0; j < n; j++)
            for (npy_intp i = 0; i < j; i++) std::swap(a[j * n + i], a[i * n + j]);
    return failed;
}

// ---- reflections --------------------------------------------------------------------------------

inline bool reflects(npy_intp rows, npy_intp columns) { return columns <= TINY && rows <= 8 * TINY; }

// H = I - factor v vᵀ with v = (1, rest), applied to `count` columns.
template <class T>
INLINE void apply_reflection(const T *rest, T factor, npy_intp length, T *x, npy_intp step, npy_intp count) {
    for (npy_intp j = 0; j < count; j++, x += step) {
        T sum = 0;
        INDEPENDENT for (npy_intp i = 0; i < length; i++) sum += rest[i] * x[i + 1];
        sum = factor * (sum + x[0]);
        x[0] -= sum;
        INDEPENDENT for (npy_intp i = 0; i < length; i++) x[i + 1] -= sum * rest[i];
    }
}

// R, below it the vectors of reflections, and their factors.
template <class T>
CLONES void reflect(T *a, npy_intp rows, npy_intp columns, T *factors) {
    for (npy_intp k = 0; k < std::min(rows, columns); k++) {
        T *x = a + k * rows + k;
        npy_intp length = rows - k - 1;
        double square = 0;
        for (npy_intp i = 1; i <= length; i++) square += double(x[i]) * double(x[i]);
        factors[k] = 0;
        if (square == 0) continue;
        T first = x[0], size = T(std::sqrt(square + double(first) * double(first)));
        T made = first >= 0 ? -size : size;         // a zero counts as positive, with either sign
        factors[k] = (made - first) / made;
        T scale = T(1) / (first - made);
        for (npy_intp i = 1; i <= length; i++) x[i] *= scale;
        apply_reflection(x + 1, factors[k], length, x + rows, rows, columns - k - 1);
        x[0] = made;
    }
}

// The first `columns` columns of the product of `count` reflections, in place of their vectors.
template <class T>
CLONES void form(T *a, npy_intp rows, npy_intp columns, npy_intp count, const T *factors) {
    for (npy_intp j = count; j < columns; j++)
        for (npy_intp i = 0; i < rows; i++) a[j * rows + i] = T(i == j);
    for (npy_intp k = count - 1; k >= 0; k--) {
        T *x = a + k * rows + k;
        npy_intp length = rows - k - 1;
        apply_reflection(x + 1, factors[k], length, x + rows, rows, columns - k - 1);
        for (npy_intp i = 1; i <= length; i++) x[i] *= -factors[k];
        x[0] = T(1) - factors[k];
        for (npy_intp i = 0; i < k; i++) a[k * rows + i] = 0;
    }
}

}  // namespace tiny
