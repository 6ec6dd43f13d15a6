// One thread per row or per element; one block for a dot product.

using resident::View1;

// Threads of the block of `dot`, as in `kernels.rs`.
constexpr unsigned BLOCK = 256;

// The matrix may contain any values. Entries and columns that do not exist count as zeros.
extern "C" __global__ void multiply(View1<const double> values, View1<const unsigned> columns,
                                    View1<const unsigned> starts, View1<const double> vector,
                                    View1<double> product) {
    long long row = resident::thread();
    if (!product.contains(row)) return;
    double sum = 0;
    for (long long index = starts(row); index < starts(row + 1) && values.contains(index); ++index)
        if (vector.contains(columns(index))) sum += values(index) * vector(columns(index));
    product(row) = sum;
}

// The order of the additions is fixed, so the result is reproducible: first per thread, then by
// halves.
extern "C" __global__ void dot(View1<const double> x, View1<const double> y,
                               View1<double> product) {
    __shared__ double sums[BLOCK];
    double sum = 0;
    for (long long i = threadIdx.x; i < x.size(); i += BLOCK) sum += x(i) * y(i);
    sums[threadIdx.x] = sum;
    for (unsigned half = BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) product(0) = sums[0];
}

extern "C" __global__ void add(View1<const double> factor, View1<const double> x, View1<double> y) {
    long long i = resident::thread();
    if (y.contains(i)) y(i) += factor(0) * x(i);
}

extern "C" __global__ void step(View1<const double> square, View1<const double> curvature,
                                View1<double> step, View1<double> negative) {
    if (resident::thread() > 0) return;
    step(0) = square(0) / curvature(0);
    negative(0) = -step(0);
}

extern "C" __global__ void turn(View1<const double> now, View1<const double> before,
                                View1<const double> residual, View1<double> direction) {
    long long i = resident::thread();
    if (direction.contains(i)) direction(i) = residual(i) + now(0) / before(0) * direction(i);
}
