// Rows and their chunks: the last axis of an operand runs along its rows, and in the result along
// the chunks of each row. Precedes the kernels of `reduce`, `best` and `cumulative`, of which the
// library compiles one at a time.

#ifndef RESIDENT_OPS
typedef float A;
typedef float T;
typedef float W;
enum { RANK = 2 };
#endif

/// The threads of a block that serves a chunk.
enum { THREADS = 256 };

/// The first element of the n-th row.
template <typename E>
static __device__ __forceinline__ E *row(const resident::View<E, RANK> &view, long long n) {
    long long offset = 0;
    for (int axis = RANK - 2; axis >= 0; --axis) {
        offset += n % view.shape[axis] * view.strides[axis];
        n /= view.shape[axis];
    }
    return view.data + offset;
}

/// The length of a chunk, of which the last of a row may have fewer elements. A template, because
/// some kernels do not use it.
template <typename I>
static __device__ __forceinline__ I length(I row, I chunk, I first) {
    return row - first < chunk ? row - first : chunk;
}
