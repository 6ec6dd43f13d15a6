// The kernels of the model, for each number of dimensions. One thread does all, in row-major order.
typedef unsigned int u32;
typedef unsigned long long u64;

template <typename T, int N> __device__ T &nth(resident::View<T, N> x, u64 n) { return x.at(n); }
template <typename T> __device__ T &nth(resident::View<T, 0> x, u64) { return x(); }

__device__ u32 mixed(u32 old, u32 value) { return old * 31 + value; }

__device__ u64 count(u64 len) { return resident::thread() == 0 ? len : 0; }

#define KERNELS(N)                                                                                \
    extern "C" __global__ void stamp_##N(u32 value, resident::View<u32, N> x) {                   \
        for (u64 n = 0; n < count(x.size()); ++n) nth(x, n) = value + (u32)n;                     \
    }                                                                                             \
    extern "C" __global__ void stamp_flat_##N(u32 value, u32 *x, u64 len) {                       \
        for (u64 n = 0; n < count(len); ++n) x[n] = value + (u32)n;                               \
    }                                                                                             \
    extern "C" __global__ void mix_##N(u32 value, resident::View<u32, N> x) {                     \
        for (u64 n = 0; n < count(x.size()); ++n) nth(x, n) = mixed(nth(x, n), value);            \
    }                                                                                             \
    extern "C" __global__ void mix_flat_##N(u32 value, u32 *x, u64 len) {                         \
        for (u64 n = 0; n < count(len); ++n) x[n] = mixed(x[n], value);                           \
    }                                                                                             \
    extern "C" __global__ void copy_##N(resident::View<const u32, N> x,                           \
                                        resident::View<u32, N> y) {                               \
        for (u64 n = 0; n < count(y.size()); ++n) nth(y, n) = nth(x, n);                          \
    }                                                                                             \
    extern "C" __global__ void copy_flat_##N(const u32 *x, u32 *y, u64 len) {                     \
        for (u64 n = 0; n < count(len); ++n) y[n] = x[n];                                         \
    }                                                                                             \
    extern "C" __global__ void combine_##N(resident::View<const u32, N> x,                        \
                                           resident::View<const u32, N> y,                        \
                                           resident::View<u32, N> z) {                            \
        for (u64 n = 0; n < count(z.size()); ++n)                                                 \
            nth(z, n) = nth(x, n) * 3 + nth(y, n) * 5 + nth(z, n) * 7;                            \
    }

KERNELS(0)
KERNELS(1)
KERNELS(2)
KERNELS(3)
KERNELS(4)
