// Before all other headers: what NVRTC declares of C and C++. No header of this machine stands
// before a source, so that a kernel has no names but CUDA's.

#ifndef RESIDENT_DECLARATIONS_HPP
#define RESIDENT_DECLARATIONS_HPP

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef long clock_t;
typedef __builtin_va_list va_list;
#define NULL 0
#define va_start(list, last) __builtin_va_start(list, last)
#define va_arg(list, type) __builtin_va_arg(list, type)
#define va_copy(to, from) __builtin_va_copy(to, from)
#define va_end(list) __builtin_va_end(list)

inline void *operator new(size_t, void *at) noexcept { return at; }
inline void *operator new[](size_t, void *at) noexcept { return at; }

namespace resident {
namespace host {

template <typename T> struct identity { using type = T; };
template <typename T> using identity_t = typename identity<T>::type;

template <bool is_so, typename T = void> struct enable_if {};
template <typename T> struct enable_if<true, T> { using type = T; };
template <bool is_so, typename T = void> using enable_if_t = typename enable_if<is_so, T>::type;

template <typename T> struct plain { using type = T; };
template <typename T> struct plain<T &> : plain<T> {};
template <typename T> struct plain<T &&> : plain<T> {};
template <typename T> struct plain<const T> : plain<T> {};
template <typename T> struct plain<volatile T> : plain<T> {};
template <typename T> struct plain<const volatile T> : plain<T> {};
/// Without `const`, `volatile` and references.
template <typename T> using plain_t = typename plain<T>::type;

template <typename T> struct without_reference { using type = T; };
template <typename T> struct without_reference<T &> { using type = T; };
template <typename T> struct without_reference<T &&> { using type = T; };
template <typename T> using without_reference_t = typename without_reference<T>::type;

template <typename T, typename U> inline constexpr bool is_same = false;
template <typename T> inline constexpr bool is_same<T, T> = true;

template <typename T> inline constexpr bool is_const = false;
template <typename T> inline constexpr bool is_const<const T> = true;

template <typename T, typename... Types>
inline constexpr bool is_one_of = (is_same<T, Types> || ...);
template <typename T>
inline constexpr bool is_integer =
    is_one_of<T, bool, char, signed char, unsigned char, wchar_t, char16_t, char32_t, short,
              unsigned short, int, unsigned int, long, unsigned long, long long,
              unsigned long long>;
template <typename T>
inline constexpr bool is_number = is_integer<T> || is_one_of<T, float, double, long double>;

/// Whether some are `float` and the others `double`.
template <typename... Types>
inline constexpr bool is_mixed = (is_one_of<Types, float, double> && ...) &&
                                 !(is_same<Types, float> && ...) &&
                                 !(is_same<Types, double> && ...);

/// The least and the largest value of a type of integers.
template <typename T> struct limits {
    static constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(0);
    static constexpr T least =
        is_signed ? static_cast<T>(1ull << (8 * sizeof(T) - 1)) : static_cast<T>(0);
    static constexpr T most = static_cast<T>(~static_cast<unsigned long long>(least));
};

/// The numbers from 0 on.
template <unsigned int... number> struct numbers {};
#ifdef __clang__
template <typename, unsigned int... number> using numbers_of = numbers<number...>;
template <unsigned int count>
using numbers_below = __make_integer_seq<numbers_of, unsigned int, count>;
#else
template <unsigned int count> struct first_numbers {
    using type = numbers<__integer_pack(count)...>;
};
template <unsigned int count> using numbers_below = typename first_numbers<count>::type;
#endif

} // namespace host
} // namespace resident

namespace std {

enum class align_val_t : size_t {};

template <typename T>
constexpr resident::host::without_reference_t<T> &&move(T &&value) noexcept {
    return static_cast<resident::host::without_reference_t<T> &&>(value);
}
template <typename T>
constexpr T &&forward(resident::host::without_reference_t<T> &value) noexcept {
    return static_cast<T &&>(value);
}
template <typename T>
constexpr T &&forward(resident::host::without_reference_t<T> &&value) noexcept {
    return static_cast<T &&>(value);
}

/// Compilers make it, of a pointer and a length.
template <typename T> class initializer_list {
  public:
    using value_type = T;
    using reference = const T &;
    using const_reference = const T &;
    using size_type = size_t;
    using iterator = const T *;
    using const_iterator = const T *;
    constexpr initializer_list() noexcept : first(nullptr), count(0) {}
    constexpr size_t size() const noexcept { return count; }
    constexpr const T *begin() const noexcept { return first; }
    constexpr const T *end() const noexcept { return first + count; }

  private:
    const T *first;
    size_t count;
    constexpr initializer_list(const T *first, size_t count) : first(first), count(count) {}
};
template <typename T> constexpr const T *begin(initializer_list<T> list) noexcept {
    return list.begin();
}
template <typename T> constexpr const T *end(initializer_list<T> list) noexcept {
    return list.end();
}

} // namespace std

#endif // RESIDENT_DECLARATIONS_HPP
