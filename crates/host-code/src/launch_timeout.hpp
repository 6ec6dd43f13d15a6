// Behind `exports.hpp`, where launches have a time limit and no signal tells that it is over: the
// compiler calls this in each part of the source that has no branch and computes something.
extern "C" __attribute__((no_sanitize_coverage, used, visibility("hidden"))) RESIDENT_UNCHECKED void
__sanitizer_cov_trace_pc() {
    static thread_local unsigned int resident_calls;
    if ((++resident_calls & 0xffff) == 0 && resident_library) resident_library->poll();
}
