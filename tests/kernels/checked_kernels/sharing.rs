//! Ways in which threads share memory that are easy to overlook: volatile accesses, records with
//! constructors, compare-and-swap loops, values that happen to be equal.

#[test]
fn every_access_to_shared_memory_is_judged() {
    let found = crate::check_texts(TEXTS);
    found.is("an_early_read_is_a_race_with_the_writer", |race| {
        let other = race.other.as_ref().map(|other| other.thread);
        !race.is_write && race.thread == [0; 3] && other == Some([1, 0, 0])
    });
}

pub(crate) const TEXTS: &str = r#"
== a_volatile_warp_reduction Race
__shared__ float part[64];
part[threadIdx.x] = in[i];
__syncthreads();
if (threadIdx.x < 32) {
    volatile float *v = part;
    for (int by = 32; by > 0; by /= 2) {
        float other = v[threadIdx.x + by];
        if (!bad) __syncwarp();
        v[threadIdx.x] = v[threadIdx.x] + other; // here
        if (!bad) __syncwarp();
    }
}
if (threadIdx.x == 0) out[blockIdx.x] = part[0];
== a_volatile_sum Race
volatile float *sum = io;
if (bad) sum[0] = sum[0] + in[i]; // here
else atomicAdd(&io[0], in[i]);
== shared_records_with_constructors Race
$before{
struct Number {
    float x;
    __device__ Number() {}
    __device__ Number(float x) : x(x) {}
};
}
__shared__ Number tile[64];
tile[threadIdx.x] = Number(in[i]);
if (!bad) __syncthreads();
out[i] = tile[63 - threadIdx.x].x; // here
== shared_halves_without_a_barrier Race
__shared__ half tile[64];
tile[threadIdx.x] = __float2half(in[i]);
if (!bad) __syncthreads();
out[i] = __half2float(tile[63 - threadIdx.x]); // here
== a_shared_half_beyond_the_end OutOfBounds
__shared__ half tile[64];
tile[threadIdx.x + bad] = __float2half(in[i]); // here
__syncthreads();
out[i] = __half2float(tile[threadIdx.x / 2 + 1]);
== shared_memory_that_nobody_reads OutOfBounds
__shared__ float tile[64];
tile[threadIdx.x + bad] = in[i]; // here
out[i] = in[i];
== equal_values_of_several_threads_on_a_strict_device strict Race
// On a usual device the values are compared.
io[bad ? 0 : i] = 1; // here
== an_early_read_is_a_race_with_the_writer Race
__shared__ float tile[64];
tile[threadIdx.x] = in[i];
if (!bad) __syncthreads();
out[i] = tile[(threadIdx.x + 1) % 64]; // here
== a_loop_of_compare_and_swap Race
unsigned int *word = reinterpret_cast<unsigned int *>(io);
unsigned int old = *word, assumed;
do {
    assumed = old;
    old = atomicCAS(word, assumed, __float_as_uint(in[i] + __uint_as_float(assumed)));
} while (assumed != old);
if (bad && i == 200) out[0] = *word; // here
== a_maximum_by_compare_and_swap Race
unsigned int *word = reinterpret_cast<unsigned int *>(io);
unsigned int old = *word;
while (__uint_as_float(old) < in[i]) {
    unsigned int assumed = old;
    old = atomicCAS(word, assumed, __float_as_uint(in[i]));
    if (old == assumed) break;
}
if (bad && i == 200) io[0] = 0; // here
== the_last_block_starts_its_counter_again Race
$before{
__device__ unsigned int done;
}
__shared__ bool is_last;
if (threadIdx.x == 0) {
    io[blockIdx.x] = in[i];
    __threadfence();
    is_last = atomicInc(&done, gridDim.x) == gridDim.x - 1; // here
}
__syncthreads();
if (threadIdx.x == 1 && (is_last || bad && blockIdx.x == 1))
    done = 0;
"#;
