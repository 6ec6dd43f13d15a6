// The kernels of the benchmarks. Our programs, the hand-written ones and the Python competitors all
// compile this source. Parameters are only pointers and scalars, so that any CUDA C compiler
// accepts them.

typedef unsigned long long u64;

__device__ u64 thread_number() { return blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x; }
__device__ u64 thread_count() { return gridDim.x * static_cast<u64>(blockDim.x); }

// Kernels on one, four and eight arrays with almost no work, to measure the launch.

extern "C" __global__ void touch1(float *a) {
    a[thread_number()] += 1.0f;
}

extern "C" __global__ void touch4(const float *a, const float *b, const float *c, float *d) {
    u64 i = thread_number();
    d[i] += a[i] + b[i] + c[i] + 1.0f;
}

extern "C" __global__ void touch8(const float *a, const float *b, const float *c, const float *d,
                                  const float *e, const float *f, const float *g, float *h) {
    u64 i = thread_number();
    h[i] += a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + 1.0f;
}

// One step of the pipeline.

extern "C" __global__ void affine(float factor, float offset, const float *x, float *y, u64 len) {
    u64 i = thread_number();
    if (i < len) y[i] = factor * x[i] + offset;
}

// Adds up in a fixed order, so that the result is reproducible: one partial sum per block of 256
// threads.

template <typename Number>
__device__ void sum_of_block(Number sum, Number *result) {
    __shared__ Number sums[256];
    sums[threadIdx.x] = sum;
    for (unsigned half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) *result = sums[0];
}

extern "C" __global__ void partial_sum(const float *x, float *parts, u64 len) {
    float sum = 0;
    for (u64 i = thread_number(); i < len; i += thread_count()) sum += x[i];
    sum_of_block(sum, parts + blockIdx.x);
}

// Conjugate gradient on the five-point Laplacian of a square with zeros on the walls.

extern "C" __global__ void laplace(const double *p, double *ap, u64 side) {
    u64 i = thread_number(), row = i / side, column = i % side;
    if (row >= side) return;
    double around = 0;
    if (row > 0) around += p[i - side];
    if (row + 1 < side) around += p[i + side];
    if (column > 0) around += p[i - 1];
    if (column + 1 < side) around += p[i + 1];
    ap[i] = 4 * p[i] - around;
}

extern "C" __global__ void partial_dot(const double *a, const double *b, double *parts,
                                       u64 len) {
    double sum = 0;
    for (u64 i = thread_number(); i < len; i += thread_count()) sum += a[i] * b[i];
    sum_of_block(sum, parts + blockIdx.x);
}

// One block of 256 threads adds 256 partial sums.
extern "C" __global__ void finish_dot(const double *parts, double *dot) {
    sum_of_block(parts[threadIdx.x], dot);
}

// Moves the solution along the direction p by rr / p·Ap, and updates the residual.
extern "C" __global__ void advance(double *x, double *r, const double *p, const double *ap,
                                   const double *rr, const double *pap, u64 len) {
    u64 i = thread_number();
    if (i >= len) return;
    double alpha = *rr / *pap;
    x[i] += alpha * p[i];
    r[i] -= alpha * ap[i];
}

// The next direction.
extern "C" __global__ void redirect(double *p, const double *r, const double *rr_new,
                                    const double *rr_old, u64 len) {
    u64 i = thread_number();
    if (i < len) p[i] = r[i] + *rr_new / *rr_old * p[i];
}
