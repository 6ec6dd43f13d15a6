// One thread per point: planes along z, rows along y, columns along x.

using resident::View3;

// Grid points along each axis of the whole cube, walls included; as in `waves.rs`.
constexpr long long POINTS = 66;

struct Point {
    long long plane, row, column;
};

__device__ Point point_of_thread() {
    return {blockIdx.z * (long long)blockDim.z + threadIdx.z,
            blockIdx.y * (long long)blockDim.y + threadIdx.y,
            blockIdx.x * (long long)blockDim.x + threadIdx.x};
}

// The factor along one axis of a standing wave with this number of half waves.
__device__ double along(long long index, int half_waves) {
    return sinpi(static_cast<double>(half_waves * index) / (POINTS - 1));
}

__device__ bool is_wall(long long index) { return index == 0 || index == POINTS - 1; }

extern "C" __global__ void start(unsigned long long first_plane, View3<double> planes) {
    Point here = point_of_thread();
    if (!planes.contains(here.plane, here.row, here.column)) return;
    long long plane = static_cast<long long>(first_plane) + here.plane;
    long long row = here.row, column = here.column;
    double sum = 1.0 * along(plane, 1) * along(row, 1) * along(column, 1)
                 + 0.5 * along(plane, 2) * along(row, 1) * along(column, 3)
                 - 0.25 * along(plane, 3) * along(row, 5) * along(column, 2);
    bool is_on_wall = is_wall(plane) || is_wall(row) || is_wall(column);
    planes(here.plane, here.row, here.column) = is_on_wall ? 0.0 : sum;
}

// `now` has one plane, row and column more on each side than `inner`.
extern "C" __global__ void jacobi(View3<const double> now, View3<double> inner) {
    Point here = point_of_thread();
    long long z = here.plane, y = here.row, x = here.column;
    if (!inner.contains(z, y, x)) return;
    double planes = now(z, y + 1, x + 1) + now(z + 2, y + 1, x + 1);
    double rows = now(z + 1, y, x + 1) + now(z + 1, y + 2, x + 1);
    inner(z, y, x) = (planes + rows + now(z + 1, y + 1, x) + now(z + 1, y + 1, x + 2)) / 6.0;
}

// Doubles that are not negative compare like their bit patterns.
extern "C" __global__ void residual(View3<const double> before, View3<const double> after,
                                    double *largest) {
    Point here = point_of_thread();
    if (!before.contains(here.plane, here.row, here.column)) return;
    long long plane = here.plane, row = here.row, column = here.column;
    double change = fabs(after(plane, row, column) - before(plane, row, column));
    atomicMax(reinterpret_cast<unsigned long long *>(largest),
              static_cast<unsigned long long>(__double_as_longlong(change)));
}
