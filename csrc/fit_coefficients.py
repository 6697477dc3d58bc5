"""Print the polynomials of ``coefficients.h``: Chebyshev fits, made with mpmath at 40 digits.

Run as ``python csrc/fit_coefficients.py > csrc/coefficients.h`` when a degree or range changes.
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
    ("ASIN", "double", near(lambda z: odd(mp.asin, z), 1), (0, mp.mpf("0.25")), 8),
]


def main() -> None:
    print("// Made by fit_coefficients.py; lowest power first.\n#pragma once\n")
    for name, kind, f, interval, degree in FITS:
        coefficients, error = mp.chebyfit(f, interval, degree + 1, error=True)
        mark, digits = ("f", 10) if kind == "float" else ("", 18)
        print(f"// error {mp.nstr(error, 2)}")
        print(f"constexpr {kind} {name}[] = {{")
        for c in reversed(coefficients):
            print(f"    {mp.nstr(c, digits, min_fixed=-5, max_fixed=5)}{mark},")
        print("};\n")


if __name__ == "__main__":
    main()
