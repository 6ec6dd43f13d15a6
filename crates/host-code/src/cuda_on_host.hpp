// What CUDA C needs beyond C++17, for CUDA C that is compiled for the host. `host_code` puts
// `declarations.hpp`, `functions_of_c.hpp`, this and `entry.hpp` before the prelude and the source,
// and `exports.hpp` behind them.
//
// One thread of the machine runs a block at a time, so that `__shared__` memory is memory of that
// thread. The threads of a block run one after the other, until one of them waits for others: from
// then on each has a stack of its own, and the library switches between them. A thread that may be
// waiting for what another one writes says so (`may_wait`), and lets the others run after a while.

#ifndef RESIDENT_CUDA_ON_HOST_HPP
#define RESIDENT_CUDA_ON_HOST_HPP

// Sources take the branches that they take for NVRTC. They may test for __RESIDENT_HOST__.
#define __RESIDENT_HOST__ 1
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDACC_VER_BUILD__ 0
// An option says which architecture it is; without one it is that of the limits of shared memory.
#ifndef __CUDA_ARCH__
#ifdef RESIDENT_CUDA_ARCH
#define __CUDA_ARCH__ RESIDENT_CUDA_ARCH
#else
#define __CUDA_ARCH__ 900
#endif
#endif

#ifdef RESIDENT_SANITIZE
// So that calls are at a line of the kernel.
#define RESIDENT_INLINE inline __attribute__((always_inline))
#else
#define RESIDENT_INLINE inline
#define RESIDENT_UNCHECKED
#endif

/// A copy that no function makes: in checked code Clang's calls for copies are announced.
#if defined(RESIDENT_SANITIZE) && defined(__clang__)
#define RESIDENT_UNCHECKED_COPY __builtin_memcpy_inline
#else
#define RESIDENT_UNCHECKED_COPY __builtin_memcpy
#endif

#define __host__
#define __device__
#ifdef RESIDENT_SANITIZE
// Compilers do not announce that a record in memory is passed to a function that is not inlined.
#define __global__ __attribute__((flatten))
#else
// Into the loop over the threads of a block.
#define __global__ __attribute__((always_inline))
#endif
// The host may write it, whatever the source does.
#define __constant__ __attribute__((used))
#define __managed__
#define __grid_constant__
// What is only stored there is checked too, and counts for the limit of shared memory.
#define __shared__ __attribute__((used)) static thread_local
#define __forceinline__ inline __attribute__((always_inline))
#ifndef __noinline__
#define __noinline__ __attribute__((noinline))
#endif
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#ifndef __clang__
#define __builtin_assume(...) static_cast<void>(0)
#endif
#define __builtin_align__(bytes) __attribute__((aligned(bytes)))

// Vectors.

#define RESIDENT_VECTORS(name, type, align2, align4)                                              \
    struct name##1 { type x; };                                                                   \
    struct __attribute__((aligned(align2))) name##2 { type x, y; };                               \
    struct name##3 { type x, y, z; };                                                             \
    struct __attribute__((aligned(align4))) name##4 { type x, y, z, w; };                         \
    inline name##1 make_##name##1(type x) { return {x}; }                                         \
    inline name##2 make_##name##2(type x, type y) { return {x, y}; }                              \
    inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }                   \
    inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

RESIDENT_VECTORS(char, signed char, 2, 4)
RESIDENT_VECTORS(uchar, unsigned char, 2, 4)
RESIDENT_VECTORS(short, short, 4, 8)
RESIDENT_VECTORS(ushort, unsigned short, 4, 8)
RESIDENT_VECTORS(int, int, 8, 16)
RESIDENT_VECTORS(uint, unsigned int, 8, 16)
RESIDENT_VECTORS(long, long, 16, 16)
RESIDENT_VECTORS(ulong, unsigned long, 16, 16)
RESIDENT_VECTORS(longlong, long long, 16, 16)
RESIDENT_VECTORS(ulonglong, unsigned long long, 16, 16)
RESIDENT_VECTORS(float, float, 8, 16)
RESIDENT_VECTORS(double, double, 16, 16)
#undef RESIDENT_VECTORS

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 from) : x(from.x), y(from.y), z(from.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};

// Sources may pass them on: kernels that use them are left out.
typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;

// The library's side. Changes here are changes in `runtime.rs`.

/// What one launch runs.
struct resident_launch {
    /// One pointer per parameter.
    void *const *parameters;
    unsigned int grid[3], block[3];
    unsigned int shared_bytes;
    /// The name of its function.
    const char *kernel;
};

/// How far the threads of a machine's thread have come.
struct resident_progress {
    unsigned long long block;
    /// The first thread of the block that no stack has taken, once a thread waits or the block's
    /// last thread has ended; in checked code always.
    unsigned int next;
    /// The thread of the block that runs, in checked code.
    unsigned int running;
};

/// The functions of the library. Those that wait return when all threads concerned have come.
struct resident_runtime {
    /// Waits for all threads of the block; returns for how many `predicate` held.
    unsigned int (*barrier)(unsigned int predicate);
    /// Waits for the lanes in `mask` of the warp that have not ended.
    void (*warp_barrier)(unsigned int mask);
    /// Waits for the lanes in `mask` of the warp that have not ended; returns what the 32 lanes
    /// passed, and behind that the mask of those that came.
    const unsigned long long *(*exchange)(unsigned int mask, unsigned long long value);
    /// The lanes of the warp that have come here too, when no other lane can go on.
    unsigned int (*active)();
    /// Memory of the launch's `shared_bytes`, the block's.
    void *(*dynamic_shared)();
    /// After so many calls of `may_wait` a thread asks again. 0: the others are to run now. `thread`
    /// is the number of the running thread in the grid.
    unsigned int (*patience)(unsigned long long thread);
    /// Lets all others run that can; returns the patience from then on.
    unsigned int (*turn)();
    /// Ends the launch with an error if its time is over.
    void (*poll)();
    /// Ends the thread, and the launch with an error.
    void (*fail)(const char *text);
    /// `snprintf` of C, which a source may use for a name of its own.
    int (*format)(char *text, size_t bytes_max, const char *format, ...);
    void (*print)(const char *kernel, const char *text);
    /// Memory for `malloc`.
    void *(*allocate)(size_t bytes);
    /// Frees it, or ends the launch with an error.
    void (*release)(void *memory);
};

// Not in a namespace, since sources use the names so.
#ifndef RESIDENT_SANITIZE
static thread_local const resident_runtime *resident_library;
static thread_local resident_progress *resident_progress_of_stack;
static thread_local const char *resident_kernel_name;
/// Whether the running thread of the block has waited, so that its stack is its own.
static thread_local bool resident_has_waited;
/// So many calls of `may_wait` from now on a thread asks whether the others are to run.
static thread_local unsigned int resident_patience = 1;
static thread_local uint3 resident_current_thread, resident_current_block;
static thread_local dim3 resident_current_block_shape, resident_current_grid_shape;
#else
/// What the kernel may read, between bytes that it may not.
static thread_local struct {
    char before[512];
    const resident_runtime *library;
    const char *kernel;
    unsigned int patience;
    /// The library's functions, and what the lanes of a warp passed.
    resident_runtime functions;
    unsigned long long values[33];
    char behind[512];
} resident_of_thread = {};
/// One thread of the machine at a time runs checked code of this library. A variable of each would
/// take a call to find.
static struct {
    uint3 thread, block;
    dim3 block_shape, grid_shape;
} resident_indices = {};
#define resident_library resident_of_thread.library
#define resident_patience resident_of_thread.patience
#endif

// Functions, so that a kernel neither changes an index nor takes its address. Clang makes worse
// code of a copy of the whole.
#ifndef RESIDENT_SANITIZE
#define RESIDENT_INDEX(name, T, field)                                                            \
    __attribute__((always_inline)) static inline T name() {                                       \
        const auto &index = resident_current_##field;                                             \
        return {index.x, index.y, index.z};                                                       \
    }
// What assembly reads is not checked, and neither is what such a function does.
#elif defined(__x86_64__)
#define RESIDENT_INDEX(name, T, field)                                                            \
    __attribute__((always_inline)) static inline T name() {                                       \
        T index;                                                                                  \
        asm("movl %1, %0" : "=r"(index.x) : "m"(resident_indices.field.x));                       \
        asm("movl %1, %0" : "=r"(index.y) : "m"(resident_indices.field.y));                       \
        asm("movl %1, %0" : "=r"(index.z) : "m"(resident_indices.field.z));                       \
        return index;                                                                             \
    }
#else
#define RESIDENT_INDEX(name, T, field)                                                            \
    RESIDENT_UNCHECKED __attribute__((noinline, const)) static T name() {                         \
        return resident_indices.field;                                                            \
    }
#endif
RESIDENT_INDEX(resident_thread_index, uint3, thread)
RESIDENT_INDEX(resident_block_index, uint3, block)
RESIDENT_INDEX(resident_block_shape, dim3, block_shape)
RESIDENT_INDEX(resident_grid_shape, dim3, grid_shape)
#undef RESIDENT_INDEX
#define threadIdx resident_thread_index()
#define blockIdx resident_block_index()
#define blockDim resident_block_shape()
#define gridDim resident_grid_shape()
/// Defined behind the source, so that it is no constant expression.
extern const int warpSize __asm__("resident_warp_size") __attribute__((visibility("hidden")));

// Where an index is, to set it.
#ifdef RESIDENT_SANITIZE
#define RESIDENT_PLACE(field) resident_indices.field
#else
#define RESIDENT_PLACE(field) resident_current_##field
#endif

namespace resident {
namespace host {

#ifdef RESIDENT_SANITIZE
// Not inlined, so that the place from which each is called is one of the kernel's. Nor does Clang
// make one call of two (GCC has an option for that).
#if defined(__clang__)
#define RESIDENT_WAIT RESIDENT_UNCHECKED __attribute__((noinline, nomerge)) inline
#else
#define RESIDENT_WAIT RESIDENT_UNCHECKED __attribute__((noinline)) inline
#endif
#else
#define RESIDENT_WAIT inline
#endif

/// Calls the library, during which other threads of the block run.
template <typename Call> RESIDENT_UNCHECKED inline auto waiting(Call call) {
    uint3 thread = threadIdx, block = blockIdx;
#ifndef RESIDENT_SANITIZE
    resident_progress_of_stack->next =
        thread.x + blockDim.x * (thread.y + blockDim.y * thread.z) + 1;
#endif
    auto result = call();
    RESIDENT_PLACE(thread) = thread;
    RESIDENT_PLACE(block) = block;
#ifdef RESIDENT_SANITIZE
    resident_close_path();
#else
    resident_has_waited = true;
#endif
    return result;
}

RESIDENT_WAIT unsigned int barrier(bool predicate) {
#ifdef RESIDENT_SANITIZE
    resident_sanitizer_calls->waits(~0u, RESIDENT_CODE);
#endif
    return waiting([=] { return resident_library->barrier(predicate); });
}

RESIDENT_WAIT void warp_barrier(unsigned int mask) {
#ifdef RESIDENT_SANITIZE
    resident_sanitizer_calls->waits(mask, RESIDENT_CODE);
#endif
    waiting([=] { return resident_library->warp_barrier(mask), 0; });
}

RESIDENT_WAIT const unsigned long long *exchange_word(unsigned int mask, unsigned long long word) {
#ifdef RESIDENT_SANITIZE
    resident_sanitizer_calls->waits(mask, RESIDENT_CODE);
#endif
    const unsigned long long *values =
        waiting([=] { return resident_library->exchange(mask, word); });
#ifdef RESIDENT_SANITIZE
    // Of bytes: Clang ends where it gets an array.
    RESIDENT_UNCHECKED_COPY(static_cast<void *>(resident_of_thread.values),
                            static_cast<const void *>(values), sizeof resident_of_thread.values);
    values = resident_of_thread.values;
#endif
    return values;
}

/// Lets the others run if the thread has waited for long.
RESIDENT_UNCHECKED __attribute__((noinline, cold)) inline void turn() {
    resident_patience = 1;
    // The initialisers of globals run before the library is ready.
    if (!resident_library) return;
    const unsigned long long block =
        blockIdx.x + static_cast<unsigned long long>(gridDim.x) *
                         (blockIdx.y + static_cast<unsigned long long>(gridDim.y) * blockIdx.z);
    const unsigned int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned int patience = resident_library->patience(block << 10 | thread);
    if (patience == 0) patience = waiting([] { return resident_library->turn(); });
    resident_patience = patience;
}

/// The thread does what threads repeat that wait for what another one writes.
RESIDENT_WAIT void may_wait() {
    if (__builtin_expect(--resident_patience == 0, 0)) turn();
}

/// The same, in each round of a loop (`waiting_loops.rs`).
constexpr bool in_round() {
#if defined(__has_builtin)
#if __has_builtin(__builtin_is_constant_evaluated)
    if (!__builtin_is_constant_evaluated()) may_wait();
#endif
#endif
    return true;
}

RESIDENT_WAIT void fence() {
    may_wait();
#ifdef RESIDENT_SANITIZE
    resident_sanitizer_calls->fence();
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

#ifdef RESIDENT_SANITIZE
/// Tells the library of a range of bytes that a function of C accesses.
RESIDENT_WAIT void touch_range(const void *first, size_t bytes, resident_touch how) {
    if (bytes > 0) {
        resident_sanitizer_calls->access(first, bytes, resident_bytes | how, RESIDENT_CODE);
    }
}

/// Tells the library that the thread leaves the kernel.
RESIDENT_WAIT void returns() { resident_sanitizer_calls->returns(); }

/// Tells the library of an index of a view that is out of its bounds.
RESIDENT_WAIT void outside(const void *first, const long long *index, unsigned int axes,
                           unsigned int element_bytes) {
    resident_sanitizer_calls->outside(first, index, axes, element_bytes, RESIDENT_CODE);
}
#endif

/// A shuffle reads what a lane passed. The result is open if that lane did not come.
#ifdef RESIDENT_SANITIZE
RESIDENT_WAIT void reads_lane(const unsigned long long *words, unsigned int lane) {
    if (!(words[32] >> (lane & 31) & 1))
        resident_sanitizer_calls->reads_absent_lane(lane & 31, RESIDENT_CODE);
}
#else
inline void reads_lane(const unsigned long long *, unsigned int) {}
#endif

inline unsigned int lane() {
    return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
}

/// What all lanes of the mask pass. The pointer is valid until the thread waits again.
template <typename T> inline const unsigned long long *exchange(unsigned int mask, T value) {
    static_assert(sizeof(T) <= 8, "lanes exchange at most 8 bytes");
    unsigned long long word = 0;
    __builtin_memcpy(&word, &value, sizeof value);
    return exchange_word(mask, word);
}

template <typename T> inline T of_lane(const unsigned long long *words, unsigned int lane) {
    T value;
    __builtin_memcpy(&value, &words[lane & 31], sizeof value);
    return value;
}

/// Whether shuffles pass it: numbers, and those of two bytes that are records here.
template <typename T> inline constexpr bool is_shuffled = !__is_class(T) && !__is_union(T);
template <typename T> inline constexpr bool is_shuffled<T *> = false;

/// The same for a shuffle.
template <typename T>
RESIDENT_INLINE T shuffled(const unsigned long long *words, unsigned int lane) {
    reads_lane(words, lane);
    return of_lane<T>(words, lane);
}

/// The same for a shuffle to the next lanes up or down. In a sum of fewer lanes than 32 the last
/// ones read others that do not come, and nothing uses what they get: so it is an error only where
/// the lane that gets the sum reads such a one.
template <typename T>
RESIDENT_INLINE T shuffled_by(const unsigned long long *words, unsigned int lane, bool is_last) {
    if (is_last) reads_lane(words, lane);
    return of_lane<T>(words, lane);
}

template <typename To, typename From> inline To bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "of one size");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

template <typename T> inline T *dynamic_shared() {
    return static_cast<T *>(resident_library->dynamic_shared());
}

/// Instead of a function that uses what is not there.
[[noreturn]] inline void left_out(const char *reason) {
    for (;;) resident_library->fail(reason);
}

/// `assert` on a GPU stops the kernel.
inline void assertion(const char *text, const char *file, int line) {
    char message[512];
    resident_library->format(message, sizeof message,
                             "%s:%d: assertion `%s` failed in block (%u, %u, %u), "
                             "thread (%u, %u, %u)", file, line, text, blockIdx.x, blockIdx.y,
                             blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
    resident_library->fail(message);
}

} // namespace host
} // namespace resident

#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition)                                                                         \
    ((condition) ? (void)0 : resident::host::assertion(#condition, __FILE__, __LINE__))
#endif

inline void __trap() { resident_library->fail("the kernel called __trap()"); }
// Of AMD's compilers.
#define __builtin_trap() resident_library->fail("the kernel called __builtin_trap()")
inline void __brkpt() {}
inline void __nanosleep(unsigned int) { resident::host::may_wait(); }
inline long long clock64() {
#if defined(__x86_64__)
    return static_cast<long long>(__builtin_ia32_rdtsc());
#else
    return 0;
#endif
}
inline clock_t clock() { return static_cast<int>(clock64()); }

// Barriers and fences.

RESIDENT_INLINE void __syncthreads() { resident::host::barrier(true); }
RESIDENT_INLINE int __syncthreads_count(int predicate) {
    return static_cast<int>(resident::host::barrier(predicate != 0));
}
RESIDENT_INLINE int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) > 0; }
RESIDENT_INLINE int __syncthreads_and(int predicate) {
    return __syncthreads_count(!predicate) == 0;
}
RESIDENT_INLINE void __threadfence() { resident::host::fence(); }
RESIDENT_INLINE void __threadfence_block() { resident::host::fence(); }
RESIDENT_INLINE void __threadfence_system() { resident::host::fence(); }

// Warps.

RESIDENT_INLINE void __syncwarp(unsigned int mask = 0xffffffffu) {
    resident::host::warp_barrier(mask);
}
inline unsigned int __activemask() {
    return resident::host::waiting([] { return resident_library->active(); });
}
inline unsigned int __ballot_sync(unsigned int mask, int predicate) {
    const unsigned long long *votes = resident::host::exchange(mask, predicate != 0 ? 1 : 0);
    unsigned int result = 0;
    for (unsigned int lane = 0; lane < 32; ++lane)
        if ((mask & votes[32]) >> lane & 1 && votes[lane]) result |= 1u << lane;
    return result;
}
inline int __any_sync(unsigned int mask, int predicate) {
    return __ballot_sync(mask, predicate) != 0;
}
inline int __all_sync(unsigned int mask, int predicate) {
    return __ballot_sync(mask, !predicate) == 0;
}
// NVRTC declares them, and no GPU since Volta has their instruction.
bool any(bool) = delete;
bool all(bool) = delete;
#define RESIDENT_SHUFFLED(T)                                                                      \
    static_assert(resident::host::is_shuffled<T>,                                                 \
                  "shuffles pass numbers, and no records and pointers: pass each member")
template <typename T> inline T __shfl_sync(unsigned int mask, T value, int from, int width = 32) {
    RESIDENT_SHUFFLED(T);
    unsigned int first = resident::host::lane() / width * width;
    const unsigned long long *lanes = resident::host::exchange(mask, value);
    return resident::host::shuffled<T>(lanes, first + (static_cast<unsigned int>(from) % width));
}
template <typename T>
inline T __shfl_up_sync(unsigned int mask, T value, unsigned int by, int width = 32) {
    RESIDENT_SHUFFLED(T);
    unsigned int lane = resident::host::lane();
    const unsigned long long *lanes = resident::host::exchange(mask, value);
    const bool is_last = lanes[32] >> lane == 1;
    return lane % width < by ? value : resident::host::shuffled_by<T>(lanes, lane - by, is_last);
}
template <typename T>
inline T __shfl_down_sync(unsigned int mask, T value, unsigned int by, int width = 32) {
    RESIDENT_SHUFFLED(T);
    unsigned int lane = resident::host::lane();
    const unsigned long long *lanes = resident::host::exchange(mask, value);
    const bool is_last = (lanes[32] & ((1ull << lane) - 1)) == 0;
    return lane % width + by >= static_cast<unsigned int>(width)
               ? value
               : resident::host::shuffled_by<T>(lanes, lane + by, is_last);
}
template <typename T>
inline T __shfl_xor_sync(unsigned int mask, T value, int by, int width = 32) {
    RESIDENT_SHUFFLED(T);
    unsigned int lane = resident::host::lane(), other = lane ^ static_cast<unsigned int>(by);
    const unsigned long long *lanes = resident::host::exchange(mask, value);
    // A lane beyond the end of the own group is not read.
    return other / width > lane / width ? value : resident::host::shuffled<T>(lanes, other);
}
#undef RESIDENT_SHUFFLED
/// The lanes whose values have the same bits.
template <typename T> inline unsigned int __match_any_sync(unsigned int mask, T value) {
    const unsigned long long *lanes = resident::host::exchange(mask, value);
    unsigned long long own = lanes[resident::host::lane()];
    unsigned int result = 0;
    for (unsigned int lane = 0; lane < 32; ++lane)
        if ((mask & lanes[32]) >> lane & 1 && lanes[lane] == own) result |= 1u << lane;
    return result;
}
template <typename T>
inline unsigned int __match_all_sync(unsigned int mask, T value, int *predicate) {
    const unsigned long long *lanes = resident::host::exchange(mask, value);
    unsigned int came = mask & static_cast<unsigned int>(lanes[32]);
    unsigned long long own = lanes[resident::host::lane()];
    *predicate = 1;
    for (unsigned int lane = 0; lane < 32; ++lane)
        if (came >> lane & 1 && lanes[lane] != own) *predicate = 0;
    return *predicate ? came : 0;
}
#define RESIDENT_REDUCE(name, type, expression)                                                   \
    inline type name(unsigned int mask, type value) {                                             \
        const unsigned long long *lanes = resident::host::exchange(mask, value);                  \
        bool is_first = true;                                                                     \
        type a = value;                                                                           \
        for (unsigned int lane = 0; lane < 32; ++lane) {                                          \
            if (!((mask & lanes[32]) >> lane & 1)) continue;                                      \
            type b = resident::host::of_lane<type>(lanes, lane);                                  \
            a = is_first ? b : static_cast<type>(expression);                                     \
            is_first = false;                                                                     \
        }                                                                                         \
        return a;                                                                                 \
    }
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

// Atomics. The scopes do not matter here. A thread that waits repeats one that changes nothing.

namespace resident {
namespace host {

template <typename Word, typename T, typename Change>
RESIDENT_INLINE T change(T *at, Change new_of) {
    Word *word = reinterpret_cast<Word *>(at);
    Word old = __atomic_load_n(word, __ATOMIC_RELAXED);
    for (;;) {
        T before = bits<T>(old);
        Word wanted = bits<Word>(static_cast<T>(new_of(before)));
        if (__atomic_compare_exchange_n(word, &old, wanted, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
#ifndef RESIDENT_SANITIZE
            if (__builtin_expect(wanted == old, 0)) may_wait();
#endif
            return before;
        }
    }
}

template <int bytes> struct word_of;
template <> struct word_of<2> { using type = unsigned short; };
template <> struct word_of<4> { using type = unsigned int; };
template <> struct word_of<8> { using type = unsigned long long; };
template <typename T> using word = typename word_of<sizeof(T)>::type;

// The types for which CUDA has atomic functions, and records: it has some for `half` and its kin.

template <typename T, typename... Types>
inline constexpr bool is_of = is_one_of<T, Types...> || __is_class(T);
template <typename T, typename... More>
inline constexpr bool is_word_or =
    is_of<T, int, unsigned int, unsigned long long, unsigned long, More...>;
template <typename T> inline constexpr bool has_sum = is_word_or<T, float, double>;
template <typename T> inline constexpr bool has_difference = is_of<T, int, unsigned int>;
template <typename T> inline constexpr bool has_order = is_word_or<T, long long, long>;
template <typename T> inline constexpr bool has_bits = is_word_or<T>;
template <typename T> inline constexpr bool has_count = is_of<T, unsigned int>;
template <typename T> inline constexpr bool has_exchange = is_word_or<T, float>;
template <typename T> inline constexpr bool has_swap = is_word_or<T, unsigned short>;

template <typename T> RESIDENT_INLINE T exchange_at(T *at, T value) {
    const word<T> stored = bits<word<T>>(value);
    const word<T> old =
        __atomic_exchange_n(reinterpret_cast<word<T> *>(at), stored, __ATOMIC_RELAXED);
#ifndef RESIDENT_SANITIZE
    // A lock is taken by a constant. Others are as fast as the processor exchanges.
    if (__builtin_constant_p(stored) && __builtin_expect(stored == old, 0)) may_wait();
#endif
    return bits<T>(old);
}

} // namespace host
} // namespace resident

#define RESIDENT_NEEDS(name, has)                                                                 \
    static_assert(resident::host::has<T>, "CUDA has no `" #name "` for numbers of this type");
#define RESIDENT_ATOMIC(name, has, parameters, expression)                                        \
    template <typename T> RESIDENT_INLINE T name parameters {                                     \
        RESIDENT_NEEDS(name, has)                                                                 \
        return resident::host::change<resident::host::word<T>>(                                   \
            at, [=](T old) { return static_cast<T>(expression); });                               \
    }
#define RESIDENT_ATOMICS(name, has, parameters, expression)                                       \
    RESIDENT_ATOMIC(name, has, parameters, expression)                                            \
    RESIDENT_ATOMIC(name##_block, has, parameters, expression)                                    \
    RESIDENT_ATOMIC(name##_system, has, parameters, expression)
#define RESIDENT_SAME resident::host::identity_t<T>
#define RESIDENT_VALUE (T *at, RESIDENT_SAME value)
RESIDENT_ATOMICS(atomicAdd, has_sum, RESIDENT_VALUE, old + value)
RESIDENT_ATOMICS(atomicSub, has_difference, RESIDENT_VALUE, old - value)
RESIDENT_ATOMICS(atomicMin, has_order, RESIDENT_VALUE, value < old ? value : old)
RESIDENT_ATOMICS(atomicMax, has_order, RESIDENT_VALUE, value > old ? value : old)
RESIDENT_ATOMICS(atomicAnd, has_bits, RESIDENT_VALUE, old & value)
RESIDENT_ATOMICS(atomicOr, has_bits, RESIDENT_VALUE, old | value)
RESIDENT_ATOMICS(atomicXor, has_bits, RESIDENT_VALUE, old ^ value)
RESIDENT_ATOMICS(atomicInc, has_count, RESIDENT_VALUE, old >= value ? 0 : old + 1)
RESIDENT_ATOMICS(atomicDec, has_count, RESIDENT_VALUE, old == 0 || old > value ? value : old - 1)
#ifdef RESIDENT_SANITIZE
#define RESIDENT_SWAP(name)                                                                       \
    template <typename T>                                                                         \
    RESIDENT_WAIT T name(T *at, RESIDENT_SAME compare, RESIDENT_SAME value) {                     \
        RESIDENT_NEEDS(atomicCAS, has_swap)                                                       \
        resident::host::may_wait();                                                               \
        resident_sanitizer_calls->access(at, sizeof(T), resident_compares_and_swaps,              \
                                         RESIDENT_CODE);                                          \
        T old = *at;                                                                              \
        if (old == compare) *at = value;                                                          \
        return old;                                                                               \
    }
RESIDENT_SWAP(atomicCAS)
RESIDENT_SWAP(atomicCAS_block)
RESIDENT_SWAP(atomicCAS_system)
#undef RESIDENT_SWAP
#else
RESIDENT_ATOMICS(atomicCAS, has_swap,
                 (T *at, RESIDENT_SAME compare, RESIDENT_SAME value),
                 old == compare ? value : old)
#endif
#define RESIDENT_EXCHANGE(name)                                                                   \
    template <typename T> RESIDENT_INLINE T name RESIDENT_VALUE {                                 \
        RESIDENT_NEEDS(atomicExch, has_exchange)                                                  \
        return resident::host::exchange_at(at, static_cast<T>(value));                            \
    }
RESIDENT_EXCHANGE(atomicExch)
RESIDENT_EXCHANGE(atomicExch_block)
RESIDENT_EXCHANGE(atomicExch_system)
#undef RESIDENT_EXCHANGE
#undef RESIDENT_VALUE
#undef RESIDENT_SAME
#undef RESIDENT_ATOMICS
#undef RESIDENT_ATOMIC
#undef RESIDENT_NEEDS

// Loads and stores with hints.

template <typename T> inline T __ldg(const T *at) { return *at; }
template <typename T> inline T __ldca(const T *at) { return *at; }
template <typename T> inline T __ldcg(const T *at) { return *at; }
template <typename T> inline T __ldcs(const T *at) { return *at; }
template <typename T> inline T __ldlu(const T *at) { return *at; }
template <typename T> inline T __ldcv(const T *at) {
    resident::host::may_wait();
    asm volatile("" ::: "memory");
    return *at;
}
template <typename T> inline void __stwb(T *at, T value) { *at = value; }
template <typename T> inline void __stcg(T *at, T value) { *at = value; }
template <typename T> inline void __stcs(T *at, T value) { *at = value; }
template <typename T> inline void __stwt(T *at, T value) { *at = value; }

#endif // RESIDENT_CUDA_ON_HOST_HPP
