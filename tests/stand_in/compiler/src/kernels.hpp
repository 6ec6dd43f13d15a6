// Before each source that a stand-in compiles: a list of the kernels of the source, which
// `library.rs` of the crate `code` reads. RESIDENT_KERNEL stands behind the body of each kernel.

// So that the loader knows the kernel's symbol, and calls still go past the loader.
#undef __global__
#define __global__ __attribute__((visibility("protected")))

namespace resident {
namespace program {

enum kind : unsigned int { whole, floating, aggregate, read, written, view_read, view_written };

struct parameter {
    unsigned int len_bytes, align_bytes;
    program::kind kind;
    /// Of a pointer and of a view.
    unsigned int element_bytes;
};

struct kernel {
    /// The name of the function, or a name expression.
    const char *name;
    void (*function)();
    void (*run)(const resident_launch *, const resident_runtime *, resident_progress *,
                unsigned long long end, unsigned int first);
    const parameter *parameters;
    unsigned int count, max_threads;
    const kernel *next;
};

/// The last kernel of the list.
static const kernel *last;

template <typename T> struct element { static constexpr unsigned int len_bytes = sizeof(T); };
template <> struct element<void> { static constexpr unsigned int len_bytes = 1; };
template <> struct element<const void> { static constexpr unsigned int len_bytes = 1; };

template <typename T> struct parameter_of {
    static constexpr program::kind kind = host::is_one_of<T, float, double> ? floating
                                          : host::is_integer<T> || __is_enum(T) ? whole
                                                                                : aggregate;
    static constexpr parameter value = {sizeof(T), alignof(T), kind, 0};
};
template <typename T> struct parameter_of<T *> {
    static constexpr parameter value = {sizeof(T *), alignof(T *),
                                        host::is_const<T> ? read : written,
                                        element<T>::len_bytes};
};
template <typename T, int N> struct parameter_of<View<T, N>> {
    static constexpr parameter value = {sizeof(View<T, N>), alignof(View<T, N>),
                                        host::is_const<T> ? view_read : view_written,
                                        sizeof(T)};
};

template <typename Kernel, Kernel code> struct entry;

template <typename... Parameters, void (*code)(Parameters...)>
struct entry<void (*)(Parameters...), code> {
    static constexpr unsigned int count = sizeof...(Parameters);
    static constexpr parameter parameters[count + 1] = {
        parameter_of<host::plain_t<Parameters>>::value..., {}};

    static void run(const resident_launch *launch, const resident_runtime *library,
                    resident_progress *progress, unsigned long long end, unsigned int first) {
        host::entry<void (*)(Parameters...)>::template run<code>(
            *launch, *library, *progress, end, first, host::numbers_below<count>());
    }
};

template <typename Kernel, Kernel code> struct listed : kernel {
    listed(const char *name, unsigned int max_threads)
        : kernel{name,
                 reinterpret_cast<void (*)()>(code),
                 entry<Kernel, code>::run,
                 entry<Kernel, code>::parameters,
                 entry<Kernel, code>::count,
                 max_threads,
                 last} {
        last = this;
    }
};

constexpr unsigned int first_of(unsigned int max_threads = 0, ...) { return max_threads; }

} // namespace program
} // namespace resident

#define RESIDENT_PASTE_NOW(one, other) one##other
#define RESIDENT_PASTE(one, other) RESIDENT_PASTE_NOW(one, other)

/// Lists a kernel, with its launch bounds, if it has any.
#define RESIDENT_KERNEL(name, ...)                                                                \
    static const ::resident::program::listed<decltype(&name), &name> RESIDENT_PASTE(              \
        resident_kernel_, __COUNTER__)(#name, ::resident::program::first_of(__VA_ARGS__));

/// Lists the kernel of a name expression.
#define RESIDENT_EXPRESSION(text, ...)                                                            \
    static const ::resident::program::listed<decltype(&__VA_ARGS__), &__VA_ARGS__>                \
        RESIDENT_PASTE(resident_kernel_, __COUNTER__)(text, 0);

extern "C" __attribute__((visibility("default"))) const resident::program::kernel *
resident_program_kernels() {
    return resident::program::last;
}
