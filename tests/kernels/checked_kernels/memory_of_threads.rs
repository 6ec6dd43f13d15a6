//! Accesses beyond the end of local arrays, and of memory that `malloc` gives.

#[test]
fn every_access_beyond_memory_of_a_thread_is_found() {
    let found = crate::check_texts(TEXTS);
    found.says("end_of_malloc_int_1", "writes byte 16 of `malloc(16)`, which is out of bounds");
    found.says("end_of_malloc_int_3", "reads byte 0 of `freed malloc(16)`");
    let local = "reads memory beyond the end of a local variable, which is out of bounds (block";
    found.says("local_array_by_an_index_int_1", local);
}

pub(crate) const TEXTS: &str = r#"
== local_array_by_an_index(in out) int <<<2, 32>>> OutOfBounds, OutOfBounds
T own[4] = {1, 2, 3, 4};
out[i] = own[$1{4 + s.zero}2{s.zero + in[i] % 8}{in[i] % 4}];
== local_array_in_a_loop(in out) float <<<2, 32>>> OutOfBounds, OutOfBounds
T own[8];
for (int k = 0; k < s.zero + $1{9}{8}; ++k) own[k] = in[i] + k;
T sum = 0;
for (int k = 0; k < s.zero + $2{9}{8}; ++k) sum += own[k];
out[i] = sum;
== local_array_far_away(in out) double <<<1, 32>>> OutOfBounds
T own[8] = {};
own[s.zero + $1{3000}{3}] = in[i];
out[i] = own[in[i] > 2 ? 3 : 2];
== local_array_of_two_axes(in out) int <<<2, 32>>> OutOfBounds
T own[3][4];
for (int k = 0; k < 3; ++k)
    for (int j = 0; j < 4; ++j) own[k][j] = in[i] + k * j;
out[i] = own[s.zero + $1{3}{2}][in[i] % 4];
== local_record(in out) short <<<2, 32>>> OutOfBounds
struct Record { T first; T list[4]; } own = {};
own.list[s.zero + $1{4}{3}] = in[i];
out[i] = own.list[s.zero + 3] + own.first;
== local_array_in_a_function(in out) float <<<2, 32>>> OutOfBounds
$before{
__device__ T @sum(const T *x, int count) {
    T sum = 0;
    for (int k = 0; k < count; ++k) sum += x[k];
    return sum;
}
}
T own[4] = {in[i], 1, 2, 3};
out[i] = @sum(own, s.zero + $1{5}{4});
== end_of_malloc(io) int <<<1, 32>>> OutOfBounds, OutOfBounds, OutOfBounds
T *p = (T *)malloc(16);
p[0] = io[i];
p[$1{4}2{14}{3}] = 2;
T x = p[0];
free(p);
io[i] = x + $3{p[0]}{T(1)};
== end_of_new(in out) int <<<1, 32>>> OutOfBounds
T *p = new T[4];
p[0] = in[i];
p[$1{4}{3}] = 1;
out[i] = p[0];
delete[] p;
== malloc_of_a_block(in out) double <<<2, 32>>> OutOfBounds, OutOfBounds
__shared__ T *p;
if (t == 0) p = (T *)malloc(32 * sizeof(T));
__syncthreads();
p[t $1{+ 1}{}] = in[i];
__syncthreads();
$2{if (t == 0) free(p); __syncthreads();}{}
out[i] = p[31 - t];
__syncthreads();
if (t == 0) $2{}{free(p)};
"#;
