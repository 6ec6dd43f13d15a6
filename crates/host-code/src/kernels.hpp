// Before the source: the list of its kernels. `resident_host_kernel` stands behind the body of each,
// where its name is known to the compiler.

namespace resident {
namespace host {

/// A kernel. Changes here are changes in `kernel_list.rs`.
struct listed_kernel {
    /// The name of the function, or a name expression.
    const char *name;
    void (*run)(const resident_launch *, const resident_runtime *, resident_progress *,
                unsigned long long end, unsigned int first);
    /// The size of each parameter in bytes, and its type.
    const unsigned int *sizes;
    const parameters::Type *types;
    unsigned int count;
    /// What `__launch_bounds__` says; 0 without it.
    unsigned int threads_max;
    const listed_kernel *next;
};

static const listed_kernel *resident_last_kernel;

/// The first argument of `__launch_bounds__`.
constexpr unsigned int threads_max() { return 0; }
template <typename... Others> constexpr unsigned int threads_max(unsigned int most, Others...) {
    return most;
}

template <typename Kernel, Kernel code> struct listed : listed_kernel {
    RESIDENT_UNCHECKED listed(const char *name, unsigned int threads_max)
        : listed_kernel{name,
                        entry<Kernel>::template start<code>,
                        entry<Kernel>::sizes,
                        parameters::Of<Kernel>::value.all,
                        entry<Kernel>::count,
                        threads_max,
                        resident_last_kernel} {
        resident_last_kernel = this;
    }
};

} // namespace host
} // namespace resident

#define RESIDENT_HOST_PASTE_NOW(one, other) one##other
#define RESIDENT_HOST_PASTE(one, other) RESIDENT_HOST_PASTE_NOW(one, other)

// Code with a priority of its own makes the list, so that other code which initialises variables
// can be told from it (`initialisers.rs`).
#ifdef __ELF__
#define RESIDENT_HOST_FIRST __attribute__((init_priority(200)))
#else
#define RESIDENT_HOST_FIRST
#endif

/// Lists the kernel of a name expression, with the most threads of a block.
#define RESIDENT_HOST_EXPRESSION(text, most, ...)                                                 \
    static const ::resident::host::listed<decltype(&__VA_ARGS__), &__VA_ARGS__>                   \
        RESIDENT_HOST_PASTE(resident_host_kernel_, __COUNTER__)                                   \
            RESIDENT_HOST_FIRST(text, most);

/// Lists a kernel. The further arguments are those of `__launch_bounds__`.
#define resident_host_kernel(name, ...)                                                           \
    RESIDENT_HOST_EXPRESSION(#name, ::resident::host::threads_max(__VA_ARGS__), name)
