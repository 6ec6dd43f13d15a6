// The kernels of the suite. A gate is a delay of a tenth of a second, since the host cannot hold a kernel back. Only one block waits: a kernel is complete
// when all its blocks are, and on a small GPU thousands of slow blocks would exceed a watchdog's limit.
typedef unsigned int u32;
typedef unsigned long long u64;

__device__ u64 index() { return blockIdx.x * (u64)blockDim.x + threadIdx.x; }

__device__ void pass_time() {
    if (blockIdx.x > 0) return;
    // One start for all threads, which may run one after another on a processor.
    __shared__ long long start;
    if (threadIdx.x == 0 && threadIdx.y == 0) start = clock64();
    __syncthreads();
    while (clock64() - start < 150000000) { }
}

extern "C" __global__ void add(u32 k, u32 *x, u64 len) {
    u64 i = index();
    if (i < len) x[i] += k;
}

extern "C" __global__ void plus(u32 k, const u32 *x, u32 *y, u64 len) {
    u64 i = index();
    if (i < len) y[i] = x[i] + k;
}

extern "C" __global__ void accumulate(const u32 *x, u32 *y, u64 len) {
    u64 i = index();
    if (i < len) y[i] += x[i];
}

extern "C" __global__ void gated(u64 gate, u32 *x, u64 len) {
    u64 i = index();
    pass_time();
    if (i < len) x[i] += 1;
}

extern "C" __global__ void gated_copy(u64 gate, const u32 *x, u32 *y, u64 len) {
    u64 i = index();
    pass_time();
    if (i < len) y[i] = x[i];
}

extern "C" __global__ void add_sized(u32 k, resident::View2<u32> x) {
    long long row = blockIdx.y * (long long)blockDim.y + threadIdx.y, column = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (x.contains(row, column)) x(row, column) += k;
}

extern "C" __global__ void copy_sized(resident::View2<const u32> x, resident::View2<u32> y) {
    long long row = blockIdx.y * (long long)blockDim.y + threadIdx.y, column = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (y.contains(row, column)) y(row, column) = x(row, column);
}

// Views of each number of axes, one thread for each element.

template <typename T, int N>
__device__ T &element(const resident::View<T, N> &x, long long n) {
    return x.at(n);
}

template <typename T>
__device__ T &element(const resident::View<T, 0> &x, long long) {
    return x();
}

template <typename X, typename Y>
__device__ void plus_of(u32 k, X x, Y y) {
    long long n = resident::thread();
    if (n < y.size()) element(y, n) = element(x, n) + k;
}

template <typename X>
__device__ void add_of(u32 k, X x) {
    long long n = resident::thread();
    if (n < x.size()) element(x, n) += k;
}

extern "C" __global__ void plus_of_rank_0(u32 k, resident::View0<const u32> x,
                                          resident::View0<u32> y) {
    plus_of(k, x, y);
}

extern "C" __global__ void plus_of_rank_1(u32 k, resident::View1<const u32> x,
                                          resident::View1<u32> y) {
    plus_of(k, x, y);
}

extern "C" __global__ void plus_of_rank_2(u32 k, resident::View2<const u32> x,
                                          resident::View2<u32> y) {
    plus_of(k, x, y);
}

extern "C" __global__ void plus_of_rank_3(u32 k, resident::View3<const u32> x,
                                          resident::View3<u32> y) {
    plus_of(k, x, y);
}

extern "C" __global__ void plus_of_rank_4(u32 k, resident::View4<const u32> x,
                                          resident::View4<u32> y) {
    plus_of(k, x, y);
}

extern "C" __global__ void plus_of_rank_5(u32 k, resident::View5<const u32> x,
                                          resident::View5<u32> y) {
    plus_of(k, x, y);
}

extern "C" __global__ void add_of_rank_0(u32 k, resident::View0<u32> x) { add_of(k, x); }
extern "C" __global__ void add_of_rank_1(u32 k, resident::View1<u32> x) { add_of(k, x); }
extern "C" __global__ void add_of_rank_2(u32 k, resident::View2<u32> x) { add_of(k, x); }
extern "C" __global__ void add_of_rank_3(u32 k, resident::View3<u32> x) { add_of(k, x); }
extern "C" __global__ void add_of_rank_4(u32 k, resident::View4<u32> x) { add_of(k, x); }
extern "C" __global__ void add_of_rank_5(u32 k, resident::View5<u32> x) { add_of(k, x); }
