// C = A * B, tile by tile: each block loads a tile of A and one of B into shared memory, and each of
// its threads adds one row of the first to one column of the second.
#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void matmul(resident::View2<const float> a, resident::View2<const float> b,
                                  resident::View2<float> c) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    long long row = blockIdx.y * (long long)TILE + threadIdx.y;
    long long column = blockIdx.x * (long long)TILE + threadIdx.x;
    float sum = 0;
    for (long long k = 0; k < a.shape[1]; k += TILE) {
        long long across = k + threadIdx.x, down = k + threadIdx.y;
        left[threadIdx.y][threadIdx.x] = a.contains(row, across) ? a(row, across) : 0;
        right[threadIdx.y][threadIdx.x] = b.contains(down, column) ? b(down, column) : 0;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    if (c.contains(row, column)) c(row, column) = sum;
}
