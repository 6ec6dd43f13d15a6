// What AMD's compilers lack of CUDA C, put behind the declarations of views: the functions of warps
// that take a mask of lanes, which hiprtc has since ROCm 7, `INFINITY` and `NAN`. Where the
// compiler has the functions, these give way.
//
// A wavefront runs in lockstep, so the lanes that come to a call together are those that CUDA
// brings together, as long as a mask names no lane that is still elsewhere. What cannot be the same
// is refused: a mask of 32 bits for a wavefront of 64 lanes when the kernel is compiled; a mask of
// some lanes that names one that did not come, when the kernel runs: it ends (`s_trap`).

#if defined(__AMDGCN__) && !defined(RESIDENT_PRELUDE_AMD_CUH)
#define RESIDENT_PRELUDE_AMD_CUH

#ifndef INFINITY
#define INFINITY __builtin_inff()
#endif
#ifndef NAN
#define NAN __builtin_nanf("")
#endif

namespace resident {
namespace amd {

/// Whether the compiler lacks functions: a call that depends on `Mask` is an error only if it is
/// looked at, so that the more special of each pair is chosen where the function is declared.
template <typename Mask, typename = void> struct lacks_masks {
    static constexpr bool value = true;
};
template <typename Mask> struct lacks_masks<Mask, decltype(void(__shfl_sync(Mask(), 0, 0)))> {
    static constexpr bool value = false;
};
template <typename Mask, typename = void> struct lacks_syncwarp {
    static constexpr bool value = true;
};
template <typename Mask> struct lacks_syncwarp<Mask, decltype(void(__syncwarp(Mask())))> {
    static constexpr bool value = false;
};

template <bool is_so, typename T> struct if_so {};
template <typename T> struct if_so<true, T> { typedef T type; };

/// `T`, if this file has the functions with masks.
template <typename Mask, typename T> using Here = typename if_so<lacks_masks<Mask>::value, T>::type;

/// The lanes that a mask names.
template <typename Mask> __device__ __forceinline__ lane_mask named(Mask mask) {
    static_assert(8 * sizeof(Mask) >= wave_size(),
                  "the wavefronts of this GPU have 64 lanes, and this mask names 32 of them: pass "
                  "`resident::all_lanes()` where all are meant, and begin with "
                  "`resident::wave_size() / 2` where 16 stands, or give AMD GPUs a body of their "
                  "own by `Kernel::hip`");
    lane_mask lanes = static_cast<lane_mask>(mask);
    // If all are named, those that did not come have ended.
    if (lanes != all_lanes() && (lanes & ~static_cast<lane_mask>(__ballot(1))) != 0)
        __builtin_trap();
    return lanes;
}

/// The lanes at which a predicate is true.
__device__ __forceinline__ lane_mask ballot(int predicate) {
#if defined(__clang_major__) && __clang_major__ < 16 && !defined(RESIDENT_AMD_ON_HOST)
    // LLVM 15 has no instruction for `__ballot` of whether a number is not one, if it sees that.
    asm volatile("" : "+v"(predicate));
#endif
    return static_cast<lane_mask>(__ballot(predicate));
}

/// The value that a lane has.
template <typename T> __device__ __forceinline__ T of_lane(T value, int lane) {
    constexpr int count = (sizeof(T) + 3) / 4;
    int words[count] = {};
    __builtin_memcpy(words, &value, sizeof(T));
    for (int word = 0; word < count; ++word)
        words[word] = __builtin_amdgcn_ds_bpermute(4 * lane, words[word]);
    __builtin_memcpy(&value, words, sizeof(T));
    return value;
}

} // namespace amd
} // namespace resident

template <typename Mask, typename T>
__device__ __forceinline__ resident::amd::Here<Mask, T>
__shfl_sync(Mask mask, T value, int from, int width = resident::wave_size()) {
    resident::amd::named(mask);
    int first = __lane_id() & ~(width - 1);
    return resident::amd::of_lane(value, first + (from & (width - 1)));
}

template <typename Mask, typename T>
__device__ __forceinline__ resident::amd::Here<Mask, T>
__shfl_up_sync(Mask mask, T value, unsigned int by, int width = resident::wave_size()) {
    resident::amd::named(mask);
    int lane = __lane_id(), from = lane - static_cast<int>(by);
    return resident::amd::of_lane(value, from < (lane & ~(width - 1)) ? lane : from);
}

template <typename Mask, typename T>
__device__ __forceinline__ resident::amd::Here<Mask, T>
__shfl_down_sync(Mask mask, T value, unsigned int by, int width = resident::wave_size()) {
    resident::amd::named(mask);
    int lane = __lane_id(), delta = static_cast<int>(by);
    bool is_beyond = (lane & (width - 1)) + delta >= width;
    return resident::amd::of_lane(value, is_beyond ? lane : lane + delta);
}

template <typename Mask, typename T>
__device__ __forceinline__ resident::amd::Here<Mask, T>
__shfl_xor_sync(Mask mask, T value, int by, int width = resident::wave_size()) {
    resident::amd::named(mask);
    int lane = __lane_id(), from = lane ^ by;
    // Lanes of later groups are not read.
    return resident::amd::of_lane(value, from >= (lane & ~(width - 1)) + width ? lane : from);
}

template <typename Mask>
__device__ __forceinline__ resident::amd::Here<Mask, resident::lane_mask>
__ballot_sync(Mask mask, int predicate) {
    resident::lane_mask lanes = resident::amd::named(mask);
    return resident::amd::ballot(predicate) & lanes;
}

template <typename Mask>
__device__ __forceinline__ resident::amd::Here<Mask, int> __any_sync(Mask mask, int predicate) {
    resident::lane_mask lanes = resident::amd::named(mask);
    return (resident::amd::ballot(predicate) & lanes) != 0;
}

template <typename Mask>
__device__ __forceinline__ resident::amd::Here<Mask, int> __all_sync(Mask mask, int predicate) {
    resident::lane_mask lanes = resident::amd::named(mask);
    return (resident::amd::ballot(!predicate) & lanes) == 0;
}

/// Orders what the lanes of a wavefront wrote before with what they read after.
template <typename Mask = resident::lane_mask>
__device__ __forceinline__
    typename resident::amd::if_so<resident::amd::lacks_syncwarp<Mask>::value, void>::type
    __syncwarp(Mask mask = resident::all_lanes()) {
    resident::amd::named(mask);
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

#endif
