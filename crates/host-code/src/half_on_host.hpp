// What `__half` and `__nv_bfloat16` share in CUDA C that is compiled for the host. `cuda_fp16.h`
// and `cuda_bf16.h` define one of them each. As on a GPU, each operation is rounded once, to
// nearest even. Sums, products, quotients and roots in `float` have more than twice as many digits,
// so that rounding them again gives the same numbers. Not-a-number becomes 0x7fff.

#ifndef RESIDENT_HALF_ON_HOST_HPP
#define RESIDENT_HALF_ON_HOST_HPP

namespace resident {
namespace host {

enum class rounding { nearest, zero, down, up };

/// A format of 16 bits: a sign, an exponent, and this many bits of the fraction.
template <int fraction_bits, int bias> struct small_float {
    static constexpr int exponent_min = 1 - bias;
    static constexpr unsigned short infinity = (2 * bias + 1) << fraction_bits;

    template <rounding mode> static unsigned short from(double value) {
        const unsigned long long word = bits<unsigned long long>(value);
        const bool is_negative = word >> 63;
        const unsigned short sign = static_cast<unsigned short>(is_negative << 15);
        const unsigned long long magnitude = word << 1 >> 1;
        if (magnitude > 0x7ffull << 52) return 0x7fff;
        if (magnitude == 0x7ffull << 52) return sign | infinity;
        const bool goes_up = mode == (is_negative ? rounding::down : rounding::up);
        const int exponent = static_cast<int>(magnitude >> 52) - 1023;
        if (exponent > bias)
            return sign | (mode == rounding::nearest || goes_up ? infinity : infinity - 1);
        const bool is_normal = exponent >= exponent_min;
        const int all = 52 - fraction_bits + (is_normal ? 0 : exponent_min - exponent);
        const int dropped = all < 63 ? all : 63;
        const unsigned long long fraction = magnitude & ((1ull << 52) - 1);
        const unsigned long long digits = fraction | (magnitude >> 52 ? 1ull << 52 : 0);
        const unsigned long long kept = digits >> dropped, rest = digits - (kept << dropped);
        const unsigned long long middle = 1ull << (dropped - 1);
        const bool is_raised = mode == rounding::nearest
                                   ? rest > middle || (rest == middle && (kept & 1))
                                   : goes_up && rest;
        // A carry goes on into the exponent, up to infinity.
        const int start = is_normal ? (exponent + bias - 1) << fraction_bits : 0;
        return sign | static_cast<unsigned short>(start + static_cast<int>(kept) + is_raised);
    }

    static float to(unsigned short word) {
        const unsigned int sign = static_cast<unsigned int>(word & 0x8000) << 16;
        const unsigned int magnitude = word & 0x7fff;
        if (fraction_bits == 7) return bits<float>(static_cast<unsigned int>(word) << 16);
        if (magnitude >= infinity)
            return bits<float>(sign | 0x7f800000 | magnitude << (23 - fraction_bits));
        if (magnitude >> fraction_bits == 0) {
            const float value = static_cast<float>(magnitude) * 0x1p-24f;
            return sign ? -value : value;
        }
        const unsigned int rebias = static_cast<unsigned int>(127 - bias) << 23;
        return bits<float>(sign | ((magnitude << (23 - fraction_bits)) + rebias));
    }
};

/// The sum of two values as a `double` whose last digit tells whether others were dropped, so that
/// rounding it again gives what rounding the exact sum gives.
inline double sum_to_odd(double a, double b) {
    const double sum = a + b, of_b = sum - a;
    const double error = (a - (sum - of_b)) + (b - of_b);
    unsigned long long word = bits<unsigned long long>(sum);
    if (error == error && error != 0 && !(word & 1)) word += (error > 0) == (sum > 0) ? 1 : -1;
    return bits<double>(word);
}

/// An integer as a `double`, to be rounded again.
inline double integer_to_odd(long long x) {
    return sum_to_odd(static_cast<double>(x >> 32) * 0x1p32, static_cast<double>(x & 0xffffffff));
}
inline double integer_to_odd(unsigned long long x) {
    return sum_to_odd(static_cast<double>(x >> 32) * 0x1p32, static_cast<double>(x & 0xffffffff));
}
inline double integer_to_odd(int x) { return x; }
inline double integer_to_odd(unsigned int x) { return x; }
inline double integer_to_odd(short x) { return x; }
inline double integer_to_odd(unsigned short x) { return x; }
inline double integer_to_odd(signed char x) { return x; }
inline double integer_to_odd(unsigned char x) { return x; }
inline double integer_to_odd(char x) { return x; }
inline double integer_to_odd(bool x) { return x; }
inline double integer_to_odd(long x) { return integer_to_odd(static_cast<long long>(x)); }
inline double integer_to_odd(unsigned long x) {
    return integer_to_odd(static_cast<unsigned long long>(x));
}
inline double integer_to_odd(double x) { return x; }
inline double integer_to_odd(float x) { return x; }

} // namespace host
} // namespace resident

// The types. They convert to and from numbers without a cast, as CUDA's.

#define RESIDENT_TO_INTEGER(type)                                                                 \
    operator type() const { return resident::host::saturated<type>(truncf(float(*this))); }
#define RESIDENT_STRUCTS(type, pair, format)                                                      \
    struct type##_raw { unsigned short x; };                                                      \
    struct __attribute__((aligned(2))) type {                                                     \
        unsigned short __x;                                                                       \
        type() = default;                                                                         \
        type(const type##_raw &raw) : __x(raw.x) {}                                               \
        template <typename From,                                                                  \
                  typename = resident::host::enable_if_t<resident::host::is_number<From>>>       \
        type(From x)                                                                              \
            : __x(format::from<resident::host::rounding::nearest>(                                \
                  resident::host::integer_to_odd(x))) {}                                          \
        template <resident::host::rounding mode> static type rounded(double x) {                  \
            return type##_raw{format::from<mode>(x)};                                             \
        }                                                                                         \
        operator type##_raw() const { return {__x}; }                                             \
        operator float() const { return format::to(__x); }                                        \
        operator bool() const { return (__x & 0x7fff) != 0; }                                     \
        RESIDENT_TO_INTEGER(signed char)                                                          \
        RESIDENT_TO_INTEGER(unsigned char)                                                        \
        RESIDENT_TO_INTEGER(char)                                                                 \
        RESIDENT_TO_INTEGER(short)                                                                \
        RESIDENT_TO_INTEGER(unsigned short)                                                       \
        RESIDENT_TO_INTEGER(int)                                                                  \
        RESIDENT_TO_INTEGER(unsigned int)                                                         \
        RESIDENT_TO_INTEGER(long)                                                                 \
        RESIDENT_TO_INTEGER(unsigned long)                                                        \
        RESIDENT_TO_INTEGER(long long)                                                            \
        RESIDENT_TO_INTEGER(unsigned long long)                                                   \
    };                                                                                            \
    struct pair##_raw { unsigned short x, y; };                                                   \
    struct __attribute__((aligned(4))) pair {                                                     \
        type x, y;                                                                                \
        pair() = default;                                                                         \
        pair(const type &x, const type &y) : x(x), y(y) {}                                        \
        pair(const pair##_raw &raw) : x(type##_raw{raw.x}), y(type##_raw{raw.y}) {}               \
        operator pair##_raw() const { return {x.__x, y.__x}; }                                    \
    };

// Functions whose names have the type.

#define RESIDENT_INTEGER(type, name, integer, word)                                               \
    inline integer __##name##2##word##_rn(type x) {                                               \
        return resident::host::saturated<integer>(nearbyintf(float(x)));                          \
    }                                                                                             \
    inline integer __##name##2##word##_rz(type x) {                                               \
        return resident::host::saturated<integer>(truncf(float(x)));                              \
    }                                                                                             \
    inline integer __##name##2##word##_rd(type x) {                                               \
        return resident::host::saturated<integer>(floorf(float(x)));                              \
    }                                                                                             \
    inline integer __##name##2##word##_ru(type x) {                                               \
        return resident::host::saturated<integer>(ceilf(float(x)));                               \
    }                                                                                             \
    RESIDENT_ROUNDED(type, __##word##2##name, integer, resident::host::integer_to_odd(x))
#define RESIDENT_ROUNDED(type, name, from, value)                                                 \
    inline type name##_rn(from x) {                                                               \
        return type::rounded<resident::host::rounding::nearest>(value);                           \
    }                                                                                             \
    inline type name##_rz(from x) {                                                               \
        return type::rounded<resident::host::rounding::zero>(value);                              \
    }                                                                                             \
    inline type name##_rd(from x) {                                                               \
        return type::rounded<resident::host::rounding::down>(value);                              \
    }                                                                                             \
    inline type name##_ru(from x) { return type::rounded<resident::host::rounding::up>(value); }
#define RESIDENT_NAMED(type, pair, name)                                                          \
    RESIDENT_ROUNDED(type, __float2##name, float, x)                                              \
    inline type __float2##name(float x) { return x; }                                             \
    inline type __double2##name(double x) { return x; }                                           \
    inline float __##name##2float(type x) { return x; }                                           \
    inline signed char __##name##2char_rz(type x) { return x; }                                   \
    inline unsigned char __##name##2uchar_rz(type x) { return x; }                                \
    RESIDENT_INTEGER(type, name, short, short)                                                    \
    RESIDENT_INTEGER(type, name, unsigned short, ushort)                                          \
    RESIDENT_INTEGER(type, name, int, int)                                                        \
    RESIDENT_INTEGER(type, name, unsigned int, uint)                                              \
    RESIDENT_INTEGER(type, name, long long, ll)                                                   \
    RESIDENT_INTEGER(type, name, unsigned long long, ull)                                         \
    inline short __##name##_as_short(type x) { return static_cast<short>(x.__x); }                \
    inline unsigned short __##name##_as_ushort(type x) { return x.__x; }                          \
    inline type __short_as_##name(short x) {                                                      \
        return type##_raw{static_cast<unsigned short>(x)};                                        \
    }                                                                                             \
    inline type __ushort_as_##name(unsigned short x) { return type##_raw{x}; }                    \
    inline pair make_##name##2(type x, type y) { return {x, y}; }                                 \
    inline pair __halves2##name##2(type x, type y) { return {x, y}; }                             \
    inline pair __##name##2##name##2(type x) { return {x, x}; }                                   \
    inline pair __float2##name##2_rn(float x) { return {x, x}; }                                  \
    inline pair __floats2##name##2_rn(float x, float y) { return {x, y}; }                        \
    inline pair __float22##name##2_rn(float2 x) { return {x.x, x.y}; }                            \
    inline float2 __##name##22float2(pair x) { return {x.x, x.y}; }                               \
    inline type __low2##name(pair x) { return x.x; }                                              \
    inline type __high2##name(pair x) { return x.y; }                                             \
    inline pair __low2##name##2(pair x) { return {x.x, x.x}; }                                    \
    inline pair __high2##name##2(pair x) { return {x.y, x.y}; }                                   \
    inline pair __lows2##name##2(pair x, pair y) { return {x.x, y.x}; }                           \
    inline pair __highs2##name##2(pair x, pair y) { return {x.y, y.y}; }

// Functions that have the same names for both types.

#define RESIDENT_UNARY(type, pair, name, expression)                                              \
    inline type h##name(type h) {                                                                 \
        const float x = h;                                                                        \
        return expression;                                                                        \
    }                                                                                             \
    inline pair h2##name(pair x) { return {h##name(x.x), h##name(x.y)}; }
#define RESIDENT_BINARY(type, pair, name, name2, sign)                                            \
    inline type name(type x, type y) { return float(x) sign float(y); }                           \
    inline type name##_rn(type x, type y) { return name(x, y); }                                  \
    inline type name##_sat(type x, type y) { return __saturatef(name(x, y)); }                    \
    inline pair name2(pair x, pair y) { return {name(x.x, y.x), name(x.y, y.y)}; }                \
    inline pair name2##_rn(pair x, pair y) { return name2(x, y); }                                \
    inline pair name2##_sat(pair x, pair y) {                                                     \
        return {name##_sat(x.x, y.x), name##_sat(x.y, y.y)};                                      \
    }                                                                                             \
    inline type operator sign(const type &x, const type &y) { return name(x, y); }                \
    inline type &operator sign##=(type &x, const type &y) { return x = name(x, y); }              \
    inline pair operator sign(const pair &x, const pair &y) { return name2(x, y); }               \
    inline pair &operator sign##=(pair &x, const pair &y) { return x = name2(x, y); }
// Comparisons with not-a-number are false, and true if they end in `u`.
#define RESIDENT_COMPARISON(type, pair, name, sign)                                               \
    inline bool __h##name(type x, type y) { return float(x) sign float(y); }                      \
    inline bool __h##name##u(type x, type y) {                                                    \
        return __hisnan(x) || __hisnan(y) || __h##name(x, y);                                     \
    }                                                                                             \
    inline bool operator sign(const type &x, const type &y) { return float(x) sign float(y); }    \
    inline bool operator sign(const pair &x, const pair &y) {                                     \
        return __hb##name##2(x, y);                                                               \
    }
#define RESIDENT_COMPARISON2(type, pair, name)                                                    \
    inline pair __h##name##2(pair x, pair y) {                                                    \
        return {float(__h##name(x.x, y.x)), float(__h##name(x.y, y.y))};                          \
    }                                                                                             \
    inline bool __hb##name##2(pair x, pair y) {                                                   \
        return __h##name(x.x, y.x) && __h##name(x.y, y.y);                                        \
    }                                                                                             \
    inline unsigned int __h##name##2_mask(pair x, pair y) {                                       \
        return (__h##name(x.x, y.x) ? 0xffffu : 0) | (__h##name(x.y, y.y) ? 0xffff0000u : 0);     \
    }
#define RESIDENT_COMPARISONS(type, pair, name, sign)                                              \
    inline bool __hb##name##2(pair x, pair y);                                                    \
    RESIDENT_COMPARISON(type, pair, name, sign)                                                   \
    RESIDENT_COMPARISON2(type, pair, name)                                                        \
    RESIDENT_COMPARISON2(type, pair, name##u)
// Of two zeros, the positive one is larger.
#define RESIDENT_EXTREME(type, pair, name, sign, of_equals)                                       \
    inline type __h##name(type x, type y) {                                                       \
        if (__hisnan(x)) return __hisnan(y) ? type(type##_raw{0x7fff}) : y;                       \
        if (__hisnan(y) || float(x) sign float(y)) return x;                                      \
        if (float(y) sign float(x)) return y;                                                     \
        return type##_raw{static_cast<unsigned short>(x.__x of_equals y.__x)};                    \
    }                                                                                             \
    inline type __h##name##_nan(type x, type y) {                                                 \
        return __hisnan(x) || __hisnan(y) ? type(type##_raw{0x7fff}) : __h##name(x, y);           \
    }                                                                                             \
    inline pair __h##name##2(pair x, pair y) {                                                    \
        return {__h##name(x.x, y.x), __h##name(x.y, y.y)};                                        \
    }                                                                                             \
    inline pair __h##name##2_nan(pair x, pair y) {                                                \
        return {__h##name##_nan(x.x, y.x), __h##name##_nan(x.y, y.y)};                            \
    }
#define RESIDENT_FUSED(type, pair, suffix, expression)                                            \
    inline type __hfma##suffix(type a, type b, type c) {                                          \
        /* The product is exact. */                                                               \
        const double product = double(float(a)) * double(float(b));                               \
        const type x = resident::host::sum_to_odd(product, double(float(c)));                     \
        return expression;                                                                        \
    }                                                                                             \
    inline pair __hfma2##suffix(pair a, pair b, pair c) {                                         \
        return {__hfma##suffix(a.x, b.x, c.x), __hfma##suffix(a.y, b.y, c.y)};                    \
    }
#define RESIDENT_COMMON(type, pair)                                                               \
    inline bool __hisnan(type x) { return float(x) != float(x); }                                 \
    inline int __hisinf(type x) {                                                                 \
        return !isinf(float(x)) ? 0 : float(x) > 0 ? 1 : -1;                                      \
    }                                                                                             \
    inline pair __hisnan2(pair x) { return {float(__hisnan(x.x)), float(__hisnan(x.y))}; }        \
    inline type __hneg(type x) {                                                                  \
        return type##_raw{static_cast<unsigned short>(x.__x ^ 0x8000)};                           \
    }                                                                                             \
    inline type __habs(type x) {                                                                  \
        return type##_raw{static_cast<unsigned short>(x.__x & 0x7fff)};                           \
    }                                                                                             \
    inline pair __hneg2(pair x) { return {__hneg(x.x), __hneg(x.y)}; }                            \
    inline pair __habs2(pair x) { return {__habs(x.x), __habs(x.y)}; }                            \
    inline float __low2float(pair x) { return x.x; }                                              \
    inline float __high2float(pair x) { return x.y; }                                             \
    inline pair __lowhigh2highlow(pair x) { return {x.y, x.x}; }                                  \
    RESIDENT_BINARY(type, pair, __hadd, __hadd2, +)                                               \
    RESIDENT_BINARY(type, pair, __hsub, __hsub2, -)                                               \
    RESIDENT_BINARY(type, pair, __hmul, __hmul2, *)                                               \
    RESIDENT_BINARY(type, pair, __hdiv, __h2div, /)                                               \
    RESIDENT_EXTREME(type, pair, min, <, |)                                                       \
    RESIDENT_EXTREME(type, pair, max, >, &)                                                       \
    RESIDENT_FUSED(type, pair, , x)                                                               \
    RESIDENT_FUSED(type, pair, _sat, __saturatef(x))                                              \
    RESIDENT_FUSED(type, pair, _relu, __hmax_nan(x, type(0.0f)))                                  \
    inline type operator+(const type &x) { return x; }                                            \
    inline type operator-(const type &x) { return __hneg(x); }                                    \
    inline type &operator++(type &x) { return x = x + type(1.0f); }                               \
    inline type &operator--(type &x) { return x = x - type(1.0f); }                               \
    inline type operator++(type &x, int) { type old = x; ++x; return old; }                       \
    inline type operator--(type &x, int) { type old = x; --x; return old; }                       \
    inline pair operator+(const pair &x) { return x; }                                            \
    inline pair operator-(const pair &x) { return __hneg2(x); }                                   \
    inline pair &operator++(pair &x) { ++x.x; ++x.y; return x; }                                  \
    inline pair &operator--(pair &x) { --x.x; --x.y; return x; }                                  \
    inline pair operator++(pair &x, int) { pair old = x; ++x; return old; }                       \
    inline pair operator--(pair &x, int) { pair old = x; --x; return old; }                       \
    RESIDENT_COMPARISONS(type, pair, eq, ==)                                                      \
    RESIDENT_COMPARISONS(type, pair, ne, !=)                                                      \
    RESIDENT_COMPARISONS(type, pair, lt, <)                                                       \
    RESIDENT_COMPARISONS(type, pair, le, <=)                                                      \
    RESIDENT_COMPARISONS(type, pair, gt, >)                                                       \
    RESIDENT_COMPARISONS(type, pair, ge, >=)                                                      \
    RESIDENT_UNARY(type, pair, sqrt, sqrtf(x))                                                    \
    RESIDENT_UNARY(type, pair, rsqrt, 1.0 / ::sqrt(static_cast<double>(x)))                       \
    RESIDENT_UNARY(type, pair, rcp, 1.0f / x)                                                     \
    RESIDENT_UNARY(type, pair, log, logf(x))                                                      \
    RESIDENT_UNARY(type, pair, log2, log2f(x))                                                    \
    RESIDENT_UNARY(type, pair, log10, log10f(x))                                                  \
    RESIDENT_UNARY(type, pair, exp, expf(x))                                                      \
    RESIDENT_UNARY(type, pair, exp2, exp2f(x))                                                    \
    RESIDENT_UNARY(type, pair, exp10, exp10f(x))                                                  \
    RESIDENT_UNARY(type, pair, sin, sinf(x))                                                      \
    RESIDENT_UNARY(type, pair, cos, cosf(x))                                                      \
    RESIDENT_UNARY(type, pair, tanh, tanhf(x))                                                    \
    RESIDENT_UNARY(type, pair, tanh_approx, tanhf(x))                                             \
    RESIDENT_UNARY(type, pair, floor, floorf(x))                                                  \
    RESIDENT_UNARY(type, pair, ceil, ceilf(x))                                                    \
    RESIDENT_UNARY(type, pair, trunc, truncf(x))                                                  \
    RESIDENT_UNARY(type, pair, rint, nearbyintf(x))

/// A type of 16 bits, the type of its pairs, and all their functions.
#define RESIDENT_SMALL_FLOAT(type, pair, name, format)                                            \
    RESIDENT_STRUCTS(type, pair, format)                                                          \
    template <> inline constexpr bool resident::host::is_shuffled<type> = true;                   \
    template <> inline constexpr bool resident::host::is_shuffled<pair> = true;                   \
    RESIDENT_NAMED(type, pair, name)                                                              \
    RESIDENT_COMMON(type, pair)

#endif // RESIDENT_HALF_ON_HOST_HPP
