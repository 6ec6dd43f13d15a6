// Reductions and running sums of rows: the last axis of an operand runs along its rows, and in the
// result along the chunks of each row. `row` finds a row; the kernels
// follow, of which the library compiles one.

#ifndef RESIDENT_OPS
typedef float A;
typedef float T;
typedef float W;
enum { RANK = 2 };
static __device__ __forceinline__ T term(A x) { return x; }
static __device__ __forceinline__ T join(T x, T y) { return x + y; }
static __device__ __forceinline__ bool better(T x, T y) { return x < y; }
#endif

enum { THREADS = 256, LEAF = 32, LEVELS = 60, PER_THREAD = 8 };

static __device__ __forceinline__ T product(T x, T y) { return T(W(x) * W(y)); }
static __device__ __forceinline__ T plus(T x, T y) { return T(W(x) + W(y)); }

/// The first element of the n-th row.
template <typename E>
static __device__ __forceinline__ E *row(const resident::View<E, RANK> &view, long long n) {
    long long offset = 0;
    for (int axis = RANK - 2; axis >= 0; --axis) {
        offset += n % view.shape[axis] * view.strides[axis];
        n /= view.shape[axis];
    }
    return view.data + offset;
}

/// The length of a chunk, of which the last of a row may have fewer elements.
static __device__ __forceinline__ long long length(long long row, long long chunk,
                                                   long long first) {
    return row - first < chunk ? row - first : chunk;
}

#if !defined RESIDENT_OPS || defined KERNEL_by_block
/// Reduces each chunk: one block for each, whose threads read neighbouring elements. For rows whose
/// elements lie side by side in memory.
extern "C" __global__ void by_block(long long chunk, resident::View<const A, RANK> a,
                                    resident::View<T, RANK> out) {
    __shared__ T parts[THREADS];
    long long chunks = out.shape[RANK - 1], items = out.size();
    long long stride = a.strides[RANK - 1];
    int thread = threadIdx.x;
    for (long long item = blockIdx.x; item < items; item += gridDim.x) {
        long long number = item % chunks, first = number * chunk;
        long long len = length(a.shape[RANK - 1], chunk, first);
        const A *from = row(a, item / chunks) + first * stride;
        if (thread < len) {
            T part = term(from[thread * stride]);
            for (long long i = thread + THREADS; i < len; i += THREADS)
                part = join(part, term(from[i * stride]));
            parts[thread] = part;
        }
        int count = len < THREADS ? static_cast<int>(len) : THREADS;
        while (count > 1) {
            __syncthreads();
            int half = (count + 1) / 2;
            if (thread < count - half) parts[thread] = join(parts[thread], parts[thread + half]);
            count = half;
        }
        if (thread == 0) row(out, item / chunks)[number * out.strides[RANK - 1]] = parts[0];
        __syncthreads();
    }
}
#endif

#if !defined RESIDENT_OPS || defined KERNEL_by_thread
/// Reduces each chunk: one thread for each. For rows that lie side by side in memory, so that
/// neighbouring threads read neighbouring elements. Leaves of 32 elements are joined in pairs,
/// pairs of pairs and so on.
extern "C" __global__ void by_thread(long long chunk, resident::View<const A, RANK> a,
                                     resident::View<T, RANK> out) {
    long long item = resident::thread(), items = out.size();
    if (item >= items) return;
    long long rows = items / out.shape[RANK - 1], number = item / rows, n = item % rows;
    long long stride = a.strides[RANK - 1], first = number * chunk;
    long long len = length(a.shape[RANK - 1], chunk, first);
    const A *from = row(a, n) + first * stride;
    T levels[LEVELS];
    int depth = 0;
    for (long long leaf = 0; leaf * LEAF < len; ++leaf) {
        long long end = (leaf + 1) * LEAF < len ? (leaf + 1) * LEAF : len;
        T part = term(from[leaf * LEAF * stride]);
        for (long long i = leaf * LEAF + 1; i < end; ++i) part = join(part, term(from[i * stride]));
        for (long long bits = leaf; bits & 1; bits >>= 1) {
            --depth;
            part = join(levels[depth], part);
        }
        levels[depth++] = part;
    }
    T total = levels[--depth];
    while (depth > 0) {
        --depth;
        total = join(levels[depth], total);
    }
    row(out, n)[number * out.strides[RANK - 1]] = total;
}
#endif

#if !defined RESIDENT_OPS || defined KERNEL_dot
/// The sum of products of each chunk of two operands: one block for each.
extern "C" __global__ void dot(long long chunk, resident::View<const T, RANK> a,
                               resident::View<const T, RANK> b, resident::View<T, RANK> out) {
    __shared__ T parts[THREADS];
    long long chunks = out.shape[RANK - 1], items = out.size();
    long long step_a = a.strides[RANK - 1], step_b = b.strides[RANK - 1];
    int thread = threadIdx.x;
    for (long long item = blockIdx.x; item < items; item += gridDim.x) {
        long long number = item % chunks, first = number * chunk;
        long long len = length(a.shape[RANK - 1], chunk, first);
        const T *x = row(a, item / chunks) + first * step_a;
        const T *y = row(b, item / chunks) + first * step_b;
        T part = 0;
        for (long long i = thread; i < len; i += THREADS)
            part = plus(part, product(x[i * step_a], y[i * step_b]));
        parts[thread] = part;
        for (int half = THREADS / 2; half > 0; half /= 2) {
            __syncthreads();
            if (thread < half) parts[thread] = plus(parts[thread], parts[thread + half]);
        }
        if (thread == 0) row(out, item / chunks)[number * out.strides[RANK - 1]] = parts[0];
        __syncthreads();
    }
}
#endif

#if !defined RESIDENT_OPS || defined KERNEL_best
/// Where the first of the best elements of each chunk is, counted from the start of its row; NaN is
/// the best. One thread for each chunk.
extern "C" __global__ void best(long long chunk, resident::View<const T, RANK> a,
                                resident::View<unsigned long long, RANK> out) {
    long long item = resident::thread(), items = out.size();
    if (item >= items) return;
    long long rows = items / out.shape[RANK - 1], number = item / rows, n = item % rows;
    long long stride = a.strides[RANK - 1], first = number * chunk, at = 0;
    long long len = length(a.shape[RANK - 1], chunk, first);
    const T *from = row(a, n) + first * stride;
    for (long long i = 1; i < len; ++i)
        if (better(from[i * stride], from[at * stride])) at = i;
    row(out, n)[number * out.strides[RANK - 1]] = first + at;
}
#endif

#if !defined RESIDENT_OPS || defined KERNEL_best_among
/// As `best`, among the elements of each row whose places are given.
extern "C" __global__ void best_among(long long chunk, resident::View<const T, RANK> a,
                                      resident::View<const unsigned long long, RANK> places,
                                      resident::View<unsigned long long, RANK> out) {
    long long item = resident::thread(), items = out.size();
    if (item >= items) return;
    long long rows = items / out.shape[RANK - 1], number = item / rows, n = item % rows;
    long long stride = a.strides[RANK - 1], step = places.strides[RANK - 1], first = number * chunk;
    long long len = length(places.shape[RANK - 1], chunk, first);
    const T *from = row(a, n);
    const unsigned long long *place = row(places, n) + first * step;
    unsigned long long at = place[0];
    for (long long i = 1; i < len; ++i)
        if (better(from[place[i * step] * stride], from[at * stride])) at = place[i * step];
    row(out, n)[number * out.strides[RANK - 1]] = at;
}
#endif

#if !defined RESIDENT_OPS || defined KERNEL_running_sums
/// The running sums of each row. `before` has, for each chunk, the sum of its row up to the end of
/// the chunk. One block for each chunk, which has at most `THREADS * PER_THREAD` elements.
extern "C" __global__ void running_sums(long long chunk, resident::View<const T, RANK> a,
                                        resident::View<const T, RANK> before,
                                        resident::View<T, RANK> out) {
    __shared__ T parts[THREADS];
    long long chunks = before.shape[RANK - 1], items = before.size();
    long long step_a = a.strides[RANK - 1], step = out.strides[RANK - 1];
    int thread = threadIdx.x;
    for (long long item = blockIdx.x; item < items; item += gridDim.x) {
        long long number = item % chunks, first = number * chunk, n = item / chunks;
        long long len = length(a.shape[RANK - 1], chunk, first);
        long long start = thread * static_cast<long long>(PER_THREAD);
        long long end = start + PER_THREAD < len ? start + PER_THREAD : len;
        const T *from = row(a, n) + first * step_a;
        T *to = row(out, n) + first * step;
        T sum = 0;
        for (long long i = start; i < end; ++i) sum = plus(sum, from[i * step_a]);
        parts[thread] = sum;
        for (int distance = 1; distance < THREADS; distance *= 2) {
            __syncthreads();
            T other = thread >= distance ? parts[thread - distance] : T(0);
            __syncthreads();
            if (thread >= distance) parts[thread] = plus(other, parts[thread]);
        }
        __syncthreads();
        sum = number > 0 ? row(before, n)[(number - 1) * before.strides[RANK - 1]] : T(0);
        if (thread > 0) sum = plus(sum, parts[thread - 1]);
        for (long long i = start; i < end; ++i) {
            sum = plus(sum, from[i * step_a]);
            to[i * step] = sum;
        }
        __syncthreads();
    }
}
#endif
