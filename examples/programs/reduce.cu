// The sum of each block's elements: each thread adds some of them, and the block adds what its
// threads have, in a tree in shared memory.
extern "C" __global__ void block_sums(unsigned long long len, const float *x, float *sums) {
    extern __shared__ float part[];
    float sum = 0;
    unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < len; i += step) sum += x[i];
    part[threadIdx.x] = sum;
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}
