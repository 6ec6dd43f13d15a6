// Where the best elements of rows are.
// Preceded by: ../rows/rows.cuh

#ifndef RESIDENT_OPS
static __device__ __forceinline__ bool better(T x, T y) { return x < y; }
#endif

#if !defined RESIDENT_OPS || defined KERNEL_best
/// Where the first of the best elements of each chunk is, counted from the start of its row; NaN is
/// the best. One thread for each chunk.
extern "C" __global__ void best(long long chunk, resident::View<const T, RANK> a,
                                resident::View<unsigned long long, RANK> out) {
    long long item = resident::thread(), items = out.size();
    if (item >= items) return;
    long long rows = items / out.shape[RANK - 1], number = item / rows, n = item % rows;
    long long stride = a.strides[RANK - 1], first = number * chunk, at = 0;
    long long len = length(a.shape[RANK - 1], chunk, first);
    const T *from = row(a, n) + first * stride;
    for (long long i = 1; i < len; ++i)
        if (better(from[i * stride], from[at * stride])) at = i;
    row(out, n)[number * out.strides[RANK - 1]] = first + at;
}
#endif

#if !defined RESIDENT_OPS || defined KERNEL_best_among
/// As `best`, among the elements of each row whose places are given.
extern "C" __global__ void best_among(long long chunk, resident::View<const T, RANK> a,
                                      resident::View<const unsigned long long, RANK> places,
                                      resident::View<unsigned long long, RANK> out) {
    long long item = resident::thread(), items = out.size();
    if (item >= items) return;
    long long rows = items / out.shape[RANK - 1], number = item / rows, n = item % rows;
    long long stride = a.strides[RANK - 1], step = places.strides[RANK - 1], first = number * chunk;
    long long len = length(places.shape[RANK - 1], chunk, first);
    const T *from = row(a, n);
    const unsigned long long *place = row(places, n) + first * step;
    unsigned long long at = place[0];
    for (long long i = 1; i < len; ++i)
        if (better(from[place[i * step] * stride], from[at * stride])) at = place[i * step];
    row(out, n)[number * out.strides[RANK - 1]] = at;
}
#endif
