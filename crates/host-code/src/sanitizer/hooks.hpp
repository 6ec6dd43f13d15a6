// Behind `fast_path.hpp`: the functions that the compiler calls before each access of checked code,
// which are those of a thread sanitizer. They are the same for all sources, so they are compiled
// once and linked with each. Those for atomic operations take compilers longer than all others, and
// most sources call none, so they are code of their own: `RESIDENT_ATOMIC_HOOKS` says which.

#define RESIDENT_HOOK                                                                             \
    extern "C" RESIDENT_UNCHECKED __attribute__((noinline, used, visibility("hidden")))

/// An access that is not one of a unit, or not simple.
RESIDENT_HOOK void resident_touched(const volatile void *at, unsigned long long bytes,
                                    unsigned int how, const void *code);

#define RESIDENT_TOUCHED(at, bytes, how) resident_touched(at, bytes, how, RESIDENT_CODE)

#ifndef RESIDENT_ATOMIC_HOOKS
const resident_sanitizer *resident_sanitizer_calls;
resident_fast_path resident_path;

// Of `exports.hpp`.
extern "C" __attribute__((visibility("hidden"))) void resident_host_may_wait();
extern "C" __attribute__((visibility("default"))) void *resident_host_of_thread();

RESIDENT_HOOK void resident_touched(const volatile void *at, unsigned long long bytes,
                                    unsigned int how, const void *code) {
    const unsigned long long address = reinterpret_cast<unsigned long long>(at);
    const unsigned int kind = how & (resident_bytes - 1);
    // A GPU accesses numbers only where they are aligned.
    const bool is_number = (how & (resident_bytes | resident_record)) == 0;
    if ((how & resident_volatile) != 0 || kind > resident_writes) {
        // Before the check, which says in which order accesses happen.
        resident_host_may_wait();
    } else if (!is_number || address % bytes == 0) {
        if (resident_passes_range(address, bytes, kind == resident_writes)) return;
    }
    // The initialisers of globals run before the library is ready.
    if (resident_sanitizer_calls) resident_sanitizer_calls->access(at, bytes, how, code);
}

/// The same for a plain read or write of a number, which is aligned: else
/// `__ubsan_handle_type_mismatch_v1` has been called before.
#define RESIDENT_NUMBER(name, bytes, how)                                                         \
    RESIDENT_HOOK void name(void *at) {                                                           \
        const unsigned long long address = reinterpret_cast<unsigned long long>(at);              \
        if (!resident_passes(address, bytes, how == resident_writes))                             \
            RESIDENT_TOUCHED(at, bytes, how);                                                     \
    }

#define RESIDENT_TOUCH(name, address, bytes, how)                                                 \
    RESIDENT_HOOK void name { RESIDENT_TOUCHED(address, bytes, how); }

#define RESIDENT_ACCESSES(bytes)                                                                  \
    RESIDENT_NUMBER(__tsan_read##bytes, bytes, resident_reads)                                    \
    RESIDENT_NUMBER(__tsan_write##bytes, bytes, resident_writes)                                  \
    RESIDENT_TOUCH(__tsan_unaligned_read##bytes(void *at),                                        \
                   at, bytes, resident_bytes | resident_reads)                                    \
    RESIDENT_TOUCH(__tsan_unaligned_write##bytes(void *at),                                       \
                   at, bytes, resident_bytes | resident_writes)                                   \
    RESIDENT_TOUCH(__tsan_volatile_read##bytes(void *at),                                         \
                   at, bytes, resident_volatile | resident_reads)                                 \
    RESIDENT_TOUCH(__tsan_volatile_write##bytes(void *at),                                        \
                   at, bytes, resident_volatile | resident_writes)
RESIDENT_ACCESSES(1)
RESIDENT_ACCESSES(2)
RESIDENT_ACCESSES(4)
RESIDENT_ACCESSES(8)
RESIDENT_ACCESSES(16)
RESIDENT_TOUCH(__tsan_read_range(void *at, unsigned long bytes),
               at, bytes, resident_record | resident_reads)
RESIDENT_TOUCH(__tsan_write_range(void *at, unsigned long bytes),
               at, bytes, resident_record | resident_writes)

// Clang calls these for copies and fills.
#define RESIDENT_COPY(name)                                                                       \
    RESIDENT_HOOK void *name(void *to, const void *from, unsigned long bytes) {                   \
        if (bytes == 0) return to;                                                                \
        RESIDENT_TOUCHED(from, bytes, resident_record | resident_reads);                          \
        RESIDENT_TOUCHED(to, bytes, resident_record | resident_writes);                           \
        return __builtin_memmove(to, from, bytes);                                                \
    }
RESIDENT_COPY(__tsan_memcpy)
RESIDENT_COPY(__tsan_memmove)
RESIDENT_HOOK void *__tsan_memset(void *to, int value, unsigned long bytes) {
    if (bytes > 0) RESIDENT_TOUCHED(to, bytes, resident_record | resident_writes);
    return __builtin_memset(to, value, bytes);
}

RESIDENT_HOOK void *resident_moved(void *to, const void *from, unsigned long bytes) {
    return __builtin_memmove(to, from, bytes);
}
RESIDENT_HOOK void *resident_filled(void *to, int value, unsigned long bytes) {
    return __builtin_memset(to, value, bytes);
}

RESIDENT_HOOK void __tsan_init() {}
RESIDENT_HOOK void __tsan_func_entry(void *) {}
RESIDENT_HOOK void __tsan_func_exit() {}
RESIDENT_HOOK void __tsan_vptr_read(void **) {}
RESIDENT_HOOK void __tsan_vptr_update(void **, void *) {}
RESIDENT_HOOK void __tsan_atomic_thread_fence(int) {}
RESIDENT_HOOK void __tsan_atomic_signal_fence(int) {}

// What the compiler calls before an integer is divided by zero. `-fsanitize=thread` alone makes
// none of these calls.
RESIDENT_HOOK void __ubsan_handle_divrem_overflow(void *, unsigned long, unsigned long) {
    if (resident_sanitizer_calls) resident_sanitizer_calls->divides(RESIDENT_CODE);
}

/// What the compiler says of an access that it checks itself.
struct resident_access_of_type {
    const char *file;
    unsigned int line, column;
    const void *type;
    /// The power of two of which the address must be a multiple. If it is one, it is beyond a
    /// variable; GCC says 0 then.
    unsigned char alignment;
    /// 1 for a write.
    unsigned char kind;
};

// What the compiler calls before an access that is not aligned as its type, or beyond the end of a
// variable that it knows.
RESIDENT_HOOK void __ubsan_handle_type_mismatch_v1(const resident_access_of_type *access,
                                                   const volatile void *at) {
    if (!resident_sanitizer_calls) return;
    const unsigned int touch = access->kind == 1 ? resident_writes : resident_reads;
    const unsigned long long bytes = 1ull << access->alignment;
    if (reinterpret_cast<unsigned long long>(at) % bytes == 0) {
        resident_sanitizer_calls->beyond(at, touch, RESIDENT_CODE);
    } else {
        resident_sanitizer_calls->misaligned(at, bytes, touch, RESIDENT_CODE);
    }
}

// What Clang's code calls before a copy of a record that is not aligned (`clang_code`).
RESIDENT_HOOK void resident_misaligned(const volatile void *at, unsigned long bytes,
                                       unsigned int how) {
    if (resident_sanitizer_calls)
        resident_sanitizer_calls->misaligned(at, bytes, how, RESIDENT_CODE);
}

/// Takes the functions of the library, and tells where the image, the variables of this thread of
/// the machine and the fast path are.
extern "C" RESIDENT_UNCHECKED __attribute__((visibility("default"))) void resident_host_sanitize(
    const resident_sanitizer *calls, const void **image, const void **anchor,
    resident_fast_path **path) {
    resident_sanitizer_calls = calls;
    *image = &__ehdr_start;
    *anchor = resident_host_of_thread();
    *path = &resident_path;
}
#else
#define RESIDENT_UPDATE(bits, T, name)                                                            \
    RESIDENT_HOOK T __tsan_atomic##bits##_fetch_##name(volatile T *at, T value, int) {            \
        RESIDENT_TOUCHED(at, sizeof(T), resident_updates);                                        \
        return __atomic_fetch_##name(at, value, __ATOMIC_SEQ_CST);                                \
    }
#define RESIDENT_ATOMICS(bits, T)                                                                 \
    RESIDENT_HOOK T __tsan_atomic##bits##_load(const volatile T *at, int) {                       \
        RESIDENT_TOUCHED(at, sizeof(T), resident_reads_atomically);                               \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                             \
    }                                                                                             \
    RESIDENT_HOOK void __tsan_atomic##bits##_store(volatile T *at, T value, int) {                \
        RESIDENT_TOUCHED(at, sizeof(T), resident_writes_atomically);                              \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                            \
    }                                                                                             \
    RESIDENT_HOOK T __tsan_atomic##bits##_exchange(volatile T *at, T value, int) {                \
        RESIDENT_TOUCHED(at, sizeof(T), resident_writes_atomically);                              \
        return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                  \
    }                                                                                             \
    RESIDENT_HOOK int __tsan_atomic##bits##_compare_exchange_strong(volatile T *at, T *old,       \
                                                                    T value, int, int) {          \
        RESIDENT_TOUCHED(at, sizeof(T), resident_updates);                                        \
        return __atomic_compare_exchange_n(at, old, value, false, __ATOMIC_SEQ_CST,               \
                                           __ATOMIC_SEQ_CST);                                     \
    }                                                                                             \
    RESIDENT_HOOK int __tsan_atomic##bits##_compare_exchange_weak(volatile T *at, T *old,         \
                                                                  T value, int, int) {            \
        RESIDENT_TOUCHED(at, sizeof(T), resident_updates);                                        \
        return __atomic_compare_exchange_n(at, old, value, true, __ATOMIC_SEQ_CST,                \
                                           __ATOMIC_SEQ_CST);                                     \
    }                                                                                             \
    RESIDENT_HOOK T __tsan_atomic##bits##_compare_exchange_val(volatile T *at, T old, T value,    \
                                                               int, int) {                        \
        RESIDENT_TOUCHED(at, sizeof(T), resident_updates);                                        \
        __atomic_compare_exchange_n(at, &old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
        return old;                                                                               \
    }                                                                                             \
    RESIDENT_UPDATE(bits, T, add)                                                                 \
    RESIDENT_UPDATE(bits, T, sub)                                                                 \
    RESIDENT_UPDATE(bits, T, and)                                                                 \
    RESIDENT_UPDATE(bits, T, or)                                                                  \
    RESIDENT_UPDATE(bits, T, xor)
RESIDENT_ATOMICS(8, char)
RESIDENT_ATOMICS(16, short)
RESIDENT_ATOMICS(32, int)
RESIDENT_ATOMICS(64, long)
#endif
