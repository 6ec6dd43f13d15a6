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

/// What is shifted by the number that is assigned to it: a field that has a number of bits.
#define RESIDENT_SHIFT(name, function)                                                            \
    template <typename T> struct name##_field {                                                   \
        T number;                                                                                 \
        template <typename U, when_plain<U> = 0, typename = shift_of<U>>                          \
        RESIDENT_VALUE T operator=(U count) const {                                               \
            return function(number, static_cast<unsigned int>(count));                            \
        }                                                                                         \
    };                                                                                            \
    template <typename T, when_plain<T> = 0, typename R = shift_of<T>>                            \
    RESIDENT_VALUE name##_field<R> name##_of(T number) {                                          \
        return {number};                                                                          \
    }
RESIDENT_SHIFT(left, left)
RESIDENT_SHIFT(right, right)
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

#if defined(__x86_64__) && !defined(__clang__)
/// The bits of a float, so that compilers do not conclude from an integer what the float is.
RESIDENT_VALUE int bits_of(float x) {
    int bits = 0;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

/// What a float becomes that x86's conversion to `int` makes negative. It makes the lowest number of
/// what does not fit. Of the result, so many bytes matter.
template <size_t bytes> RESIDENT_VALUE unsigned int unsigned_of_rest(float x) {
    constexpr int infinity = 0x7f800000, too_large = 0x4f800000;
    const int bits = bits_of(x);
    if (bits < 0 || bits > infinity) return 0;
    if (bits >= too_large) return 0xffffffffu;
    // From 2^31 on, neighbours are 256 apart.
    return bytes == 1 ? 0 : static_cast<unsigned int>(static_cast<int>(x - 0x1p31f)) + (1u << 31);
}

/// The same by x86's conversions, which make the lowest number of what does not fit. So does GCC at
/// run time, but not of constants; and it takes it for granted that no positive float becomes a
/// negative number, so what is too large is seen by the float. Of the result, so many bytes matter.
template <typename Integer, size_t bytes, typename F>
RESIDENT_VALUE typename Integer::type converted(F x) {
    typedef typename Integer::type I;
    constexpr F high = static_cast<F>(Integer::high);
    if (__builtin_constant_p(x)) return truncated<Integer>(x);
    if (Integer::least != 0) {
        if (bytes < 4) return x >= high ? static_cast<I>(-1) : static_cast<I>(x);
        return x < high ? static_cast<I>(x) : x > 0 ? Integer::most : of_nan<I, F>();
    }
    if (sizeof(F) != 4 || sizeof(I) != 4) return truncated<Integer>(x);
#ifdef __AVX512F__
    // Its conversion makes the largest number of what does not fit.
    return static_cast<I>(x > 0 ? x : 0);
#else
    const int number = static_cast<int>(x);
    if (__builtin_expect(number >= 0, 1)) return static_cast<I>(number);
    return static_cast<I>(unsigned_of_rest<bytes>(x));
#endif
}
#else
template <typename Integer, size_t bytes, typename F>
RESIDENT_VALUE typename Integer::type converted(F x) {
    return truncated<Integer>(x);
}
#endif

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

template <typename T> struct is_integer<const T> : is_integer<T> {};

/// The integer that an enumeration is. One without a type of its own is an `int` here.
template <typename T, typename = decltype(T{0})> constexpr bool has_own_type(int) { return true; }
template <typename T> constexpr bool has_own_type(...) { return false; }
template <typename T, bool = __is_enum(T)> struct integer_of { typedef T type; };
template <typename T, bool = has_own_type<T>(0)> struct integer_of_enumeration {
    typedef int type;
};
template <typename T> struct integer_of_enumeration<T, true> {
    typedef __underlying_type(T) type;
};
template <typename T> struct integer_of<T, true> : integer_of_enumeration<T> {};

template <typename T> struct is_reference { static constexpr bool value = false; };
template <typename T> struct is_reference<T &> { static constexpr bool value = true; };
template <typename T> struct is_reference<T &&> { static constexpr bool value = true; };

template <typename To, bool saturates> struct conversion {
    template <typename From> static RESIDENT_VALUE To of(From x) { return (To)x; }
};
template <typename To> struct conversion<To, true> {
    template <typename From> static RESIDENT_VALUE To of(From x) {
        typedef typename integer_of<To>::type I;
        typedef integer<(static_cast<I>(-1) < static_cast<I>(0)), sizeof(I) == 8> Integer;
        return static_cast<To>(static_cast<I>(converted<Integer, sizeof(I)>(x)));
    }
};
template <typename To> using when_value = typename when<!is_reference<To>::value>::type;

/// `(To)x`.
template <typename To, typename From, when_plain<From> = 0, when_value<To> = 0>
RESIDENT_VALUE To cast(From x) {
    typedef typename integer_of<To>::type I;
    return conversion<To, is_float<From>::value && is_integer<I>::value>::of(x);
}

/// The number that a record becomes by itself, if it is a float: of several numbers, and of one
/// that is no float, there is none.
float float_of(float);
double float_of(double);
#define RESIDENT_NO_FLOAT(T) void float_of(T);
RESIDENT_NO_FLOAT(bool) RESIDENT_NO_FLOAT(char) RESIDENT_NO_FLOAT(signed char)
RESIDENT_NO_FLOAT(unsigned char) RESIDENT_NO_FLOAT(short) RESIDENT_NO_FLOAT(unsigned short)
RESIDENT_NO_FLOAT(int) RESIDENT_NO_FLOAT(unsigned int) RESIDENT_NO_FLOAT(long)
RESIDENT_NO_FLOAT(unsigned long) RESIDENT_NO_FLOAT(long long)
RESIDENT_NO_FLOAT(unsigned long long)
#undef RESIDENT_NO_FLOAT
template <typename T> T &&some();
template <typename From> using float_in = decltype(float_of(some<From>()));
template <typename From> using when_float_in = typename when<is_float<float_in<From>>::value>::type;

template <typename To, typename From, when_float_in<From> = 0,
          typename when<is_integer<typename integer_of<To>::type>::value>::type = 0>
RESIDENT_VALUE To cast_record(From &&x, int) {
    return cast<To>(static_cast<float_in<From>>(static_cast<From &&>(x)));
}
template <typename To, typename From> RESIDENT_VALUE To cast_record(From &&x, ...) {
    return (To) static_cast<From &&>(x);
}
template <typename To, typename From, when_record<From> = 0> RESIDENT_VALUE To cast(From &&x) {
    return cast_record<To, From>(static_cast<From &&>(x), 0);
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
template <typename From, when_float_in<From> = 0>
RESIDENT_VALUE float_number<float_in<From>> number_of_record(From &&x, int) {
    return {static_cast<float_in<From>>(static_cast<From &&>(x))};
}
template <typename From> RESIDENT_VALUE From &&number_of_record(From &&x, ...) {
    return static_cast<From &&>(x);
}
template <typename From, when_record<From> = 0> RESIDENT_VALUE decltype(auto) number(From &&x) {
    return number_of_record<From>(static_cast<From &&>(x), 0);
}

#undef RESIDENT_VALUE

} // namespace gpu
} // namespace resident

using resident::gpu::operator<<;
using resident::gpu::operator>>;
using resident::gpu::operator<<=;
using resident::gpu::operator>>=;
static constexpr resident::gpu::shift_tag resident_shift = {};
