// Behind `cuda_on_host.hpp`: `printf`, whose format is compared with its values: when a source is
// compiled if it is a constant, else when it is called.

namespace resident {
namespace host {

/// What `printf` tells apart.
enum class printed : unsigned char { word, long_word, floating, text, pointer, other };

template <typename T> struct printed_as {
    static constexpr bool is_number = !__is_class(T) && !__is_union(T);
    static constexpr printed value = is_number && sizeof(T) <= 4   ? printed::word
                                     : is_number && sizeof(T) == 8 ? printed::long_word
                                                                   : printed::other;
};
template <typename T> struct printed_as<T *> {
    static constexpr printed value = printed::pointer;
};
#define RESIDENT_PRINTED(as, ...)                                                                 \
    template <> struct printed_as<__VA_ARGS__> { static constexpr printed value = printed::as; };
RESIDENT_PRINTED(floating, float)
RESIDENT_PRINTED(floating, double)
RESIDENT_PRINTED(other, long double)
RESIDENT_PRINTED(pointer, decltype(nullptr))
RESIDENT_PRINTED(text, char *)
RESIDENT_PRINTED(text, const char *)
RESIDENT_PRINTED(text, signed char *)
RESIDENT_PRINTED(text, const signed char *)
RESIDENT_PRINTED(text, unsigned char *)
RESIDENT_PRINTED(text, const unsigned char *)
#undef RESIDENT_PRINTED

/// A value, with what a format may ask of it: for `*` and for `%s`.
struct printed_value {
    printed kind;
    long long integer;
    const void *text;
};

template <typename T> constexpr printed_value as_printed(T value) {
    constexpr printed kind = printed_as<T>::value;
    if constexpr (kind == printed::word) return {kind, static_cast<long long>(value), nullptr};
    else if constexpr (kind == printed::text) return {kind, 0, value};
    else return {kind, 0, nullptr};
}

/// What is wrong with a call, and in which words.
#define RESIDENT_PRINT_FAULTS(fault)                                                              \
    fault(too_many, "`printf` has more than 32 values behind its format, and CUDA prints 32")     \
    fault(missing, "the format of `printf` has more conversions than values")                     \
    fault(wrong, "a value does not fit its conversion in the format of `printf`: `%d`, `%u`, "    \
                 "`%x` and `%c` print 32 bits, `%ld` and `%lld` 64 bits, `%f`, `%e` and `%g` a "  \
                 "`float` or `double`, `%s` a `char *`, `%p` a pointer")                          \
    fault(unknown, "the format of `printf` has a conversion that CUDA lacks, such as `%n`, "      \
                   "`%m`, `%Lf`, `%'d` or `%2$d`; a percent sign is `%%`")                        \
    fault(no_text, "the format of `printf` is a null pointer")                                    \
    fault(too_wide, "the format of `printf` asks for a width or a precision of more than "        \
                    "1048576: write less at once")

enum class print_fault {
    none,
#define RESIDENT_FAULT(name, text) name,
    RESIDENT_PRINT_FAULTS(RESIDENT_FAULT)
#undef RESIDENT_FAULT
};

constexpr bool is_any_of(char letter, const char *letters) {
    for (; *letters != 0; ++letters)
        if (*letters == letter) return true;
    return false;
}

/// Reads a format. What is found in a text that it prints is at the line of the call.
struct print_format {
    static constexpr long long number_max = 1 << 20, length_max = 16 << 20;
    const char *at;
    const printed_value *value, *end;

    /// A width or a precision.
    constexpr print_fault number(long long &number) {
        number = 0;
        if (*at == '*') {
            ++at;
            if (value == end) return print_fault::missing;
            if (value->kind != printed::word) return print_fault::wrong;
            number = (value++)->integer;
        }
        for (; *at >= '0' && *at <= '9'; ++at)
            if (number <= number_max) number = number * 10 + (*at - '0');
        const bool is_too_wide = number > number_max || number < -number_max;
        return is_too_wide ? print_fault::too_wide : print_fault::none;
    }

    /// What a letter prints, behind letters for the length; `other` if CUDA has no such conversion.
    static constexpr printed kind(char letter, bool is_short, unsigned int longs) {
        const bool is_plain = !is_short && longs == 0;
        if (is_any_of(letter, "diouxX")) return longs > 0 ? printed::long_word : printed::word;
        if (is_any_of(letter, "eEfFgGaA"))
            return is_short || longs > 1 ? printed::other : printed::floating;
        if (!is_plain || letter == 0) return printed::other;
        return letter == 'c'   ? printed::word
               : letter == 's' ? printed::text
               : letter == 'p' ? printed::pointer
                               : printed::other;
    }

    /// Behind `%`. `visit` gets each text, and how many bytes of it are printed at most.
    template <typename Visit> RESIDENT_INLINE constexpr print_fault conversion(Visit visit) {
        while (*at != 0 && is_any_of(*at, "-+ #0")) ++at;
        long long width = 0, precision = -1;
        print_fault fault = number(width);
        if (fault == print_fault::none && *at == '.') {
            ++at;
            fault = number(precision);
        }
        if (fault != print_fault::none) return fault;
        bool is_short = false;
        unsigned int longs = 0;
        for (; *at == 'h'; ++at) is_short = true;
        for (; *at == 'l'; ++at) ++longs;
        if (*at != 0 && is_any_of(*at, "jzt")) longs = (++at, 1);
        const char letter = *at;
        const printed wanted = longs > 2 ? printed::other : kind(letter, is_short, longs);
        if (wanted == printed::other) return print_fault::unknown;
        ++at;
        if (value == end) return print_fault::missing;
        const printed_value given = *value++;
        const bool is_text = given.kind == printed::text;
        if (given.kind != wanted && !(wanted == printed::pointer && is_text))
            return print_fault::wrong;
        if (letter == 's') visit(given.text, precision);
        return print_fault::none;
    }

    template <typename Visit> RESIDENT_INLINE constexpr print_fault read(Visit visit) {
        if (end - value > 32) return print_fault::too_many;
        while (*at != 0) {
            if (*at++ != '%') continue;
            if (*at == '%') {
                ++at;
                continue;
            }
            const print_fault fault = conversion(visit);
            if (fault != print_fault::none) return fault;
        }
        return print_fault::none;
    }
};

/// What is wrong with a format for values of these types, if it is a constant.
template <typename... Values> constexpr print_fault fault_of(const char *format) {
    const printed_value values[] = {{printed_as<Values>::value, 0, nullptr}...,
                                    {printed::other, 0, nullptr}};
    print_format parts = {format, values, values + sizeof...(Values)};
    const print_fault fault = parts.read([](const void *, long long) {});
    // A launch says so, since the width may be any number's.
    return fault == print_fault::too_wide ? print_fault::none : fault;
}

/// Of a format that is no constant.
[[maybe_unused]] RESIDENT_UNCHECKED __attribute__((noinline)) static void
print_fails(print_fault fault) {
    const char *text = "";
#define RESIDENT_FAULT(name, words)                                                               \
    if (fault == print_fault::name) text = words;
    RESIDENT_PRINT_FAULTS(RESIDENT_FAULT)
#undef RESIDENT_FAULT
#ifdef RESIDENT_SANITIZE
    resident_sanitizer_calls->prints_wrongly(text, RESIDENT_CODE);
#else
    char message[768];
    resident_library->format(message, sizeof message,
                             "%s (block (%u, %u, %u), thread (%u, %u, %u))", text, blockIdx.x,
                             blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
    resident_library->fail(message);
#endif
}

/// Tells the checker of a text that is read to its end, or as many bytes of it.
RESIDENT_INLINE void read_text(const void *text, long long bytes_max) {
#ifdef RESIDENT_SANITIZE
    const char *at = static_cast<const char *>(text);
    for (; at && bytes_max != 0; --bytes_max, ++at) {
        touch_range(at, 1, resident_reads);
        if (*at == 0) return;
    }
#else
    static_cast<void>(text), static_cast<void>(bytes_max);
#endif
}

template <typename... Values> inline void print_all(const char *format, Values... values) {
#ifdef RESIDENT_SANITIZE
    const char *kernel = resident_of_thread.kernel;
#else
    const char *kernel = resident_kernel_name;
#endif
    char message[1024];
    const int length = resident_library->format(message, sizeof message, format, values...);
    if (length < 0) return;
    if (static_cast<size_t>(length) < sizeof message) {
        resident_library->print(kernel, message);
    } else if (length > print_format::length_max) {
        resident_library->fail("a call of `printf` writes more than 16 MiB: write less at once");
    } else if (char *longer = static_cast<char *>(resident_library->allocate(length + 1))) {
        resident_library->format(longer, length + 1, format, values...);
        resident_library->print(kernel, longer);
        resident_library->release(longer);
    }
}

/// `constant` returns the format too, so that a constant one can be looked through here.
template <typename Constant, typename... Values>
RESIDENT_INLINE int print(Constant constant, const char *format, Values... values) {
    constexpr bool is_known = __builtin_constant_p(fault_of<Values...>(constant()));
    constexpr print_fault known =
        __builtin_constant_p(fault_of<Values...>(constant())) ? fault_of<Values...>(constant())
                                                              : print_fault::none;
#define RESIDENT_FAULT(name, text) static_assert(known != print_fault::name, text);
    RESIDENT_PRINT_FAULTS(RESIDENT_FAULT)
#undef RESIDENT_FAULT
    if (!is_known) read_text(format, -1);
    const printed_value all[] = {as_printed(values)..., {printed::other, 0, nullptr}};
    print_format parts = {format, all, all + sizeof...(values)};
    const print_fault fault = format ? parts.read(read_text) : print_fault::no_text;
    if (fault == print_fault::none) print_all(format, values...);
    else print_fails(fault);
    return static_cast<int>(sizeof...(values));
}

} // namespace host
} // namespace resident

#define RESIDENT_FIRST(first, ...) first
#define printf(...)                                                                               \
    resident::host::print([&] { return RESIDENT_FIRST(__VA_ARGS__, 0); }, __VA_ARGS__)
