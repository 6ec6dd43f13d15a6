// The views that device code gets for sized parameters. `resident` passes them by value. For NVRTC
// and nvcc, hiprtc and hipcc, from C++11 on.
//
//     extern "C" __global__ void transpose(resident::View2<const float> a,
//                                          resident::View2<float> b) {
//         long long row = blockIdx.y * (long long)blockDim.y + threadIdx.y;
//         long long column = blockIdx.x * (long long)blockDim.x + threadIdx.x;
//         if (b.contains(row, column)) b(row, column) = a(column, row);
//     }

#ifndef RESIDENT_PRELUDE_CUH
#define RESIDENT_PRELUDE_CUH

namespace resident {

/// An array of N dimensions. `data` points to the element with index 0, 0, ...; strides are in
/// elements and may be negative.
template <typename T, int N>
struct View {
    T *data;
    long long shape[N];
    long long strides[N];

    /// The element at an index, as in `view(row, column)`. Unchecked: see `contains`.
    template <typename... Index>
    __host__ __device__ __forceinline__ T &operator()(Index... index) const {
        static_assert(sizeof...(Index) == N, "as many indices as the view has dimensions");
#ifdef RESIDENT_SANITIZE
        const long long at[] = {static_cast<long long>(index)...};
        if (!contains(index...)) host::outside(data, at, N, sizeof(T));
#endif
        return data[offset(0, static_cast<long long>(index)...)];
    }

    /// Whether an index is in bounds.
    template <typename... Index>
    __host__ __device__ __forceinline__ bool contains(Index... index) const {
        static_assert(sizeof...(Index) == N, "as many indices as the view has dimensions");
        return inside(0, static_cast<long long>(index)...);
    }

    /// The number of elements.
    __host__ __device__ __forceinline__ long long size() const {
        long long count = 1;
        for (int axis = 0; axis < N; ++axis) count *= shape[axis];
        return count;
    }

    /// The n-th element in row-major order.
    __host__ __device__ __forceinline__ T &at(long long n) const {
#ifdef RESIDENT_SANITIZE
        if (n < 0 || n >= size()) host::outside(data, &n, 1, sizeof(T));
#endif
        long long offset = 0;
        for (int axis = N - 1; axis > 0; --axis) {
            offset += n % shape[axis] * strides[axis];
            n /= shape[axis];
        }
        return data[offset + n * strides[0]];
    }

private:
    template <typename... Rest>
    __host__ __device__ __forceinline__ long long offset(int axis, long long first,
                                                         Rest... rest) const {
        return first * strides[axis] + offset(axis + 1, rest...);
    }

    __host__ __device__ __forceinline__ long long offset(int) const { return 0; }

    template <typename... Rest>
    __host__ __device__ __forceinline__ bool inside(int axis, long long first, Rest... rest) const {
        return first >= 0 && first < shape[axis] && inside(axis + 1, rest...);
    }

    __host__ __device__ __forceinline__ bool inside(int) const { return true; }
};

/// A view without dimensions: one element.
template <typename T>
struct View<T, 0> {
    T *data;

    __host__ __device__ __forceinline__ T &operator()() const { return *data; }
    __host__ __device__ __forceinline__ bool contains() const { return true; }
    __host__ __device__ __forceinline__ long long size() const { return 1; }
};

template <typename T> using View0 = View<T, 0>;
template <typename T> using View1 = View<T, 1>;
template <typename T> using View2 = View<T, 2>;
template <typename T> using View3 = View<T, 3>;
template <typename T> using View4 = View<T, 4>;
template <typename T> using View5 = View<T, 5>;
template <typename T> using View6 = View<T, 6>;

/// The number of this thread in the grid: block after block, x fastest. For kernels with one thread
/// per element of an array of any shape.
__device__ __forceinline__ long long thread() {
    long long block_row = blockIdx.y + static_cast<long long>(gridDim.y) * blockIdx.z;
    long long block = blockIdx.x + gridDim.x * block_row;
    long long threads = static_cast<long long>(blockDim.x) * blockDim.y * blockDim.z;
    long long thread_row = threadIdx.y + static_cast<long long>(blockDim.y) * threadIdx.z;
    return block * threads + threadIdx.x + blockDim.x * thread_row;
}

/// The lanes of a warp, which AMD calls a wavefront: 32, but 64 on AMD's GPUs before gfx10.
__device__ constexpr int wave_size() {
#if defined(__GFX10__) || defined(__GFX11__) || defined(__GFX12__) || !defined(__AMDGCN__)
    return 32;
#elif defined(__GFX9__)
    return 64;
#else
    // Newer compilers warn of the macro, which they are going to remove.
    return __AMDGCN_WAVEFRONT_SIZE;
#endif
}

template <int lanes> struct MaskOf { typedef unsigned int type; };
template <> struct MaskOf<64> { typedef unsigned long long type; };

/// A bit for each lane of a warp: 32 bits, or 64.
typedef MaskOf<wave_size()>::type lane_mask;

/// All lanes of a warp, for the functions of warps: `__shfl_down_sync(resident::all_lanes(), x, n)`
/// is the same on all GPUs if `n` goes from `wave_size() / 2` down.
__device__ constexpr lane_mask all_lanes() { return static_cast<lane_mask>(~0ull); }

static_assert(sizeof(View2<float>) == 40, "pointer, shape and strides, as the library packs them");

} // namespace resident

#endif // RESIDENT_PRELUDE_CUH
