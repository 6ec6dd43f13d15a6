// The types of two bytes to `float` and back, to the nearest, by their bits: `f16` is IEEE 754's
// binary16, and `bf16` the upper half of a `float`. So sources need no header of the toolkit.

__device__ __forceinline__ float from_f16(unsigned short x) {
    unsigned int sign = (x & 0x8000u) << 16, exponent = x >> 10 & 31, fraction = x & 0x3ffu;
    if (exponent == 31) return __uint_as_float(sign | 0x7f800000u | fraction << 13);
    if (exponent > 0) return __uint_as_float(sign | (exponent + 112) << 23 | fraction << 13);
    float magnitude = static_cast<float>(fraction) * 5.9604644775390625e-8f;
    return sign != 0 ? -magnitude : magnitude;
}

__device__ __forceinline__ unsigned short to_f16(float x) {
    unsigned int bits = __float_as_uint(x), sign = bits >> 16 & 0x8000u;
    unsigned int magnitude = bits & 0x7fffffffu, result;
    if (magnitude > 0x7f800000u) {
        result = 0x7e00u;
    } else if (magnitude >= 0x477ff000u) {
        result = 0x7c00u;
    } else if (magnitude < 0x38800000u) {
        result = static_cast<unsigned int>(rintf(__uint_as_float(magnitude) * 16777216.0f));
    } else {
        result = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
    }
    return static_cast<unsigned short>(sign | result);
}

__device__ __forceinline__ float from_bf16(unsigned short x) {
    return __uint_as_float(static_cast<unsigned int>(x) << 16);
}

__device__ __forceinline__ unsigned short to_bf16(float x) {
    unsigned int bits = __float_as_uint(x);
    if (x != x) return static_cast<unsigned short>(bits >> 16 | 0x40u);
    return static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// Numbers with more digits than a `float`, as a `float` whose last bit is set if digits were
// dropped (rounded to odd). `to_f16` and `to_bf16` then give the nearest of the number itself.

__device__ __forceinline__ float to_odd(double x) {
    float near = static_cast<float>(x);
    double back = near;
    if (back == x || x != x) return near;
    unsigned int bits = __float_as_uint(near);
    if (fabs(back) > fabs(x)) bits -= 1;
    return __uint_as_float(bits | 1u);
}

__device__ __forceinline__ float to_odd(unsigned long long x) {
    // A `double` has 53 bits: the last of them stands for those below.
    if (x >> 53 != 0 && (x & 0x7ffull) != 0) x = (x | 0x800ull) & ~0x7ffull;
    return to_odd(static_cast<double>(x));
}

__device__ __forceinline__ float to_odd(long long x) {
    unsigned long long bits = static_cast<unsigned long long>(x);
    return x < 0 ? -to_odd(0ull - bits) : to_odd(bits);
}
