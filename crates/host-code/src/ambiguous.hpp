// Behind `cuda_on_host.hpp`: functions that CUDA C has for `float` and `double` alone. C++ has them
// for integers too: with these beside them such a call is ambiguous, as NVRTC says.

#define RESIDENT_OF_ONE(name)                                                                     \
    template <typename T, typename = std::enable_if_t<std::is_integral<T>::value>>                \
    void name(T) = delete;
#define RESIDENT_OF_TWO(name)                                                                     \
    template <typename T, typename U,                                                             \
              typename = std::enable_if_t<std::is_integral<T>::value>,                            \
              typename = std::enable_if_t<std::is_integral<U>::value>>                            \
    void name(T, U) = delete;
RESIDENT_OF_ONE(acos) RESIDENT_OF_ONE(acosh) RESIDENT_OF_ONE(asin) RESIDENT_OF_ONE(asinh)
RESIDENT_OF_ONE(atan) RESIDENT_OF_ONE(atanh) RESIDENT_OF_ONE(cbrt) RESIDENT_OF_ONE(ceil)
RESIDENT_OF_ONE(cos) RESIDENT_OF_ONE(cosh) RESIDENT_OF_ONE(erf) RESIDENT_OF_ONE(erfc)
RESIDENT_OF_ONE(exp) RESIDENT_OF_ONE(exp2) RESIDENT_OF_ONE(exp10) RESIDENT_OF_ONE(expm1)
RESIDENT_OF_ONE(fabs) RESIDENT_OF_ONE(floor) RESIDENT_OF_ONE(lgamma) RESIDENT_OF_ONE(log)
RESIDENT_OF_ONE(log10) RESIDENT_OF_ONE(log1p) RESIDENT_OF_ONE(log2) RESIDENT_OF_ONE(logb)
RESIDENT_OF_ONE(nearbyint) RESIDENT_OF_ONE(rint) RESIDENT_OF_ONE(round) RESIDENT_OF_ONE(sin)
RESIDENT_OF_ONE(sinh) RESIDENT_OF_ONE(sqrt) RESIDENT_OF_ONE(tan) RESIDENT_OF_ONE(tanh)
RESIDENT_OF_ONE(tgamma) RESIDENT_OF_ONE(trunc)
RESIDENT_OF_TWO(atan2) RESIDENT_OF_TWO(copysign) RESIDENT_OF_TWO(fdim) RESIDENT_OF_TWO(fmax)
RESIDENT_OF_TWO(fmin) RESIDENT_OF_TWO(fmod) RESIDENT_OF_TWO(hypot) RESIDENT_OF_TWO(pow)
RESIDENT_OF_TWO(remainder) RESIDENT_OF_TWO(nextafter)
#undef RESIDENT_OF_ONE
#undef RESIDENT_OF_TWO
