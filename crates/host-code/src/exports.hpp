
// Behind the source: what the library calls.

extern const int warpSize = 32;

/// The last kernel of the list.
extern "C" __attribute__((visibility("default"))) const resident::host::listed_kernel *
resident_host_kernels() {
    return resident::host::resident_last_kernel;
}

/// A variable that each thread of the machine has of its own (`thread_memory.rs`).
extern "C" RESIDENT_UNCHECKED __attribute__((visibility("default"))) void *
resident_host_of_thread() {
#ifdef RESIDENT_SANITIZE
    return &resident_of_thread;
#else
    return &resident_patience;
#endif
}

#if defined(__linux__)
// The linker lets the source call these in place of the C library's functions (`compiler.rs`).
extern "C" RESIDENT_UNCHECKED __attribute__((used, visibility("hidden"))) void *
__wrap_malloc(size_t bytes) {
    return resident_library->allocate(bytes);
}
extern "C" RESIDENT_UNCHECKED __attribute__((used, visibility("hidden"))) void
__wrap_free(void *memory) {
    resident_library->release(memory);
}
// `new` and `delete`, of one and of arrays. On a GPU the first is null where there is no memory.
// Other names take a compiler less time than functions.
#define RESIDENT_ALIAS(name, of)                                                                  \
    extern "C" __attribute__((alias(#of), visibility("hidden"))) decltype(of) name;
RESIDENT_ALIAS(__wrap__Znwm, __wrap_malloc)
RESIDENT_ALIAS(__wrap__Znam, __wrap_malloc)
RESIDENT_ALIAS(__wrap__ZdlPv, __wrap_free)
RESIDENT_ALIAS(__wrap__ZdaPv, __wrap_free)
RESIDENT_ALIAS(__wrap__ZdlPvm, __wrap_free)
RESIDENT_ALIAS(__wrap__ZdaPvm, __wrap_free)
#undef RESIDENT_ALIAS
#endif

#ifdef RESIDENT_SANITIZE
/// For the functions of `hooks.hpp`.
extern "C" RESIDENT_UNCHECKED __attribute__((visibility("hidden"))) void resident_host_may_wait() {
    resident::host::may_wait();
}
#endif

#if defined(__linux__)
// The linker defines both.
extern "C" const char __ehdr_start __attribute__((visibility("hidden")));
extern "C" const char etext __attribute__((visibility("hidden")));

/// The start and the end of this library's code.
extern "C" __attribute__((visibility("default"))) void resident_host_code(const void **addresses) {
    addresses[0] = &__ehdr_start;
    addresses[1] = &etext;
}
#endif
