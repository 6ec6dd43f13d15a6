//! What a source calls by a name of this machine's headers is its own.

use resident::{Grid, InOut, Result, SmartArray};

use crate::{checking, device, kernel, one_of};

/// Functions that are called with arguments that need a conversion, variables and types.
const SOURCE: &str = r#"
    #include <stdint.h>
    #include <math.h>
    #include <stdlib.h>
    #if __has_include(<vector>)
    #error NVRTC has no standard library
    #endif
    namespace std {
    template <typename T> struct numeric_limits;
    template <> struct numeric_limits<float> {
        __device__ static constexpr float max() { return 12; }
    };
    template <typename T, typename U> struct is_same { static constexpr bool value = false; };
    template <typename T> struct is_same<T, T> { static constexpr bool value = true; };
    }
    typedef long long ssize_t;
    typedef unsigned int uint;
    struct timezone { float index; };
    struct stat { float size; };
    __device__ float gamma(float x) { return x + 1; }
    __device__ float rand(float x) { return x + 2; }
    __device__ float exp2l(float x) { return x + 3; }
    __device__ float lrintl(float x) { return x + 4; }
    __device__ float index, snprintf[300], memmove = 8, environ;
    extern "C" __device__ void exit(int code) { environ = code; }
    extern "C" __device__ int memcmp(const void *, const void *, size_t) { return 14; }
    __constant__ float time = 5, random = 6;
    __device__ int stdout = 9, errno = 10;

    extern "C" __global__ void names(float *x) {
        index = 7;
        double argument = x[9];
        exit(1);
        float of_functions[] = {gamma(argument), rand(argument), exp2l(argument), lrintl(argument)};
        float of_variables[] = {time, random, index, memmove, float(stdout), float(errno)};
        for (int at = 0; at < 4; ++at) x[at] = of_functions[at];
        for (int at = 0; at < 6; ++at) x[at + 4] = of_variables[at];
        timezone of_type = {11};
        x[10] = of_type.index;
        x[11] = std::numeric_limits<float>::max();
        x[12] = sizeof(ssize_t) + sizeof(uint) + std::is_same<uint8_t, unsigned char>::value;
        x[13] = memcmp(x, x, 4);
        for (int at = 0; at < 300; ++at) snprintf[at] = x[at % 10];
        assert(snprintf[299] == 10);
    }
    extern "C" __global__ void select(float *x) { x[0] = M_PI > 3 && UINT_MAX > 4 ? 1 : 2; }
    extern "C" __global__ void memset(float *x) {
        struct { float values[40]; } zeros = {};
        x[0] = 2 + zeros.values[threadIdx.x];
    }
"#;

#[test]
fn names_of_this_machines_headers_are_the_sources() -> Result<()> {
    for device in [device(), checking()] {
        let mut x = SmartArray::<f32, _>::zeros(14);
        let expected = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14].map(|value| value as f32);
        let names = one_of::<(InOut<f32>,)>(SOURCE, "names");
        names.launch_on(&device.stream(), Grid::new(1, 1), (&mut x,))?;
        assert_eq!(x.to_vec()?, expected);
        for (name, value) in [("select", 1.0), ("memset", 2.0)] {
            let kernel = one_of::<(InOut<f32>,)>(SOURCE, name);
            kernel.launch_on(&device.stream(), Grid::new(1, 1), (&mut x,))?;
            assert_eq!(x.get(0)?, value, "{name}");
        }
    }
    Ok(())
}

/// The address of a function is one too, and functions of CUDA's have those of C below them.
#[test]
fn functions_of_mathematics_have_addresses_and_may_be_defined_again() -> Result<()> {
    let source = "
        template <float (*function)(float)> __device__ float apply(float x) { return function(x); }
        #ifdef __clang__ // It knows what the function is.
        #define own_floor(x) floor(x) + 1
        #else
        #define own_floor(x) floor(x)
        __device__ double floor(double x) { return floor((float)x) + 1; }
        #endif
        extern \"C\" __global__ void k(float *x) {
            float (*functions[])(float) = {sqrt, fabs, abs, ceil, roundf};
            for (int at = 0; at < 5; ++at) x[at] = functions[at](x[at]);
            x[5] = apply<sqrtf>(x[5]) + own_floor(2.5);
            float of_x, sine, cosine;
            int exponent, quotient;
            x[6] = modf(x[6], &of_x) + of_x + frexp(8.0f, &exponent) + exponent;
            sincos(x[7], &sine, &cosine);
            x[7] = sine + cosine + remquo(7.0f, 2.0f, &quotient) + quotient;
            x[8] = isnan(x[8]) + isinf(1 / x[8]) + signbit(-x[8]) + isfinite(x[8]);
            const double sides[] = {3, 4};
            x[9] = norm(2, sides) + pow(2.0f, 3) + copysign(1.0f, -2.0) + max(1u, 2) + labs(-3);
        }";
    let values = [16.0, -2.0, -3.0, 1.5, 2.4, 9.0, 2.25, 0.0, 0.0, 0.0];
    let expected = [4.0, 2.0, 3.0, 2.0, 2.0, 6.0, 6.75, 4.0, 3.0, 17.0];
    let kernel = kernel::<(InOut<f32>,)>("k", source);
    for device in [device(), checking()] {
        let mut x = SmartArray::<f32, _>::from(values.to_vec());
        kernel.launch_on(&device.stream(), Grid::new(1, 1), (&mut x,))?;
        assert_eq!(x.to_vec()?, expected);
    }
    Ok(())
}
