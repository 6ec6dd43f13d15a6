//! Writes to what the signature passes as `In`.

#[test]
fn every_write_to_an_input_is_found() {
    crate::check_texts(TEXTS);
}

pub(crate) const TEXTS: &str = r#"
== cast_away(in out) float|byte|half <<<4, 64>>> WriteToInput
T *input = const_cast<T *>(in);
$1{input[i] = T(1);}{}
out[i] = in[i];
== in_place_update(in io) double <<<2, 32>>> WriteToInput
T *target = $1{const_cast<T *>(in)}{io};
target[i] = target[i] * T(2);
== atomic_update(in io) int <<<2, 32>>> WriteToInput, WriteToInput
int *target = (int *)($1{const_cast<T *>(in)}{io});
atomicAdd(&target[i % 4], 1);
atomicMin((int *)$2{const_cast<T *>(in)}{io} + 5, t);
== compare_and_swap(in io) int <<<1, 32>>> WriteToInput
int *lock = $1{const_cast<int *>(in)}{io};
atomicCAS(&lock[t], t, -1);
== exchange(in io) unsigned <<<1, 32>>> WriteToInput
T *from = const_cast<T *>(in);
io[t] += $1{atomicExch(&from[t], 0u)}{from[t]};
== filled(in io) short <<<1, 64>>> WriteToInput
if (t == 0) memset($1{const_cast<T *>(in)}{io} + 8, 0, 16);
== swapped(in io) float <<<1, 64>>> WriteToInput
$before{__device__ void @swap(float &x, float &y) { float z = x; x = y; y = z; }}
T *input = const_cast<T *>(in);
if (t % 2 == 0) @swap(io[t], $1{input[t + 1]}{io[t + 1]});
== sorted_in_place(in io) int <<<1, 32>>> WriteToInput
T *keys = $1{const_cast<T *>(in)}{io};
for (int step = 0; step < 4; ++step) {
    int at = 2 * t + step % 2;
    if (at + 1 < n && keys[at] < keys[at + 1]) {
        T key = keys[at]; keys[at] = keys[at + 1]; keys[at + 1] = key;
    }
    __syncthreads();
}
== vector_store(in io) float <<<1, 32>>> WriteToInput
float2 *pair = reinterpret_cast<float2 *>($1{const_cast<T *>(in)}{io});
if (t < 16) { float2 x = pair[t]; x.y = x.x; pair[t] = x; }
== row_of_a_view(view in io) double <<<2, 32>>> WriteToInput
T *row = $1{const_cast<T *>(&in(i / 16, 0))}{&io(i / 16, 0)};
row[i % 16] += T(1);
== part_of_a_view(part in io) float <<<2, 32>>> WriteToInput
T *first = $1{const_cast<T *>(&in(0, i % 16))}{&io(0, i % 16)};
if (i < 16) *first = *first + T(1);
== last_element(in io) int64_t <<<2, 32>>> WriteToInput
T *end = $1{const_cast<T *>(in)}{io} + n;
if (i == 0) *--end += 4;
== whole_array_is_overwritten(in io) float|int <<<4, 32>>> UnreadContents
io[i] = in[i] $1{}{+ io[i]};
"#;
