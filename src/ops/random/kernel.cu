// Random numbers: each element is a function of the seed and of its number alone.

#ifndef RESIDENT_OPS
typedef float T;
enum { RANK = 2 };
#endif

typedef unsigned int u32;
typedef unsigned long long u64;

struct Block {
    u32 word[4];
};

/// Philox4x32-10 of Random123.
static __device__ __forceinline__ Block philox(u64 seed, u64 number, u32 third, u32 fourth) {
    u32 a = static_cast<u32>(number), b = static_cast<u32>(number >> 32), c = third, d = fourth;
    u32 k0 = static_cast<u32>(seed), k1 = static_cast<u32>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        u64 one = static_cast<u64>(a) * 0xD2511F53u, two = static_cast<u64>(c) * 0xCD9E8D57u;
        a = static_cast<u32>(two >> 32) ^ b ^ k0;
        c = static_cast<u32>(one >> 32) ^ d ^ k1;
        b = static_cast<u32>(two);
        d = static_cast<u32>(one);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    Block block = {{a, b, c, d}};
    return block;
}

/// A number from 0 to 1, which it never is, of 53 bits.
static __device__ __forceinline__ double of_words(u32 low, u32 high) {
    u64 bits = static_cast<u64>(high) << 32 | low;
    return static_cast<double>(bits >> 11) * 1.1102230246251565e-16;
}

#if !defined RESIDENT_OPS || defined KERNEL_uniform
extern "C" __global__ void uniform(u64 seed, resident::View<T, RANK> out) {
    long long i = resident::thread();
    if (i >= out.size()) return;
    u64 number = static_cast<u64>(i);
    if (sizeof(T) == sizeof(float)) {
        Block block = philox(seed, number / 4, 0, 0);
        float word = static_cast<float>(block.word[number % 4] >> 8);
        out.at(i) = static_cast<T>(word * 5.9604644775390625e-8f);
    } else {
        Block block = philox(seed, number / 2, 0, 0);
        u32 first = number % 2 == 0 ? 0 : 2;
        out.at(i) = static_cast<T>(of_words(block.word[first], block.word[first + 1]));
    }
}
#endif

#if !defined RESIDENT_OPS || defined KERNEL_normal
/// The natural logarithm of a normal positive number. Only operations that IEEE 754 rounds, so that
/// all devices agree.
static __device__ __forceinline__ double log_of(double x) {
    u64 bits = static_cast<u64>(__double_as_longlong(x));
    double exponent = static_cast<double>(static_cast<int>(bits >> 52) - 1023);
    double m = __longlong_as_double(
        static_cast<long long>((bits & 0xFFFFFFFFFFFFFull) | 0x3FF0000000000000ull));
    if (m > 1.4142135623730951) {
        m = m * 0.5;
        exponent = exponent + 1.0;
    }
    double f = (m - 1.0) / (m + 1.0), s = f * f, sum = 1.0 / 21.0;
    for (int odd = 19; odd >= 1; odd -= 2) sum = sum * s + 1.0 / static_cast<double>(odd);
    return exponent * 0.6931471805599453 + 2.0 * f * sum;
}

/// Marsaglia's polar method: the first point of a square that lies in the circle.
extern "C" __global__ void normal(u64 seed, resident::View<T, RANK> out) {
    long long i = resident::thread();
    if (i >= out.size()) return;
    for (u32 attempt = 0;; ++attempt) {
        Block block = philox(seed, static_cast<u64>(i), attempt, 1);
        double x = of_words(block.word[0], block.word[1]) * 2.0 - 1.0;
        double y = of_words(block.word[2], block.word[3]) * 2.0 - 1.0;
        double s = x * x + y * y;
        if (s < 1.0 && s > 0.0) {
            out.at(i) = static_cast<T>(x * sqrt(-2.0 * log_of(s) / s));
            return;
        }
    }
}
#endif
