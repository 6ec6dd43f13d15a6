// Behind `cuda_on_host.hpp`: mathematics that C lacks, and functions of memory.

// Of two types of integers, the result has the unsigned one, as in CUDA.
#define RESIDENT_INTEGERS(name, order, signed_type, unsigned_type)                                \
    inline signed_type name(signed_type a, signed_type b) { return a order b ? a : b; }           \
    inline unsigned_type name(unsigned_type a, unsigned_type b) { return a order b ? a : b; }     \
    inline unsigned_type name(signed_type a, unsigned_type b) {                                   \
        return name(static_cast<unsigned_type>(a), b);                                            \
    }                                                                                             \
    inline unsigned_type name(unsigned_type a, signed_type b) {                                   \
        return name(a, static_cast<unsigned_type>(b));                                            \
    }
#define RESIDENT_EXTREME(name, order)                                                             \
    RESIDENT_INTEGERS(name, order, int, unsigned int)                                             \
    RESIDENT_INTEGERS(name, order, long, unsigned long)                                           \
    RESIDENT_INTEGERS(name, order, long long, unsigned long long)                                 \
    inline float name(float a, float b) { return f##name##f(a, b); }                              \
    inline double name(double a, double b) { return f##name(a, b); }                              \
    inline double name(float a, double b) { return f##name(static_cast<double>(a), b); }          \
    inline double name(double a, float b) { return f##name(a, static_cast<double>(b)); }
RESIDENT_EXTREME(min, <)
RESIDENT_EXTREME(max, >)
#undef RESIDENT_EXTREME
#undef RESIDENT_INTEGERS

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline double rcbrt(double x) { return 1.0 / cbrt(x); }
inline float rcbrt(float x) { return rcbrtf(x); }
namespace resident {
namespace host {
constexpr double pi = 3.14159265358979323846;
} // namespace host
} // namespace resident
/// Exact at multiples of one half, however large.
inline double cospi(double x) {
    double rest = fabs(fmod(x, 2.0));
    if (rest == 0.5 || rest == 1.5) return 0;
    return rest == 0 ? 1 : rest == 1 ? -1 : ::cos(resident::host::pi * rest);
}
inline double sinpi(double x) {
    double rest = fmod(x, 2.0);
    if (rest == 0 || rest == 1 || rest == -1) return copysign(0.0, x);
    if (rest == 0.5 || rest == -1.5) return 1;
    return rest == -0.5 || rest == 1.5 ? -1 : ::sin(resident::host::pi * rest);
}
inline float sinpif(float x) { return static_cast<float>(sinpi(static_cast<double>(x))); }
inline float cospif(float x) { return static_cast<float>(cospi(static_cast<double>(x))); }
inline float sinpi(float x) { return sinpif(x); }
inline float cospi(float x) { return cospif(x); }
inline void sincospif(float x, float *s, float *c) { *s = sinpif(x); *c = cospif(x); }
inline void sincospi(double x, double *s, double *c) { *s = sinpi(x); *c = cospi(x); }
inline void sincospi(float x, float *s, float *c) { sincospif(x, s, c); }
inline float normf3(float x, float y, float z) { return sqrtf(x * x + y * y + z * z); }
inline float norm3df(float x, float y, float z) { return normf3(x, y, z); }
inline double norm3d(double x, double y, double z) { return ::sqrt(x * x + y * y + z * z); }
inline float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }
inline double rhypot(double x, double y) { return 1.0 / ::hypot(x, y); }
inline float fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x != x ? 0.0f : fminf(fmaxf(x, 0.0f), 1.0f); }

// The fast functions of a GPU are less exact there; here they are the exact ones.
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline double __drcp_rn(double x) { return 1.0 / x; }
inline double __dsqrt_rn(double x) { return ::sqrt(x); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
// GCC contracts vectors of sums and differences of products in turn (`vfmaddsub`), although
// contraction is off.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define RESIDENT_KEPT(x) __asm__("" : "+x"(x))
#else
#define RESIDENT_KEPT(x)
#endif
inline float __fmul_rn(float x, float y) {
    float product = x * y;
    RESIDENT_KEPT(product);
    return product;
}
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) {
    double product = x * y;
    RESIDENT_KEPT(product);
    return product;
}
#undef RESIDENT_KEPT
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __fma_rn(double x, double y, double z) { return ::fma(x, y, z); }

// Other directions of rounding are the processor's.

namespace resident {
namespace host {

#if defined(__x86_64__)
constexpr unsigned int rounds_down = 0x2000, rounds_up = 0x4000, rounds_to_zero = 0x6000;
/// Sets the direction of rounding; returns the one before.
RESIDENT_UNCHECKED inline unsigned int set_rounding(unsigned int direction) {
    const unsigned int state = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr((state & ~rounds_to_zero) | direction);
    return state & rounds_to_zero;
}
#elif defined(__aarch64__)
constexpr unsigned int rounds_up = 1u << 22, rounds_down = 2u << 22, rounds_to_zero = 3u << 22;
RESIDENT_UNCHECKED inline unsigned int set_rounding(unsigned int direction) {
    unsigned long state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    const unsigned long changed = (state & ~static_cast<unsigned long>(rounds_to_zero)) | direction;
    __asm__ volatile("msr fpcr, %0" : : "r"(changed));
    return static_cast<unsigned int>(state) & rounds_to_zero;
}
#else
#ifdef __riscv
constexpr unsigned int rounds_to_zero = 1, rounds_down = 2, rounds_up = 3;
#else
constexpr unsigned int rounds_to_zero = 1, rounds_up = 2, rounds_down = 3;
#endif
extern "C" int resident_host_round() __asm__("fegetround");
extern "C" int resident_host_set_round(int) __asm__("fesetround");
RESIDENT_UNCHECKED inline unsigned int set_rounding(unsigned int direction) {
    const unsigned int before = static_cast<unsigned int>(resident_host_round());
    resident_host_set_round(static_cast<int>(direction));
    return before;
}
#endif

/// Keeps what follows behind what stands before: the compiler knows the value no more.
template <typename T> RESIDENT_UNCHECKED inline void pin(T &value) {
    __asm__ volatile("" : "+m"(value) : : "memory");
}

/// Computes while the processor rounds in a direction.
template <unsigned int direction, typename To, typename Operation, typename... Operands>
RESIDENT_UNCHECKED inline To rounded(Operation operation, Operands... operands) {
    const unsigned int before = set_rounding(direction);
    (pin(operands), ...);
    To result = operation(operands...);
    pin(result);
    set_rounding(before);
    return result;
}

} // namespace host
} // namespace resident

#define RESIDENT_ROUNDED_1(name, To, From, direction, value)                                      \
    inline To name(From x) {                                                                      \
        return resident::host::rounded<direction, To>(                                            \
            [](From x) { return static_cast<To>(value); }, x);                                    \
    }
#define RESIDENT_ROUNDED_2(name, T, direction, value)                                             \
    inline T name(T x, T y) {                                                                     \
        return resident::host::rounded<direction, T>([](T x, T y) -> T { return value; }, x, y);  \
    }
#define RESIDENT_ROUNDED_3(name, T, direction, value)                                             \
    inline T name(T x, T y, T z) {                                                                \
        return resident::host::rounded<direction, T>([](T x, T y, T z) -> T { return value; }, x, \
                                                     y, z);                                       \
    }
// Some compilers convert 0 by a subtraction, which is -0 where it is rounded down.
#define RESIDENT_ROUNDED_INTEGER(name, To, From, direction)                                       \
    inline To name(From x) {                                                                      \
        auto convert = [](From x) { return static_cast<To>(x); };                                 \
        return x == 0 ? To(0) : resident::host::rounded<direction, To>(convert, x);               \
    }
#define RESIDENT_ROUNDED(suffix, direction)                                                       \
    RESIDENT_ROUNDED_2(__fadd_##suffix, float, direction, x + y)                                  \
    RESIDENT_ROUNDED_2(__fsub_##suffix, float, direction, x - y)                                  \
    RESIDENT_ROUNDED_2(__fmul_##suffix, float, direction, x * y)                                  \
    RESIDENT_ROUNDED_2(__fdiv_##suffix, float, direction, x / y)                                  \
    RESIDENT_ROUNDED_1(__frcp_##suffix, float, float, direction, 1.0f / x)                        \
    RESIDENT_ROUNDED_1(__fsqrt_##suffix, float, float, direction, sqrtf(x))                       \
    RESIDENT_ROUNDED_3(__fmaf_##suffix, float, direction, fmaf(x, y, z))                          \
    RESIDENT_ROUNDED_2(__dadd_##suffix, double, direction, x + y)                                 \
    RESIDENT_ROUNDED_2(__dsub_##suffix, double, direction, x - y)                                 \
    RESIDENT_ROUNDED_2(__dmul_##suffix, double, direction, x * y)                                 \
    RESIDENT_ROUNDED_2(__ddiv_##suffix, double, direction, x / y)                                 \
    RESIDENT_ROUNDED_1(__drcp_##suffix, double, double, direction, 1.0 / x)                       \
    RESIDENT_ROUNDED_1(__dsqrt_##suffix, double, double, direction, ::sqrt(x))                    \
    RESIDENT_ROUNDED_3(__fma_##suffix, double, direction, ::fma(x, y, z))                         \
    RESIDENT_ROUNDED_1(__double2float_##suffix, float, double, direction, x)                      \
    RESIDENT_ROUNDED_INTEGER(__int2float_##suffix, float, int, direction)                         \
    RESIDENT_ROUNDED_INTEGER(__uint2float_##suffix, float, unsigned int, direction)               \
    RESIDENT_ROUNDED_INTEGER(__ll2float_##suffix, float, long long, direction)                    \
    RESIDENT_ROUNDED_INTEGER(__ull2float_##suffix, float, unsigned long long, direction)          \
    RESIDENT_ROUNDED_INTEGER(__ll2double_##suffix, double, long long, direction)                  \
    RESIDENT_ROUNDED_INTEGER(__ull2double_##suffix, double, unsigned long long, direction)
RESIDENT_ROUNDED(rd, resident::host::rounds_down)
RESIDENT_ROUNDED(ru, resident::host::rounds_up)
RESIDENT_ROUNDED(rz, resident::host::rounds_to_zero)
#undef RESIDENT_ROUNDED
#undef RESIDENT_ROUNDED_INTEGER
#undef RESIDENT_ROUNDED_1
#undef RESIDENT_ROUNDED_2
#undef RESIDENT_ROUNDED_3

RESIDENT_INLINE void *memcpy(void *to, const void *from, size_t bytes) {
#ifdef RESIDENT_SANITIZE
    // Nothing may be announced between this and the copy: then it is looked at.
    resident::host::touch_range(from, bytes, resident_reads);
    resident::host::touch_range(to, bytes, resident_writes);
    return resident_moved(to, from, bytes);
#else
    return __builtin_memcpy(to, from, bytes);
#endif
}

RESIDENT_INLINE void *memset(void *to, int value, size_t bytes) {
#ifdef RESIDENT_SANITIZE
    resident::host::touch_range(to, bytes, resident_writes);
    return resident_filled(to, value, bytes);
#else
    return __builtin_memset(to, value, bytes);
#endif
}
