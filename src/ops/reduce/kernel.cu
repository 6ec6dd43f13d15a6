// Reductions of rows.
// Preceded by: ../rows/rows.cuh

#ifndef RESIDENT_OPS
static __device__ __forceinline__ T term(A x) { return x; }
static __device__ __forceinline__ T join(T x, T y) { return x + y; }
#endif

enum { LEAF = 32, LEVELS = 60 };

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
