//! Threads of a block that wait for each other: barriers, warps, shared memory.

use resident::ndarray::{Array1, Array2, Ix1, Ix2, Ix3};
use resident::{Grid, In, InOut, Out, Result, SmartArray};

use crate::{device, kernel, one_of};

/// The kernels of these tests.
const SOURCE: &str = r#"
    extern "C" __global__ void reverse(int *x) {
        __shared__ int part[96];
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        part[threadIdx.x] = x[i];
        __syncthreads();
        x[i] = part[blockDim.x - 1 - threadIdx.x];
    }
    extern "C" __global__ void sums(const double *x, double *sums) {
        extern __shared__ double part[];
        part[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
        for (int half = blockDim.x / 2; half > 0; half /= 2) {
            __syncthreads();
            if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        }
        if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
    }
    extern "C" __global__ void votes(resident::View1<const int> x, int *counts) {
        int own = x(threadIdx.x);
        int count = __syncthreads_count(own > 3);
        int all = __syncthreads_and(own > 0), any = __syncthreads_or(own > 100);
        if (threadIdx.x == 5) counts[0] = count, counts[1] = all, counts[2] = any;
    }
    extern "C" __global__ void lanes(const float *x, float *sums, unsigned *ballots) {
        const unsigned all = 0xffffffff;
        float sum = x[blockIdx.x * blockDim.x + threadIdx.x];
        for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(all, sum, by);
        sum = __shfl_sync(all, sum, 0);
        float other = x[threadIdx.x];
        for (int by = 1; by < 32; by *= 2) other += __shfl_xor_sync(all, other, by);
        unsigned odd = __ballot_sync(all, threadIdx.x % 2);
        int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
        if (threadIdx.x % 32 == 31) sums[warp] = sum, ballots[warp] = odd;
        // Lanes part ways: each half has its own operations.
        unsigned half = threadIdx.x % 32 < 16 ? 0x0000ffff : 0xffff0000;
        int lane = threadIdx.x % 32;
        if (lane < 16) lane = __reduce_add_sync(half, lane);
        else lane = __shfl_up_sync(half, lane, 1, 16)
            + __popc(__match_any_sync(half, lane / 8));
        __syncwarp();
        if (threadIdx.x % 32 == 20) ballots[warp] += lane;
        if (threadIdx.x % 32 == 3) sums[warp] += lane;
    }
    extern "C" __global__ void early(int *x) {
        __shared__ int sum;
        if (threadIdx.x == 0) sum = 0;
        __syncthreads();
        if (threadIdx.x >= 40) return;
        atomicAdd(&sum, 1);
        __syncthreads();
        if (threadIdx.x == 39) x[blockIdx.x] = sum;
    }
    extern "C" __global__ void some(int *x) {
        __shared__ int last;
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (blockIdx.x % 3 == 1) {
            if (threadIdx.x == blockDim.x - 1) last = i;
            __syncthreads();
            x[i] = last;
            __syncthreads();
        } else {
            x[i] = -i;
        }
    }
    extern "C" __global__ void axes(resident::View3<unsigned> x) {
        unsigned i = blockIdx.z * blockDim.z + threadIdx.z;
        unsigned j = blockIdx.y * blockDim.y + threadIdx.y;
        unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
        if (x.contains(i, j, k)) x(i, j, k) = 10000 * i + 100 * j + k + gridDim.x - gridDim.x;
        if (resident::thread() == 0 && blockDim.z == 2) __syncthreads_count(1);
    }
    extern __shared__ float own[];
    namespace of { extern __shared__ __align__(16) char bytes[]; }
    __device__ void store(float x) { own[threadIdx.x] = x; }
    extern "C" __global__ void forms(resident::View1<const float> x, float *y) {
        static __shared__ int count;
        extern volatile __shared__ float same[];
        float4 *vectors = reinterpret_cast<float4 *>(of::bytes);
        if (threadIdx.x == 0) count = 0;
        store(x(resident::thread()));
        __syncthreads();
        atomicAdd(&count, 1);
        __syncthreads();
        if (threadIdx.x == 0) y[blockIdx.x] = same[1] + vectors->z + count;
    }
    extern "C" __global__ void lanes_that_come(resident::View1<const int> x, int *smallest,
                                    unsigned *n, int *positive) {
        if (threadIdx.x >= x.size()) return;
        int own = x(threadIdx.x);
        if (own > 0) {
            unsigned active = __activemask(), lane = threadIdx.x % 32;
            int leader = __ffs(active) - 1, at = 0;
            if (lane == leader) at = atomicAdd(n, __popc(active));
            at = __shfl_sync(active, at, leader);
            positive[at + __popc(active & ((1u << lane) - 1))] = own;
        }
        __syncthreads();
        int least = __reduce_min_sync(0xffffffff, own);
        unsigned same = __match_any_sync(0xffffffff, 0);
        if (threadIdx.x % 32 == 0) smallest[threadIdx.x / 32] = least + 1000 * __popc(same);
    }
"#;

/// Each block reverses its part through shared memory.
#[test]
fn barriers_separate_writes_and_reads_of_shared_memory() -> Result<()> {
    let reverse = one_of::<(InOut<i32>,)>(SOURCE, "reverse");
    let device = device();
    let mut x = SmartArray::from(Vec::from_iter(0..96 * 300));
    reverse.launch_on(&device.stream(), Grid::new(300, 96), (&mut x,))?;
    let expected = (0..300).flat_map(|block| (block * 96..(block + 1) * 96).rev());
    assert_eq!(x.to_vec()?, Vec::from_iter(expected));
    Ok(())
}

/// A sum in a tree: some threads have nothing to do, but come to every barrier.
#[test]
fn blocks_add_in_dynamic_shared_memory() -> Result<()> {
    let sums = one_of::<(In<f64>, InOut<f64>)>(SOURCE, "sums");
    let device = device();
    let x = SmartArray::from(Vec::from_iter((0..256 * 40).map(f64::from)));
    let mut out = SmartArray::<f64, _>::zeros(40);
    let grid = Grid::new(40, 256).shared_bytes(256 * 8);
    // The two have one axis order, and lengths that the kernel is written for.
    sums.launch_on(&device.stream(), grid, (&x, &mut out))?;
    let part = |block: usize| (0..256).map(|i| (256 * block + i) as f64).sum::<f64>();
    assert_eq!(out.to_vec()?, Vec::from_iter((0..40).map(part)));
    Ok(())
}

#[test]
fn a_tiled_matrix_product_is_that_of_ndarray() -> Result<()> {
    let source = r#"
        template <int TILE>
        __global__ void product(resident::View2<const float> a, resident::View2<const float> b,
                                resident::View2<float> c) {
            __shared__ float left[TILE][TILE], right[TILE][TILE];
            long long row = blockIdx.y * TILE + threadIdx.y;
            long long column = blockIdx.x * TILE + threadIdx.x;
            float sum = 0;
            for (long long k = 0; k < a.shape[1]; k += TILE) {
                left[threadIdx.y][threadIdx.x] =
                    a.contains(row, k + threadIdx.x) ? a(row, k + threadIdx.x) : 0;
                right[threadIdx.y][threadIdx.x] =
                    b.contains(k + threadIdx.y, column) ? b(k + threadIdx.y, column) : 0;
                __syncthreads();
                for (int i = 0; i < TILE; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
                __syncthreads();
            }
            if (c.contains(row, column)) c(row, column) = sum;
        }
    "#;
    let source = resident::CudaSource::c(source).entry("product<8>");
    type Product = (In<f32, Ix2>, In<f32, Ix2>, Out<f32, Ix2>);
    let product = kernel::<Product>("product", source);
    let a = Array2::from_shape_fn((37, 21), |(i, j)| ((i * 7 + j * 3) % 11) as f32);
    let b = Array2::from_shape_fn((19, 21), |(i, j)| ((i * 5 + j) % 13) as f32);
    let (left, right) = (SmartArray::from(a.clone()), SmartArray::from(b.clone()));
    let mut c = SmartArray::<f32, _>::uninit((37, 19));
    let grid = Grid::cover_2d((37, 19), (8, 8));
    product.launch_on(&device().stream(), grid, (&left, &right.t(), &mut c))?;
    assert_eq!(c.host()?, a.dot(&b.t()));
    Ok(())
}

#[test]
fn votes_of_a_block_are_counted() -> Result<()> {
    let votes = one_of::<(In<i32, Ix1>, InOut<i32>)>(SOURCE, "votes");
    let x = SmartArray::from(Vec::from_iter(1..=70));
    let mut counts = SmartArray::<i32, _>::zeros(3);
    votes.launch_on(&device().stream(), Grid::new(1, 70), (&x, &mut counts))?;
    assert_eq!(counts.to_vec()?, [67, 1, 0]);
    Ok(())
}

#[test]
fn lanes_of_a_warp_exchange_values() -> Result<()> {
    type Lanes = (In<f32>, InOut<f32>, InOut<u32>);
    let lanes = one_of::<Lanes>(SOURCE, "lanes");
    let x = SmartArray::from(Vec::from_iter((0..256).map(|i| i as f32)));
    let (mut sums, mut ballots) = (SmartArray::<f32, _>::zeros(8), SmartArray::<u32, _>::zeros(8));
    lanes.launch_on(&device().stream(), Grid::new(2, 128), (&x, &mut sums, &mut ballots))?;
    let warp = |warp: usize| (0..32).map(|lane| (32 * warp + lane) as f32).sum::<f32>() + 120.0;
    assert_eq!(sums.to_vec()?, Vec::from_iter((0..8).map(warp)));
    assert_eq!(ballots.to_vec()?, [0xaaaa_aaaa_u32 + 19 + 8; 8]);
    Ok(())
}

/// Threads that have ended do not hold up the others, as on a GPU.
#[test]
fn threads_that_end_early_are_not_waited_for() -> Result<()> {
    let early = one_of::<(InOut<i32>,)>(SOURCE, "early");
    let mut x = SmartArray::from(Array1::<i32>::zeros(1000));
    early.launch_on(&device().stream(), Grid::new(1000, 64), (&mut x,))?;
    assert_eq!(x.to_vec()?, [40; 1000]);
    Ok(())
}

/// Blocks with and without waiting threads, in one launch.
#[test]
fn blocks_whose_threads_wait_stand_beside_others() -> Result<()> {
    let some = one_of::<(InOut<i32>,)>(SOURCE, "some");
    let mut x = SmartArray::from(Array1::<i32>::zeros(32 * 901));
    some.launch_on(&device().stream(), Grid::new(901, 32), (&mut x,))?;
    let expected = |i: i32| if i / 32 % 3 == 1 { i / 32 * 32 + 31 } else { -i };
    assert_eq!(x.to_vec()?, Vec::from_iter((0..32 * 901).map(expected)));
    Ok(())
}

#[test]
fn threads_and_blocks_have_three_axes() -> Result<()> {
    type Axes = (Out<u32, Ix3>,);
    let axes = one_of::<Axes>(SOURCE, "axes");
    let mut x = SmartArray::<u32, _>::uninit((5, 7, 11));
    axes.launch_on(&device().stream(), Grid::cover_3d((5, 7, 11), (2, 3, 4)), (&mut x,))?;
    for ((i, j, k), seen) in x.host()?.indexed_iter() {
        assert_eq!(*seen as usize, 10000 * i + 100 * j + k);
    }
    Ok(())
}

#[test]
fn shared_memory_is_declared_in_every_form() -> Result<()> {
    type Forms = (In<f32, Ix1>, InOut<f32>);
    let forms = one_of::<Forms>(SOURCE, "forms");
    let x = SmartArray::from(Vec::from_iter((0..400).map(|i| i as f32)));
    let mut y = SmartArray::<f32, _>::zeros(100);
    let grid = Grid::new(100, 4).shared_bytes(16);
    forms.launch_on(&device().stream(), grid, (&x, &mut y))?;
    let expected = |block: usize| (8 * block + 1 + 2 + 4) as f32;
    assert_eq!(y.to_vec()?, Vec::from_iter((0..100).map(expected)));
    Ok(())
}

/// Warps of which some lanes have ended, or are elsewhere.
#[test]
fn lanes_that_do_not_come_do_not_count() -> Result<()> {
    type Lanes = (In<i32, Ix1>, InOut<i32>, InOut<u32>, InOut<i32>);
    let some = one_of::<Lanes>(SOURCE, "lanes_that_come");
    let numbers = Vec::from_iter((0..45).map(|i| 5 + i - if i % 3 == 0 { 100 } else { 0 }));
    let x = SmartArray::from(numbers.clone());
    let (mut smallest, mut n) = (SmartArray::<i32, _>::zeros(2), SmartArray::<u32, _>::zeros(1));
    let mut positive = SmartArray::<i32, _>::zeros(30);
    let arguments = (&x, &mut smallest, &mut n, &mut positive);
    some.launch_on(&device().stream(), Grid::new(1, 64), arguments)?;
    assert_eq!(smallest.to_vec()?, [32_000 - 95, 13_000 - 62]);
    assert_eq!(n.get(0)?, 30);
    let mut seen = positive.to_vec()?;
    seen.sort_unstable();
    assert_eq!(seen, Vec::from_iter(numbers.into_iter().filter(|x| *x > 0)));
    Ok(())
}
