// Products of a sparse matrix in compressed rows (CSR): the entries of row r are those from
// `starts[r]` to `starts[r + 1]`, each with its column and its value. Indices are checked first.

#ifndef RESIDENT_OPS
typedef float T;
typedef float W;
typedef unsigned int I;
#endif

typedef unsigned long long u64;

#if !defined RESIDENT_OPS || defined KERNEL_check
/// The number of the first row that does not lie in the entries, with the highest bit set, or of
/// the first column that is not below `width`.
extern "C" __global__ void check(u64 width, resident::View<const I, 1> starts,
                                 resident::View<const I, 1> columns,
                                 resident::View<u64, 1> first_bad) {
    long long i = resident::thread();
    if (i < columns.size() && columns(i) >= width) atomicMin(first_bad.data, static_cast<u64>(i));
    if (i >= starts.size()) return;
    u64 start = starts(i), entries = columns.size();
    u64 before = i == 0 ? 0 : starts(i - 1);
    bool is_first = i == 0 && start != 0, is_last = i + 1 == starts.size() && start != entries;
    if (is_first || is_last || start < before || start > entries)
        atomicMin(first_bad.data, static_cast<u64>(i) | 1ull << 63);
}
#endif

#if !defined RESIDENT_OPS || defined KERNEL_matvec
/// The threads of a row, which are neighbours in a warp.
enum { ROW_LANES = 8 };

extern "C" __global__ void matvec(resident::View<const I, 1> starts,
                                  resident::View<const I, 1> columns,
                                  resident::View<const T, 1> values, resident::View<const T, 1> x,
                                  resident::View<T, 1> y) {
    long long row = resident::thread() / ROW_LANES;
    unsigned int lane = threadIdx.x % ROW_LANES;
    T sum = 0;
    if (row < y.size()) {
        for (u64 i = starts(row) + lane; i < starts(row + 1); i += ROW_LANES)
            sum = T(W(sum) + W(values(i)) * W(x(columns(i))));
    }
    for (int distance = ROW_LANES / 2; distance > 0; distance /= 2)
        sum = T(W(sum) + W(__shfl_down_sync(resident::all_lanes(), sum, distance, ROW_LANES)));
    if (lane == 0 && row < y.size()) y(row) = sum;
}
#endif

#if !defined RESIDENT_OPS || defined KERNEL_matmul
/// One thread for each element of the product.
extern "C" __global__ void matmul(resident::View<const I, 1> starts,
                                  resident::View<const I, 1> columns,
                                  resident::View<const T, 1> values, resident::View<const T, 2> b,
                                  resident::View<T, 2> c) {
    long long item = resident::thread();
    if (item >= c.size()) return;
    long long row = item / c.shape[1], column = item % c.shape[1];
    T sum = 0;
    for (u64 i = starts(row); i < starts(row + 1); ++i)
        sum = T(W(sum) + W(values(i)) * W(b(columns(i), column)));
    c(row, column) = sum;
}
#endif
