//! Accesses beyond what a thread may access, and at addresses that GPUs refuse.

#[test]
fn every_access_beyond_an_array_is_found() {
    let found = crate::check_texts(TEXTS);
    let one = "shared_memory_that_the_launch_does_not_have";
    found.says(one, "writes byte 0 of `extern __shared__`");
    found.says(one, "`Grid::shared_bytes`, or raise them");
    found.says("a_pointer_that_is_none", "reads bytes that are no argument's");
    found.says("a_pointer_that_is_none", "look where the pointer comes from");
}

pub(crate) const TEXTS: &str = r#"
== a_read_behind_the_end OutOfBounds
out[i] = in[i + bad]; // here
== a_write_before_the_start OutOfBounds
io[i - bad] = 1; // here
== a_loop_that_is_one_too_long OutOfBounds
for (int k = i; k < 256 + bad; k += 256)
    for (int j = 0; j < (i == 0 ? 1 + 256 * bad : 1); ++j)
        out[i] = in[k + j]; // here
== a_read_far_behind_the_end OutOfBounds
out[i] = in[i + bad * 100000]; // here
== an_index_that_is_data OutOfBounds
int at = static_cast<int>(in[i]) + bad;
out[i] = in[at]; // here
== a_stencil_without_a_border OutOfBounds
int left = bad ? i - 1 : max(i - 1, 0);
out[i] = in[left]; // here
== a_vector_behind_the_end OutOfBounds
const float4 *vectors = reinterpret_cast<const float4 *>(in);
out[i] = vectors[i / 4 + bad].x; // here
== a_byte_behind_the_end OutOfBounds
const char *bytes = reinterpret_cast<const char *>(in);
out[i] = bytes[4 * i + 3 + bad]; // here
== a_shift_in_place_behind_the_end OutOfBounds
unsigned int *words = reinterpret_cast<unsigned int *>(io);
if (i == 0) words[255 + bad] <<= 1 + i; // here
== a_longer_type_behind_the_end OutOfBounds
double *pairs = reinterpret_cast<double *>(io);
if (i % 2 == 0) pairs[i / 2 + bad] = 1; // here
== a_structure_that_ends_behind_the_end OutOfBounds
struct Three { float a, b, c; };
Three *threes = reinterpret_cast<Three *>(io);
if (i < 85 + bad) threes[i] = Three{1, 2, 3}; // here
== a_variable_in_shared_memory OutOfBounds
__shared__ float tile[64];
tile[threadIdx.x + bad] = in[i]; // here
__syncthreads();
out[i] = tile[63 - threadIdx.x];
== more_dynamic_shared_memory_than_asked_for <<<4, 64, 256>>> OutOfBounds
extern __shared__ float part[];
part[threadIdx.x + bad] = 1; // here
== dynamic_shared_memory_that_was_not_asked_for OutOfBounds
extern __shared__ float part[];
if (bad) part[threadIdx.x] = 1; // here
== a_variable_of_another_thread OutOfBounds
__shared__ int *pointer;
int own[4] = {i, i, i, i};
if (threadIdx.x == 0) pointer = own;
__syncthreads();
int *other = bad ? pointer : own;
if (threadIdx.x == 1) out[i] = other[i % 4]; // here
__syncthreads();
out[i] = own[i % 4];
== a_null_pointer OutOfBounds
float *pointer = bad ? nullptr : io;
pointer[i] = 1; // here
== a_wild_pointer OutOfBounds
unsigned long long wild = 0x123456780, good = reinterpret_cast<unsigned long long>(io);
float *pointer = reinterpret_cast<float *>(bad ? wild : good);
pointer[i] = 1; // here
== an_atomic_behind_the_end OutOfBounds
atomicAdd(&io[255 + bad], 1.0f); // here
== an_atomic_operation_that_the_source_does_not_spell OutOfBounds
$before{
#define JOINED(a, b) a##b
}
// The compiled code tells that there is one (`Compiler::checked`).
JOINED(ato, micAdd)(&io[255 + bad], 1.0f); // here
== a_copy_of_too_many_bytes OutOfBounds
if (i == 0) memcpy(out, in, 4 * (256 + bad)); // here
== a_fill_of_too_many_bytes OutOfBounds
if (i == 0) memset(out, 0, 4 * (256 + bad)); // here
== a_text_that_printf_reads_beyond_the_end OutOfBounds
char *text = reinterpret_cast<char *>(io) + 1020;
if (i == 0) text[0] = text[1] = text[2] = '-', text[3] = bad ? '-' : 0;
if (i == 0) printf("%.5s", text); // here
== a_format_beyond_the_end OutOfBounds
char *text = reinterpret_cast<char *>(io) + 1020;
if (i == 0) text[0] = text[1] = text[2] = '-', text[3] = bad ? '-' : 0;
if (i == 0) printf(text); // here
== allocated_memory_behind_its_end OutOfBounds
int *memory = static_cast<int *>(malloc(8));
memory[0] = memory[1] = i;
out[i] = memory[1 + bad]; // here
free(memory);
== allocated_memory_that_is_written_behind_its_end OutOfBounds
char *memory = static_cast<char *>(malloc(16));
memset(memory, 0, 16 + bad); // here
out[i] = memory[15];
free(memory);
== allocated_memory_that_is_free OutOfBounds
float *memory = static_cast<float *>(malloc(8));
memory[0] = memory[1] = in[i];
if (bad) free(memory);
out[i] = memory[1]; // here
if (!bad) free(memory);
== a_read_only_load_behind_the_end OutOfBounds
out[i] = __ldg(&in[i + bad]); // here
== a_global_variable OutOfBounds
$before{
__device__ float table[16];
}
out[i] = table[i % 16 + 16 * bad]; // here
== a_function_that_is_called OutOfBounds
$before{
__device__ __noinline__ float at(const float *x, int i) {
    return x[i]; // here
}
}
out[i] = at(in, i + bad);
== a_template OutOfBounds
$before{
template <typename T> __device__ T at(const T *x, int i) {
    return x[i]; // here
}
}
out[i] = at(in, i + bad);
== a_number_at_an_odd_address Misaligned
char *bytes = reinterpret_cast<char *>(io);
if (i == 3) *reinterpret_cast<int *>(bytes + 16 + bad) = 1; // here
== a_number_at_half_its_length Misaligned
// The first access of a block takes another way through the checker.
out[i] = 1;
char *bytes = reinterpret_cast<char *>(io);
if (i == 3) *reinterpret_cast<int *>(bytes + 16 + 2 * bad) = 1; // here
== a_double_at_half_its_length Misaligned
if (i == 0) out[i] = *reinterpret_cast<const double *>(in + 2 + bad); // here
== an_address_before_the_first OutOfBounds
float *pointer = bad ? nullptr : io + 1;
pointer[i - 1] = 1; // here
== a_fill_of_a_negative_number_of_bytes OutOfBounds
long long bytes = bad ? -8 : 8;
if (i == 0) memset(io, 0, static_cast<size_t>(bytes)); // here
== a_copy_of_a_negative_number_of_bytes OutOfBounds
long long bytes = bad ? -8 : 8;
if (i == 0) memcpy(out, in, static_cast<size_t>(bytes)); // here
== shared_memory_in_a_block_of_declarations OutOfBounds
$before{
extern "C" {
__shared__ float tile[64];
}
}
if (i < 64) tile[threadIdx.x + bad] = in[i]; // here
__syncthreads();
if (i < 64) out[i] = tile[63 - threadIdx.x];
== a_function_of_c_that_writes OutOfBounds
float cosine;
sincosf(in[i], &io[i + bad], &cosine); // here
out[i] = cosine;
== shared_memory_that_the_launch_does_not_have OutOfBounds
extern __shared__ float part[];
if (bad) part[threadIdx.x] = in[i]; // here
out[i] = in[i];
== a_pointer_that_is_none OutOfBounds
const float *from = bad ? (const float *)16 : in;
out[i] = from[i]; // here
== copy(in out) float|byte|half <<<4, 64>>> OutOfBounds, OutOfBounds
out[i] = in[$1{i + 1}2{i - 1}{i}];
== write_behind(io out) short|double <<<2, 32>>> OutOfBounds, OutOfBounds
T x = io[i];
io[$1{i == n - 1 ? i + s.shift : i}2{i == 0 ? n + 7 : i}{i}] = x;
out[i] = x;
== grid_stride(in out) int <<<2, 32>>> OutOfBounds, OutOfBounds
for (int k = i; k < n / 2; k += $1{blockDim.x}2{gridDim.x * blockDim.x}{gridDim.x * blockDim.x}) {
    if ($1{false}{true}) out[k] = in[k];
    out[k + n / 2] = in[$1{k + n}2{k * 2 + 2}{k + n / 2}];
}
== without_a_guard(io) int <<<3, 50>>> OutOfBounds, OutOfBounds
int k = i * 2;
$1{}2{if (k <= n)}{if (k < n)} io[k] = io[k] + T(1);
== inclusive_loop(in out) double <<<1, 16>>> OutOfBounds, OutOfBounds
T sum = 0;
for (int k = $2{-1}{0}; k $1{<=}{<} n; ++k) sum += in[k];
out[i] = sum;
== downwards(in out) int <<<1, 20>>> OutOfBounds
for (int k = n; k $1{>=}{>} 0; --k) if ((k - 1) % 20 == t || k == 0) out[k - 1] = in[k - 1];
== row_major(in out) float <<<16, 8>>> OutOfBounds, OutOfBounds
int row = b, column = t;
out[row * 8 + column] = in[$1{column * 16 + row * 8}2{row * s.columns + column}{row * 8 + column}];
== transpose(in out) short <<<8, 16>>> OutOfBounds, OutOfBounds
int row = b, column = t;
out[$1{column * 16 + row}{column * 8 + row}] = in[$2{column * 16 + row}{row * 16 + column}];
== volume(in out) float <<<4x2, 4x4x2>>> OutOfBounds, OutOfBounds, OutOfBounds
int x = blockIdx.x * 4 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y, z = threadIdx.z;
int at = (z * 8 + y) * 16 + x;
int from = $1{(z * 16 + y) * 16 + x}2{(z * 8 + y + 1) * 16 + x}
    3{(x * 8 + y) * 2 + z + 1}{(x * 8 + y) * 2 + z};
out[at] = in[from];
== stencil(in out) float <<<4, 64>>> OutOfBounds, OutOfBounds, OutOfBounds
T left = $1{in[i - 1]}{i > 0 ? in[i - 1] : T(0)};
T right = $2{in[i + 1]}3{i <= n - 1 ? in[i + 1] : T(0)}{i < n - 1 ? in[i + 1] : T(0)};
out[i] = left + right;
== five_points(in out) float <<<1x4, 16x4>>> OutOfBounds, OutOfBounds, OutOfBounds, OutOfBounds
int x = threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
T sum = in[y * 16 + x];
if ($1{true}{y > 0}) sum += in[(y - 1) * 16 + x];
if ($2{y < 16}{y < 15}) sum += in[(y + 1) * 16 + x];
if ($3{y == 0 || x > 0}{x > 0}) sum += in[y * 16 + x - 1];
if ($4{y == 15 || x < 15}{x < 15}) sum += in[y * 16 + x + 1];
out[y * 16 + x] = sum;
== unsigned_underflow(in out) int64_t <<<2, 32>>> OutOfBounds
unsigned k = $1{t - 1}{t > 0 ? t - 1 : 0};
out[i] = in[k];
== index_from_data(in io) int <<<4, 32>>> OutOfBounds, OutOfBounds
int bin = $1{in[i] / 4 * 5}2{-in[i]}{in[i] / 4};
atomicAdd(&io[bin], 1);
== gather(in out) unsigned <<<2, 64>>> OutOfBounds, OutOfBounds
int at = (int)in[i];
out[i] = in[$1{at * 2}2{at - 64}{at ^ 1}];
== offset_by_value(in out) double <<<2, 64>>> OutOfBounds, OutOfBounds, OutOfBounds
int from = $1{i + s.rows}2{i - s.columns}3{i * s.shift + s.rows / 8}{i + s.zero};
out[i] = in[from];
== pointer_walk(in out) float|byte <<<1, 32>>> OutOfBounds, OutOfBounds
const T *p = in + $2{n - 1}{0};
T sum = T(0);
for (int k = 0; k $2{<=}{<} n; ++k) sum += *$1{++p}2{p--}{p++};
out[i] = sum;
== pairs(in out) float <<<2, 32>>> OutOfBounds, OutOfBounds
const float2 *pair = reinterpret_cast<const float2 *>(in);
float2 x = pair[$1{i}2{i / 2 + 1}{i / 2}];
out[i] = i % 2 ? x.y : x.x;
== quadruples(io) int <<<1, 64>>> OutOfBounds
int4 *four = reinterpret_cast<int4 *>(io);
if (t < $1{n / 4 + 1}{n / 4}) { int4 x = four[t]; x.w += x.x; four[t] = x; }
== odd_last_element(in out) half <<<1, 33>>> OutOfBounds
const half2 *pair = reinterpret_cast<const half2 *>(in);
if (t < $1{(n + 1) / 2}{n / 2}) { half2 x = pair[t]; out[2 * t] = x.x; out[2 * t + 1] = x.y; }
if (t == 0) out[n - 1] = in[n - 1];
== copied_bytes(in io) double <<<1, 32>>> OutOfBounds, OutOfBounds
if (t == 0) memcpy(io + 1, in, $1{n}2{(n + 1)}{(n - 1)} * sizeof(T));
== cleared_bytes(io) int <<<1, 32>>> OutOfBounds
if (t == 0) memset(io + n / 2, 0, $1{n * sizeof(T)}{n / 4 * sizeof(T)});
== atomic_behind(io) unsigned <<<2, 32>>> OutOfBounds, OutOfBounds
atomicMax(&io[$1{i + s.shift}2{i - s.shift}{i}], T(7));
== mirrored(in out) double <<<2, 32>>> OutOfBounds
out[i] = in[$1{n - i}{n - 1 - i}];
== far_away(in out) float <<<1, 32>>> OutOfBounds, OutOfBounds
out[i] = in[$1{i + 1000000}2{(long long)i << 33}{i}];
== halving(io) int <<<1, 64>>> OutOfBounds
for (int half = $1{n}{n / 2}; half > 0; half /= 2) {
    if (t < half) io[t] += io[t + half];
    __syncthreads();
}
"#;
