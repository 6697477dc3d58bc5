// PyTorch's CPU random streams: the Mersenne Twister and what is drawn from it.
//
// Every function takes the state of a stream, an array of 628 words that it advances in place:
//     0..623   the twister's words
//     624      how many of them are used up; 0 on a fresh seed, where none is valid yet
//     625      1 while a normal number is kept for the next call of a scalar sampler
//     626..627 that number, a double
// Readable twins of all of them, and the reasons for the formulas: flambeau/kernels/creation/random_reference.py.

#include "common.h"

namespace {

constexpr int N = 624, M = 397;
constexpr int CHUNK = 1024;  // draws that are made before they are transformed; a multiple of 16
constexpr double PI = 3.14159265358979323846;

// ---------------------------------------------------------------------------------------------
// The twister

INLINE uint32_t twisted(uint32_t here, uint32_t next, uint32_t far) {
  uint32_t y = (here & 0x80000000u) | (next & 0x7fffffffu);
  return far ^ (y >> 1) ^ (-(next & 1u) & 0x9908b0dfu);
}

INLINE uint32_t tempered(uint32_t y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

CLONES void twist(uint32_t *key) {
  for (int k = 0; k < N - M; ++k) key[k] = twisted(key[k], key[k + 1], key[k + M]);
  for (int k = N - M; k < N - 1; ++k) key[k] = twisted(key[k], key[k + 1], key[k + M - N]);
  key[N - 1] = twisted(key[N - 1], key[0], key[M - 1]);
}

CLONES void temper(const uint32_t *key, uint32_t *out, int n) {
  for (int k = 0; k < n; ++k) out[k] = tempered(key[k]);
}

struct Stream {
  uint32_t *words;

  void refill() {
    if (words[N] == 0 || words[N] >= N) {
      twist(words);
      words[N] = 0;
    }
  }

  void draw32(uint32_t *out, Py_ssize_t n) {
    while (n > 0) {
      refill();
      int left = N - static_cast<int>(words[N]);
      int take = n < left ? static_cast<int>(n) : left;
      temper(words + words[N], out, take);
      words[N] += take;
      out += take;
      n -= take;
    }
  }

  uint32_t next32() {
    refill();
    return tempered(words[words[N]++]);
  }

  uint64_t next64() {
    uint64_t high = next32();
    return high << 32 | next32();
  }

  double uniform() { return static_cast<double>(next64() & ((1ull << 53) - 1)) * 0x1p-53; }

  // Box and Muller; the second number of a pair is kept for the next call, whatever its mean.
  double normal() {
    if (words[N + 1]) {
      words[N + 1] = 0;
      double kept;
      std::memcpy(&kept, words + N + 2, sizeof kept);
      return kept;
    }
    double turn = uniform(), size = uniform();
    double radius = std::sqrt(-2.0 * std::log1p(-size)), angle = 2.0 * PI * turn;
    double kept = radius * std::sin(angle);
    words[N + 1] = 1;
    std::memcpy(words + N + 2, &kept, sizeof kept);
    return radius * std::cos(angle);
  }
};

// ---------------------------------------------------------------------------------------------
// Uniform numbers in bulk

INLINE double unit(uint32_t high, uint32_t low) {
  return (static_cast<int32_t>(high & 0x1fffffu) * 0x1p32 + low) * 0x1p-53;
}

CLONES void units(const uint32_t *raw, double *out, Py_ssize_t n) {
  for (Py_ssize_t i = 0; i < n; ++i) out[i] = unit(raw[2 * i], raw[2 * i + 1]);
}

CLONES void units(const uint32_t *raw, float *out, Py_ssize_t n) {
  for (Py_ssize_t i = 0; i < n; ++i) out[i] = static_cast<int32_t>(raw[i] & 0xffffffu) * 0x1p-24f;
}

CLONES void rescale(float *x, Py_ssize_t n, float low, float range, float high) {
  for (Py_ssize_t i = 0; i < n; ++i) {
    float v = std::fma(x[i], range, low);
    x[i] = v == high ? low : v;
  }
}

CLONES void rescale(double *x, Py_ssize_t n, double low, double range, double high) {
  for (Py_ssize_t i = 0; i < n; ++i) {
    double v = std::fma(x[i], range, low);
    x[i] = v == high ? low : v;
  }
}

template <class T>
void unit_fill(Stream stream, T *out, Py_ssize_t n) {
  constexpr int words = sizeof(T) / 4;  // a double takes two draws
  uint32_t raw[CHUNK * words];
  for (Py_ssize_t i = 0; i < n; i += CHUNK) {
    Py_ssize_t take = n - i < CHUNK ? n - i : CHUNK;
    stream.draw32(raw, take * words);
    units(raw, out + i, take);
  }
}

template <class T>
void uniform(Stream stream, T *out, Py_ssize_t n, double low, double high) {
  unit_fill(stream, out, n);
  T from = static_cast<T>(low), to = static_cast<T>(high);
  if (from != 0 || to != 1) rescale(out, n, from, to - from, to);
}

// ---------------------------------------------------------------------------------------------
// Normal numbers in blocks of 16: eight radii and eight angles

INLINE float log_poly(float x) {
  int32_t word = bits<int32_t>(x);
  float e = static_cast<float>((word >> 23) - 0x7f) + 1.0f;
  x = bits<float>((word & ~0x7f800000) | 0x3f000000);
  bool small = x < 0.707106781186547524f;
  float extra = small ? x : 0.0f;
  e -= small ? 1.0f : 0.0f;
  x = (x - 1.0f) + extra;
  float z = x * x, y = 7.0376836292e-2f;
  y = std::fma(y, x, -1.1514610310e-1f);
  y = std::fma(y, x, 1.1676998740e-1f);
  y = std::fma(y, x, -1.2420140846e-1f);
  y = std::fma(y, x, 1.4249322787e-1f);
  y = std::fma(y, x, -1.6668057665e-1f);
  y = std::fma(y, x, 2.0000714765e-1f);
  y = std::fma(y, x, -2.4999993993e-1f);
  y = std::fma(y, x, 3.3333331174e-1f);
  y = y * x;
  y = std::fma(y, z, e * -2.12194440e-4f);
  y = std::fma(-z, 0.5f, y);
  return std::fma(e, 0.693359375f, x + y);
}

INLINE void sincos_poly(float x, float *sine, float *cosine) {  // x >= 0
  int32_t octant = (static_cast<int32_t>(x * 1.27323954473516f) + 1) & ~1;
  float y = static_cast<float>(octant);
  x = std::fma(y, -0.78515625f, x);
  x = std::fma(y, -2.4187564849853515625e-4f, x);
  x = std::fma(y, -3.77489497744594108e-8f, x);
  float z = x * x;
  float c = std::fma(2.443315711809948e-5f, z, -1.388731625493765e-3f);
  c = std::fma(c, z, 4.166664568298827e-2f) * z;
  c = std::fma(c, z, z * -0.5f) + 1.0f;
  float s = std::fma(-1.9515295891e-4f, z, 8.3321608736e-3f);
  s = std::fma(s, z, -1.6666654611e-1f) * z;
  s = std::fma(s, x, x);
  bool swap = octant & 2;
  int32_t a = bits<int32_t>(swap ? c : s), b = bits<int32_t>(swap ? s : c);
  *sine = bits<float>(a ^ ((octant & 4) << 29));
  *cosine = bits<float>(b ^ ((~(octant - 2) & 4) << 29));
}

CLONES void box_muller(float *x, Py_ssize_t blocks, float mean, float std) {
  for (Py_ssize_t b = 0; b < blocks; ++b, x += 16) {
    for (int j = 0; j < 8; ++j) {
      float radius = std::sqrt(-2.0f * log_poly(1.0f - x[j])), s, c;
      sincos_poly(6.283185307179586f * x[j + 8], &s, &c);
      x[j] = std::fma(radius * c, std, mean);
      x[j + 8] = std::fma(radius * s, std, mean);
    }
  }
}

CLONES void box_muller(double *x, Py_ssize_t blocks, double mean, double std) {
  for (Py_ssize_t b = 0; b < blocks; ++b, x += 16) {
    for (int j = 0; j < 8; ++j) {
      double radius = std::sqrt(-2.0 * std::log(1.0 - x[j])), angle = 2.0 * PI * x[j + 8];
      x[j] = std::fma(radius * std::cos(angle), std, mean);
      x[j + 8] = std::fma(radius * std::sin(angle), std, mean);
    }
  }
}

template <class T>
void normal_blocks(Stream stream, T *out, Py_ssize_t n, double mean, double std) {
  Py_ssize_t whole = n / 16 * 16;
  for (Py_ssize_t i = 0; i < n; i += CHUNK) {
    Py_ssize_t take = n - i < CHUNK ? n - i : CHUNK;
    unit_fill(stream, out + i, take);
    Py_ssize_t blocks = (whole - i < CHUNK ? whole - i : CHUNK) / 16;
    if (blocks > 0) box_muller(out + i, blocks, static_cast<T>(mean), static_cast<T>(std));
  }
  if (n != whole) {  // the last 16 numbers are drawn anew
    unit_fill(stream, out + n - 16, 16);
    box_muller(out + n - 16, 1, static_cast<T>(mean), static_cast<T>(std));
  }
}

// ---------------------------------------------------------------------------------------------
// Distributions of one real or natural number

CLONES void below(const double *u, uint8_t *out, Py_ssize_t n, double p, double value) {
  uint8_t hit = static_cast<uint8_t>(value);
  for (Py_ssize_t i = 0; i < n; ++i) out[i] = u[i] < p ? hit : 0;
}

CLONES void below(const double *u, float *out, Py_ssize_t n, double p, double value) {
  float hit = static_cast<float>(value);
  for (Py_ssize_t i = 0; i < n; ++i) out[i] = u[i] < p ? hit : 0.0f;
}

CLONES void below(const double *u, double *out, Py_ssize_t n, double p, double value) {
  for (Py_ssize_t i = 0; i < n; ++i) out[i] = u[i] < p ? value : 0.0;
}

template <class T>
void bernoulli(Stream stream, T *out, Py_ssize_t n, double p, double value) {
  double u[CHUNK];
  for (Py_ssize_t i = 0; i < n; i += CHUNK) {
    Py_ssize_t take = n - i < CHUNK ? n - i : CHUNK;
    unit_fill(stream, u, take);
    below(u, out + i, take, p, value);
  }
}

// raw % range + base; a draw's quotient is estimated in floating point and mended by one
CLONES void remainders(const uint32_t *raw, int64_t *out, Py_ssize_t n, int32_t range,
                       int64_t base) {
  double inverse = 1.0 / range;
  for (Py_ssize_t i = 0; i < n; ++i) {
    double x = static_cast<int32_t>(raw[i] ^ 0x80000000u) + 0x1p31;
    uint32_t quotient = static_cast<uint32_t>(static_cast<int64_t>(x * inverse));
    int32_t rest = static_cast<int32_t>(raw[i] - quotient * static_cast<uint32_t>(range));
    rest += rest < 0 ? range : 0;
    rest -= rest >= range ? range : 0;
    out[i] = rest + base;
  }
}

void integers(Stream stream, int64_t *out, Py_ssize_t n, uint64_t range, int64_t base) {
  if (range >= 1ull << 28) {
    for (Py_ssize_t i = 0; i < n; ++i)
      out[i] = static_cast<int64_t>(stream.next64() % range + static_cast<uint64_t>(base));
    return;
  }
  uint32_t raw[CHUNK];
  for (Py_ssize_t i = 0; i < n; i += CHUNK) {
    Py_ssize_t take = n - i < CHUNK ? n - i : CHUNK;
    stream.draw32(raw, take);
    remainders(raw, out + i, take, static_cast<int32_t>(range), base);
  }
}

void permutation(Stream stream, int64_t *out, Py_ssize_t n) {
  for (Py_ssize_t i = 0; i < n; ++i) out[i] = i;
  bool wide = n >= static_cast<Py_ssize_t>(UINT32_MAX / 20);
  for (Py_ssize_t i = 0; i < n - 1; ++i) {
    uint64_t left = static_cast<uint64_t>(n - i);
    uint64_t other = i + (wide ? stream.next64() % left
                               : stream.next32() % static_cast<uint32_t>(left));
    int64_t kept = out[i];
    out[i] = out[other];
    out[other] = kept;
  }
}

CLONES double fused(double a, double b, double c) { return std::fma(a, b, c); }

struct Exponential {
  double scale;
  explicit Exponential(const double *p) : scale(-1.0 / p[0]) {}
  double operator()(Stream &stream) const { return scale * std::log1p(-stream.uniform()); }
};

struct Geometric {
  double scale;
  explicit Geometric(const double *p) : scale(std::log1p(-p[0])) {}
  double operator()(Stream &stream) const {
    return std::ceil(std::log(stream.uniform()) / scale);
  }
};

struct Cauchy {
  double median, sigma;
  explicit Cauchy(const double *p) : median(p[0]), sigma(p[1]) {}
  double operator()(Stream &stream) const {
    return fused(std::tan(PI * (stream.uniform() - 0.5)), sigma, median);
  }
};

struct NormalPairs {
  double mean, std;
  explicit NormalPairs(const double *p) : mean(p[0]), std(p[1]) {}
  double operator()(Stream &stream) const { return fused(stream.normal(), std, mean); }
};

struct LogNormal {
  double mean, std;
  explicit LogNormal(const double *p) : mean(p[0]), std(p[1]) {}
  double operator()(Stream &stream) const { return std::exp(fused(stream.normal(), std, mean)); }
};

// ---------------------------------------------------------------------------------------------
// Distributions by rejection. In these, T is the type in which the parameters are computed with.

double poisson(Stream &stream, double rate) {
  if (rate == 0) return 0;
  if (rate < 10) {  // multiply uniform numbers until they fall below exp(-rate)
    double bound = std::exp(-rate), product = stream.uniform(), k = 0;
    for (; product > bound; product *= stream.uniform()) k += 1;
    return k;
  }
  // Hörmann's transformed rejection with squeeze (PTRS)
  double root = std::sqrt(rate), log_rate = std::log(rate);
  double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    double u = stream.uniform() - 0.5, v = stream.uniform(), us = 0.5 - std::fabs(u);
    double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
        -rate + k * log_rate - std::lgamma(k + 1))
      return k;
  }
}

double stirling_tail(double k) {  // log(k!) less Stirling's formula
  static const double table[] = {
      0.0810614667953272,  0.0413406959554092,  0.0276779256849983,  0.02079067210376509,
      0.0166446911898211,  0.0138761288230707,  0.0118967099458917,  0.0104112652619720,
      0.00925546218271273, 0.00833056343336287};
  if (k <= 9) return table[static_cast<int>(k)];
  double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

template <class T>
double binomial_by_rejection(Stream &stream, T count, T p) {  // Hörmann's BTRS
  double deviation = std::sqrt(count * p * (1 - p));
  double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
  double c = count * p + 0.5, v_r = 0.92 - 4.2 / b, r = p / (1 - p);
  double alpha = (2.83 + 5.1 / b) * deviation, m = std::floor((count + 1) * p);
  for (;;) {
    double u = stream.uniform() - 0.5, v = stream.uniform(), us = 0.5 - std::fabs(u);
    double k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || k > count) continue;
    double bound = (m + 0.5) * std::log((m + 1) / (r * (count - m + 1))) +
                   (count + 1) * std::log((count - m + 1) / (count - k + 1)) +
                   (k + 0.5) * std::log(r * (count - k + 1) / (k + 1)) + stirling_tail(m) +
                   stirling_tail(count - m) - stirling_tail(k) - stirling_tail(count - k);
    if (std::log(v * alpha / (a / (us * us) + b)) <= bound) return k;
  }
}

template <class T>
double binomial_by_gaps(Stream &stream, T count, T p) {  // geometric gaps between successes
  double sum = 0, k = 0, scale = std::log1p(-p);
  for (;;) {
    sum += std::ceil(std::log(stream.uniform()) / scale);
    if (sum > count) return k;
    k += 1;
  }
}

template <class T>
double binomial(Stream &stream, T count, T p) {
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  if (std::isnan(p)) return p;
  T q = p <= static_cast<T>(0.5) ? p : 1 - p;
  double k = count * q >= 10 ? binomial_by_rejection(stream, count, q)
                             : binomial_by_gaps(stream, count, q);
  return p <= static_cast<T>(0.5) ? k : count - k;
}

template <class T>
double gamma(Stream &stream, T alpha) {  // Marsaglia and Tsang
  double scale = 1;
  if (alpha < 1) {
    if (alpha == 0) return 0;
    scale = std::pow(1 - stream.uniform(), static_cast<double>(1 / alpha));
    alpha += 1;
  }
  double d = alpha - static_cast<T>(1.0f / 3.0f), c = 1 / std::sqrt(9 * d);
  for (;;) {
    double x, y;
    do {
      x = stream.normal();
      y = 1 + c * x;
    } while (y <= 0);
    double v = y * y * y, u = 1 - stream.uniform(), xx = x * x;
    if (u < 1 - 0.0331f * xx * xx) return scale * d * v;
    if (std::log(u) < 0.5 * xx + d * (1 - v + std::log(v))) return scale * d * v;
  }
}

// ---------------------------------------------------------------------------------------------
// Python's side: arrays come as contiguous buffers

struct Buffer {
  Py_buffer view;
  bool held = false;

  bool take(PyObject *object, int flags) {
    held = PyObject_GetBuffer(object, &view, flags | PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) == 0;
    return held;
  }
  ~Buffer() {
    if (held) PyBuffer_Release(&view);
  }
  char type() const {
    const char *format = view.format;
    char last = format[std::strlen(format) - 1];
    return last == 'l' && view.itemsize == 8 ? 'q' : last == 'L' && view.itemsize == 8 ? 'Q' : last;
  }
  Py_ssize_t size() const { return view.len / view.itemsize; }
  template <class T>
  T *data() const {
    return static_cast<T *>(view.buf);
  }
};

struct Call {  // (state, out, *rest): what each function below starts with
  Buffer state, out;
  Stream stream{nullptr};

  bool take(PyObject *const *args, Py_ssize_t given, Py_ssize_t expected) {
    if (given != expected) {
      PyErr_Format(PyExc_TypeError, "expected %zd arguments, got %zd", expected, given);
      return false;
    }
    if (!state.take(args[0], PyBUF_WRITABLE) || !out.take(args[1], PyBUF_WRITABLE)) return false;
    if (state.view.len != (N + 4) * 4) {
      PyErr_SetString(PyExc_ValueError, "a stream's state has 628 words");
      return false;
    }
    stream.words = state.data<uint32_t>();
    return true;
  }
};

PyObject *refuse(const Buffer &buffer) {
  return PyErr_Format(PyExc_TypeError, "no random kernel for an array of type '%s'",
                      buffer.view.format);
}

bool numbers(PyObject *const *args, int n, double *values) {
  for (int i = 0; i < n; ++i) values[i] = PyFloat_AsDouble(args[i]);
  return !PyErr_Occurred();
}

PyObject *py_seed(PyObject *, PyObject *const *args, Py_ssize_t given) {
  Buffer state;
  if (given != 2) return PyErr_Format(PyExc_TypeError, "expected 2 arguments, got %zd", given);
  if (!state.take(args[0], PyBUF_WRITABLE)) return nullptr;
  uint32_t value = static_cast<uint32_t>(PyLong_AsUnsignedLong(args[1]));
  if (PyErr_Occurred()) return nullptr;
  auto words = state.data<uint32_t>();
  for (uint32_t k = 0; k < N && k < state.size(); ++k) {
    words[k] = value;
    value = 1812433253u * (value ^ (value >> 30)) + k + 1;
  }
  Py_RETURN_NONE;
}

PyObject *py_raw(PyObject *, PyObject *const *args, Py_ssize_t given) {
  Call call;
  if (!call.take(args, given, 2)) return nullptr;
  if (call.out.type() == 'I') {
    call.stream.draw32(call.out.data<uint32_t>(), call.out.size());
  } else if (call.out.type() == 'Q') {
    auto out = call.out.data<uint64_t>();
    for (Py_ssize_t i = 0; i < call.out.size(); ++i) out[i] = call.stream.next64();
  } else {
    return refuse(call.out);
  }
  Py_RETURN_NONE;
}

PyObject *py_integers(PyObject *, PyObject *const *args, Py_ssize_t given) {
  Call call;
  if (!call.take(args, given, 4)) return nullptr;
  uint64_t range = PyLong_AsUnsignedLongLong(args[2]);
  int64_t base = PyLong_AsLongLong(args[3]);
  if (PyErr_Occurred()) return nullptr;
  if (call.out.type() != 'q') return refuse(call.out);
  integers(call.stream, call.out.data<int64_t>(), call.out.size(), range, base);
  Py_RETURN_NONE;
}

PyObject *py_permutation(PyObject *, PyObject *const *args, Py_ssize_t given) {
  Call call;
  if (!call.take(args, given, 2)) return nullptr;
  if (call.out.type() != 'q') return refuse(call.out);
  permutation(call.stream, call.out.data<int64_t>(), call.out.size());
  Py_RETURN_NONE;
}

// Floats of either width from a distribution with two parameters, `least` of them or more.
template <class Draw>
PyObject *floats(PyObject *const *args, Py_ssize_t given, Py_ssize_t least, Draw draw) {
  Call call;
  double p[2];
  if (!call.take(args, given, 4) || !numbers(args + 2, 2, p)) return nullptr;
  if (call.out.size() < least)
    return PyErr_Format(PyExc_ValueError, "blocks need at least %zd numbers", least);
  if (call.out.type() == 'f')
    draw(call.stream, call.out.data<float>(), call.out.size(), p[0], p[1]);
  else if (call.out.type() == 'd')
    draw(call.stream, call.out.data<double>(), call.out.size(), p[0], p[1]);
  else
    return refuse(call.out);
  Py_RETURN_NONE;
}

PyObject *py_uniform(PyObject *, PyObject *const *args, Py_ssize_t given) {
  return floats(args, given, 0, [](auto &&...values) { uniform(values...); });
}

PyObject *py_normal_blocks(PyObject *, PyObject *const *args, Py_ssize_t given) {
  return floats(args, given, 16, [](auto &&...values) { normal_blocks(values...); });
}

PyObject *py_bernoulli(PyObject *, PyObject *const *args, Py_ssize_t given) {
  Call call;
  double p[2];
  if (!call.take(args, given, 4) || !numbers(args + 2, 2, p)) return nullptr;
  Py_ssize_t n = call.out.size();
  switch (call.out.type()) {
    case '?':
    case 'B': bernoulli(call.stream, call.out.data<uint8_t>(), n, p[0], p[1]); break;
    case 'f': bernoulli(call.stream, call.out.data<float>(), n, p[0], p[1]); break;
    case 'd': bernoulli(call.stream, call.out.data<double>(), n, p[0], p[1]); break;
    default: return refuse(call.out);
  }
  Py_RETURN_NONE;
}

// A distribution with up to two parameters, one number after the other.
template <class Distribution>
PyObject *py_scalar(PyObject *, PyObject *const *args, Py_ssize_t given) {
  Call call;
  double p[2] = {0, 0};
  if (given < 3 || given > 4 || !call.take(args, given, given) ||
      !numbers(args + 2, static_cast<int>(given - 2), p))
    return PyErr_Occurred() ? nullptr
                            : PyErr_Format(PyExc_TypeError, "expected one or two parameters");
  Distribution draw(p);
  if (call.out.type() == 'f') {
    auto out = call.out.data<float>();
    for (Py_ssize_t i = 0; i < call.out.size(); ++i)
      out[i] = static_cast<float>(draw(call.stream));
  } else if (call.out.type() == 'd') {
    auto out = call.out.data<double>();
    for (Py_ssize_t i = 0; i < call.out.size(); ++i) out[i] = draw(call.stream);
  } else {
    return refuse(call.out);
  }
  Py_RETURN_NONE;
}

// The samplers whose parameters are arrays like `out`.
template <class T, class Sample>
bool sample_each(Call &call, const Buffer *p, Sample sample) {
  auto out = call.out.data<T>();
  for (Py_ssize_t i = 0; i < call.out.size(); ++i)
    out[i] = static_cast<T>(sample(call.stream, p, i));
  return true;
}

template <class T>
bool sample_by_name(const char *name, Call &call, const Buffer *p) {
  if (!std::strcmp(name, "poisson"))
    return sample_each<T>(call, p, [](Stream &s, const Buffer *p, Py_ssize_t i) {
      return poisson(s, static_cast<double>(p[0].data<T>()[i]));
    });
  if (!std::strcmp(name, "gamma"))
    return sample_each<T>(call, p, [](Stream &s, const Buffer *p, Py_ssize_t i) {
      return gamma<T>(s, p[0].data<T>()[i]);
    });
  return sample_each<T>(call, p, [](Stream &s, const Buffer *p, Py_ssize_t i) {
    return binomial<T>(s, p[0].data<T>()[i], p[1].data<T>()[i]);
  });
}

PyObject *sample(const char *name, PyObject *const *args, Py_ssize_t given, Py_ssize_t parameters) {
  Call call;
  Buffer p[2];
  if (!call.take(args, given, 2 + parameters)) return nullptr;
  for (Py_ssize_t k = 0; k < parameters; ++k) {
    if (!p[k].take(args[2 + k], 0)) return nullptr;
    if (p[k].view.len != call.out.view.len || p[k].type() != call.out.type()) return refuse(p[k]);
  }
  if (call.out.type() == 'f')
    sample_by_name<float>(name, call, p);
  else if (call.out.type() == 'd')
    sample_by_name<double>(name, call, p);
  else
    return refuse(call.out);
  Py_RETURN_NONE;
}

PyObject *py_poisson(PyObject *, PyObject *const *args, Py_ssize_t given) {
  return sample("poisson", args, given, 1);
}

PyObject *py_gamma(PyObject *, PyObject *const *args, Py_ssize_t given) {
  return sample("gamma", args, given, 1);
}

PyObject *py_binomial(PyObject *, PyObject *const *args, Py_ssize_t given) {
  return sample("binomial", args, given, 2);
}

template <PyObject *(*function)(PyObject *, PyObject *const *, Py_ssize_t)>
PyMethodDef method(const char *name, const char *doc) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)),
          METH_FASTCALL, doc};
}

PyMethodDef methods[] = {
    method<py_seed>("random_seed", "(state, seed): start from a seed of 32 bits"),
    method<py_raw>("random_raw", "(state, out): 32 or 64 random bits each"),
    method<py_integers>("random_integers", "(state, out, range, base): base + bits % range"),
    method<py_permutation>("random_permutation", "(state, out): a permutation of 0..n-1"),
    method<py_uniform>("random_uniform", "(state, out, low, high): uniform in [low, high)"),
    method<py_normal_blocks>("random_normal_blocks", "(state, out, mean, std): 16 at a time"),
    method<py_bernoulli>("random_bernoulli", "(state, out, p, value): value with probability p"),
    method<py_scalar<NormalPairs>>("random_normal_pairs", "(state, out, mean, std): one by one"),
    method<py_scalar<LogNormal>>("random_log_normal", "(state, out, mean, std)"),
    method<py_scalar<Cauchy>>("random_cauchy", "(state, out, median, sigma)"),
    method<py_scalar<Exponential>>("random_exponential", "(state, out, rate)"),
    method<py_scalar<Geometric>>("random_geometric", "(state, out, p)"),
    method<py_poisson>("random_poisson", "(state, out, rate)"),
    method<py_gamma>("random_gamma", "(state, out, alpha)"),
    method<py_binomial>("random_binomial", "(state, out, count, p)"),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

int register_random(PyObject *module) { return PyModule_AddFunctions(module, methods); }
