// CUDA's functions of integers and bits, and its conversions.

#ifndef RESIDENT_INTEGERS_HPP
#define RESIDENT_INTEGERS_HPP

// Integers and bits.

inline int __popc(unsigned int x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned int>(x)); }
inline int __clzll(long long x) {
    return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned long long __brevll(unsigned long long x) {
    unsigned long long result = 0;
    for (int bit = 0; bit < 64; ++bit) result |= (x >> bit & 1) << (63 - bit);
    return result;
}
inline unsigned int __brev(unsigned int x) { return static_cast<unsigned int>(__brevll(x) >> 32); }
inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector) {
    unsigned long long both = static_cast<unsigned long long>(y) << 32 | x;
    unsigned int result = 0;
    for (int at = 0; at < 4; ++at) {
        unsigned int nibble = selector >> 4 * at & 0xf;
        unsigned int byte = static_cast<unsigned int>(both >> 8 * (nibble & 7)) & 0xff;
        result |= byte << 8 * at;
    }
    return result;
}
inline unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int by) {
    unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
    return static_cast<unsigned int>(both << (by & 31) >> 32);
}
inline unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int by) {
    unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
    return static_cast<unsigned int>(both >> (by & 31));
}
inline int __mul24(int x, int y) {
    return static_cast<int>(static_cast<unsigned int>(x << 8 >> 8) *
                            static_cast<unsigned int>(y << 8 >> 8));
}
inline unsigned int __umul24(unsigned int x, unsigned int y) {
    return (x & 0xffffff) * (y & 0xffffff);
}
inline int __mulhi(int x, int y) { return static_cast<int>(static_cast<long long>(x) * y >> 32); }
inline unsigned int __umulhi(unsigned int x, unsigned int y) {
    return static_cast<unsigned int>(static_cast<unsigned long long>(x) * y >> 32);
}
inline long long __mul64hi(long long x, long long y) {
    return static_cast<long long>(static_cast<__int128>(x) * y >> 64);
}
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
inline unsigned int __sad(int x, int y, unsigned int z) {
    return z + (x > y ? static_cast<unsigned int>(x) - static_cast<unsigned int>(y)
                      : static_cast<unsigned int>(y) - static_cast<unsigned int>(x));
}
inline unsigned int __usad(unsigned int x, unsigned int y, unsigned int z) {
    return z + (x > y ? x - y : y - x);
}
inline int __hadd(int x, int y) {
    return static_cast<int>((static_cast<long long>(x) + y) >> 1);
}
inline int __rhadd(int x, int y) {
    return static_cast<int>((static_cast<long long>(x) + y + 1) >> 1);
}
inline unsigned int __uhadd(unsigned int x, unsigned int y) {
    return static_cast<unsigned int>((static_cast<unsigned long long>(x) + y) >> 1);
}
inline unsigned int __urhadd(unsigned int x, unsigned int y) {
    return static_cast<unsigned int>((static_cast<unsigned long long>(x) + y + 1) >> 1);
}

// Conversions. A value that does not fit becomes the nearest one. Not-a-number becomes 0, or the
// highest bit if one of the two types has 64 bits: PTX says so.

namespace resident {
namespace host {

template <typename To, typename From> inline To saturated(From from) {
    constexpr bool has_64_bits = sizeof(From) == 8 || sizeof(To) == 8;
    if (from != from) return has_64_bits ? static_cast<To>(To(1) << (8 * sizeof(To) - 1)) : To(0);
    if (from <= static_cast<From>(limits<To>::least))
        return limits<To>::least;
    if (from >= static_cast<From>(limits<To>::most))
        return limits<To>::most;
    return static_cast<To>(from);
}

} // namespace host
} // namespace resident

#define RESIDENT_CONVERSIONS(name, From, To)                                                      \
    inline To name##_rn(From x) { return resident::host::saturated<To>(nearbyint(x)); }      \
    inline To name##_rz(From x) { return resident::host::saturated<To>(trunc(x)); }          \
    inline To name##_rd(From x) { return resident::host::saturated<To>(floor(x)); }          \
    inline To name##_ru(From x) { return resident::host::saturated<To>(ceil(x)); }
RESIDENT_CONVERSIONS(__float2int, float, int)
RESIDENT_CONVERSIONS(__float2uint, float, unsigned int)
RESIDENT_CONVERSIONS(__float2ll, float, long long)
RESIDENT_CONVERSIONS(__float2ull, float, unsigned long long)
RESIDENT_CONVERSIONS(__double2int, double, int)
RESIDENT_CONVERSIONS(__double2uint, double, unsigned int)
RESIDENT_CONVERSIONS(__double2ll, double, long long)
RESIDENT_CONVERSIONS(__double2ull, double, unsigned long long)
#undef RESIDENT_CONVERSIONS
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned int x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned int x) { return x; }
inline double __ll2double_rn(long long x) { return static_cast<double>(x); }
inline double __ull2double_rn(unsigned long long x) { return static_cast<double>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
inline int __float_as_int(float x) { return resident::host::bits<int>(x); }
inline unsigned int __float_as_uint(float x) { return resident::host::bits<unsigned int>(x); }
inline float __int_as_float(int x) { return resident::host::bits<float>(x); }
inline float __uint_as_float(unsigned int x) { return resident::host::bits<float>(x); }
inline long long __double_as_longlong(double x) { return resident::host::bits<long long>(x); }
inline double __longlong_as_double(long long x) { return resident::host::bits<double>(x); }
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
    return __longlong_as_double(static_cast<long long>(high) << 32 |
                                static_cast<unsigned int>(low));
}

#endif // RESIDENT_INTEGERS_HPP
