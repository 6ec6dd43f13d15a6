// `__nv_bfloat16` for AMD's compilers, which have other names for it, or before ROCm 5.5 nothing.
// Operations are done in `float` and rounded to nearest even, as on NVIDIA GPUs before sm_90. Pairs
// (`__nv_bfloat162`) are not there. The stand-in for hiprtc has a header of its own.

#ifndef RESIDENT_CUDA_BF16_OF_AMD_H
#define RESIDENT_CUDA_BF16_OF_AMD_H

struct __attribute__((aligned(2))) __nv_bfloat16 {
    unsigned short __x;

    __nv_bfloat16() = default;
    __host__ __device__ __nv_bfloat16(float value) : __x(rounded(value)) {}
    __host__ __device__ __nv_bfloat16(double value) : __x(rounded(to_odd(value))) {}
    __host__ __device__ __nv_bfloat16(int value) : __nv_bfloat16(static_cast<double>(value)) {}
    __host__ __device__ __nv_bfloat16(unsigned int value)
        : __nv_bfloat16(static_cast<double>(value)) {}

    __host__ __device__ operator float() const {
        unsigned int word = static_cast<unsigned int>(__x) << 16;
        float value;
        __builtin_memcpy(&value, &word, 4);
        return value;
    }

    /// A number with these bits.
    static __host__ __device__ __nv_bfloat16 of_bits(unsigned short bits) {
        __nv_bfloat16 number;
        number.__x = bits;
        return number;
    }

private:
    static __host__ __device__ unsigned short rounded(float value) {
        unsigned int word;
        __builtin_memcpy(&word, &value, 4);
        if ((word & 0x7fffffff) > 0x7f800000) return 0x7fff;
        return static_cast<unsigned short>((word + 0x7fff + (word >> 16 & 1)) >> 16);
    }

    /// The `float` towards zero, with its last bit set if digits were dropped, so that rounding it
    /// again gives what rounding the `double` gives.
    static __host__ __device__ float to_odd(double value) {
        float nearest = static_cast<float>(value);
        unsigned int word;
        __builtin_memcpy(&word, &nearest, 4);
        if (static_cast<double>(nearest) == value || value != value) return nearest;
        // One step back towards zero where rounding went away from it.
        double magnitude = value < 0 ? -value : value;
        float other = nearest < 0 ? -nearest : nearest;
        if (static_cast<double>(other) > magnitude) --word;
        word |= 1;
        __builtin_memcpy(&nearest, &word, 4);
        return nearest;
    }
};

typedef __nv_bfloat16 nv_bfloat16;

// AMD's own functions with these names return another type.
#define __float2bfloat16(x) (__nv_bfloat16(static_cast<float>(x)))
#define __float2bfloat16_rn(x) (__nv_bfloat16(static_cast<float>(x)))
#define __double2bfloat16(x) (__nv_bfloat16(static_cast<double>(x)))
#define __int2bfloat16_rn(x) (__nv_bfloat16(static_cast<int>(x)))
#define __ushort_as_bfloat16(x) (__nv_bfloat16::of_bits(x))

static __host__ __device__ inline float __bfloat162float(__nv_bfloat16 x) {
    return static_cast<float>(x);
}
static __host__ __device__ inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) {
    return x.__x;
}

#define RESIDENT_BF16(name, symbol)                                                               \
    static __host__ __device__ inline __nv_bfloat16 operator symbol(__nv_bfloat16 a,              \
                                                                    __nv_bfloat16 b) {            \
        return __nv_bfloat16(static_cast<float>(a) symbol static_cast<float>(b));                 \
    }                                                                                             \
    static __host__ __device__ inline __nv_bfloat16 &operator symbol##=(__nv_bfloat16 &a,         \
                                                                        __nv_bfloat16 b) {        \
        return a = a symbol b;                                                                    \
    }                                                                                             \
    static __host__ __device__ inline __nv_bfloat16 name(__nv_bfloat16 a, __nv_bfloat16 b) {      \
        return a symbol b;                                                                        \
    }
RESIDENT_BF16(__hadd, +)
RESIDENT_BF16(__hsub, -)
RESIDENT_BF16(__hmul, *)
RESIDENT_BF16(__hdiv, /)
#undef RESIDENT_BF16

#define RESIDENT_BF16(name, symbol)                                                               \
    static __host__ __device__ inline bool operator symbol(__nv_bfloat16 a, __nv_bfloat16 b) {    \
        return static_cast<float>(a) symbol static_cast<float>(b);                                \
    }                                                                                             \
    static __host__ __device__ inline bool name(__nv_bfloat16 a, __nv_bfloat16 b) {               \
        return a symbol b;                                                                        \
    }
RESIDENT_BF16(__heq, ==)
RESIDENT_BF16(__hne, !=)
RESIDENT_BF16(__hlt, <)
RESIDENT_BF16(__hle, <=)
RESIDENT_BF16(__hgt, >)
RESIDENT_BF16(__hge, >=)
#undef RESIDENT_BF16

static __host__ __device__ inline __nv_bfloat16 operator-(__nv_bfloat16 x) {
    return __nv_bfloat16::of_bits(static_cast<unsigned short>(x.__x ^ 0x8000));
}
static __host__ __device__ inline __nv_bfloat16 __hneg(__nv_bfloat16 x) { return -x; }
static __host__ __device__ inline __nv_bfloat16 __habs(__nv_bfloat16 x) {
    return __nv_bfloat16::of_bits(static_cast<unsigned short>(x.__x & 0x7fff));
}
/// The product is exact in `double`, and the sum is rounded twice: in rare cases the last digit is
/// another than that of one rounding.
static __host__ __device__ inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b,
                                                       __nv_bfloat16 c) {
    double product = static_cast<double>(static_cast<float>(a)) * static_cast<float>(b);
    return __nv_bfloat16(product + static_cast<float>(c));
}
static __host__ __device__ inline __nv_bfloat16 __hmax(__nv_bfloat16 a, __nv_bfloat16 b) {
    if (static_cast<float>(a) != static_cast<float>(a)) return b;
    return a < b ? b : a;
}
static __host__ __device__ inline __nv_bfloat16 __hmin(__nv_bfloat16 a, __nv_bfloat16 b) {
    if (static_cast<float>(a) != static_cast<float>(a)) return b;
    return b < a ? b : a;
}

#endif
