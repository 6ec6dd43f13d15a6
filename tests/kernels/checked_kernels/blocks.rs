//! Races between blocks, and the patterns by which one block waits for others.

#[test]
fn every_race_between_blocks_is_found() {
    crate::check_texts(TEXTS);
}

pub(crate) const TEXTS: &str = r#"
== sum(in io) float|int <<<4, 64>>> Race, Race
$1{io[0] += in[i];}2{if (t == 0) io[0] += in[i];}{atomicAdd(&io[0], in[i]);}
== histogram(in io) unsigned <<<4, 64>>> Race
$1{io[in[i] % 8]++;}{atomicAdd(&io[in[i] % 8], 1);}
== one_element_for_two(in out) byte|half <<<4, 64>>> Race, Race
out[$1{i / 2}2{i % 192}{i}] = in[i];
if ($1{true}2{true}{false}) out[i] = in[i] + T(1);
== neighbours_in_place(in io) short <<<4, 64>>> Race, Race
T right = $1{io[i ^ 1]}2{io[(i + 64) % n]}{in[i ^ 1]};
io[i] = io[i] + right;
== transposed_in_place(in io) float <<<16, 16>>> Race
T other = $1{io[t * 16 + b]}{in[t * 16 + b]};
io[b * 16 + t] = io[b * 16 + t] + other;
== overlapping_tiles(in io) int <<<4, 64>>> Race
int at = b * $1{60}{64} + t;
io[at] = io[at] + in[at];
== producer_block(in io) float <<<2, 64>>> Race
if (b == 0) io[t] = in[t];
else io[t + 64] += $1{io[t]}{in[t]};
== global_counter(in out) int <<<4, 64>>> Race, Race
$before{__device__ int @count;}
$1{@count = @count + 1;}2{if (t == 0) @count++;}{atomicAdd(&@count, 1);}
out[i] = in[i];
== global_maximum(in out) unsigned <<<4, 64>>> Race
$before{__device__ unsigned @largest;}
$1{if (in[i] > @largest) @largest = in[i];}{atomicMax(&@largest, in[i]);}
out[i] = in[i];
== mixed_access(in io) int <<<4, 64>>> Race, Race
atomicAdd(&io[0], in[i]);
if (i == 130) $1{io[0] = 0;}{atomicExch(&io[0], 0);}
if (i > 0) io[i] = io[i] + $2{io[0]}{1};
== last_block(in io) float <<<4, 64>>> Race, Race, Race
$before{__device__ unsigned @done;}
__shared__ bool is_last;
io[i] = io[i] + in[i];
$1{}{__threadfence();}
$2{}{__syncthreads();}
if (t == 0) is_last = atomicAdd(&@done, 1u) == gridDim.x - 1;
__syncthreads();
if (is_last$3{ || b == 2}{}) {
    T sum = 0;
    for (int k = t; k < n; k += 64) sum += io[k];
    io[t] = sum;
}
== sums_of_blocks(in io) int <<<4, 64>>> Race, Race
$before{__device__ unsigned @done; __device__ int @sums[4];}
__shared__ bool is_last;
__shared__ int sum;
if (t == 0) sum = 0;
__syncthreads();
atomicAdd(&sum, in[i]);
__syncthreads();
if (t == 0) {
    @sums[b] = sum;
    $1{}{__threadfence();}
    is_last = $2{(@done++)}{atomicAdd(&@done, 1u)} == gridDim.x - 1;
    if (is_last) for (int k = 0; k < 4; ++k) io[0] += @sums[k];
}
== fence_by_one_thread(in io) float <<<4, 32>>> Race
$before{__device__ unsigned @done;}
__shared__ bool is_last;
io[i] = io[i] + in[i];
$1{if (t == 0)}{} __threadfence();
__syncthreads();
if (t == 0) is_last = atomicAdd(&@done, 1u) == gridDim.x - 1;
__syncthreads();
if (is_last) io[t] = io[t] + io[t + 32] + io[t + 64];
== flag_of_a_block(in io) int <<<2, 32>>> Race, Race
$before{__device__ int @flag; __device__ int @value;}
if (b == 0 && t == 0) {
    @value = in[3];
    $1{}{__threadfence();}
    $2{@flag = 1;}{atomicExch(&@flag, 1);}
}
if (b == 1 && t == 0 && atomicAdd(&@flag, 0) == 1) { __threadfence(); io[40] += @value; }
== bit_set(in io) unsigned <<<4, 64>>> Race
unsigned bit = 1u << in[i] % 32, word = in[i] / 32;
$1{io[word] |= bit;}{atomicOr(&io[word], bit);}
== edges_of_a_graph(in io) int <<<4, 32>>> Race
int from = in[i] / 2, to = in[(i * 7 + 1) % n] / 2;
if (from != to) { $1{io[to] = min(io[to], from);}{atomicMin(&io[to], from);} }
== scattered(in io) double <<<4, 32>>> Race
int at = $1{(int)in[i] * 2 % n}{(n - 1 - (int)in[i])};
io[at] = io[at] + in[i];
== stencil_in_place(in io) float <<<4, 32>>> Race
T sum = $1{io[(i + 1) % n] + io[(i + n - 1) % n]}{in[(i + 1) % n] + in[(i + n - 1) % n]};
io[i] = io[i] + sum;
== two_kernels_in_one(io out) int <<<4, 32>>> Race
io[i] = io[i] * 2;
__syncthreads();
out[i] = io[$1{n - 1 - i}{b * 32 + 31 - t}];
== one_block_too_wide(in out) short <<<4, 32>>> Race
for (int k = t; k < $1{48}{32}; k += 32) if (b * 32 + k < n) out[b * 32 + k] = in[i];
== matrix_vector(in io) float <<<4, 64>>> Race
T product = in[i] * in[t];
$1{io[b] = io[b] + product;}{atomicAdd(&io[b], product);}
== copied_rows(in io) float <<<4, 16>>> Race
if (t == 0 && b < 3) memcpy(io + b * 16, in, $1{20}{16} * sizeof(T));
== swap_loop(in io) int <<<4, 32>>> Race
int old = io[0], seen;
do {
    seen = old;
    $1{io[0] = seen + in[i]; old = seen;}{old = atomicCAS(&io[0], seen, seen + in[i]);}
} while (old != seen);
== lock(in io) int <<<4, 32>>> Race
$before{__device__ int @lock;}
if (t == 0) {
    $1{}{while (atomicCAS(&@lock, 0, 1) != 0) {} __threadfence();}
    io[0] = io[0] + in[i];
    $1{}{__threadfence(); atomicExch(&@lock, 0);}
}
"#;
