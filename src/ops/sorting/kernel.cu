// Sorted order of rows: an array of places is sorted, first in short runs, then by merging pairs of
// runs until one is left. Equal elements keep their order. And a search in a sorted line.
// Preceded by: ../rows/rows.cuh

typedef unsigned long long u64;

/// The places of a run that one thread sorts.
enum { RUN = 16 };

/// Whether x comes before y: in ascending order, NaN last.
static __device__ __forceinline__ bool is_before(T x, T y) {
    return x < y || (x == x && y != y);
}

#if !defined RESIDENT_OPS || defined KERNEL_sort_runs
/// One thread for each run of each row.
extern "C" __global__ void sort_runs(resident::View<const T, RANK> a,
                                     resident::View<u64, RANK> places) {
    long long len = a.shape[RANK - 1], runs = (len + RUN - 1) / RUN;
    long long item = resident::thread();
    if (item >= a.size() / len * runs) return;
    long long n = item / runs, first = item % runs * RUN, step_a = a.strides[RANK - 1];
    long long step = places.strides[RANK - 1], count = length<long long>(len, RUN, first);
    const T *from = row(a, n);
    u64 *to = row(places, n) + first * step;
    for (long long i = 0; i < count; ++i) {
        T element = from[(first + i) * step_a];
        long long at = i;
        for (; at > 0 && is_before(element, from[to[(at - 1) * step] * step_a]); --at)
            to[at * step] = to[(at - 1) * step];
        to[at * step] = static_cast<u64>(first + i);
    }
}
#endif

#if !defined RESIDENT_OPS || defined KERNEL_merge_runs
/// Merges each run of `width` places with the next. One thread for each place, which counts the
/// places of the other run that come before its own.
extern "C" __global__ void merge_runs(long long width, resident::View<const T, RANK> a,
                                      resident::View<const u64, RANK> places,
                                      resident::View<u64, RANK> merged) {
    long long item = resident::thread();
    if (item >= a.size()) return;
    long long len = a.shape[RANK - 1], n = item / len, i = item % len;
    long long step_a = a.strides[RANK - 1], step = places.strides[RANK - 1];
    const T *from = row(a, n);
    const u64 *runs = row(places, n);
    long long first = i / (2 * width) * (2 * width), middle = first + width;
    if (middle > len) middle = len;
    long long end = middle + width < len ? middle + width : len;
    bool is_left = i < middle;
    u64 place = runs[i * step];
    T element = from[place * step_a];
    long long low = is_left ? middle : first, high = is_left ? end : middle, start = low;
    while (low < high) {
        long long half = low + (high - low) / 2;
        T other = from[runs[half * step] * step_a];
        bool comes_first = is_left ? is_before(other, element) : !is_before(element, other);
        if (comes_first) {
            low = half + 1;
        } else {
            high = half;
        }
    }
    long long own = i - (is_left ? first : middle);
    row(merged, n)[(first + own + low - start) * merged.strides[RANK - 1]] = place;
}
#endif

#if !defined RESIDENT_OPS || defined KERNEL_take
/// The elements in the order of the places. One thread for each.
extern "C" __global__ void take(resident::View<const T, RANK> a,
                                resident::View<const u64, RANK> places,
                                resident::View<T, RANK> out) {
    long long item = resident::thread();
    if (item >= a.size()) return;
    long long len = a.shape[RANK - 1], n = item / len, i = item % len;
    u64 place = row(places, n)[i * places.strides[RANK - 1]];
    row(out, n)[i * out.strides[RANK - 1]] = row(a, n)[place * a.strides[RANK - 1]];
}
#endif

#if !defined RESIDENT_OPS || defined KERNEL_search
/// The number of elements of a sorted line that come before each value. One thread for each.
extern "C" __global__ void search(resident::View<const T, 1> sorted,
                                  resident::View<const T, RANK> values,
                                  resident::View<u64, RANK> index) {
    long long item = resident::thread();
    if (item >= values.size()) return;
    T value = values.at(item);
    long long least = 0, most = sorted.shape[0];
    while (least < most) {
        long long middle = least + (most - least) / 2;
        if (is_before(sorted(middle), value)) {
            least = middle + 1;
        } else {
            most = middle;
        }
    }
    index.at(item) = static_cast<u64>(least);
}
#endif
