
// Behind the source: what the library calls. RESIDENT_ENTRY is the kernel, a name or a name
// expression such as `scale<float>`.

// Here, so that the name is looked up where the source's is.
using resident_kernel = resident::host::entry<decltype(&RESIDENT_ENTRY)>;

extern "C" RESIDENT_UNCHECKED __attribute__((visibility("default"))) void resident_host_run(
    const resident_launch *launch, const resident_runtime *library, resident_progress *progress,
    unsigned long long end, unsigned int first) {
    resident_kernel::run<&RESIDENT_ENTRY>(*launch, *library, *progress, end, first,
                                          std::make_index_sequence<resident_kernel::count>());
}

extern "C" __attribute__((visibility("default"))) const unsigned int *resident_host_parameters(
    unsigned int *count) {
    *count = resident_kernel::count;
    return resident_kernel::sizes;
}

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
