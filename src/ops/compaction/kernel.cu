// Elements that a mask chooses, where sorted elements change, and how often indices occur.

#ifndef RESIDENT_OPS
typedef float T;
typedef unsigned int I;
typedef unsigned int C;
enum { RANK = 2 };
#endif

typedef unsigned long long u64;

#if !defined RESIDENT_OPS || defined KERNEL_compress
/// `ranks` has the number of chosen elements up to each, itself included.
extern "C" __global__ void compress(resident::View<const T, RANK> a,
                                    resident::View<const unsigned char, RANK> mask,
                                    resident::View<const u64, 1> ranks,
                                    resident::View<T, 1> out) {
    long long i = resident::thread();
    if (i < a.size() && mask.at(i) != 0) out(ranks(i) - 1) = a.at(i);
}
#endif

#if !defined RESIDENT_OPS || defined KERNEL_changes
/// Marks the first of equal elements in ascending order; NaN, which come last, are equal.
extern "C" __global__ void changes(resident::View<const T, 1> a,
                                   resident::View<unsigned char, 1> mask) {
    long long i = resident::thread();
    if (i >= a.size()) return;
    T x = a(i), before = i == 0 ? x : a(i - 1);
    bool is_same = i > 0 && (x == before || (x != x && before != before));
    mask(i) = is_same ? 0 : 1;
}
#endif

#if !defined RESIDENT_OPS || defined KERNEL_count
extern "C" __global__ void count(resident::View<const I, RANK> index, resident::View<C, 1> counts) {
    long long i = resident::thread();
    if (i < index.size()) atomicAdd(&counts(index.at(i)), C(1));
}
#endif
