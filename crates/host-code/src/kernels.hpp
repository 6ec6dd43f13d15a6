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
    const listed_kernel *next;
};

static const listed_kernel *resident_last_kernel;

template <typename Kernel, Kernel code> struct listed : listed_kernel {
    RESIDENT_UNCHECKED explicit listed(const char *name)
        : listed_kernel{name,
                        entry<Kernel>::template start<code>,
                        entry<Kernel>::sizes,
                        parameters::Of<Kernel>::value.all,
                        entry<Kernel>::count,
                        resident_last_kernel} {
        resident_last_kernel = this;
    }
};

} // namespace host
} // namespace resident

#define RESIDENT_HOST_PASTE_NOW(one, other) one##other
#define RESIDENT_HOST_PASTE(one, other) RESIDENT_HOST_PASTE_NOW(one, other)

/// Lists the kernel of a name expression.
#define RESIDENT_HOST_EXPRESSION(text, ...)                                                       \
    static const ::resident::host::listed<decltype(&__VA_ARGS__), &__VA_ARGS__>                   \
        RESIDENT_HOST_PASTE(resident_host_kernel_, __COUNTER__)(text);

#define resident_host_kernel(name) RESIDENT_HOST_EXPRESSION(#name, name)
