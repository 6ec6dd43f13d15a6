// Complex numbers: two floats side by side, with the arithmetic of `num_complex`, and quotients by
// Smith's method. The alignment is that of one float, as in Rust: memory of `Complex<f32>` may
// begin at any multiple of 4 bytes, where a `cuFloatComplex` may not.

// Products that no compiler contracts: a number times its conjugate has no imaginary part.
__device__ __forceinline__ float product_of(float x, float y) { return __fmul_rn(x, y); }
__device__ __forceinline__ double product_of(double x, double y) { return __dmul_rn(x, y); }
__device__ __forceinline__ float magnitude(float re, float im) { return hypotf(re, im); }
__device__ __forceinline__ double magnitude(double re, double im) { return hypot(re, im); }
__device__ __forceinline__ float absolute_part(float x) { return fabsf(x); }
__device__ __forceinline__ double absolute_part(double x) { return fabs(x); }

template <typename F> struct Complex {
    F re, im;

    // Shared memory and arrays have no values at first.
    Complex() = default;
    __device__ __forceinline__ Complex(F re, F im = 0) : re(re), im(im) {}
    template <typename G>
    __device__ __forceinline__ explicit Complex(const Complex<G> &z)
        : re(static_cast<F>(z.re)), im(static_cast<F>(z.im)) {}

    __device__ __forceinline__ Complex conj() const { return Complex(re, -im); }
    __device__ __forceinline__ F abs() const { return magnitude(re, im); }
    __device__ __forceinline__ Complex operator-() const { return Complex(-re, -im); }

    // Friends, so that a number becomes complex on either side.
    friend __device__ __forceinline__ Complex operator+(Complex a, Complex b) {
        return Complex(a.re + b.re, a.im + b.im);
    }
    friend __device__ __forceinline__ Complex operator-(Complex a, Complex b) {
        return Complex(a.re - b.re, a.im - b.im);
    }
    friend __device__ __forceinline__ Complex operator*(Complex a, Complex b) {
        return Complex(product_of(a.re, b.re) - product_of(a.im, b.im),
                       product_of(a.re, b.im) + product_of(a.im, b.re));
    }
    friend __device__ __forceinline__ Complex operator/(Complex a, Complex b) {
        if (absolute_part(b.re) >= absolute_part(b.im)) {
            F ratio = b.im / b.re, divisor = b.re + product_of(b.im, ratio);
            return Complex((a.re + product_of(a.im, ratio)) / divisor,
                           (a.im - product_of(a.re, ratio)) / divisor);
        }
        F ratio = b.re / b.im, divisor = product_of(b.re, ratio) + b.im;
        return Complex((product_of(a.re, ratio) + a.im) / divisor,
                       (product_of(a.im, ratio) - a.re) / divisor);
    }
    friend __device__ __forceinline__ bool operator==(Complex a, Complex b) {
        return a.re == b.re && a.im == b.im;
    }
    friend __device__ __forceinline__ bool operator!=(Complex a, Complex b) { return !(a == b); }
};

