// The kernels of `kernels.cu` as loops. Each function runs the rows, blocks or elements from `first`
// up to `end`, on memory that the caller names.

#include <cstddef>

#define LOOP(name, parameters)                                                                    \
    extern "C" __attribute__((visibility("default"))) void name(size_t first, size_t end, parameters)
#define ARRAYS size_t size, const float *x, const float *y, float *z

// z = z + 3 x.
LOOP(axpy, ARRAYS) {
    for (size_t i = first; i < end; ++i) z[i] = z[i] + 3.0f * x[i];
}

LOOP(stencil, ARRAYS) {
    for (size_t i = first < 1 ? 1 : first; i < (end < size - 1 ? end : size - 1); ++i)
        for (size_t j = 1; j < size - 1; ++j) {
            const float *at = x + i * size + j;
            z[i * size + j] = 0.5f * at[0] + 0.125f * (at[-size] + at[-1] + at[1] + at[size]);
        }
}

LOOP(block_sum, ARRAYS) {
    for (size_t block = first; block < end; ++block) {
        float tile[256];
        for (int i = 0; i < 256; ++i) tile[i] = x[block * 256 + i];
        for (int half = 128; half > 0; half /= 2)
            for (int i = 0; i < half; ++i) tile[i] += tile[i + half];
        z[block] = tile[0];
    }
}

// Rows of tiles.
LOOP(matmul, ARRAYS) {
    for (size_t row = first * 16; row < end * 16; row += 16)
        for (size_t column = 0; column < size; column += 16) {
            float sums[16][16] = {}, of_x[16][16], of_y[16][16];
            for (size_t tile = 0; tile < size; tile += 16) {
                for (int i = 0; i < 16; ++i)
                    for (int j = 0; j < 16; ++j) {
                        of_x[i][j] = x[(row + i) * size + tile + j];
                        of_y[i][j] = y[(tile + i) * size + column + j];
                    }
                for (int i = 0; i < 16; ++i)
                    for (int k = 0; k < 16; ++k)
                        for (int j = 0; j < 16; ++j) sums[i][j] += of_x[i][k] * of_y[k][j];
            }
            for (int i = 0; i < 16; ++i)
                for (int j = 0; j < 16; ++j) z[(row + i) * size + column + j] = sums[i][j];
        }
}
