//! Divisions by zero, and accesses whose address is no multiple of their length.

#[test]
fn every_division_by_zero_and_misaligned_access_is_found() {
    crate::check_texts(TEXTS);
}

pub(crate) const TEXTS: &str = r#"
== quotient(in out) int|int64_t <<<2, 32>>> DivisionByZero, DivisionByZero
T by = in[i] $1{}2{* (t != 3)}{+ 1};
out[i] = T(100) / by;
== rest(in out) byte|short <<<2, 32>>> DivisionByZero
int by = $1{in[i]}{in[i] | 1};
out[i] = i % by;
== width_by_value(in out) int <<<2, 32>>> DivisionByZero, DivisionByZero
int row = i / $1{s.zero}{s.columns}, column = i % $2{s.zero}{s.columns};
out[row * 16 + column] = in[i];
== mean_of_a_list(in out) int <<<2, 32>>> DivisionByZero
__shared__ int count, sum;
if (t == 0) count = sum = 0;
__syncthreads();
if (in[i] % 7 == 0 && b == 0) { atomicAdd(&count, 1); atomicAdd(&sum, in[i]); }
__syncthreads();
out[i] = $1{sum / count}{count > 0 ? sum / count : 0};
== greatest_divisor(in out) unsigned <<<2, 32>>> DivisionByZero
T x = in[i] + 12, y = 18;
while ($1{x != y}{y != 0}) { T rest = x % y; x = y; y = rest; }
out[i] = x;
== wide_read(in out) float <<<1, 32>>> Misaligned
const double *wide = reinterpret_cast<const double *>(in + $1{1}{2});
out[t] = t < 8 ? (float)wide[t] : in[t];
== wide_write(io) byte <<<1, 64>>> Misaligned, Misaligned
if (t < 7) *reinterpret_cast<int *>(io + 4 * t + $1{2}{4}) += 1;
if (t == 9) *reinterpret_cast<short *>(io + $2{41}{42}) += 1;
== pair_at_an_odd_place(in out) float <<<1, 32>>> Misaligned
float2 pair = *reinterpret_cast<const float2 *>(in + $1{t % 31}{t / 2 * 2});
out[t] = pair.x + pair.y;
== half_pair(in out) half <<<1, 32>>> Misaligned
half2 pair = *reinterpret_cast<const half2 *>(in + $1{t % 31}{t / 2 * 2});
out[t] = pair.x + pair.y;
== shared_bytes(in out) byte <<<1, 32>>> Misaligned
__shared__ __align__(16) unsigned char bytes[40];
for (int k = t; k < 40; k += 32) bytes[k] = in[k % 32];
__syncthreads();
out[t] = *reinterpret_cast<int *>(bytes + $1{t}{t / 4 * 4});
== atomic_on_bytes(io) byte <<<1, 32>>> Misaligned
atomicAdd(reinterpret_cast<int *>(io + $1{6}{8}), 1);
== vector_of_four(io) float <<<1, 8>>> Misaligned, Misaligned, Misaligned
float4 four = *reinterpret_cast<const float4 *>(io + $1{2}{4});
if (t == 1) *reinterpret_cast<float4 *>(io + $2{1}{0}) = make_float4(1, four.y, 3, 4);
if (t == 2) reinterpret_cast<float2 *>(io + $3{5}{6})->y = four.x;
== vector_in_shared_memory(in out) float <<<1, 32>>> Misaligned, Misaligned, Misaligned
__shared__ __align__(16) T tile[32];
tile[t] = in[i];
__syncthreads();
float4 four = *reinterpret_cast<float4 *>(tile + $1{t % 28}{t / 4 * 4});
double two = *reinterpret_cast<double *>(tile + s.zero + $2{5}{6});
int2 pair = *reinterpret_cast<int2 *>(tile + $3{t % 2}{2 * (t % 2)});
out[i] = four.x + four.w + (two > 1 ? pair.x : pair.y);
== vector_of_a_thread(in out) float <<<1, 32>>> Misaligned
__align__(16) T own[8] = {in[i], 1, 2, 3, 4, 5, 6, 7};
float2 pair = *reinterpret_cast<float2 *>(own + s.zero + $1{1}{2});
out[i] = pair.x + pair.y;
== wide_atomic(io) unsigned <<<1, 32>>> Misaligned
atomicAdd(reinterpret_cast<unsigned long long *>(io + $1{1}{2}), 1ull);
== packed_header(in out) byte <<<1, 64>>> Misaligned
short length = *reinterpret_cast<const short *>(in + $1{3}{4});
out[t] = length + t;
"#;
