//! Records, unions, numbers of two bytes and characters.

#[test]
fn every_defect_with_records_is_found() {
    crate::check_texts(TEXTS);
}

pub(crate) const TEXTS: &str = r#"
== pair_with_constructor(in out) float|half <<<2, 64>>> Race, Uninitialised, OutOfBounds
$before{struct @pair { T x, y; __device__ @pair() {} __device__ @pair(T x, T y) : x(x), y(y) {} };}
__shared__ @pair tile[64];
if ($2{t < 60}{true}) tile[t] = @pair(in[i], in[i]);
$1{}{__syncthreads();}
out[i] = tile[$3{64 - t}{63 - t}].y;
== particle(in out) float <<<2, 32>>> Race, Uninitialised
$before{struct @particle { float position[3]; float mass; int kind; };}
__shared__ @particle all[32];
all[t].mass = in[i];
$2{}{all[t].kind = t;}
for (int k = 0; k < 3; ++k) all[t].position[k] = k;
$1{}{__syncthreads();}
@particle other = all[t ^ 1];
out[i] = other.mass + other.kind + all[t ^ 2].kind + other.position[2];
== whole_record(in out) int <<<2, 32>>> Race, OutOfBounds
$before{struct @record { int key; double value; char tag; };}
__shared__ @record all[32];
@record own = {in[i], 1.0, 'x'};
all[$2{t + 1}{t}] = own;
$1{__syncwarp(1u << t);}{__syncwarp();}
@record other = all[31 - t];
out[i] = other.key + other.tag;
== punned(in out) int <<<2, 64>>> Race, Uninitialised
$before{union @word { float x; int n; unsigned char bytes[4]; };}
__shared__ @word words[64];
if ($2{t != 9}{true}) words[t].n = (int)in[i];
$1{}{__syncthreads();}
out[i] = words[t ^ 33].bytes[0];
== characters(in out) byte <<<2, 64>>> Race, OutOfBounds, Uninitialised
__shared__ char text[64];
if ($3{t % 8}{true}) text[t] = in[i];
$1{}{__syncthreads();}
out[i] = text[$2{t + 8}{(t + 8) % 64}];
== bytes_of_a_record(in out) byte <<<1, 64>>> Race
$before{struct @color { unsigned char r, g, b, a; };}
__shared__ @color pixel[16];
unsigned char *channel = &pixel[t / 4].r + t % 4;
*channel = in[t];
$1{}{__syncthreads();}
@color mixed = pixel[(t / 4 + 8) % 16];
out[t] = mixed.r + mixed.g + mixed.b + mixed.a;
== list_nodes(in out) int <<<1, 32>>> OutOfBounds, Race
$before{struct @node { int value; int next; };}
__shared__ @node nodes[32];
nodes[t].value = in[t];
nodes[t].next = t $1{+ 1}{< 31 ? t + 1 : 0};
$2{}{__syncthreads();}
out[t] = nodes[nodes[t].next].value;
== halves(in out) half <<<2, 64>>> Race, Race
__shared__ half part[64];
part[t] = in[i];
$1{}{__syncthreads();}
half sum = part[t] + part[t ^ 32];
$2{}{__syncthreads();}
part[t] = sum;
__syncthreads();
out[i] = part[63 - t];
== pairs_of_halves(in out) half <<<2, 64>>> Race
__shared__ half2 part[32];
if (t < 32) part[t] = make_half2(in[i], in[i + 32]);
$1{}{__syncthreads();}
out[i] = t % 2 ? part[31 - t / 2].x : part[t / 2].y;
== complex_numbers(in out) double <<<2, 32>>> Race
$before{
struct @complex {
    double re, im;
    __device__ @complex() {}
    __device__ @complex(double re, double im) : re(re), im(im) {}
    __device__ @complex operator*(const @complex &z) const {
        return @complex(re * z.re - im * z.im, re * z.im + im * z.re);
    }
};
}
__shared__ @complex z[32];
z[t] = @complex(in[i], 1);
$1{}{__syncthreads();}
out[i] = (z[t] * z[31 - t]).re;
== bits_of_a_field(in out) unsigned <<<1, 32>>> Race
$before{struct @flags { unsigned low : 4; unsigned high : 4; };}
__shared__ @flags all[32];
if ($1{true}{t < 16}) { @flags own = {in[t] & 15u, 3u}; all[$1{t / 2}{t}] = own; }
__syncthreads();
out[t] = all[t / 2].low;
== matrix_class(in out) float <<<2, 4x4>>> Race, OutOfBounds
$before{
template <typename E, int N> struct @matrix {
    E all[N * N];
    __device__ E &operator()(int row, int column) { return all[row * N + column]; }
};
}
__shared__ @matrix<T, 4> m;
int x = threadIdx.x, y = threadIdx.y, k = b * 16 + y * 4 + x;
m(y, x) = in[k];
$1{}{__syncthreads();}
out[k] = m(x, $2{y + 1}{y});
== array_of_a_record(in out) int <<<2, 32>>> OutOfBounds, Race
$before{struct @queue { int tail; int items[32]; };}
__shared__ @queue queue;
if (t == 0) queue.tail = 0;
$2{}{__syncthreads();}
int at = atomicAdd(&queue.tail, 1);
queue.items[at $1{+ 1}{}] = in[i];
__syncthreads();
out[i] = queue.items[t];
"#;
