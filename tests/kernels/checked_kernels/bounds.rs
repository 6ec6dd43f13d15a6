//! Accesses beyond what a thread may access, and at addresses that GPUs refuse.

use resident::Grid;
use resident::emulation::FindingKind;

use crate::Case;

#[test]
fn a_read_behind_the_end() {
    let body = r#"
        out[i] = in[i + bad]; // here
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_write_before_the_start() {
    let body = r#"
        io[i - bad] = 1; // here
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_loop_that_is_one_too_long() {
    let body = r#"
        for (int k = i; k < 256 + bad; k += 256)
            for (int j = 0; j < (i == 0 ? 1 + 256 * bad : 1); ++j)
                out[i] = in[k + j]; // here
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_read_far_behind_the_end() {
    let body = r#"
        out[i] = in[i + bad * 100000]; // here
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn an_index_that_is_data() {
    let body = r#"
        int at = static_cast<int>(in[i]) + bad;
        out[i] = in[at]; // here
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_stencil_without_a_border() {
    let body = r#"
        int left = bad ? i - 1 : max(i - 1, 0);
        out[i] = in[left]; // here
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_vector_behind_the_end() {
    let body = r#"
        const float4 *vectors = reinterpret_cast<const float4 *>(in);
        out[i] = vectors[i / 4 + bad].x; // here
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_byte_behind_the_end() {
    let body = r#"
        const char *bytes = reinterpret_cast<const char *>(in);
        out[i] = bytes[4 * i + 3 + bad]; // here
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_longer_type_behind_the_end() {
    let body = r#"
        double *pairs = reinterpret_cast<double *>(io);
        if (i % 2 == 0) pairs[i / 2 + bad] = 1; // here
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_structure_that_ends_behind_the_end() {
    let body = r#"
        struct Three { float a, b, c; };
        Three *threes = reinterpret_cast<Three *>(io);
        if (i < 85 + bad) threes[i] = Three{1, 2, 3}; // here
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_variable_in_shared_memory() {
    let body = r#"
        __shared__ float tile[64];
        tile[threadIdx.x + bad] = in[i]; // here
        __syncthreads();
        out[i] = tile[63 - threadIdx.x];
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn more_dynamic_shared_memory_than_asked_for() {
    let body = r#"
        extern __shared__ float part[];
        part[threadIdx.x + bad] = 1; // here
    "#;
    Case::new(body).grid(Grid::new(4, 64).shared_bytes(256)).finds(FindingKind::OutOfBounds);
}

#[test]
fn dynamic_shared_memory_that_was_not_asked_for() {
    let body = r#"
        extern __shared__ float part[];
        if (bad) part[threadIdx.x] = 1; // here
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_variable_of_another_thread() {
    let body = r#"
        __shared__ int *pointer;
        int own[4] = {i, i, i, i};
        if (threadIdx.x == 0) pointer = own;
        __syncthreads();
        int *other = bad ? pointer : own;
        if (threadIdx.x == 1) out[i] = other[i % 4]; // here
        __syncthreads();
        out[i] = own[i % 4];
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_null_pointer() {
    let body = r#"
        float *pointer = bad ? nullptr : io;
        pointer[i] = 1; // here
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_wild_pointer() {
    let body = r#"
        unsigned long long wild = 0x123456780, good = reinterpret_cast<unsigned long long>(io);
        float *pointer = reinterpret_cast<float *>(bad ? wild : good);
        pointer[i] = 1; // here
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn an_atomic_behind_the_end() {
    let body = r#"
        atomicAdd(&io[255 + bad], 1.0f); // here
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

/// The compiled code tells that there is one (`Compiler::checked`).
#[test]
fn an_atomic_operation_that_the_source_does_not_spell() {
    let body = r#"
        JOINED(ato, micAdd)(&io[255 + bad], 1.0f); // here
    "#;
    Case::new(body).after("#define JOINED(a, b) a##b").finds(FindingKind::OutOfBounds);
}

#[test]
fn a_copy_of_too_many_bytes() {
    let body = r#"
        if (i == 0) memcpy(out, in, 4 * (256 + bad)); // here
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_fill_of_too_many_bytes() {
    let body = r#"
        if (i == 0) memset(out, 0, 4 * (256 + bad)); // here
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_read_only_load_behind_the_end() {
    let body = r#"
        out[i] = __ldg(&in[i + bad]); // here
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_global_variable() {
    let body = r#"
        out[i] = table[i % 16 + 16 * bad]; // here
    "#;
    let before = r#"
        __device__ float table[16];
    "#;
    Case::new(body).after(before).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_function_that_is_called() {
    let body = r#"
        out[i] = at(in, i + bad);
    "#;
    let before = r#"
        __device__ __noinline__ float at(const float *x, int i) {
            return x[i]; // here
        }
    "#;
    Case::new(body).after(before).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_template() {
    let body = r#"
        out[i] = at(in, i + bad);
    "#;
    let before = r#"
        template <typename T> __device__ T at(const T *x, int i) {
            return x[i]; // here
        }
    "#;
    Case::new(body).after(before).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_number_at_an_odd_address() {
    let body = r#"
        char *bytes = reinterpret_cast<char *>(io);
        if (i == 3) *reinterpret_cast<int *>(bytes + 16 + bad) = 1; // here
    "#;
    Case::new(body).finds(FindingKind::Misaligned);
}

#[test]
fn a_number_at_half_its_length() {
    let body = r#"
        // The first access of a block takes another way through the checker.
        out[i] = 1;
        char *bytes = reinterpret_cast<char *>(io);
        if (i == 3) *reinterpret_cast<int *>(bytes + 16 + 2 * bad) = 1; // here
    "#;
    Case::new(body).finds(FindingKind::Misaligned);
}

#[test]
fn a_double_at_half_its_length() {
    let body = r#"
        if (i == 0) out[i] = *reinterpret_cast<const double *>(in + 2 + bad); // here
    "#;
    Case::new(body).finds(FindingKind::Misaligned);
}

#[test]
fn an_address_before_the_first() {
    let body = r#"
        float *pointer = bad ? nullptr : io + 1;
        pointer[i - 1] = 1; // here
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_fill_of_a_negative_number_of_bytes() {
    let body = r#"
        long long bytes = bad ? -8 : 8;
        if (i == 0) memset(io, 0, static_cast<size_t>(bytes)); // here
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_copy_of_a_negative_number_of_bytes() {
    let body = r#"
        long long bytes = bad ? -8 : 8;
        if (i == 0) memcpy(out, in, static_cast<size_t>(bytes)); // here
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn shared_memory_in_a_block_of_declarations() {
    let body = r#"
        if (i < 64) tile[threadIdx.x + bad] = in[i]; // here
        __syncthreads();
        if (i < 64) out[i] = tile[63 - threadIdx.x];
    "#;
    let before = r#"
        extern "C" {
        __shared__ float tile[64];
        }
    "#;
    Case::new(body).after(before).finds(FindingKind::OutOfBounds);
}

#[test]
fn a_function_of_c_that_writes() {
    let body = r#"
        float cosine;
        sincosf(in[i], &io[i + bad], &cosine); // here
        out[i] = cosine;
    "#;
    Case::new(body).finds(FindingKind::OutOfBounds);
}

#[test]
fn shared_memory_that_the_launch_does_not_have() {
    let body = r#"
        extern __shared__ float part[];
        if (bad) part[threadIdx.x] = in[i]; // here
        out[i] = in[i];
    "#;
    if let Some(found) = Case::new(body).finds(FindingKind::OutOfBounds) {
        let text = found.to_string();
        assert!(text.contains("writes byte 0 of `extern __shared__`"), "{text}");
        assert!(text.contains("`Grid::shared_bytes`, or raise them"), "{text}");
    }
}

#[test]
fn a_pointer_that_is_none() {
    let body = r#"
        const float *from = bad ? (const float *)16 : in;
        out[i] = from[i]; // here
    "#;
    if let Some(found) = Case::new(body).finds(FindingKind::OutOfBounds) {
        let text = found.to_string();
        assert!(text.contains("reads bytes that are no argument's"), "{text}");
        assert!(text.contains("look where the pointer comes from"), "{text}");
    }
}
