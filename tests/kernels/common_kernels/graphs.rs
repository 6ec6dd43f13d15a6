//! Graphs, sparse matrices, dynamic programming.

use resident::Grid;

use crate::{Case, case, case_with, floats, ints, words};

cases! {
    sparse_rows_times_a_vector, breadth_first_levels, connected_components_by_pointer_jumping,
    list_ranking, shortest_paths_between_all_pairs, edit_distance_along_diagonals, knapsack_by_rows,
    game_of_life, nearest_centre_of_each_point, ways_to_place_queens
}

fn sparse_rows_times_a_vector() -> Case {
    let text = r#"
        // Row starts, columns, then values: rows have 1, 2, 3, 0, 1, ... elements.
        int rows = in[0], row = blockIdx.x * blockDim.x + threadIdx.x;
        if (row >= rows) return;
        const int *starts = in + 1, *columns = starts + rows + 1,
            *values = columns + starts[rows];
        int sum = 0;
        for (int k = starts[row]; k < starts[row + 1]; ++k) sum += values[k] * (columns[k] + 1);
        out[row] = sum;
    "#;
    let rows = 40;
    let lengths = (0..rows).map(|row| (row + 1) % 4);
    let starts: Vec<i32> = std::iter::once(0)
        .chain(lengths.scan(0, |sum, len| {
            *sum += len;
            Some(*sum)
        }))
        .collect();
    let count = starts[40] as usize;
    let columns: Vec<i32> = words(count).iter().map(|x| (x % 40) as i32).collect();
    let values = ints(count);
    let expected: Vec<i32> = starts
        .windows(2)
        .map(|row| (row[0] as usize..row[1] as usize).map(|k| values[k] * (columns[k] + 1)).sum())
        .collect();
    let x = [vec![rows], starts, columns, values].concat();
    case(text, Grid::new(2, 32), &x, expected)
}

fn breadth_first_levels() -> Case {
    let text = r#"
        // Vertex v has edges to 2 v + 1 and 3 v + 1.
        __shared__ int changed;
        int v = threadIdx.x;
        out[v] = v == in[0] ? 0 : -1;
        __syncthreads();
        for (int level = 0;; ++level) {
            if (v == 0) changed = 0;
            __syncthreads();
            // Another thread may set it meanwhile.
            if (atomicAdd(&out[v], 0) == level) {
                int edges[2] = {2 * v + 1, 3 * v + 1};
                for (int w : edges)
                    if (w < blockDim.x && atomicCAS(&out[w], -1,
                        level + 1) == -1) atomicExch(&changed, 1);
            }
            __syncthreads();
            int is_on = atomicAdd(&changed, 0);
            __syncthreads();
            if (!is_on) break;
        }
    "#;
    let mut levels = vec![-1; 64];
    levels[0] = 0;
    for level in 0..64 {
        for v in 0..64 {
            if levels[v] == level {
                for w in [2 * v + 1, 3 * v + 1] {
                    if w < 64 && levels[w] == -1 {
                        levels[w] = level + 1;
                    }
                }
            }
        }
    }
    case_with(text, Grid::new(1, 64), &[0], &[7; 64], levels)
}

fn connected_components_by_pointer_jumping() -> Case {
    let text = r#"
        __shared__ int parent[64];
        int v = threadIdx.x;
        parent[v] = v;
        __syncthreads();
        for (int round = 0; round < 64; ++round) {
            // Edge v: from v to in[v].
            int a = parent[v], b = parent[in[v]];
            __syncthreads();
            if (a < b) atomicMin(&parent[b], a);
            if (b < a) atomicMin(&parent[a], b);
            __syncthreads();
            int p = parent[v], root = parent[p];
            __syncthreads();
            parent[v] = root;
            __syncthreads();
        }
        out[v] = parent[v];
    "#;
    let x: Vec<i32> = (0..64).map(|v| if v % 5 == 4 { v } else { (v + 5) % 60 }).collect();
    let mut expected: Vec<i32> = (0..64).collect();
    for _ in 0..64 {
        for v in 0..64 {
            let least = expected[v].min(expected[x[v] as usize]);
            expected[v] = least;
            expected[x[v] as usize] = least;
        }
    }
    case(text, Grid::new(1, 64), &x, expected)
}

fn list_ranking() -> Case {
    let text = r#"
        __shared__ int next[64], rank[64];
        int i = threadIdx.x;
        next[i] = in[i];
        rank[i] = in[i] == i ? 0 : 1;
        for (int round = 0; round < 6; ++round) {
            __syncthreads();
            int more = rank[next[i]], after = next[next[i]];
            __syncthreads();
            rank[i] += more;
            next[i] = after;
        }
        out[i] = rank[i];
    "#;
    // 0 -> 7 -> 14 -> ... (mod 64), to the last.
    let last = 63 * 7 % 64;
    let x: Vec<i32> = (0..64).map(|i| if i == last { i } else { (i + 7) % 64 }).collect();
    let mut expected = vec![0; 64];
    (0..64).for_each(|step| expected[step * 7 % 64] = 63 - step as i32);
    case(text, Grid::new(1, 64), &x, expected)
}

fn shortest_paths_between_all_pairs() -> Case {
    let text = r#"
        __shared__ int d[16][16];
        int i = threadIdx.y, j = threadIdx.x;
        d[i][j] = in[i * 16 + j];
        for (int k = 0; k < 16; ++k) {
            __syncthreads();
            int through = d[i][k] + d[k][j];
            __syncthreads();
            if (through < d[i][j]) d[i][j] = through;
        }
        out[i * 16 + j] = d[i][j];
    "#;
    let x: Vec<i32> = words(256)
        .iter()
        .enumerate()
        .map(|(n, x)| if n % 17 == 0 { 0 } else { (x % 100) as i32 + 1 })
        .collect();
    let mut d = x.clone();
    for k in 0..16 {
        for n in 0..256 {
            d[n] = d[n].min(d[n / 16 * 16 + k] + d[k * 16 + n % 16]);
        }
    }
    case(text, Grid::new(1, (16, 16)), &x, d)
}

fn edit_distance_along_diagonals() -> Case {
    let text = r#"
        __shared__ int d[33][33];
        const int m = 32, *a = in, *b = in + m;
        int t = threadIdx.x;
        for (int k = t; k <= m; k += 32) d[k][0] = d[0][k] = k;
        __syncthreads();
        for (int diagonal = 2; diagonal <= 2 * m; ++diagonal) {
            int i = t + 1, j = diagonal - i;
            if (j >= 1 && j <= m) {
                int replaced = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
                d[i][j] = min(replaced, min(d[i - 1][j], d[i][j - 1]) + 1);
            }
            __syncthreads();
        }
        if (t == 0) *out = d[m][m];
    "#;
    let x: Vec<i32> = words(64).iter().map(|x| (x % 4) as i32).collect();
    let mut row: Vec<i32> = (0..=32).collect();
    for i in 1..=32 {
        let mut last = std::mem::replace(&mut row[0], i as i32);
        for j in 1..=32 {
            let replaced = last + i32::from(x[i - 1] != x[32 + j - 1]);
            last = row[j];
            row[j] = replaced.min(row[j].min(row[j - 1]) + 1);
        }
    }
    case(text, Grid::new(1, 32), &x, [row[32]])
}

fn knapsack_by_rows() -> Case {
    let text = r#"
        __shared__ int best[2][64];
        int w = threadIdx.x, now = 0;
        best[0][w] = 0;
        for (int item = 0; item < n / 2; ++item) {
            __syncthreads();
            int weight = in[2 * item], value = in[2 * item + 1], own = best[now][w];
            if (w >= weight) own = max(own, best[now][w - weight] + value);
            now ^= 1;
            best[now][w] = own;
        }
        out[w] = best[now][w];
    "#;
    let x: Vec<i32> = words(24).iter().map(|x| (x % 20) as i32 + 1).collect();
    let mut best = vec![0; 64];
    for item in x.chunks(2) {
        for w in (item[0] as usize..64).rev() {
            best[w] = best[w].max(best[w - item[0] as usize] + item[1]);
        }
    }
    case(text, Grid::new(1, 64), &x, best)
}

fn game_of_life() -> Case {
    let text = r#"
        #define W 32
        // A row is a word.
        __shared__ unsigned rows[2][W];
        int r = threadIdx.x;
        rows[0][r] = in[r];
        for (int step = 0; step < 10; ++step) {
            __syncthreads();
            unsigned now = rows[step & 1][r], next = 0;
            unsigned up = rows[step & 1][(r + W - 1) % W], down = rows[step & 1][(r + 1) % W];
            for (int c = 0; c < W; ++c) {
                auto three = [&](unsigned row) { return __popc(__funnelshift_r(row, row,
                    (c + 31) % 32) & 7); };
                int alive = three(up) + three(now) + three(down), self = now >> c & 1;
                next |= (unsigned)(alive == 3 || (self && alive == 4)) << c;
            }
            rows[~step & 1][r] = next;
        }
        out[r] = rows[0][r];
    "#;
    let x = words(32);
    let mut rows = x.clone();
    for _ in 0..10 {
        let cell = |r: usize, c: usize| rows[r % 32] >> (c % 32) & 1;
        let next = |r: usize| {
            (0..32).fold(0, |row, c| {
                let around: u32 = (0..9).map(|k| cell(r + 31 + k / 3, c + 31 + k % 3)).sum();
                row | u32::from(around == 3 || (cell(r, c) == 1 && around == 4)) << c
            })
        };
        rows = (0..32).map(next).collect();
    }
    case(text, Grid::new(1, 32), &x, rows)
}

fn nearest_centre_of_each_point() -> Case {
    let text = r#"
        __shared__ float2 centres[4];
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (threadIdx.x < 4) centres[threadIdx.x] = in[threadIdx.x];
        __syncthreads();
        if (i >= n) return;
        int best = 0;
        float least = 1e30f;
        for (int k = 0; k < 4; ++k) {
            float dx = in[i].x - centres[k].x, dy = in[i].y - centres[k].y,
                d = dx * dx + dy * dy;
            if (d < least) { least = d; best = k; }
        }
        out[i] = best;
    "#;
    let x: Vec<[f32; 2]> = floats(160).chunks(2).map(|x| [x[0], x[1]]).collect();
    let nearest = |p: &[f32; 2]| {
        let distance = |k: usize| (p[0] - x[k][0]).powi(2) + (p[1] - x[k][1]).powi(2);
        (0..4).min_by(|a, b| distance(*a).total_cmp(&distance(*b))).expect("some") as i32
    };
    case(text, Grid::new(3, 32), &x, x.iter().map(nearest))
}

fn ways_to_place_queens() -> Case {
    let text = r#"
        __device__ int ways(unsigned all, unsigned columns, unsigned left, unsigned right) {
            if (columns == all) return 1;
            int count = 0;
            for (unsigned free = all & ~(columns | left | right); free;) {
                unsigned bit = free & -free;
                free ^= bit;
                count += ways(all, columns | bit, (left | bit) << 1, (right | bit) >> 1);
            }
            return count;
        }
        extern "C" __global__ void run(const int *in, int *out, int n) {
            int size = in[threadIdx.x];
            out[threadIdx.x] = ways((1u << size) - 1, 0, 0, 0);
        }
    "#;
    case(text, Grid::new(1, 6), &[1, 4, 5, 6, 7, 8], [1, 2, 10, 4, 40, 92])
}
