// Running sums and products of rows.
// Preceded by: ../rows/rows.cuh

enum { PER_THREAD = 8 };

#ifndef RESIDENT_OPS
static __device__ __forceinline__ T join(T x, T y) { return x + y; }
static __device__ __forceinline__ T before_first() { return 0; }
#endif

/// The running sums or products of each row, with each element's own value if `own` is not 0.
/// `before` has, for each chunk, that of its row up to the end of the chunk. One block for each
/// chunk, which has at most `THREADS * PER_THREAD` elements.
extern "C" __global__ void running(long long chunk, unsigned int own,
                                   resident::View<const T, RANK> a,
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
        T all = before_first();
        for (long long i = start; i < end; ++i) all = join(all, from[i * step_a]);
        parts[thread] = all;
        for (int distance = 1; distance < THREADS; distance *= 2) {
            __syncthreads();
            T other = thread >= distance ? parts[thread - distance] : before_first();
            __syncthreads();
            if (thread >= distance) parts[thread] = join(other, parts[thread]);
        }
        __syncthreads();
        all = number > 0 ? row(before, n)[(number - 1) * before.strides[RANK - 1]]
                         : before_first();
        if (thread > 0) all = join(all, parts[thread - 1]);
        for (long long i = start; i < end; ++i) {
            T element = from[i * step_a], before_it = all;
            all = join(all, element);
            to[i * step] = own != 0 ? all : before_it;
        }
        __syncthreads();
    }
}
