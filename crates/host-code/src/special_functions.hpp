// Behind `mathematics.hpp`: functions of CUDA's that no C library has. Those for `double` are exact
// to some units in the last place (`erfcinv` above 1e-307); those for `float` are computed as
// `double`, and rounded once.

namespace resident {
namespace host {

constexpr double sqrt_of_pi = 1.7724538509055160273, two_by_sqrt_of_pi = 1.1283791670955125739;
constexpr double not_a_number = __builtin_nan(""), infinity = __builtin_inf();

/// `exp(x * x)` or `exp(-x * x)`, without the rounding of the square.
inline double exp_of_square(double x, double sign) {
    const double square = x * x, rest = ::fma(x, x, -square);
    return ::exp(sign * square) * (1.0 + sign * rest);
}

/// The `x` with `erfc(x) == q`, for `q` between 0 and a half: Halley's method, from the first term
/// of the asymptotic series on.
inline double tail_of_erfcinv(double q) {
    const double first = ::sqrt(-::log(q));
    double x = ::sqrt(-::log(q * sqrt_of_pi * first));
    for (int round = 0; round < 4; ++round) {
        const double step = (::erfc(x) - q) / (two_by_sqrt_of_pi * exp_of_square(x, -1));
        x += step / (1.0 - x * step);
    }
    return x;
}

/// The `x` with `erf(x) == y`, for `y` between -0.5 and 0.5.
inline double middle_of_erfinv(double y) {
    double x = y * (sqrt_of_pi / 2) * (1.0 + 0.2617993877991494 * y * y);
    for (int round = 0; round < 3; ++round) {
        const double step = (::erf(x) - y) / (two_by_sqrt_of_pi * exp_of_square(x, -1));
        x -= step / (1.0 + x * step);
    }
    return x;
}

/// A modified Bessel function of the first kind, of order 0 or 1.
inline double bessel_i(int order, double x) {
    const double at = ::fabs(x), sign = order == 1 && x < 0 ? -1.0 : 1.0;
    double sum = 1.0, term = 1.0;
    if (x != x) return x;
    if (at <= 30.0) {
        for (int k = 1; term > sum * 1e-17; ++k) sum += term *= at * at / (4.0 * k * (k + order));
        return order == 1 ? x / 2 * sum : sum;
    }
    for (int k = 1; ::fabs(term) > 1e-17 && k < 60; ++k) {
        const double odd = 2 * k - 1;
        sum += term *= (odd * odd - 4 * order) / (8.0 * k * at);
    }
    if (at == infinity) return sign * at;
    const double half = ::exp(at / 2);
    return sign * (half / ::sqrt(6.283185307179586477 * at) * sum) * half;
}

} // namespace host
} // namespace resident

// Templates, so that a source may have functions of its own of these names, as with NVRTC.
#define RESIDENT_OF_CUDA template <int = 0> inline

RESIDENT_OF_CUDA double erfcinv(double y) {
    using namespace resident::host;
    if (!(y >= 0 && y <= 2)) return not_a_number;
    if (y == 0 || y == 2) return y == 0 ? infinity : -infinity;
    if (y >= 0.5 && y <= 1.5) return middle_of_erfinv(1.0 - y);
    return y < 1 ? tail_of_erfcinv(y) : -tail_of_erfcinv(2.0 - y);
}
RESIDENT_OF_CUDA double erfinv(double y) {
    using namespace resident::host;
    const double size = ::fabs(y);
    if (size <= 0.5) return y == 0 ? y : middle_of_erfinv(y);
    return y < 0 ? -erfcinv(1.0 - size) : erfcinv(1.0 - size);
}
RESIDENT_OF_CUDA double erfcx(double x) {
    using namespace resident::host;
    if (x < 25) return ::erfc(x) * (x < -27 ? infinity : exp_of_square(x, 1));
    double sum = 1.0, term = 1.0;
    for (int k = 1; k < 9; ++k) sum += term *= (1.0 - 2.0 * k) / (2.0 * x * x);
    return sum / (x * resident::host::sqrt_of_pi);
}
RESIDENT_OF_CUDA double normcdf(double x) {
    // In two parts, since a rounded quotient by the root of 2 is far off in the tail.
    const double part = x * -0.70710678118654752440;
    const double rest = ::fma(x, -0.70710678118654752440, -part) + x * 4.8336466567264567e-17;
    if (!(part > 0.5 && part < 27)) return 0.5 * ::erfc(part);
    return 0.5 * ::erfc(part) * (1.0 - rest * (2 * part + 1 / part));
}
RESIDENT_OF_CUDA double normcdfinv(double y) {
    return 0.0 - 1.4142135623730950488 * erfcinv(2.0 * y);
}
RESIDENT_OF_CUDA double cyl_bessel_i0(double x) { return resident::host::bessel_i(0, x); }
RESIDENT_OF_CUDA double cyl_bessel_i1(double x) { return resident::host::bessel_i(1, x); }

#define RESIDENT_AS_DOUBLE(name)                                                                  \
    RESIDENT_OF_CUDA float name(float x) {                                                        \
        return static_cast<float>(name(static_cast<double>(x)));                                  \
    }                                                                                             \
    RESIDENT_OF_CUDA float name##f(float x) { return name(x); }
RESIDENT_AS_DOUBLE(erfinv)
RESIDENT_AS_DOUBLE(erfcinv)
RESIDENT_AS_DOUBLE(erfcx)
RESIDENT_AS_DOUBLE(normcdf)
RESIDENT_AS_DOUBLE(normcdfinv)
RESIDENT_AS_DOUBLE(cyl_bessel_i0)
RESIDENT_AS_DOUBLE(cyl_bessel_i1)
#undef RESIDENT_AS_DOUBLE

// Lengths of vectors, and what they are divided into 1.

RESIDENT_OF_CUDA double norm(int count, const double *x) {
    double largest = 0, sum = 0;
    for (int at = 0; at < count; ++at) largest = ::fmax(largest, ::fabs(x[at]));
    if (::isinf(largest)) return largest;
    const double unit = largest == 0 ? 1 : largest;
    for (int at = 0; at < count; ++at) sum += x[at] / unit * (x[at] / unit);
    return unit * ::sqrt(sum);
}
RESIDENT_OF_CUDA float normf(int count, const float *x) {
    double sum = 0;
    for (int k = 0; k < count; ++k) sum += static_cast<double>(x[k]) * static_cast<double>(x[k]);
    return static_cast<float>(::sqrt(sum));
}
RESIDENT_OF_CUDA double rnorm(int count, const double *x) { return 1.0 / norm(count, x); }
RESIDENT_OF_CUDA float rnormf(int count, const float *x) { return 1.0f / normf(count, x); }
#define RESIDENT_NORMS(T, suffix)                                                                 \
    RESIDENT_OF_CUDA T norm4d##suffix(T x, T y, T z, T w) {                                       \
        const T all[] = {x, y, z, w};                                                             \
        return norm##suffix(4, all);                                                              \
    }                                                                                             \
    RESIDENT_OF_CUDA T rnorm4d##suffix(T x, T y, T z, T w) {                                      \
        return 1 / norm4d##suffix(x, y, z, w);                                                    \
    }                                                                                             \
    RESIDENT_OF_CUDA T rnorm3d##suffix(T x, T y, T z) { return 1 / norm3d##suffix(x, y, z); }
RESIDENT_NORMS(double, )
RESIDENT_NORMS(float, f)
#undef RESIDENT_NORMS

#define RESIDENT_SMALLER(T, name, order)                                                          \
    RESIDENT_OF_CUDA T name(T x, T y) { return y order x ? y : x; }
RESIDENT_SMALLER(unsigned int, umin, <)
RESIDENT_SMALLER(unsigned int, umax, >)
RESIDENT_SMALLER(long long, llmin, <)
RESIDENT_SMALLER(long long, llmax, >)
RESIDENT_SMALLER(unsigned long long, ullmin, <)
RESIDENT_SMALLER(unsigned long long, ullmax, >)
#undef RESIDENT_SMALLER

/// The place of a set bit: the `offset`th from `base` on upwards, or downwards.
RESIDENT_OF_CUDA unsigned int __fns(unsigned int mask, unsigned int base, int offset) {
    int left = offset < 0 ? -offset : offset;
    for (int at = static_cast<int>(base); at >= 0 && at < 32; at += offset < 0 ? -1 : 1) {
        if (mask >> at & 1 && --left <= 0) return static_cast<unsigned int>(at);
        if (offset == 0) break;
    }
    return 0xffffffffu;
}
RESIDENT_OF_CUDA unsigned int __funnelshift_lc(unsigned int low, unsigned int high,
                                               unsigned int by) {
    return by >= 32 ? low : __funnelshift_l(low, high, by);
}
RESIDENT_OF_CUDA unsigned int __funnelshift_rc(unsigned int low, unsigned int high,
                                               unsigned int by) {
    return by >= 32 ? high : __funnelshift_r(low, high, by);
}
/// Counters that a profiler reads.
#define __prof_trigger(counter) static_cast<void>(counter)
#undef RESIDENT_OF_CUDA
