// Words as two or four integers: sums of products, and the functions that CUDA calls SIMD.

namespace resident {
namespace host {

template <typename Lane> inline int lane_of(unsigned int word, int index) {
    return static_cast<Lane>(word >> 8 * static_cast<int>(sizeof(Lane)) * index);
}
template <typename Lane, typename Of> inline unsigned int by_lanes(Of of) {
    constexpr int bits = 8 * sizeof(Lane);
    unsigned int result = 0;
    for (int index = 0; index < 32 / bits; ++index)
        result |= (static_cast<unsigned int>(of(index)) & ((1u << bits) - 1)) << bits * index;
    return result;
}
template <typename Lane> inline int clamped(int value) {
    constexpr int least = limits<Lane>::least, most = limits<Lane>::most;
    return value < least ? least : value > most ? most : value;
}
/// The sum of `count` products: of integers of one word, and those from `first` of another.
template <typename Lane, typename Other>
inline unsigned int dot(unsigned int x, unsigned int y, unsigned int sum, int count, int first) {
    for (int index = 0; index < count; ++index)
        sum += static_cast<unsigned int>(lane_of<Lane>(x, index) *
                                         lane_of<Other>(y, first + index));
    return sum;
}

} // namespace host
} // namespace resident

#define RESIDENT_DOT(name, count, first, Lane, Other, LaneVector, OtherVector, Result)            \
    inline Result name(Result x, Result y, Result sum) {                                          \
        return static_cast<Result>(resident::host::dot<Lane, Other>(                              \
            static_cast<unsigned int>(x), static_cast<unsigned int>(y),                           \
            static_cast<unsigned int>(sum), count, first));                                       \
    }                                                                                             \
    inline Result name(LaneVector x, OtherVector y, Result sum) {                                 \
        return name(resident::host::bits<Result>(x), resident::host::bits<Result>(y), sum);       \
    }
RESIDENT_DOT(__dp4a, 4, 0, signed char, signed char, char4, char4, int)
RESIDENT_DOT(__dp4a, 4, 0, unsigned char, unsigned char, uchar4, uchar4, unsigned int)
RESIDENT_DOT(__dp2a_lo, 2, 0, short, signed char, short2, char4, int)
RESIDENT_DOT(__dp2a_lo, 2, 0, unsigned short, unsigned char, ushort2, uchar4, unsigned int)
RESIDENT_DOT(__dp2a_hi, 2, 2, short, signed char, short2, char4, int)
RESIDENT_DOT(__dp2a_hi, 2, 2, unsigned short, unsigned char, ushort2, uchar4, unsigned int)
#undef RESIDENT_DOT

#define RESIDENT_OF_LANES(name, Type, expression)                                                 \
    inline unsigned int name(unsigned int x, unsigned int y) {                                    \
        using Lane = Type;                                                                        \
        return resident::host::by_lanes<Lane>([=](int index) {                                    \
            int a = resident::host::lane_of<Lane>(x, index);                                      \
            int b = resident::host::lane_of<Lane>(y, index);                                      \
            return expression;                                                                    \
        });                                                                                       \
    }
#define RESIDENT_SIGNED(name, expression)                                                         \
    RESIDENT_OF_LANES(name##2, short, expression)                                                 \
    RESIDENT_OF_LANES(name##4, signed char, expression)
#define RESIDENT_UNSIGNED(name, expression)                                                       \
    RESIDENT_OF_LANES(name##2, unsigned short, expression)                                        \
    RESIDENT_OF_LANES(name##4, unsigned char, expression)
#define RESIDENT_COMPARED(condition, operator)                                                    \
    RESIDENT_SIGNED(__vcmp##condition##s, a operator b ? -1 : 0)                                  \
    RESIDENT_UNSIGNED(__vcmp##condition##u, a operator b ? -1 : 0)                                \
    RESIDENT_SIGNED(__vset##condition##s, a operator b)                                           \
    RESIDENT_UNSIGNED(__vset##condition##u, a operator b)
RESIDENT_UNSIGNED(__vadd, a + b)
RESIDENT_SIGNED(__vaddss, resident::host::clamped<Lane>(a + b))
RESIDENT_UNSIGNED(__vaddus, resident::host::clamped<Lane>(a + b))
RESIDENT_UNSIGNED(__vsub, a - b)
RESIDENT_SIGNED(__vsubss, resident::host::clamped<Lane>(a - b))
RESIDENT_UNSIGNED(__vsubus, resident::host::clamped<Lane>(a - b))
RESIDENT_SIGNED(__vmaxs, a > b ? a : b)
RESIDENT_UNSIGNED(__vmaxu, a > b ? a : b)
RESIDENT_SIGNED(__vmins, a < b ? a : b)
RESIDENT_UNSIGNED(__vminu, a < b ? a : b)
RESIDENT_SIGNED(__vabsdiffs, a > b ? a - b : b - a)
RESIDENT_UNSIGNED(__vabsdiffu, a > b ? a - b : b - a)
RESIDENT_UNSIGNED(__vavgu, (a + b + 1) >> 1)
RESIDENT_UNSIGNED(__vhaddu, (a + b) >> 1)
RESIDENT_UNSIGNED(__vcmpeq, a == b ? -1 : 0)
RESIDENT_UNSIGNED(__vcmpne, a != b ? -1 : 0)
RESIDENT_UNSIGNED(__vseteq, a == b)
RESIDENT_UNSIGNED(__vsetne, a != b)
RESIDENT_COMPARED(lt, <)
RESIDENT_COMPARED(le, <=)
RESIDENT_COMPARED(gt, >)
RESIDENT_COMPARED(ge, >=)
#undef RESIDENT_COMPARED
#undef RESIDENT_UNSIGNED
#undef RESIDENT_SIGNED
#undef RESIDENT_OF_LANES
inline unsigned int __vneg2(unsigned int x) { return __vsub2(0, x); }
inline unsigned int __vneg4(unsigned int x) { return __vsub4(0, x); }
inline unsigned int __vabs2(unsigned int x) { return __vabsdiffs2(x, 0); }
inline unsigned int __vabs4(unsigned int x) { return __vabsdiffs4(x, 0); }
inline unsigned int __vsadu4(unsigned int x, unsigned int y) {
    return resident::host::dot<unsigned char, unsigned char>(__vabsdiffu4(x, y), 0x01010101u, 0, 4,
                                                             0);
}
inline unsigned int __vsadu2(unsigned int x, unsigned int y) {
    unsigned int apart = __vabsdiffu2(x, y);
    return (apart & 0xffff) + (apart >> 16);
}
