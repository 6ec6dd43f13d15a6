//! Reads of what nothing has written, and writes to inputs.

use resident::Grid;
use resident::emulation::FindingKind;

use crate::Case;

#[test]
fn an_output_that_is_read_first() {
    let body = r#"
        if (bad) io[i] = out[i]; // here
        out[i] = 1;
    "#;
    Case::new(body).finds(FindingKind::Uninitialised);
}

#[test]
fn an_output_that_is_added_to() {
    let body = r#"
        if (!bad) out[i] = 0;
        out[i] += in[i]; // here
    "#;
    Case::new(body).finds(FindingKind::Uninitialised);
}

#[test]
fn shared_memory_that_half_the_threads_write() {
    let body = r#"
        __shared__ float tile[64];
        if (!bad || threadIdx.x % 2 == 0) tile[threadIdx.x] = in[i];
        __syncthreads();
        out[i] = tile[threadIdx.x ^ 1]; // here
    "#;
    Case::new(body).finds(FindingKind::Uninitialised);
}

#[test]
fn a_copy_of_shared_memory_that_is_written_in_part() {
    let body = r#"
        __shared__ float tile[64], copy[64];
        if (threadIdx.x < 32) tile[threadIdx.x] = in[i];
        __syncthreads();
        copy[threadIdx.x] = tile[threadIdx.x];
        __syncthreads();
        if (bad || threadIdx.x < 32) out[i] = copy[threadIdx.x ^ 1]; // here
    "#;
    Case::new(body).finds(FindingKind::Uninitialised);
}

#[test]
fn a_copy_of_shared_memory_that_is_written_too_late() {
    let body = r#"
        __shared__ float tile[64], copy[64];
        tile[threadIdx.x] = in[i];
        if (!bad) __syncthreads();
        copy[threadIdx.x] = tile[63 - threadIdx.x]; // here
        __syncthreads();
        out[i] = copy[threadIdx.x];
    "#;
    Case::new(body).finds(FindingKind::Race);
}

#[test]
fn shared_memory_that_is_copied_to_an_output() {
    let body = r#"
        __shared__ float tile[64];
        if (!bad || threadIdx.x < 32) tile[threadIdx.x] = in[i];
        __syncthreads();
        out[i] = tile[threadIdx.x]; // here
    "#;
    Case::new(body).finds(FindingKind::Uninitialised);
}

#[test]
fn dynamic_shared_memory_beyond_what_is_written() {
    let body = r#"
        extern __shared__ float part[];
        if (threadIdx.x < 64 - bad) part[threadIdx.x] = in[i];
        __syncthreads();
        out[i] = part[63 - threadIdx.x]; // here
    "#;
    Case::new(body).grid(Grid::new(4, 64).shared_bytes(256)).finds(FindingKind::Uninitialised);
}

#[test]
fn shared_memory_of_an_earlier_block() {
    let body = r#"
        __shared__ float tile[64];
        if (!bad || blockIdx.x == 0) tile[threadIdx.x] = in[i];
        __syncthreads();
        out[i] = tile[63 - threadIdx.x]; // here
    "#;
    Case::new(body).finds(FindingKind::Uninitialised);
}

#[test]
fn an_output_that_atomics_add_to() {
    let body = r#"
        if (!bad) atomicExch(&out[i], 0.0f);
        atomicAdd(&out[i], 1.0f); // here
    "#;
    Case::new(body).finds(FindingKind::Uninitialised);
}

#[test]
fn a_shared_counter_that_nobody_clears() {
    let body = r#"
        __shared__ int counter;
        if (!bad && threadIdx.x == 0) counter = 0;
        __syncthreads();
        atomicAdd(&counter, 1); // here
    "#;
    Case::new(body).finds(FindingKind::Uninitialised);
}

#[test]
fn a_vector_of_which_one_part_is_written() {
    let body = r#"
        __shared__ float4 tile[16];
        float *parts = reinterpret_cast<float *>(tile);
        if (threadIdx.x < 64 - bad) parts[threadIdx.x] = in[i];
        __syncthreads();
        float4 all = tile[threadIdx.x / 4]; // here
        out[i] = all.x + all.y + all.z + all.w;
    "#;
    Case::new(body).finds(FindingKind::Uninitialised);
}

#[test]
fn an_output_that_is_copied() {
    let body = r#"
        if (!bad) out[i] = 1;
        __syncthreads();
        if (threadIdx.x == 0) memcpy(io + i, out + i, 256); // here
        __syncthreads();
        out[i] = 1;
    "#;
    Case::new(body).finds(FindingKind::Uninitialised);
}

#[test]
fn a_histogram_that_is_not_cleared() {
    let body = r#"
        __shared__ unsigned int bins[16];
        if (threadIdx.x < 16 - bad) bins[threadIdx.x] = 0;
        __syncthreads();
        atomicAdd(&bins[threadIdx.x % 16], 1u); // here
    "#;
    Case::new(body).finds(FindingKind::Uninitialised);
}

#[test]
fn an_input_that_is_written() {
    let body = r#"
        float *input = const_cast<float *>(in);
        if (bad) input[i] = 1; // here
    "#;
    Case::new(body).finds(FindingKind::WriteToInput);
}

#[test]
fn an_input_that_atomics_change() {
    let body = r#"
        float *target = bad ? const_cast<float *>(in) : io;
        atomicAdd(&target[0], 1.0f); // here
    "#;
    Case::new(body).finds(FindingKind::WriteToInput);
}

#[test]
fn an_input_that_is_filled() {
    let body = r#"
        float *target = bad ? const_cast<float *>(in) : io;
        if (i == 0) memset(target, 0, 64); // here
    "#;
    Case::new(body).finds(FindingKind::WriteToInput);
}

#[test]
fn an_input_that_is_swapped() {
    let body = r#"
        float *target = bad ? const_cast<float *>(in) : io;
        if (i % 2 == 0) swap(target[i], target[i + 1]);
    "#;
    let before = r#"
        __device__ void swap(float &a, float &b) {
            float c = a;
            a = b; // here
            b = c;
        }
    "#;
    Case::new(body).after(before).finds(FindingKind::WriteToInput);
}
