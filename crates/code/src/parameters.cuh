// What a kernel's parameters are, for a comparison with the signature. `parameter_types.rs` reads
// it.

#ifndef RESIDENT_PARAMETERS_CUH
#define RESIDENT_PARAMETERS_CUH

namespace resident {
namespace parameters {

struct Type {
    /// 0: a value; 1: a pointer; 2: a view.
    unsigned char shape;
    /// Whether what a pointer or a view leads to is constant.
    unsigned char is_const;
    /// Of the value or of the elements. 0: another one; 1: floating; 2: integer; 3: void; 4: a
    /// pointer; 5: `bool`.
    unsigned char kind;
    unsigned char dimensions;
    unsigned int element_bytes;
};

template <typename T> struct Kind { static constexpr unsigned char value = 0; };
template <typename T> struct Kind<T *> { static constexpr unsigned char value = 4; };
template <typename T> struct Size { static constexpr unsigned int value = sizeof(T); };
template <> struct Size<void> { static constexpr unsigned int value = 0; };
template <typename T> struct Size<T[]> { static constexpr unsigned int value = sizeof(T); };

#define RESIDENT_KIND(number, T)                                                                  \
    template <> struct Kind<T> { static constexpr unsigned char value = number; };
RESIDENT_KIND(1, float)
RESIDENT_KIND(1, double)
RESIDENT_KIND(5, bool)
RESIDENT_KIND(2, char)
RESIDENT_KIND(2, signed char)
RESIDENT_KIND(2, unsigned char)
RESIDENT_KIND(2, short)
RESIDENT_KIND(2, unsigned short)
RESIDENT_KIND(2, int)
RESIDENT_KIND(2, unsigned int)
RESIDENT_KIND(2, long)
RESIDENT_KIND(2, unsigned long)
RESIDENT_KIND(2, long long)
RESIDENT_KIND(2, unsigned long long)
RESIDENT_KIND(3, void)
#undef RESIDENT_KIND

template <typename T> struct Plain { typedef T type; static constexpr bool is_const = false; };
template <typename T> struct Plain<const T> {
    typedef T type;
    static constexpr bool is_const = true;
};
template <typename T> struct Plain<volatile T> : Plain<T> {};
template <typename T> struct Plain<const volatile T> : Plain<const T> {};

template <typename T, unsigned char shape_number, unsigned char axes> struct Leading {
    typedef typename Plain<T>::type element;
    static constexpr Type value = {shape_number, Plain<T>::is_const, Kind<element>::value, axes,
                                   Size<element>::value};
};

template <typename T> struct Described {
    static constexpr Type value = {0, 0, Kind<T>::value, 0, sizeof(T)};
};
template <typename T> struct Described<T *> : Leading<T, 1, 0> {};
template <typename T, int N> struct Described<View<T, N>> : Leading<T, 2, N> {};

template <int count> struct Types { Type all[count + 1]; };

template <typename Kernel> struct Of;
template <typename... Parameters> struct Of<void (*)(Parameters...)> {
    static constexpr int count = sizeof...(Parameters);
    static constexpr Types<count> value = {{Described<Parameters>::value..., Type{}}};
};

} // namespace parameters
} // namespace resident

#endif // RESIDENT_PARAMETERS_CUH
