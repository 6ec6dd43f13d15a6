// The transpose, tile by tile: a block reads a tile by rows, and writes it by rows too, so that both
// are accesses of neighbouring bytes. A column more keeps the tile's columns in different banks.
#define TILE 16

extern "C" __global__ void transpose(resident::View2<const double> a, resident::View2<double> b) {
    __shared__ double tile[TILE][TILE + 1];
    long long row = blockIdx.y * (long long)TILE + threadIdx.y;
    long long column = blockIdx.x * (long long)TILE + threadIdx.x;
    if (a.contains(row, column)) tile[threadIdx.y][threadIdx.x] = a(row, column);
    __syncthreads();
    row = blockIdx.x * (long long)TILE + threadIdx.y;
    column = blockIdx.y * (long long)TILE + threadIdx.x;
    if (b.contains(row, column)) b(row, column) = tile[threadIdx.x][threadIdx.y];
}
