// One thread per point: rows along y, columns along x.

using resident::View2;

// As in `kernels.rs`.
constexpr float SPEED = 0.25f;

struct Point {
    long long row, column;
};

__device__ Point point_of_thread() {
    return {blockIdx.y * (long long)blockDim.y + threadIdx.y,
            blockIdx.x * (long long)blockDim.x + threadIdx.x};
}

template <typename T>
__device__ bool is_border(const View2<T>& view, Point here) {
    return here.row == 0 || here.column == 0 || here.row + 1 == view.shape[0]
           || here.column + 1 == view.shape[1];
}

extern "C" __global__ void drop(float row, float column, float radius, View2<float> heights) {
    Point here = point_of_thread();
    if (!heights.contains(here.row, here.column)) return;
    float down = here.row - row, right = here.column - column;
    float distance = (down * down + right * right) / (radius * radius);
    heights(here.row, here.column) = is_border(heights, here) ? 0.0f : expf(-distance);
}

extern "C" __global__ void wave(View2<const float> now, View2<float> before) {
    Point here = point_of_thread();
    if (!now.contains(here.row, here.column) || is_border(now, here)) return;
    long long y = here.row, x = here.column;
    float around = now(y - 1, x) + now(y + 1, x) + now(y, x - 1) + now(y, x + 1) - 4.0f * now(y, x);
    before(y, x) = 2.0f * now(y, x) - before(y, x) + SPEED * around;
}
