// What AMD's compilers lack of CUDA C, put behind the declarations of views: the functions of warps
// that take a mask of lanes, which hiprtc has since ROCm 7, and `__activemask`.
// Where the compiler has the functions, these give way, but for masks of 32 bits: those of hiprtc 7
// refuse them, also for wavefronts of 32 lanes.
//
// A wavefront runs in lockstep, so the lanes that come to a call together are those that CUDA
// brings together, as long as a mask names no lane that is still elsewhere. What cannot be the same
// is refused: a mask of 32 bits for a wavefront of 64 lanes when the kernel is compiled; a mask of
// some lanes that names one that did not come, when the kernel runs: it ends (`s_trap`). Lanes
// behind the end of the block do not count. A lane that has returned does, though CUDA allows a
// mask to name it: the hardware does not tell it from one that is elsewhere. Such a mask is
// `resident::all_lanes()`, or begins with `__activemask()`.

#if defined(__AMDGCN__) && !defined(RESIDENT_PRELUDE_AMD_CUH)
#define RESIDENT_PRELUDE_AMD_CUH

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

template <typename Mask, typename = void> struct lacks_match {
    static constexpr bool value = true;
};
template <typename Mask> struct lacks_match<Mask, decltype(void(__match_any_sync(Mask(), 0)))> {
    static constexpr bool value = false;
};
template <typename Mask, typename = void> struct lacks_reduce {
    static constexpr bool value = true;
};
template <typename Mask> struct lacks_reduce<Mask, decltype(void(__reduce_add_sync(Mask(), 0)))> {
    static constexpr bool value = false;
};

template <bool is_so, typename T> struct if_so {};
template <typename T> struct if_so<true, T> { typedef T type; };

/// The lanes that the block has in this wavefront: the last one of a block may have fewer.
__device__ __forceinline__ lane_mask existing() {
    int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int threads = blockDim.x * blockDim.y * blockDim.z;
    int lanes = threads - thread / wave_size() * wave_size();
    return lanes >= wave_size() ? all_lanes() : (static_cast<lane_mask>(1) << lanes) - 1;
}

/// The lanes that a mask names.
template <typename Mask> __device__ __forceinline__ lane_mask named(Mask mask) {
    static_assert(8 * sizeof(Mask) >= wave_size(),
                  "the wavefronts of this GPU have 64 lanes, and this mask names 32 of them: pass "
                  "`resident::all_lanes()` where all are meant, and begin with "
                  "`resident::wave_size() / 2` where 16 stands, or give AMD GPUs a body of their "
                  "own by `Kernel::hip`");
    lane_mask lanes = static_cast<lane_mask>(mask);
    // If all are named, those that did not come have ended.
    if (lanes != all_lanes()) {
        lane_mask missing = lanes & ~static_cast<lane_mask>(__ballot(1));
        if (missing != 0 && (missing & existing()) != 0) __builtin_trap();
    }
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

/// The lanes whose values have the same bits as this one's, of those that came.
template <typename T> __device__ __forceinline__ lane_mask same(T value) {
    constexpr int count = (sizeof(T) + 3) / 4;
    unsigned int words[count] = {};
    __builtin_memcpy(words, &value, sizeof(T));
    lane_mask result = ballot(1);
    for (int word = 0; word < count; ++word)
        for (int bit = 0; bit < 32; ++bit) {
            bool is_set = words[word] >> bit & 1;
            lane_mask votes = ballot(is_set);
            result &= is_set ? votes : ~votes;
        }
    return result;
}

template <typename Mask, typename T>
__device__ __forceinline__ T shuffle(Mask mask, T value, int from, int width) {
    named(mask);
    int first = __lane_id() & ~(width - 1);
    return of_lane(value, first + (from & (width - 1)));
}

template <typename Mask, typename T>
__device__ __forceinline__ T shuffle_up(Mask mask, T value, unsigned int by, int width) {
    named(mask);
    int lane = __lane_id(), from = lane - static_cast<int>(by);
    return of_lane(value, from < (lane & ~(width - 1)) ? lane : from);
}

template <typename Mask, typename T>
__device__ __forceinline__ T shuffle_down(Mask mask, T value, unsigned int by, int width) {
    named(mask);
    int lane = __lane_id(), delta = static_cast<int>(by);
    bool is_beyond = (lane & (width - 1)) + delta >= width;
    return of_lane(value, is_beyond ? lane : lane + delta);
}

template <typename Mask, typename T>
__device__ __forceinline__ T shuffle_xor(Mask mask, T value, int by, int width) {
    named(mask);
    int lane = __lane_id(), from = lane ^ by;
    // Lanes of later groups are not read.
    return of_lane(value, from >= (lane & ~(width - 1)) + width ? lane : from);
}

template <typename Mask>
__device__ __forceinline__ lane_mask ballot_of(Mask mask, int predicate) {
    lane_mask lanes = named(mask);
    return ballot(predicate) & lanes;
}

template <typename Mask, typename T>
__device__ __forceinline__ lane_mask match_any(Mask mask, T value) {
    lane_mask lanes = named(mask);
    return same(value) & lanes;
}

template <typename Mask, typename T>
__device__ __forceinline__ lane_mask match_all(Mask mask, T value, int *predicate) {
    lane_mask came = ballot_of(mask, 1);
    bool is_same = (same(value) & came) == came;
    *predicate = is_same;
    return is_same ? came : 0;
}

/// Each lane takes the values of the lanes that it names, one after another.
template <typename Mask, typename T, typename Combine>
__device__ __forceinline__ T reduce(Mask mask, T value, Combine combine) {
    lane_mask came = ballot_of(mask, 1);
    bool is_first = true;
    T result = value;
    for (int lane = 0; lane < wave_size(); ++lane) {
        T other = of_lane(value, lane);
        if (!(came >> lane & 1)) continue;
        result = is_first ? other : combine(result, other);
        is_first = false;
    }
    return result;
}

/// Orders what the lanes of a wavefront wrote before with what they read after.
template <typename Mask> __device__ __forceinline__ void order(Mask mask) {
    named(mask);
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

} // namespace amd
} // namespace resident

/// A function of the compiler with this name is preferred, because this one is a template.
template <typename Mask = resident::lane_mask> __device__ __forceinline__ Mask __activemask() {
    return resident::amd::ballot(1);
}

/// A function for masks of all types if the compiler lacks it, and for masks of 32 bits in any
/// case: those are more special than the compiler's own, and so preferred.
#define RESIDENT_UNPACK(...) __VA_ARGS__
#define RESIDENT_MASKED(lacks, head, result, name, parameters, ...)                               \
    template <typename Mask RESIDENT_UNPACK head>                                                 \
    __device__ __forceinline__                                                                    \
        typename resident::amd::if_so<resident::amd::lacks<Mask>::value, result>::type            \
        name(Mask mask, RESIDENT_UNPACK parameters) {                                             \
        return __VA_ARGS__;                                                                       \
    }                                                                                             \
    RESIDENT_MASKED_BY(unsigned int, head, result, name, parameters, __VA_ARGS__)                 \
    RESIDENT_MASKED_BY(int, head, result, name, parameters, __VA_ARGS__)
// `Mask` is a parameter of the template so that the body is looked at only where it is called.
#define RESIDENT_MASKED_BY(word, head, result, name, parameters, ...)                             \
    template <typename Mask = word RESIDENT_UNPACK head>                                          \
    __device__ __forceinline__ result name(word given, RESIDENT_UNPACK parameters) {              \
        Mask mask = given;                                                                        \
        return __VA_ARGS__;                                                                       \
    }
#define RESIDENT_SHUFFLE(name, own, by)                                                           \
    RESIDENT_MASKED(lacks_masks, (, typename T), T, name,                                         \
                    (T value, by, int width = resident::wave_size()),                             \
                    resident::amd::own(mask, value, from, width))

RESIDENT_SHUFFLE(__shfl_sync, shuffle, int from)
RESIDENT_SHUFFLE(__shfl_up_sync, shuffle_up, unsigned int from)
RESIDENT_SHUFFLE(__shfl_down_sync, shuffle_down, unsigned int from)
RESIDENT_SHUFFLE(__shfl_xor_sync, shuffle_xor, int from)
RESIDENT_MASKED(lacks_masks, (), resident::lane_mask, __ballot_sync, (int predicate),
                resident::amd::ballot_of(mask, predicate))
RESIDENT_MASKED(lacks_masks, (), int, __any_sync, (int predicate),
                resident::amd::ballot_of(mask, predicate) != 0)
RESIDENT_MASKED(lacks_masks, (), int, __all_sync, (int predicate),
                resident::amd::ballot_of(mask, !predicate) == 0)
RESIDENT_MASKED(lacks_match, (, typename T), resident::lane_mask, __match_any_sync, (T value),
                resident::amd::match_any(mask, value))
RESIDENT_MASKED(lacks_match, (, typename T), resident::lane_mask, __match_all_sync,
                (T value, int *predicate), resident::amd::match_all(mask, value, predicate))

#define RESIDENT_REDUCE(name, T, ...)                                                             \
    RESIDENT_MASKED(lacks_reduce, (), T, name, (T value),                                         \
                    resident::amd::reduce(mask, value, [](T a, T b) -> T { return __VA_ARGS__; }))
RESIDENT_REDUCE(__reduce_add_sync, unsigned int, a + b)
RESIDENT_REDUCE(__reduce_add_sync, int, static_cast<unsigned int>(a) + static_cast<unsigned int>(b))
RESIDENT_REDUCE(__reduce_min_sync, unsigned int, a < b ? a : b)
RESIDENT_REDUCE(__reduce_min_sync, int, a < b ? a : b)
RESIDENT_REDUCE(__reduce_max_sync, unsigned int, a > b ? a : b)
RESIDENT_REDUCE(__reduce_max_sync, int, a > b ? a : b)
RESIDENT_REDUCE(__reduce_and_sync, unsigned int, a & b)
RESIDENT_REDUCE(__reduce_or_sync, unsigned int, a | b)
RESIDENT_REDUCE(__reduce_xor_sync, unsigned int, a ^ b)
#undef RESIDENT_REDUCE
#undef RESIDENT_SHUFFLE

template <typename Mask = resident::lane_mask>
__device__ __forceinline__
    typename resident::amd::if_so<resident::amd::lacks_syncwarp<Mask>::value, void>::type
    __syncwarp(Mask mask = resident::all_lanes()) {
    resident::amd::order(mask);
}
template <typename Mask = unsigned int>
__device__ __forceinline__ void __syncwarp(unsigned int given) {
    resident::amd::order(static_cast<Mask>(given));
}
template <typename Mask = int> __device__ __forceinline__ void __syncwarp(int given) {
    resident::amd::order(static_cast<Mask>(given));
}
#undef RESIDENT_MASKED_BY
#undef RESIDENT_MASKED
#undef RESIDENT_UNPACK

#endif
