// Before `cuda_on_host.hpp`, where a kernel is compiled to be checked.

#if defined(__clang__)
// With the first attribute alone Clang still announces atomic accesses.
#define RESIDENT_UNCHECKED                                                                        \
    __attribute__((no_sanitize_thread, disable_sanitizer_instrumentation))
#else
#define RESIDENT_UNCHECKED __attribute__((no_sanitize_thread))
#endif

/// How a thread accesses memory.
enum resident_touch : unsigned int {
    resident_reads,
    resident_writes,
    resident_reads_atomically,
    resident_writes_atomically,
    resident_updates,
    resident_compares_and_swaps,
    /// Added to the others: the bytes need no alignment.
    resident_bytes = 8,
    /// Or they are a record, of which some bytes may be padding.
    resident_record = 16,
    /// Added to a read or a write: the access is volatile.
    resident_volatile = 32
};

/// The functions of the library. Changes here are changes in `calls.rs`.
struct resident_sanitizer {
    /// A thread is about to access memory. `touch` is one of `resident_touch`.
    void (*access)(const volatile void *address, unsigned long long bytes, unsigned int touch,
                   const void *code);
    /// An index of a view is out of its bounds.
    void (*outside)(const volatile void *first, const long long *index, unsigned int axes,
                    unsigned int element_bytes, const void *code);
    /// An access whose address is no multiple of `bytes`, as those of its type must be.
    void (*misaligned)(const volatile void *address, unsigned long long bytes,
                       unsigned int touch, const void *code);
    /// An access beyond the end of a variable that the compiler knows.
    void (*beyond)(const volatile void *address, unsigned int touch, const void *code);
    void (*fence)();
    /// The next wait is that of this code, for the lanes in `mask` or for the block.
    void (*waits)(unsigned int mask, const void *code);
    /// The thread reads what this lane of its warp passed, which did not come.
    void (*reads_absent_lane)(unsigned int lane, const void *code);
    /// An integer is about to be divided by zero.
    void (*divides)(const void *code);
    /// The format of `printf` does not fit its values, for the reason that a text says.
    void (*prints_wrongly)(const char *reason, const void *code);
    /// The thread leaves the kernel by `return`.
    void (*returns)();
};

// Defined by `hooks.hpp`, which is compiled on its own.
extern "C" __attribute__((visibility("hidden"))) const resident_sanitizer *resident_sanitizer_calls;
/// Copies and fills that nothing announces.
extern "C" __attribute__((visibility("hidden"))) void *resident_moved(void *to, const void *from,
                                                                      unsigned long bytes);
extern "C" __attribute__((visibility("hidden"))) void *resident_filled(void *to, int value,
                                                                       unsigned long bytes);
extern "C" const char __ehdr_start __attribute__((visibility("hidden")));

/// The place in the image from which the function was called.
#define RESIDENT_CODE                                                                             \
    reinterpret_cast<const void *>(static_cast<const char *>(__builtin_return_address(0)) -       \
                                   &__ehdr_start)
