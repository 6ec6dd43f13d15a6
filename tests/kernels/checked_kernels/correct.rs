//! Correct kernels that do what a simple check would take for an error.

use resident::ndarray::{Array2, Ix2};
use resident::{CudaSource, Grid, In, InOut, Kernel, Out, Result, SmartArray};

use crate::{check, device};

#[test]
fn every_correct_kernel_passes() {
    crate::check_texts(TEXTS);
}

#[test]
fn a_template_with_tiles_multiplies_matrices() -> Result<()> {
    let source = r#"
        template <typename T, int TILE>
        __global__ void product(resident::View2<const T> a, resident::View2<const T> b,
                                resident::View2<T> c) {
            __shared__ T left[TILE][TILE], right[TILE][TILE + 1];
            long long row = blockIdx.y * TILE + threadIdx.y;
            long long column = blockIdx.x * TILE + threadIdx.x;
            T sum = 0;
            for (long long k = 0; k < a.shape[1]; k += TILE) {
                bool has_left = a.contains(row, k + threadIdx.x);
                bool has_right = b.contains(k + threadIdx.y, column);
                left[threadIdx.y][threadIdx.x] = has_left ? a(row, k + threadIdx.x) : 0;
                right[threadIdx.y][threadIdx.x] = has_right ? b(k + threadIdx.y, column) : 0;
                __syncthreads();
                for (int i = 0; i < TILE; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
                __syncthreads();
            }
            if (c.contains(row, column)) c(row, column) = sum;
        }
    "#;
    type Product = (In<f64, Ix2>, In<f64, Ix2>, Out<f64, Ix2>);
    let source = CudaSource::c(source).entry("product<double, 8>");
    let a = SmartArray::from(Array2::from_shape_fn((13, 21), |(i, j)| (i * j) as f64));
    let mut c = SmartArray::uninit((13, 13));
    let grid = Grid::cover_2d((13, 13), (8, 8));
    let findings = check::<Product>(source, grid, (&a, &a.t(), &mut c));
    assert_eq!(findings, []);
    Ok(())
}

#[test]
fn one_array_is_passed_twice_and_interleaved_parts_beside_each_other() -> Result<()> {
    use resident::ndarray::{Ix1, s};

    let source = r#"
        using resident::View1;
        extern "C" __global__ void kernel(View1<const int> a, View1<const int> b, View1<int> even,
                                          View1<int> odd) {
            long long i = blockIdx.x * blockDim.x + threadIdx.x;
            if (even.contains(i)) even(i) = a(i) + b(i);
            if (odd.contains(i)) odd(i) -= a(i);
        }
    "#;
    type Parameters = (In<i32, Ix1>, In<i32, Ix1>, Out<i32, Ix1>, InOut<i32, Ix1>);
    let a = SmartArray::from((0..50).collect::<Vec<i32>>());
    let mut both = SmartArray::<i32, _>::zeros(100);
    let (mut even, mut odd) = both.multi_slice_mut((s![..;2], s![1..;-2]));
    let arguments = (&a, &a, &mut even, &mut odd);
    let findings = check::<Parameters>(source, Grid::cover(50), arguments);
    assert_eq!(findings, []);
    Ok(())
}

/// Several threads of the machine launch one kernel, in blocks of different shapes.
#[test]
fn launches_of_one_kernel_on_several_streams() -> Result<()> {
    let source = r#"
        extern "C" __global__ void number(int *x) {
            x[blockIdx.x * blockDim.x + threadIdx.x] += 1000 * blockIdx.x + threadIdx.x;
        }
    "#;
    // SAFETY: the device ends threads before they access what they must not.
    let number = unsafe { Kernel::<(InOut<i32>,)>::new("number").cuda(source) };
    let device = device();
    number.prepare(&device)?;
    let launch = |(blocks, threads): (u32, u32)| {
        let stream = device.new_stream().expect("a stream");
        let mut x = SmartArray::<i32, _>::zeros((blocks * threads) as usize);
        for _ in 0..40 {
            number.launch_on(&stream, Grid::new(blocks, threads), (&mut x,)).expect("queued");
        }
        let expected = (0..blocks * threads).map(|i| 1000 * (i / threads) + i % threads);
        let expected = expected.map(|sum| 40 * sum as i32).collect::<Vec<_>>();
        assert_eq!(x.to_vec().expect("nothing is found"), expected);
    };
    let launch = &launch;
    std::thread::scope(|scope| {
        for shape in [(64, 32), (16, 128), (128, 16), (2, 1024)] {
            scope.spawn(move || launch(shape));
        }
    });
    assert_eq!(device.emulation().expect("it is emulated").findings(), []);
    Ok(())
}

pub(crate) const TEXTS: &str = r#"
== the_last_block_adds_what_all_have_written correct
$before{
__device__ unsigned int blocks;
}
__shared__ float part[64];
__shared__ bool is_last;
part[threadIdx.x] = in[i];
__syncthreads();
for (int half = 32; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
}
if (threadIdx.x == 0) {
    out[blockIdx.x] = part[0];
    __threadfence();
    is_last = atomicInc(&blocks, gridDim.x - 1) == gridDim.x - 1;
}
__syncthreads();
if (is_last) {
    float sum = threadIdx.x < gridDim.x ? out[threadIdx.x] : 0;
    atomicAdd(&io[0], sum);
}
== all_blocks_fence_what_all_their_threads_write correct
$before{
__device__ unsigned int blocks;
}
__shared__ bool is_last;
io[i] = in[i];
__threadfence();
__syncthreads();
if (threadIdx.x == 0) is_last = atomicAdd(&blocks, 1u) % gridDim.x == gridDim.x - 1;
__syncthreads();
if (is_last) out[i] = io[(i + 65) % 256];
== warps_reduce_by_shuffles correct
__shared__ float parts[2];
float sum = in[i];
for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffffu, sum, by);
if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
__syncthreads();
if (threadIdx.x == 0) out[blockIdx.x] = parts[0] + parts[1];
== lanes_reduce_in_shared_memory_with_warp_barriers correct
__shared__ float part[64];
part[threadIdx.x] = in[i];
__syncwarp();
for (int half = 16; half > 0; half /= 2) {
    float sum = part[threadIdx.x] + part[threadIdx.x ^ half];
    __syncwarp();
    part[threadIdx.x] = sum;
    __syncwarp();
}
out[i] = part[threadIdx.x];
== some_lanes_meet_at_a_warp_barrier correct
__shared__ float part[64];
part[threadIdx.x] = in[i];
if (threadIdx.x % 32 < 8) {
    __syncwarp(0xff);
    out[i] = part[threadIdx.x ^ 7];
}
== histograms_in_shared_and_global_memory correct
__shared__ unsigned int bins[16];
if (threadIdx.x < 16) bins[threadIdx.x] = 0;
__syncthreads();
atomicAdd(&bins[static_cast<int>(in[i]) % 16], 1u);
__syncthreads();
if (threadIdx.x < 16) atomicAdd(&io[threadIdx.x], static_cast<float>(bins[threadIdx.x]));
== a_scan_with_two_buffers correct
__shared__ float buffers[2][64];
int from = 0;
buffers[0][threadIdx.x] = in[i];
__syncthreads();
for (int by = 1; by < 64; by *= 2) {
    float left = threadIdx.x >= by ? buffers[from][threadIdx.x - by] : 0;
    buffers[1 - from][threadIdx.x] = buffers[from][threadIdx.x] + left;
    from = 1 - from;
    __syncthreads();
}
out[i] = buffers[from][threadIdx.x];
== threads_write_one_value_to_one_place correct
__shared__ bool is_found;
__shared__ double value[2];
is_found = false;
__syncthreads();
if (in[i] >= 0) is_found = true;
value[threadIdx.x % 2] = 7;
__syncthreads();
out[i] = is_found ? value[0] : 0;
io[0] = 5;
== a_thread_waits_for_a_flag_of_an_earlier_one correct
__shared__ volatile int is_ready;
__shared__ float value;
if (threadIdx.x == 0) is_ready = 0;
__syncthreads();
if (threadIdx.x == 0) {
    value = in[i];
    __threadfence_block();
    is_ready = 1;
} else if (threadIdx.x == 1) {
    while (!is_ready) {}
    out[blockIdx.x] = value;
}
== threads_write_neighbouring_bytes_and_read_wider_ones correct
unsigned char *bytes = reinterpret_cast<unsigned char *>(io);
for (int k = 0; k < 4; ++k) bytes[256 * k + i] = i;
__syncthreads();
const unsigned short *pairs = reinterpret_cast<const unsigned short *>(bytes);
if (threadIdx.x < 32) out[i] = pairs[32 * blockIdx.x + threadIdx.x];
float4 *vectors = reinterpret_cast<float4 *>(out + 64 * blockIdx.x);
__syncthreads();
if (threadIdx.x < 16) vectors[threadIdx.x] = make_float4(1, 2, 3, 4);
== variables_of_a_thread_are_its_own correct
$before{
__constant__ float table[4] = {1, 2, 3, 4};
}
float own[32];
for (int k = 0; k < 32; ++k) own[k] = in[(i + k) % 256];
__syncthreads();
float *pointer = own;
float sum = 0;
for (int k = 0; k < 32; ++k) sum += pointer[(k * 7 + i) % 32];
memcpy(own, pointer + 1, 31 * sizeof(float));
out[i] = sum + own[i % 31] + table[i % 4];
printf("%s", i == 300 ? "never" : "");
assert(sum >= 0);
== dynamic_shared_memory_is_divided_by_the_kernel <<<4, 64, 512>>> correct
extern __shared__ __align__(16) unsigned char bytes[];
float *values = reinterpret_cast<float *>(bytes);
int *keys = reinterpret_cast<int *>(values + blockDim.x);
values[threadIdx.x] = in[i];
keys[threadIdx.x] = 63 - threadIdx.x;
__syncthreads();
out[i] = values[keys[threadIdx.x]];
== one_lane_fences_and_counts_for_its_warp correct
$before{
__device__ unsigned int warps;
}
__shared__ float values[64];
io[i] = in[i];
__syncwarp();
unsigned int before = 0;
if (threadIdx.x % 32 == 0) {
    __threadfence();
    before = atomicAdd(&warps, 1u) % (2 * gridDim.x);
}
before = __shfl_sync(0xffffffffu, before, 0);
__syncwarp();
values[threadIdx.x] = before == 2 * gridDim.x - 1 ? io[(i + 32) % 256] : 0;
out[i] = values[threadIdx.x];
== thousands_of_blocks_count_themselves <<<4096, 32>>> correct
$before{
__device__ unsigned int blocks;
}
if (threadIdx.x == 0) {
    io[blockIdx.x % 256] = 1;
    __threadfence();
    if (atomicAdd(&blocks, 1u) % gridDim.x == gridDim.x - 1) out[0] = 1;
}
== bytes_are_copied_to_any_address_and_padding_with_records correct
$before{
struct Mixed { char a; int b; short c; double d; };
                  struct __attribute__((packed)) Packed { unsigned char a; float b; };
}
__shared__ Mixed records[64];
__shared__ Packed packed[64];
unsigned char *bytes = reinterpret_cast<unsigned char *>(io);
float value = in[i];
if (i < 128) memcpy(bytes + 5 * i + 1, &value, 4);
records[threadIdx.x].a = 1;
records[threadIdx.x].b = 2;
records[threadIdx.x].c = 3;
records[threadIdx.x].d = 4;
packed[threadIdx.x].a = 1;
packed[threadIdx.x].b = value;
__syncthreads();
Mixed other = records[threadIdx.x ^ 1];
out[i] = other.b + static_cast<float>(other.d) + packed[threadIdx.x ^ 1].b;
== padded_records_are_copied_between_shared_variables correct
$before{
struct Mixed { char a; int b[5]; char c; double d; };
}
// Of the padding nothing is written, and a compiler copies it with the rest.
__shared__ Mixed records[64], others[64];
records[threadIdx.x].a = 1;
for (int k = 0; k < 5; ++k) records[threadIdx.x].b[k] = k;
records[threadIdx.x].c = 3;
records[threadIdx.x].d = in[i];
__syncthreads();
others[threadIdx.x] = records[threadIdx.x ^ 1];
__syncthreads();
out[i] = others[threadIdx.x ^ 2].b[4] + static_cast<float>(others[threadIdx.x].d);
== constants_are_read_through_pointers correct
$before{
static const int table[4] = {1, 10, 100, 1000};
static const char *const words[2] = {"no", "yes"};
__device__ __noinline__ int number(const int *numbers, int at) { return numbers[at]; }
__device__ __noinline__ char letter(const char *text, int at) { return text[at]; }
__device__ __noinline__ const char *word(const char *const *all, int at) {
    return all[at];
}
}
// Tables of numbers and strings lie in one part of the library, tables of pointers in another.
out[i] = number(table, i % 4) + letter("constant", i % 8) + word(words, i % 2)[1];
== all_threads_fill_a_tile_with_the_same correct
__shared__ int tile[64];
__shared__ float sine[64], cosine[64];
memset(tile, 0, sizeof tile);
sincosf(in[i], &sine[threadIdx.x], &cosine[threadIdx.x]);
__syncthreads();
out[i] = tile[63 - threadIdx.x] + sine[63 - threadIdx.x] + cosine[63 - threadIdx.x];
"#;
