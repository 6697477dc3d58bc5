"""Print the polynomials of ``coefficients.h``: Chebyshev fits, made with mpmath at 40 digits.

When a degree or a range changes, in `csrc/kernels/pointwise`:
``python fit_coefficients.py > coefficients.h``.
Each entry fits what is left of a function once its exact leading terms are taken away.
"""

import mpmath as mp

mp.mp.dps = 40
HALF_LN2, QUARTER_PI = mp.log(2) / 2, mp.pi / 4


def near(f, limit):
    """`f`, or at its removable singularity at 0 its limit."""
    return lambda x: mp.mpf(limit) if abs(x) < mp.mpf(10) ** -12 else f(x)


def exp_rest(x):
    return (mp.expm1(x) - x) / x**2


def log_rest(f):
    return (mp.log1p(f) - f + f * f / 2) / f**3


def atanh_rest(z):
    s = mp.sqrt(z)
    return 2 * (mp.atanh(s) - s) / s**3


def sin_rest(z):
    r = mp.sqrt(z)
    return (mp.sin(r) - r) / r**3


def cos_rest(z):
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2


def atan_rest(z):
    x = mp.sqrt(z)
    return (mp.atan(x) - x) / x**3


def asin_rest(z):
    x = mp.sqrt(z)
    return (mp.asin(x) - x) / x**3


def odd(f, z):
    """f(x)/x as a function of z = x²"""
    x = mp.sqrt(z)
    return f(x) / x


def erfcx_mapped(u):
    """exp(t²) erfc(t) as a function of u = (t - 2)/(t + 2)"""
    t = 2 * (1 + u) / (1 - u)
    return mp.exp(t * t) * mp.erfc(t) * (1 + t / 2)


def mills_mapped(u):
    """exp(a²/2) erfc(a/√2) (a + 3)/3 as a function of u = (a - 3)/(a + 3)"""
    a = 3 * (1 + u) / (1 - u)
    return mp.exp(a * a / 2) * mp.erfc(a / mp.sqrt(2)) * (a + 3) / 3


# ---- Bessel's and Airy's functions ---------------------------------------------------------------


def second_kind_rest(order):
    """What Y has beside 2/π log(x/2) J and, for the order 1, -2/(πx), as a function of z = x²."""
    def rest(z):
        x = mp.sqrt(z)
        y = mp.bessely(order, x) - 2 / mp.pi * mp.log(x / 2) * mp.besselj(order, x)
        return y if order == 0 else (y + 2 / (mp.pi * x)) / x
    return rest


def modulus(order, part):
    """Hankel's P, or Q times x, as functions of w = (8/x)²; at 0 their first terms."""
    def found(w):
        if w < mp.mpf(10) ** -20:
            return (mp.mpf(1), (4 * order**2 - 1) / mp.mpf(8))[part]
        x = 8 / mp.sqrt(w)
        angle = x - (2 * order + 1) * QUARTER_PI
        j, y = mp.besselj(order, x), mp.bessely(order, x)
        scale = mp.sqrt(mp.pi * x / 2)
        if part == 0:
            return scale * (j * mp.cos(angle) + y * mp.sin(angle))
        return scale * (y * mp.cos(angle) - j * mp.sin(angle)) * x
    return found


def first_modified(order):
    """exp(-x) I(x) √x as a function of u = 8/x; at 0 its limit."""
    def found(u):
        if u < mp.mpf(10) ** -20:
            return 1 / mp.sqrt(2 * mp.pi)
        x = 8 / u
        return mp.exp(-x) * mp.besseli(order, x) * mp.sqrt(x)
    return found


def second_modified(order):
    """exp(x) K(x) √x as a function of u = 2/x; at 0 its limit."""
    def found(u):
        if u < mp.mpf(10) ** -20:
            return mp.sqrt(mp.pi / 2)
        x = 2 / u
        return mp.exp(x) * mp.besselk(order, x) * mp.sqrt(x)
    return found


def second_modified_rest(order):
    """What K has beside -log(x/2) I, or log(x/2) I + 1/x, as a function of z = x²."""
    def rest(z):
        x = mp.sqrt(z)
        part = mp.log(x / 2) * mp.besseli(order, x)
        k = mp.besselk(order, x)
        return k + part if order == 0 else (k - part - 1 / x) / x
    return rest


def airy_right(u):
    """Ai(x) exp(ζ) x^(1/4) as a function of u = 1/ζ, ζ = 2/3 x^(3/2); at 0 its limit."""
    if u < mp.mpf(10) ** -20:
        return 1 / (2 * mp.sqrt(mp.pi))
    zeta = 1 / u
    x = (zeta * 3 / 2) ** (mp.mpf(2) / 3)
    return mp.airyai(x) * mp.exp(zeta) * x ** (mp.mpf(1) / 4)


def airy_left(part):
    """The parts of √π (-x)^(1/4) Ai(x) that go with cos and, times ζ, sin of ζ - π/4, as functions
    of w = (18/ζ)²."""
    def found(w):
        if w < mp.mpf(10) ** -20:
            return (mp.mpf(1), mp.mpf(5) / 72)[part]
        zeta = 18 / mp.sqrt(w)
        x = (zeta * 3 / 2) ** (mp.mpf(2) / 3)
        angle, scale = zeta - QUARTER_PI, mp.sqrt(mp.pi) * x ** (mp.mpf(1) / 4)
        a, b = mp.airyai(-x) * scale, mp.airybi(-x) * scale
        if part == 0:
            return a * mp.cos(angle) - b * mp.sin(angle)
        return (a * mp.sin(angle) + b * mp.cos(angle)) * zeta
    return found


def erfcx_scaled(u):
    """erfcx(t) (1 + t/2) as a function of u = (t - 2)/(t + 2); at 1 its limit."""
    return 1 / (2 * mp.sqrt(mp.pi)) if u > 1 - mp.mpf(10) ** -6 else erfcx_far(u)


def erfcx_far(u):
    t = 2 * (1 + u) / (1 - u)
    if t < 20:
        return erfcx_mapped(u)
    total, term = mp.mpf(1), mp.mpf(1)       # the asymptotic series
    for k in range(1, 60):
        term *= -(2 * k - 1) / (2 * t * t)
        total += term
        if abs(term) < mp.mpf(10) ** -38:
            break
    return total / (t * mp.sqrt(mp.pi)) * (1 + t / 2)


# Sums of Chebyshev polynomials on a range: name, function, range; in double precision.
SERIES = [
    ("BESSEL_J0", lambda z: mp.besselj(0, mp.sqrt(z)), (0, 64)),
    ("BESSEL_J1", near(lambda z: mp.besselj(1, mp.sqrt(z)) / mp.sqrt(z), 0.5), (0, 64)),
    ("BESSEL_Y0", near(second_kind_rest(0), 2 * mp.euler / mp.pi), (0, 64)),
    ("BESSEL_Y1", near(second_kind_rest(1), (mp.euler - mp.mpf(1) / 2) / mp.pi), (0, 64)),
    *[(f"HANKEL_{'PQ'[part]}{order}", modulus(order, part), (0, 1))
      for order in (0, 1) for part in (0, 1)],
    ("BESSEL_I0", lambda x: mp.exp(-x) * mp.besseli(0, x), (0, 8)),
    ("BESSEL_I1", near(lambda x: mp.exp(-x) * mp.besseli(1, x) / x, 0.5), (0, 8)),
    ("FAR_I0", first_modified(0), (0, 1)),
    ("FAR_I1", first_modified(1), (0, 1)),
    ("BESSEL_K0", near(second_modified_rest(0), -mp.euler), (0, 4)),
    ("BESSEL_K1", near(second_modified_rest(1), (2 * mp.euler - 1) / 4), (0, 4)),
    ("FAR_K0", second_modified(0), (0, 1)),
    ("FAR_K1", second_modified(1), (0, 1)),
    ("AIRY_RIGHT", airy_right, (0, mp.mpf(3) / (4 * mp.sqrt(2)))),
    ("AIRY_COS", airy_left(0), (0, 1)),
    ("AIRY_SIN", airy_left(1), (0, 1)),
    ("ERFCX_SUM", erfcx_scaled, (-1, 1)),
]
for start in range(-9, 2):         # Ai between its two asymptotic ranges
    SERIES.append((f"AIRY_{start + 9}", mp.airyai, (start, start + 1)))


def chebyshev(f, low, high, degree=48):
    """The coefficients of f's Chebyshev series as far as double precision sees them."""
    n = degree + 1
    nodes = [mp.cos(mp.pi * (k + mp.mpf(1) / 2) / n) for k in range(n)]
    values = [f((low + high) / mp.mpf(2) + (high - low) / mp.mpf(2) * t) for t in nodes]
    found = [2 * mp.fsum(v * mp.cos(j * mp.pi * (k + mp.mpf(1) / 2) / n)
                         for k, v in enumerate(values)) / n for j in range(n)]
    found[0] /= 2
    largest = max(map(abs, found))
    while abs(found[-1]) < largest * mp.mpf(2) ** -55:
        found.pop()
    return found


FITS = [
    # name, type, function, range, degree
    ("EXP32", "float", near(exp_rest, 0.5), (-HALF_LN2 - 0.001, HALF_LN2 + 0.001), 4),
    ("EXPD", "double", near(exp_rest, 0.5), (-HALF_LN2 - 0.001, HALF_LN2 + 0.001), 6),
    ("EXP64", "double", near(exp_rest, 0.5), (-HALF_LN2 - 0.0001, HALF_LN2 + 0.0001), 10),
    ("LOG32", "float", near(log_rest, mp.mpf(1) / 3), (mp.sqrt(0.5) - 1, mp.sqrt(2) - 1), 8),
    ("LOG64", "double", near(atanh_rest, mp.mpf(2) / 3), (0, mp.mpf("0.02945")), 6),
    ("SIN32", "float", near(sin_rest, -mp.mpf(1) / 6), (0, mp.mpf("0.617")), 2),
    ("COS32", "float", near(cos_rest, mp.mpf(1) / 24), (0, mp.mpf("0.617")), 2),
    ("SIN64", "double", near(sin_rest, -mp.mpf(1) / 6), (0, mp.mpf("0.617")), 6),
    ("COS64", "double", near(cos_rest, mp.mpf(1) / 24), (0, mp.mpf("0.617")), 6),
    ("ERF_SMALL32", "float", near(lambda z: odd(mp.erf, z) - 1, 2 / mp.sqrt(mp.pi) - 1), (0, 1), 6),
    ("ERFC_LOG32", "float", lambda t: mp.log(mp.erfc(t)), (mp.mpf("0.9"), mp.mpf("4.0")), 8),
    ("ERFCX", "double", erfcx_mapped, (-1, mp.mpf("0.8")), 10),
    ("MILLS32", "float", mills_mapped, (-1, mp.mpf("0.7")), 9),
    ("ERF_SMALL64", "double", near(lambda z: odd(mp.erf, z), 2 / mp.sqrt(mp.pi)), (0, 1), 12),
    ("ERFCX64", "double", erfcx_mapped, (mp.mpf("-0.4"), mp.mpf("0.5")), 15),
    ("ATAN", "double", near(lambda z: odd(mp.atan, z), 1), (0, 1), 12),
    ("ATAN64", "double", near(atan_rest, -mp.mpf(1) / 3), (0, mp.mpf("0.1716")), 10),
    ("ASIN64", "double", near(asin_rest, mp.mpf(1) / 6), (0, mp.mpf("0.25")), 13),
    ("ERFCX_ALL64", "double", erfcx_mapped, (-1, mp.mpf("0.87")), 25),
    ("ASIN", "double", near(lambda z: odd(mp.asin, z), 1), (0, mp.mpf("0.25")), 8),
]


def main() -> None:
    print("// Made by fit_coefficients.py; lowest power, or lowest Chebyshev polynomial, first.")
    print("#pragma once\n")
    for name, kind, f, interval, degree in FITS:
        coefficients, error = mp.chebyfit(f, interval, degree + 1, error=True)
        mark, digits = ("f", 10) if kind == "float" else ("", 18)
        print(f"// error {mp.nstr(error, 2)}")
        print(f"constexpr {kind} {name}[] = {{")
        for c in reversed(coefficients):
            print(f"    {mp.nstr(c, digits, min_fixed=-5, max_fixed=5)}{mark},")
        print("};\n")
    for name, f, (low, high) in SERIES:
        print(f"constexpr double {name}[] = {{")
        for c in chebyshev(f, low, high):
            print(f"    {mp.nstr(c, 18, min_fixed=-5, max_fixed=5)},")
        print("};\n")


if __name__ == "__main__":
    main()
