// The CUDA bodies of the edge detector: one thread per pixel, rows along y and columns along x. The
// host bodies in `bodies.rs` are the reference and document each kernel. The code is compiled
// without fused multiply-add, so that each product and sum is rounded as on the host and the
// pictures agree bit for bit.

using resident::View2;
using resident::View3;

// The widest blur reads 3 * 64 pixels on each side.
constexpr int RADIUS_MAX = 192;

constexpr unsigned NO_LABEL = 0xFFFFFFFFu;

__device__ long long row_of_thread() { return blockIdx.y * (long long)blockDim.y + threadIdx.y; }
__device__ long long column_of_thread() { return blockIdx.x * (long long)blockDim.x + threadIdx.x; }

// Beyond the border the outermost pixel is repeated.
__device__ long long clamped(long long index, long long len) {
    return index < 0 ? 0 : index < len ? index : len - 1;
}

extern "C" __global__ void grey(View3<const unsigned char> photo, View2<float> grey) {
    long long row = row_of_thread(), column = column_of_thread();
    if (!grey.contains(row, column)) return;
    float red = photo(row, column, 0), green = photo(row, column, 1), blue = photo(row, column, 2);
    grey(row, column) = (0.299f * red + 0.587f * green + 0.114f * blue) / 255.0f;
}

// Writes the weights of a Gaussian out to three sigma into shared memory and returns the radius.
// All threads of the block must call it.
__device__ int gaussian(float sigma, float *weights) {
    int radius = min(static_cast<int>(ceilf(3.0f * sigma)), RADIUS_MAX);
    int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    int threads = blockDim.x * blockDim.y * blockDim.z;
    for (int step = thread; step <= 2 * radius; step += threads) {
        int distance = step - radius;
        float exponent = -static_cast<float>(distance * distance) / (2.0f * sigma * sigma);
        double weight = distance == 0 ? 1.0 : exp(static_cast<double>(exponent));
        weights[step] = static_cast<float>(weight);
    }
    __syncthreads();
    // Each thread adds all weights in the same order as the host, for the same rounding.
    float sum = 0.0f;
    for (int step = 0; step <= 2 * radius; ++step) sum += weights[step];
    __syncthreads();
    for (int step = thread; step <= 2 * radius; step += threads) weights[step] /= sum;
    __syncthreads();
    return radius;
}

extern "C" __global__ void blur_rows(float sigma, View2<const float> source, View2<float> target) {
    __shared__ float weights[2 * RADIUS_MAX + 1];
    int radius = gaussian(sigma, weights);
    long long row = row_of_thread(), column = column_of_thread();
    if (!target.contains(row, column)) return;
    float sum = 0.0f;
    for (int step = 0; step <= 2 * radius; ++step) {
        sum += weights[step] * source(row, clamped(column + step - radius, source.shape[1]));
    }
    target(row, column) = sum;
}

extern "C" __global__ void blur_columns(float sigma, View2<const float> source,
                                        View2<float> target) {
    __shared__ float weights[2 * RADIUS_MAX + 1];
    int radius = gaussian(sigma, weights);
    long long row = row_of_thread(), column = column_of_thread();
    if (!target.contains(row, column)) return;
    float sum = 0.0f;
    for (int step = 0; step <= 2 * radius; ++step) {
        sum += weights[step] * source(clamped(row + step - radius, source.shape[0]), column);
    }
    target(row, column) = sum;
}

// The nearest of four directions: 0 along the row, 1 down to the right, 2 along the column, 3 down
// to the left.
__device__ unsigned char nearest_direction(float across, float down) {
    constexpr float HALF_DIAGONAL = 0.41421356f;
    if (fabsf(down) <= HALF_DIAGONAL * fabsf(across)) return 0;
    if (fabsf(across) <= HALF_DIAGONAL * fabsf(down)) return 2;
    return (across > 0.0f) == (down > 0.0f) ? 1 : 3;
}

extern "C" __global__ void sobel(View2<const float> soft, View2<float> strength,
                                 View2<unsigned char> direction) {
    long long row = row_of_thread(), column = column_of_thread();
    if (!soft.contains(row, column)) return;
    long long above = clamped(row - 1, soft.shape[0]), below = clamped(row + 1, soft.shape[0]);
    long long left = clamped(column - 1, soft.shape[1]), right = clamped(column + 1, soft.shape[1]);
    auto beside = [&](long long column) {
        return soft(above, column) + 2.0f * soft(row, column) + soft(below, column);
    };
    auto along = [&](long long row) {
        return soft(row, left) + 2.0f * soft(row, column) + soft(row, right);
    };
    float across = beside(right) - beside(left), down = along(below) - along(above);
    strength(row, column) = sqrtf(across * across + down * down) / 4.0f;
    direction(row, column) = nearest_direction(across, down);
}

extern "C" __global__ void thin(View2<const float> strength, View2<const unsigned char> direction,
                                View2<float> ridges) {
    long long row = row_of_thread(), column = column_of_thread();
    if (!ridges.contains(row, column)) return;
    int way = direction(row, column) & 3;
    long long down = way == 0 ? 0 : 1, right = way == 2 ? 0 : way == 3 ? -1 : 1;
    auto beside = [&](long long row, long long column) {
        return strength.contains(row, column) ? strength(row, column) : 0.0f;
    };
    float here = strength(row, column);
    bool is_ridge =
        here > beside(row - down, column - right) && here >= beside(row + down, column + right);
    ridges(row, column) = is_ridge ? here : 0.0f;
}

extern "C" __global__ void candidates(float low, View2<const float> ridges,
                                      View2<unsigned> labels) {
    long long row = row_of_thread(), column = column_of_thread();
    if (!labels.contains(row, column)) return;
    unsigned index = static_cast<unsigned>(row * labels.shape[1] + column);
    labels(row, column) = ridges(row, column) > low ? index : NO_LABEL;
}

// The root above a label, or NO_LABEL. Links lead to smaller labels. The search ends at a link that
// does not, so it terminates for any contents of the array.
template <typename Label>
__device__ unsigned root(const resident::View<Label, 2> &labels, unsigned label) {
    while (label < labels.size()) {
        unsigned above = *const_cast<const volatile unsigned *>(&labels.at(label));
        if (above >= label) return label;
        label = above;
    }
    return NO_LABEL;
}

// Joins two trees under the smaller root. Another thread may link the larger root elsewhere
// meanwhile; then that tree is joined as well.
__device__ void unite_trees(const View2<unsigned> &labels, unsigned one, unsigned other) {
    one = root(labels, one);
    other = root(labels, other);
    while (one != other && one != NO_LABEL && other != NO_LABEL) {
        unsigned larger = max(one, other), smaller = min(one, other);
        unsigned before = atomicMin(&labels.at(larger), smaller);
        if (before >= larger) return;
        one = root(labels, before);
        other = root(labels, smaller);
    }
}

extern "C" __global__ void unite(View2<unsigned> labels) {
    long long row = row_of_thread(), column = column_of_thread();
    if (!labels.contains(row, column)) return;
    // A root's label is its own index. No thread turns a candidate into a non-candidate or back.
    auto label = [&](long long row, long long column) {
        return *const_cast<volatile unsigned *>(&labels(row, column));
    };
    if (label(row, column) == NO_LABEL) return;
    // Half of the eight neighbours; the other half handles this pixel as its own neighbour.
    const int down[] = {0, 1, 1, 1}, right[] = {1, -1, 0, 1};
    for (int step = 0; step < 4; ++step) {
        long long row_beside = row + down[step], column_beside = column + right[step];
        if (labels.contains(row_beside, column_beside)
            && label(row_beside, column_beside) != NO_LABEL) {
            unite_trees(labels, label(row, column), label(row_beside, column_beside));
        }
    }
}

// Threads that mark the same root write the same value.
extern "C" __global__ void anchor(float high, View2<const float> ridges,
                                  View2<const unsigned> labels, View2<unsigned char> anchored) {
    long long row = row_of_thread(), column = column_of_thread();
    if (!ridges.contains(row, column) || !(ridges(row, column) > high)) return;
    unsigned label = root(labels, labels(row, column));
    if (label != NO_LABEL) anchored.at(label) = 1;
}

extern "C" __global__ void keep(View2<const unsigned> labels, View2<const unsigned char> anchored,
                                View2<unsigned char> edges) {
    long long row = row_of_thread(), column = column_of_thread();
    if (!edges.contains(row, column)) return;
    unsigned label = root(labels, labels(row, column));
    edges(row, column) = label != NO_LABEL && anchored.at(label) != 0 ? 255 : 0;
}

extern "C" __global__ void overlay(View3<const unsigned char> photo,
                                   View2<const unsigned char> edges,
                                   View3<unsigned char> overlay) {
    constexpr int DIMMED_TO_PERCENT = 45;
    const unsigned char edge_colour[] = {255, 236, 92};
    long long row = row_of_thread(), column = column_of_thread();
    if (!edges.contains(row, column)) return;
    for (int channel = 0; channel < 3; ++channel) {
        int dimmed = photo(row, column, channel) * DIMMED_TO_PERCENT / 100;
        overlay(row, column, channel) =
            edges(row, column) == 0 ? static_cast<unsigned char>(dimmed) : edge_colour[channel];
    }
}
