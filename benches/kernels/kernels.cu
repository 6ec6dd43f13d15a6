// The kernels that `cargo bench --bench kernels` compares with the loops of `loops.cpp`.

extern "C" __global__ void axpy(unsigned long long len, float a, const float *x, float *y) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < len) y[i] = y[i] + a * x[i];
}

// Five points; the border is left as it is.
extern "C" __global__ void stencil(long long rows, long long columns, const float *x, float *y) {
    long long i = blockIdx.y * (long long)blockDim.y + threadIdx.y;
    long long j = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < 1 || j < 1 || i >= rows - 1 || j >= columns - 1) return;
    const float *at = x + i * columns + j;
    y[i * columns + j] = 0.5f * at[0] + 0.125f * (at[-columns] + at[-1] + at[1] + at[columns]);
}

// The sum of each block of 256 elements.
extern "C" __global__ void block_sum(const float *x, float *sums) {
    __shared__ float tile[256];
    tile[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) tile[threadIdx.x] += tile[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = tile[0];
}

// Square matrices, in tiles of 16 by 16 elements.
extern "C" __global__ void matmul(long long size, const float *a, const float *b, float *c) {
    __shared__ float of_a[16][16], of_b[16][16];
    int i = threadIdx.y, j = threadIdx.x;
    long long row = blockIdx.y * 16 + i, column = blockIdx.x * 16 + j;
    float sum = 0;
    for (long long tile = 0; tile < size; tile += 16) {
        of_a[i][j] = a[row * size + tile + j];
        of_b[i][j] = b[(tile + i) * size + column];
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum += of_a[i][k] * of_b[k][j];
        __syncthreads();
    }
    c[row * size + column] = sum;
}

extern "C" __global__ void nothing(float *x) {}
