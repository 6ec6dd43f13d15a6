// Reads and writes of elements whose places are given, as indices in row-major order. Places are
// checked before the elements are touched.

#ifndef RESIDENT_OPS
typedef float T;
enum { RANK = 2, RANK_OF_INDEX = 1 };
#endif

typedef unsigned long long u64;

#if !defined RESIDENT_OPS || defined KERNEL_check
/// The number of the first index that is not below `len`.
extern "C" __global__ void check(u64 len, resident::View<const T, RANK_OF_INDEX> index,
                                 resident::View<u64, 1> first_bad) {
    long long i = resident::thread();
    if (i < index.size() && index.at(i) >= len) atomicMin(first_bad.data, static_cast<u64>(i));
}
#endif

#if !defined RESIDENT_OPS || defined KERNEL_gather
extern "C" __global__ void gather(resident::View<const T, RANK> a,
                                  resident::View<const u64, RANK_OF_INDEX> index,
                                  resident::View<T, RANK_OF_INDEX> out) {
    long long i = resident::thread();
    if (i < out.size()) out.at(i) = a.at(index.at(i));
}
#endif

#if !defined RESIDENT_OPS || defined KERNEL_last_writers
/// For each place, one more than the number of the last index that leads there.
extern "C" __global__ void last_writers(resident::View<const u64, RANK_OF_INDEX> index,
                                        resident::View<u64, 1> last) {
    long long i = resident::thread();
    if (i < index.size()) atomicMax(&last(index.at(i)), static_cast<u64>(i) + 1);
}
#endif

#if !defined RESIDENT_OPS || defined KERNEL_scatter
extern "C" __global__ void scatter(resident::View<const T, RANK_OF_INDEX> a,
                                   resident::View<const u64, RANK_OF_INDEX> index,
                                   resident::View<const u64, 1> last,
                                   resident::View<T, RANK> out) {
    long long i = resident::thread();
    if (i >= index.size()) return;
    u64 place = index.at(i);
    if (last(place) == static_cast<u64>(i) + 1) out.at(place) = a.at(i);
}
#endif
