//! Accesses that nothing orders.

#[test]
fn every_race_is_found() {
    let found = crate::check_texts(TEXTS);
    let text = "kernel \"kernel\" divides an integer by zero";
    found.is("integers_divided_by_zero", |finding| finding.to_string().starts_with(text));
    let name = "the_volatile_reduction_of_a_warp_lacks_barriers";
    found.says(name, "__syncwarp()");
    found.is(name, |finding| finding.is_volatile);
}

pub(crate) const TEXTS: &str = r#"
== a_reversal_without_a_barrier Race
__shared__ float tile[64];
tile[threadIdx.x] = in[i]; // here
if (bad) tile[63 - threadIdx.x] = 0;
__syncthreads();
out[i] = tile[63 - threadIdx.x];
== a_read_without_a_barrier Race
__shared__ float tile[64];
if (threadIdx.x < 32) tile[threadIdx.x] = in[i];
if (!bad) __syncthreads();
if (threadIdx.x >= 32) out[i] = tile[63 - threadIdx.x]; // here
== a_tile_that_is_written_again_too_early Race
__shared__ float tile[64];
float sum = 0;
for (int step = 0; step < 3; ++step) {
    tile[threadIdx.x] = in[i] + step;
    __syncthreads();
    sum += tile[63 - threadIdx.x]; // here
    if (!bad) __syncthreads();
}
out[i] = sum;
== a_reduction_without_barriers Race
__shared__ float part[64];
part[threadIdx.x] = in[i];
__syncthreads();
for (int half = 32; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half]; // here
    if (!bad) __syncthreads();
}
if (threadIdx.x == 0) out[blockIdx.x] = part[0];
== a_scan_in_place Race
__shared__ float part[64];
part[threadIdx.x] = in[i];
__syncthreads();
float left = threadIdx.x > 0 ? part[threadIdx.x - 1] : 0; // here
if (!bad) __syncthreads();
part[threadIdx.x] += left;
__syncthreads();
out[i] = part[threadIdx.x];
== a_shared_variable_that_all_threads_write Race
__shared__ int last;
last = bad ? threadIdx.x : 7; // here
__syncthreads();
out[i] = last;
== a_shared_counter_without_atomics Race
__shared__ int counter;
if (threadIdx.x == 0) counter = 0;
__syncthreads();
if (!bad) atomicAdd(&counter, 1);
else counter = counter + 1; // here
__syncthreads();
out[i] = counter;
== lanes_without_a_warp_barrier Race
__shared__ float tile[64];
tile[threadIdx.x] = 0;
__syncthreads();
tile[threadIdx.x] = in[i]; // here
if (!bad) __syncwarp();
out[i] = tile[threadIdx.x ^ 1];
== a_warp_barrier_for_half_of_the_lanes Race
__shared__ float tile[64];
unsigned int half = threadIdx.x % 32 < 16 ? 0x0000ffffu : 0xffff0000u;
tile[threadIdx.x] = in[i];
__syncwarp(bad ? half : 0xffffffffu);
out[i] = tile[threadIdx.x ^ 16]; // here
== a_warp_barrier_between_two_warps Race
__shared__ float tile[64];
tile[threadIdx.x] = in[i];
if (bad) __syncwarp();
else __syncthreads();
out[i] = tile[threadIdx.x ^ 32]; // here
== a_shuffle_is_no_barrier Race
__shared__ float tile[64];
tile[threadIdx.x] = in[i];
float other = __shfl_xor_sync(0xffffffffu, in[i], 1);
if (!bad) __syncwarp();
out[i] = other + tile[threadIdx.x ^ 1]; // here
== neighbours_in_place Race
float right = in[i] + (bad ? io[i ^ 1] : 0); // here
io[i] = right;
== neighbours_in_place_between_blocks Race
float right = in[i] + (bad ? io[(i + 64) % 256] : 0);
io[i] = right; // here
== a_sum_without_atomics Race
if (!bad) atomicAdd(&io[0], in[i]);
else io[0] = io[0] + in[i]; // here
== a_histogram_without_atomics Race
int bin = i % 16;
if (!bad) atomicAdd(&io[bin], 1.0f);
else io[bin] = io[bin] + 1; // here
== a_plain_read_of_an_atomic_sum Race
float sum = atomicAdd(&io[0], 1.0f); // here
if (bad) sum = io[0];
out[i] = sum;
== a_plain_write_of_an_atomic_sum Race
atomicAdd(&io[0], 1.0f);
if (bad && i == 200) io[0] = 5; // here
else atomicExch(&io[1], 5.0f);
== the_last_block_without_a_fence Race
$before{
__device__ unsigned int done;
}
__shared__ bool is_last;
if (threadIdx.x == 0) {
    io[blockIdx.x] = in[i];
    if (!bad) __threadfence();
    is_last = atomicAdd(&done, 1u) % gridDim.x == gridDim.x - 1;
}
__syncthreads();
if (is_last && threadIdx.x == 0) {
    float sum = 0;
    for (int block = 0; block < gridDim.x; ++block)
        sum += io[block]; // here
    out[0] = sum;
}
== the_last_block_without_a_barrier Race
$before{
__device__ unsigned int done;
}
__shared__ bool is_last;
io[i] = in[i];
__threadfence();
if (!bad) __syncthreads();
if (threadIdx.x == 0) is_last = atomicAdd(&done, 1u) % gridDim.x == gridDim.x - 1;
__syncthreads();
if (is_last)
    out[i] = io[(i + 65) % 256]; // here
== a_producer_in_another_block Race
if (blockIdx.x == 0) io[threadIdx.x] = 1;
if (bad && blockIdx.x == 1) out[i] = io[threadIdx.x]; // here
== two_threads_for_one_element Race
out[bad ? i / 2 : i] = i; // here
== two_blocks_for_one_element Race
out[bad ? i % 192 : i] = i; // here
== bytes_of_two_threads_that_overlap Race
char *bytes = reinterpret_cast<char *>(io);
if (!bad) bytes[i] = i;
else *reinterpret_cast<short *>(bytes + i / 2 * 2) = i; // here
== a_transposition_in_place Race
int row = i / 16, column = i % 16;
float other = bad ? io[column * 16 + row] : in[column * 16 + row]; // here
io[i] = other;
== shared_memory_for_two_purposes Race
__shared__ float tile[64];
tile[threadIdx.x] = in[i];
__syncthreads();
float value = tile[63 - threadIdx.x]; // here
if (!bad) __syncthreads();
int *integers = reinterpret_cast<int *>(tile);
integers[threadIdx.x] = i;
__syncthreads();
out[i] = value + integers[63 - threadIdx.x];
== a_global_variable_of_all_blocks Race
$before{
__device__ float total;
}
if (!bad) atomicAdd(&total, 1.0f);
else total += 1; // here
== a_copy_into_what_others_read Race
if (threadIdx.x == 63 && bad) memcpy(io + 64 * blockIdx.x, in, 8); // here
else out[i] = io[i];
== a_fence_before_the_barrier_by_one_thread Race
$before{
__device__ unsigned int done;
}
__shared__ bool is_last;
io[i] = in[i];
if (bad && threadIdx.x == 0) __threadfence();
__syncthreads();
if (threadIdx.x == 0) {
    if (!bad) __threadfence();
    is_last = atomicAdd(&done, 1u) % gridDim.x == gridDim.x - 1;
}
__syncthreads();
if (is_last)
    out[i] = io[(i + 65) % 256]; // here
== the_volatile_reduction_of_a_warp_lacks_barriers Race
__shared__ volatile float part[64];
part[threadIdx.x] = in[i];
__syncthreads();
if (threadIdx.x < 32)
    for (int by = 32; by > 0; by /= 2) {
        float other = part[threadIdx.x + by];
        if (!bad) __syncwarp();
        part[threadIdx.x] = part[threadIdx.x] + other; // here
        if (!bad) __syncwarp();
    }
__syncthreads();
out[i] = part[0];
== volatile_does_not_keep_an_update_whole Race
volatile float *sum = io;
if (!bad && i > 0) return;
sum[0] = sum[0] + in[i]; // here
== integers_divided_by_zero DivisionByZero
int by = (int)in[i] - (bad ? 5 : -1);
out[i] = 100 / by; // here
== integers_divided_by_zero_again DivisionByZero
unsigned by = (unsigned)in[i] + (bad ? 0 : 1);
out[i] = (unsigned)i % by; // here
"#;
