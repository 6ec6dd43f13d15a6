// The product of two tables: a block computes a tile of 32 rows and 32 columns of the result, each
// thread four of its rows, from tiles of the operands in shared memory. The tiles of the result are
// numbered row by row.

#ifndef RESIDENT_OPS
typedef float T;
typedef float W;
enum { RANK = 2 };
#endif

enum { TILE = 32, ROWS_PER_THREAD = 4, STEP = TILE / ROWS_PER_THREAD };

extern "C" __global__ void matmul(resident::View<const T, RANK> a, resident::View<const T, RANK> b,
                                  resident::View<T, RANK> c) {
    __shared__ T of_a[TILE][TILE + 1], of_b[TILE][TILE + 1];
    long long tiles = (c.shape[1] + TILE - 1) / TILE;
    long long first_row = blockIdx.x / tiles * TILE, column = blockIdx.x % tiles * TILE;
    int x = threadIdx.x, y = threadIdx.y;
    column += x;
    T sums[ROWS_PER_THREAD] = {};
    for (long long first = 0; first < a.shape[1]; first += TILE) {
        for (int part = 0; part < ROWS_PER_THREAD; ++part) {
            int line = y + part * STEP;
            long long row = first_row + line, inner = first + x;
            of_a[line][x] = row < a.shape[0] && inner < a.shape[1] ? a(row, inner) : T(0);
            inner = first + line;
            of_b[line][x] = inner < b.shape[0] && column < b.shape[1] ? b(inner, column) : T(0);
        }
        __syncthreads();
        for (int i = 0; i < TILE; ++i)
            for (int part = 0; part < ROWS_PER_THREAD; ++part)
                sums[part] = T(W(sums[part]) + W(of_a[y + part * STEP][i]) * W(of_b[i][x]));
        __syncthreads();
    }
    for (int part = 0; part < ROWS_PER_THREAD; ++part) {
        long long row = first_row + y + part * STEP;
        if (c.contains(row, column)) c(row, column) = sums[part];
    }
}
