// What C leaves open and a GPU does not: shifts by at least as many bits as a number has, and
// numbers that an integer cannot hold. `gpu_values` writes the names of this file into sources.

namespace resident {
namespace gpu {

#define RESIDENT_VALUE __attribute__((always_inline)) constexpr inline

template <bool> struct when {};
template <> struct when<true> { typedef int type; };

template <typename T> struct without_reference { typedef T type; };
template <typename T> struct without_reference<T &> { typedef T type; };

/// Whether it becomes a number by itself, as enumerations without a scope do.
template <typename T> constexpr bool is_promoted(decltype(+T()) *) { return true; }
template <typename T> constexpr bool is_promoted(...) { return false; }

/// Whether operators of the program may be meant.
template <typename T> struct is_record {
    typedef typename without_reference<T>::type type;
    static constexpr bool value = __is_class(type) || __is_union(type) ||
                                  (__is_enum(type) && !is_promoted<type>(nullptr));
};
template <typename T> using when_record = typename when<is_record<T>::value>::type;
template <typename T> using when_plain = typename when<!is_record<T>::value>::type;

/// The type of a shift of such a number, if there is one.
template <typename T> using shift_of = decltype(decltype(+T())() << 0);

template <size_t bytes> struct word_of { typedef unsigned int type; };
template <> struct word_of<8> { typedef unsigned long long type; };
#ifdef __SIZEOF_INT128__
template <> struct word_of<16> { __extension__ typedef unsigned __int128 type; };
#endif

/// As many bits as the number has, or more, leave none. Of a count, 32 bits are read.
template <typename T> RESIDENT_VALUE T left(T number, unsigned int count) {
    return count < 8 * sizeof(T)
               ? static_cast<T>(static_cast<typename word_of<sizeof(T)>::type>(number) << count)
               : static_cast<T>(0);
}
/// As many bits as the number has, or more, leave those of the sign.
template <typename T> RESIDENT_VALUE T right(T number, unsigned int count) {
    return static_cast<T>(-1) < static_cast<T>(0)
               ? number >> (count < 8 * sizeof(T) ? count : 8 * sizeof(T) - 1)
               : count < 8 * sizeof(T) ? number >> count : static_cast<T>(0);
}

/// The first operand of a shift, with the type of the result.
template <typename T> struct shifted { T number; };
template <typename T> struct shifted_record { T &&record; };

/// The count of `<<=` and `>>=`.
struct shift_count { unsigned int count; };
template <typename T> struct shift_record { T &&record; };

/// Stands between the operands: `a << shift << b`, and `a <<= shift = b`.
struct shift_tag {
    template <typename U, when_plain<U> = 0, typename = shift_of<U>>
    RESIDENT_VALUE shift_count operator=(U count) const {
        return {static_cast<unsigned int>(count)};
    }
    template <typename U, when_record<U> = 0>
    RESIDENT_VALUE shift_record<U> operator=(U &&count) const {
        return {static_cast<U &&>(count)};
    }
};

#define RESIDENT_SHIFT(order, assigned, function)                                                 \
    template <typename T, when_plain<T> = 0, typename R = shift_of<T>>                            \
    RESIDENT_VALUE shifted<R> operator order(T number, shift_tag) {                               \
        return {number};                                                                          \
    }                                                                                             \
    template <typename T, when_record<T> = 0>                                                     \
    RESIDENT_VALUE shifted_record<T> operator order(T &&record, shift_tag) {                      \
        return {static_cast<T &&>(record)};                                                       \
    }                                                                                             \
    template <typename T, typename U, when_plain<U> = 0, typename = shift_of<U>>                  \
    RESIDENT_VALUE T operator order(shifted<T> number, U count) {                                 \
        return function(number.number, static_cast<unsigned int>(count));                         \
    }                                                                                             \
    template <typename T, typename U, when_record<U> = 0>                                         \
    RESIDENT_VALUE auto operator order(shifted<T> number, U &&count)                              \
        -> decltype(number.number order static_cast<U &&>(count)) {                               \
        return number.number order static_cast<U &&>(count);                                      \
    }                                                                                             \
    template <typename T, typename U>                                                             \
    RESIDENT_VALUE auto operator order(shifted_record<T> record, U &&count)                       \
        -> decltype(static_cast<T &&>(record.record) order static_cast<U &&>(count)) {            \
        return static_cast<T &&>(record.record) order static_cast<U &&>(count);                   \
    }                                                                                             \
    template <typename T, when_plain<T> = 0>                                                      \
    RESIDENT_VALUE T &operator assigned(T &number, shift_count count) {                           \
        return number = static_cast<T>(number order shift_tag() order count.count), number;       \
    }                                                                                             \
    template <typename T, when_record<T> = 0>                                                     \
    RESIDENT_VALUE auto operator assigned(T &&record, shift_count count)                          \
        -> decltype(static_cast<T &&>(record) assigned count.count) {                             \
        return static_cast<T &&>(record) assigned count.count;                                    \
    }                                                                                             \
    template <typename T, typename U>                                                             \
    RESIDENT_VALUE auto operator assigned(T &&number, shift_record<U> count)                      \
        -> decltype(static_cast<T &&>(number) assigned static_cast<U &&>(count.record)) {         \
        return static_cast<T &&>(number) assigned static_cast<U &&>(count.record);                \
    }
RESIDENT_SHIFT(<<, <<=, left)
RESIDENT_SHIFT(>>, >>=, right)
#undef RESIDENT_SHIFT

/// The integers that a GPU converts to, of which narrower types keep the lowest bits; and the ends
/// of their range: the lowest number, and the first that is too large.
template <bool is_signed, bool is_wide> struct integer;
template <> struct integer<true, false> {
    typedef int type;
    static constexpr type least = -2147483647 - 1, most = 2147483647;
    static constexpr float low = -0x1p31f, high = 0x1p31f;
};
template <> struct integer<false, false> {
    typedef unsigned int type;
    static constexpr type least = 0, most = 0xffffffffu;
    static constexpr float low = 0, high = 0x1p32f;
};
template <> struct integer<true, true> {
    typedef long long type;
    static constexpr type least = -9223372036854775807ll - 1, most = 9223372036854775807ll;
    static constexpr float low = -0x1p63f, high = 0x1p63f;
};
template <> struct integer<false, true> {
    typedef unsigned long long type;
    static constexpr type least = 0, most = 0xffffffffffffffffull;
    static constexpr float low = 0, high = 0x1p64f;
};

/// What not-a-number becomes: the highest bit, if one of the two types has 64 bits.
template <typename I, typename F> RESIDENT_VALUE I of_nan() {
    return sizeof(F) == 8 || sizeof(I) == 8 ? static_cast<I>(I(1) << (8 * sizeof(I) - 1)) : I(0);
}

template <typename Integer, typename F> RESIDENT_VALUE typename Integer::type truncated(F x) {
    typedef typename Integer::type I;
    return x >= static_cast<F>(Integer::high)   ? Integer::most
           : x > static_cast<F>(Integer::low)   ? static_cast<I>(x)
           : x <= static_cast<F>(Integer::low)  ? Integer::least
                                                : of_nan<I, F>();
}

template <typename T> struct is_float { static constexpr bool value = false; };
template <> struct is_float<float> { static constexpr bool value = true; };
template <> struct is_float<double> { static constexpr bool value = true; };

template <typename T> struct is_integer { static constexpr bool value = false; };
#define RESIDENT_INTEGER_TYPE(T)                                                                  \
    template <> struct is_integer<T> { static constexpr bool value = true; };
RESIDENT_INTEGER_TYPE(char)
RESIDENT_INTEGER_TYPE(signed char)
RESIDENT_INTEGER_TYPE(unsigned char)
RESIDENT_INTEGER_TYPE(short)
RESIDENT_INTEGER_TYPE(unsigned short)
RESIDENT_INTEGER_TYPE(int)
RESIDENT_INTEGER_TYPE(unsigned int)
RESIDENT_INTEGER_TYPE(long)
RESIDENT_INTEGER_TYPE(unsigned long)
RESIDENT_INTEGER_TYPE(long long)
RESIDENT_INTEGER_TYPE(unsigned long long)
#undef RESIDENT_INTEGER_TYPE

template <typename To, bool saturates> struct conversion {
    template <typename From> static RESIDENT_VALUE To of(From x) { return (To)x; }
};
template <typename To> struct conversion<To, true> {
    template <typename From> static RESIDENT_VALUE To of(From x) {
        typedef integer<(static_cast<To>(-1) < static_cast<To>(0)), sizeof(To) == 8> Integer;
        return static_cast<To>(truncated<Integer>(x));
    }
};

/// `(To)x`.
template <typename To, typename From, when_plain<From> = 0> RESIDENT_VALUE To cast(From x) {
    return conversion<To, is_float<From>::value && is_integer<To>::value>::of(x);
}
template <typename To, typename From, when_record<From> = 0> RESIDENT_VALUE To cast(From &&x) {
    return (To) static_cast<From &&>(x);
}

/// A float that becomes another number where the text does not show it.
template <typename From> struct float_number {
    From value;
    template <typename To, typename = decltype(To(From()))>
    RESIDENT_VALUE operator To() const { return cast<To>(value); }
};
template <typename From, when_plain<From> = 0> RESIDENT_VALUE float_number<From> number(From x) {
    return {x};
}
template <typename From, when_record<From> = 0> RESIDENT_VALUE From &&number(From &&x) {
    return static_cast<From &&>(x);
}

#undef RESIDENT_VALUE

} // namespace gpu
} // namespace resident

using resident::gpu::operator<<;
using resident::gpu::operator>>;
using resident::gpu::operator<<=;
using resident::gpu::operator>>=;
static constexpr resident::gpu::shift_tag resident_shift = {};
