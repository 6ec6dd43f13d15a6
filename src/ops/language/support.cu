// What the texts of `Elementwise` and `Reduction` compute with: each function has a value for all
// arguments, also where C++ leaves that of an operator open. `language` writes the calls.

namespace text {

/// The type whose sums and products wrap around.
template <typename T> struct Word { typedef T type; };
template <> struct Word<int> { typedef unsigned int type; };
template <> struct Word<long long> { typedef unsigned long long type; };

template <typename T> __device__ __forceinline__ T sum(T a, T b) {
    typedef typename Word<T>::type W;
    return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
}
template <typename T> __device__ __forceinline__ T difference(T a, T b) {
    typedef typename Word<T>::type W;
    return static_cast<T>(static_cast<W>(a) - static_cast<W>(b));
}
template <typename T> __device__ __forceinline__ T product(T a, T b) {
    typedef typename Word<T>::type W;
    return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
}
template <typename T> __device__ __forceinline__ T negated(T a) {
    return difference(static_cast<T>(0), a);
}

/// Truncated; by 0 it is 0, and the smallest number by -1 wraps around to itself.
template <typename T> __device__ __forceinline__ T quotient(T a, T b) {
    if (b == 0) return 0;
    if (static_cast<T>(-1) < 0 && b == static_cast<T>(-1)) return negated(a);
    return a / b;
}
/// By 0 it is 0.
template <typename T> __device__ __forceinline__ T remainder(T a, T b) {
    if (b == 0 || (static_cast<T>(-1) < 0 && b == static_cast<T>(-1))) return 0;
    return a % b;
}

/// Shifts by as many bits as there are, or more, leave none; to the right those of the sign.
template <typename T> __device__ __forceinline__ T left(T a, unsigned long long by) {
    typedef typename Word<T>::type W;
    return by < 8 * sizeof(T) ? static_cast<T>(static_cast<W>(a) << by) : static_cast<T>(0);
}
template <typename T> __device__ __forceinline__ T right(T a, unsigned long long by) {
    return by < 8 * sizeof(T) ? static_cast<T>(a >> by) : static_cast<T>(a < 0 ? -1 : 0);
}

template <typename T> __device__ __forceinline__ T absolute(T a) { return a < 0 ? negated(a) : a; }
template <typename T> __device__ __forceinline__ T smaller(T a, T b) { return b < a ? b : a; }
template <typename T> __device__ __forceinline__ T larger(T a, T b) { return a < b ? b : a; }

template <typename F> __device__ __forceinline__ bool isnan_of(F x) { return x != x; }
template <typename F> __device__ __forceinline__ bool isfinite_of(F x) { return x - x == 0; }
template <typename F> __device__ __forceinline__ bool isinf_of(F x) {
    return x == x && x - x != 0;
}

/// The ends of the integers, as floats: the lowest, and the first that is too large.
template <typename T> struct Ends;
template <> struct Ends<unsigned char> {
    static constexpr double low = 0, high = 256;
    static constexpr unsigned char min = 0, max = 255;
};
template <> struct Ends<int> {
    static constexpr double low = -2147483648.0, high = 2147483648.0;
    static constexpr int min = -2147483647 - 1, max = 2147483647;
};
template <> struct Ends<unsigned int> {
    static constexpr double low = 0, high = 4294967296.0;
    static constexpr unsigned int min = 0, max = 4294967295u;
};
template <> struct Ends<long long> {
    static constexpr double low = -9223372036854775808.0, high = 9223372036854775808.0;
    static constexpr long long min = -9223372036854775807ll - 1, max = 9223372036854775807ll;
};
template <> struct Ends<unsigned long long> {
    static constexpr double low = 0, high = 18446744073709551616.0;
    static constexpr unsigned long long min = 0, max = 18446744073709551615ull;
};

/// Rust's `as` from a float to an integer.
template <typename T, typename F> __device__ __forceinline__ T to(F x) {
    if (x != x) return 0;
    if (x <= static_cast<F>(Ends<T>::low)) return Ends<T>::min;
    if (x >= static_cast<F>(Ends<T>::high)) return Ends<T>::max;
    return static_cast<T>(x);
}

/// Whether a loop may go on: the loops of an element end after so many rounds.
__device__ __forceinline__ bool go_on(unsigned int &rounds) {
    return rounds != 0xffffffffu && ++rounds != 0;
}

} // namespace text
