// Each block counts in shared memory, and adds its counts to those of all.
#define BINS 256

extern "C" __global__ void histogram(unsigned long long len, const unsigned char *pixels,
                                     unsigned *counts) {
    __shared__ unsigned own[BINS];
    for (unsigned bin = threadIdx.x; bin < BINS; bin += blockDim.x) own[bin] = 0;
    __syncthreads();
    unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < len; i += step)
        atomicAdd(&own[pixels[i]], 1u);
    __syncthreads();
    for (unsigned bin = threadIdx.x; bin < BINS; bin += blockDim.x)
        if (own[bin] > 0) atomicAdd(&counts[bin], own[bin]);
}
