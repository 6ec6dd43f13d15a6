// Behind `declarations.hpp`: the functions of C that NVRTC declares, with its types. They are this
// machine's. Each overload for `float` is beside the one for `double`, so that
// a call with an integer is ambiguous, as NVRTC says.

// A source may define such a function again, as for NVRTC. GCC knows them by these names only
// (`-fno-builtin`), and Clang by the usual ones, but for those with other values than its own, which
// a source cannot define again then.
#define RESIDENT_OF_C extern __attribute__((gnu_inline, always_inline)) inline
#define RESIDENT_DEFINED(T, name, parameters, ...)                                                \
    extern "C" {                                                                                  \
    RESIDENT_OF_C T name parameters { return __VA_ARGS__; }                                       \
    }
#ifdef __clang__
#define RESIDENT_FUNCTION(T, name, parameters, ...) extern "C" T name parameters;
#else
#define RESIDENT_FUNCTION RESIDENT_DEFINED
#endif
#define RESIDENT_BUILTIN(T, name, parameters, arguments)                                          \
    RESIDENT_FUNCTION(T, name, parameters, __builtin_##name arguments)

// The address of an overload is that of a function of glibc's that no source names.
#if defined(RESIDENT_GLIBC) && !defined(__clang__)
#define RESIDENT_OVERLOAD(T, name, parameters, arguments, ...)                                    \
    extern T name parameters __asm__(#name "f32");                                                \
    RESIDENT_OF_C T name parameters { return __VA_ARGS__; }
#else
#define RESIDENT_OVERLOAD(T, name, parameters, arguments, ...)                                    \
    inline T name parameters { return name##f arguments; }
#endif

/// A function for `double`, the one for `float` by its own name, and by the same: with these
/// values, or with those of the compiler's functions.
#define RESIDENT_THREE(define, Double, Float, name, of_double, of_float, arguments, double_value, \
                       ...)                                                                       \
    define(Double, name, of_double, double_value)                                                 \
    define(Float, name##f, of_float, __VA_ARGS__)                                                 \
    RESIDENT_OVERLOAD(Float, name, of_float, arguments, __VA_ARGS__)
#define RESIDENT_VALUES(...) RESIDENT_THREE(RESIDENT_DEFINED, __VA_ARGS__)
#define RESIDENT_BOTH(Double, Float, name, of_double, of_float, arguments)                        \
    RESIDENT_THREE(RESIDENT_FUNCTION, Double, Float, name, of_double, of_float, arguments,        \
                   __builtin_##name arguments, __builtin_##name##f arguments)
// GCC takes such calls, which are ambiguous.
#define RESIDENT_NOT_MIXED(name)                                                                  \
    template <typename... Types,                                                                  \
              typename = resident::host::enable_if_t<resident::host::is_mixed<Types...>>>         \
    void name(Types...) = delete;
#define RESIDENT_OF_ONE(name) RESIDENT_BOTH(double, float, name, (double x), (float x), (x))
#define RESIDENT_OF_TWO(name)                                                                     \
    RESIDENT_BOTH(double, float, name, (double x, double y), (float x, float y), (x, y))
#define RESIDENT_TO(T, name) RESIDENT_BOTH(T, T, name, (double x), (float x), (x))
// The lesser of two zeros is the negative one, and beside not-a-number it is the other.
#define RESIDENT_EXTREME_OF(order, is_wanted)                                                     \
    ((x order y) | (y != y) | ((x == y) & (is_wanted(__builtin_signbit(x) != 0)))) ? x : y
#define RESIDENT_EXTREME(name, order, is_wanted)                                                  \
    RESIDENT_VALUES(double, float, name, (double x, double y), (float x, float y), (x, y),        \
                    RESIDENT_EXTREME_OF(order, is_wanted), RESIDENT_EXTREME_OF(order, is_wanted))
// What is too large becomes the largest number, and not-a-number the lowest one.
#define RESIDENT_ROUNDED_BY(most, builtin) x < 0x1p63f ? builtin(x) : x == x ? most : -most - 1
#define RESIDENT_ROUNDED(T, most, name)                                                           \
    RESIDENT_VALUES(T, T, name, (double x), (float x), (x),                                       \
                    RESIDENT_ROUNDED_BY(most, __builtin_##name),                               \
                    RESIDENT_ROUNDED_BY(most, __builtin_##name##f))
#define RESIDENT_SCALED(name, T)                                                                  \
    RESIDENT_BOTH(double, float, name, (double x, T by), (float x, T by), (x, by))
#define RESIDENT_OF_ORDER(name)                                                                   \
    RESIDENT_BOTH(double, float, name, (int n, double x), (int n, float x), (n, x))
RESIDENT_OF_ONE(acos) RESIDENT_OF_ONE(acosh) RESIDENT_OF_ONE(asin) RESIDENT_OF_ONE(asinh)
RESIDENT_OF_ONE(atan) RESIDENT_OF_ONE(atanh) RESIDENT_OF_ONE(cbrt) RESIDENT_OF_ONE(ceil)
RESIDENT_OF_ONE(cos) RESIDENT_OF_ONE(cosh) RESIDENT_OF_ONE(erf) RESIDENT_OF_ONE(erfc)
RESIDENT_OF_ONE(exp) RESIDENT_OF_ONE(exp2) RESIDENT_OF_ONE(expm1) RESIDENT_OF_ONE(fabs)
RESIDENT_OF_ONE(floor) RESIDENT_OF_ONE(j0) RESIDENT_OF_ONE(j1) RESIDENT_OF_ONE(lgamma)
RESIDENT_OF_ONE(log) RESIDENT_OF_ONE(log10) RESIDENT_OF_ONE(log1p) RESIDENT_OF_ONE(log2)
RESIDENT_OF_ONE(logb) RESIDENT_OF_ONE(nearbyint) RESIDENT_OF_ONE(rint) RESIDENT_OF_ONE(round)
RESIDENT_OF_ONE(sin) RESIDENT_OF_ONE(sinh) RESIDENT_OF_ONE(sqrt) RESIDENT_OF_ONE(tan)
RESIDENT_OF_ONE(tanh) RESIDENT_OF_ONE(tgamma) RESIDENT_OF_ONE(trunc) RESIDENT_OF_ONE(y0)
RESIDENT_OF_ONE(y1)
RESIDENT_OF_TWO(atan2) RESIDENT_OF_TWO(copysign) RESIDENT_OF_TWO(fdim) RESIDENT_OF_TWO(fmod)
RESIDENT_OF_TWO(hypot) RESIDENT_OF_TWO(nextafter) RESIDENT_OF_TWO(pow) RESIDENT_OF_TWO(remainder)
RESIDENT_EXTREME(fmax, >, !) RESIDENT_EXTREME(fmin, <, )
RESIDENT_NOT_MIXED(atan2) RESIDENT_NOT_MIXED(fdim) RESIDENT_NOT_MIXED(fmax)
RESIDENT_NOT_MIXED(fmin) RESIDENT_NOT_MIXED(fmod) RESIDENT_NOT_MIXED(hypot)
RESIDENT_NOT_MIXED(nextafter) RESIDENT_NOT_MIXED(pow) RESIDENT_NOT_MIXED(remainder)
RESIDENT_BOTH(double, float, fma, (double x, double y, double z), (float x, float y, float z),
              (x, y, z))
RESIDENT_NOT_MIXED(fma)
RESIDENT_TO(int, ilogb)
RESIDENT_ROUNDED(long, 9223372036854775807l, lrint)
RESIDENT_ROUNDED(long, 9223372036854775807l, lround)
RESIDENT_ROUNDED(long long, 9223372036854775807ll, llrint)
RESIDENT_ROUNDED(long long, 9223372036854775807ll, llround)
RESIDENT_SCALED(ldexp, int) RESIDENT_SCALED(scalbn, int) RESIDENT_SCALED(scalbln, long)
RESIDENT_OF_ORDER(jn) RESIDENT_OF_ORDER(yn)
RESIDENT_BUILTIN(double, nan, (const char *tag), (tag))
RESIDENT_BUILTIN(float, nanf, (const char *tag), (tag))
#ifdef __linux__
RESIDENT_OF_ONE(exp10)
#else
inline double exp10(double x) { return pow(10.0, x); }
inline float exp10f(float x) { return static_cast<float>(exp10(static_cast<double>(x))); }
inline float exp10(float x) { return exp10f(x); }
#endif
inline double copysign(float x, double sign) { return copysign(static_cast<double>(x), sign); }
inline double copysign(double x, float sign) { return copysign(x, static_cast<double>(sign)); }
inline float pow(float x, int y) { return powf(x, static_cast<float>(y)); }
inline double pow(double x, int y) { return pow(x, static_cast<double>(y)); }

RESIDENT_BUILTIN(int, abs, (int x), (x))
RESIDENT_BUILTIN(long, labs, (long x), (x))
RESIDENT_BUILTIN(long long, llabs, (long long x), (x))
inline long abs(long x) { return labs(x); }
inline long long abs(long long x) { return llabs(x); }
#if defined(RESIDENT_GLIBC) && !defined(__clang__)
extern float abs(float x) __asm__("fabsf32");
RESIDENT_OF_C float abs(float x) { return fabsf(x); }
#else
inline float abs(float x) { return fabsf(x); }
#endif
inline double abs(double x) { return fabs(x); }

#define RESIDENT_ASKED(name, builtin)                                                             \
    inline int name(float x) { return builtin(x) != 0; }                                          \
    inline int name(double x) { return builtin(x) != 0; }                                         \
    inline int name(long double x) { return builtin(x) != 0; }
RESIDENT_ASKED(isnan, __builtin_isnan)
RESIDENT_ASKED(isinf, __builtin_isinf)
RESIDENT_ASKED(isfinite, __builtin_isfinite)
RESIDENT_ASKED(signbit, __builtin_signbit)
#undef RESIDENT_ASKED

// Those that store their results. The library's functions are not compiled to be checked.
#define RESIDENT_OF_FLOAT __attribute__((always_inline)) inline
#define RESIDENT_STORING(T, suffix)                                                               \
    extern "C" {                                                                                  \
    RESIDENT_OF_C void sincos##suffix(T x, T *s, T *c) {                                          \
        const T sine = __builtin_sin##suffix(x), cosine = __builtin_cos##suffix(x);               \
        *s = sine;                                                                                \
        *c = cosine;                                                                              \
    }                                                                                             \
    RESIDENT_OF_C T frexp##suffix(T x, int *exponent) {                                           \
        int of_x;                                                                                 \
        const T part = __builtin_frexp##suffix(x, &of_x);                                         \
        *exponent = of_x;                                                                         \
        return part;                                                                              \
    }                                                                                             \
    RESIDENT_OF_C T modf##suffix(T x, T *whole) {                                                 \
        T of_x;                                                                                   \
        const T part = __builtin_modf##suffix(x, &of_x);                                          \
        *whole = of_x;                                                                            \
        return part;                                                                              \
    }                                                                                             \
    RESIDENT_OF_C T remquo##suffix(T x, T y, int *quotient) {                                     \
        int of_both;                                                                              \
        const T rest = __builtin_remquo##suffix(x, y, &of_both);                                  \
        *quotient = of_both;                                                                      \
        return rest;                                                                              \
    }                                                                                             \
    }
RESIDENT_STORING(double, )
RESIDENT_STORING(float, f)
RESIDENT_OF_FLOAT void sincos(float x, float *s, float *c) { sincosf(x, s, c); }
RESIDENT_OF_FLOAT float frexp(float x, int *exponent) { return frexpf(x, exponent); }
RESIDENT_OF_FLOAT float modf(float x, float *whole) { return modff(x, whole); }
RESIDENT_OF_FLOAT float remquo(float x, float y, int *quotient) { return remquof(x, y, quotient); }
#undef RESIDENT_STORING
#undef RESIDENT_OF_FLOAT
#undef RESIDENT_OF_ORDER
#undef RESIDENT_SCALED
#undef RESIDENT_TO
#undef RESIDENT_OF_TWO
#undef RESIDENT_OF_ONE
#undef RESIDENT_NOT_MIXED
#undef RESIDENT_ROUNDED
#undef RESIDENT_ROUNDED_BY
#undef RESIDENT_EXTREME
#undef RESIDENT_EXTREME_OF
#undef RESIDENT_BOTH
#undef RESIDENT_VALUES
#undef RESIDENT_THREE
#undef RESIDENT_OVERLOAD
#undef RESIDENT_BUILTIN
#undef RESIDENT_FUNCTION
#undef RESIDENT_DEFINED
#undef RESIDENT_OF_C

extern "C" void *malloc(size_t bytes);
extern "C" void free(void *memory);
// Sources call it by a macro.
extern "C" int printf(const char *format, ...);
