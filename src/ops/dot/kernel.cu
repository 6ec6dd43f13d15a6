// Sums of products.
// Preceded by: ../rows/rows.cuh

static __device__ __forceinline__ T plus(T x, T y) { return T(W(x) + W(y)); }
static __device__ __forceinline__ T product(T x, T y) { return T(W(x) * W(y)); }

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
