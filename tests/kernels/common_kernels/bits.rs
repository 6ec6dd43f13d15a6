//! Bits, hashes, random numbers and texts.

use resident::Grid;

use crate::{Case, case, words};

cases! {
    bits_are_counted_reversed_and_found, bits_are_interleaved, bytes_are_permuted_and_compared,
    products_of_packed_integers_are_summed, words_are_computed_by_lanes, lanes_differ_by_so_much,
    sums_of_absolute_differences, gray_codes_and_parity, mixing_of_bits_for_a_hash, hashes_of_texts,
    hash_table_with_open_addressing, cyclic_redundancy_check, random_numbers_by_shifts,
    random_numbers_by_counter, text_search, letters_are_changed_and_counted, distances_of_bits,
    numbers_of_many_words_are_added
}

fn bits_are_counted_reversed_and_found() -> Case {
    let text = r#"
        int i = threadIdx.x;
        unsigned x = in[i] >> (i & 31);
        unsigned long long wide = (unsigned long long)in[i] << 20;
        unsigned r = __popc(x) + 100 * __clz(x) + 10000 * __ffs(x);
        r ^= __brev(x) ^ __popcll(wide) ^ __clzll(wide) << 8 ^ __ffsll(wide) << 16;
        out[i] = r ^ (unsigned)(__brevll(wide) >> 32);
    "#;
    let x = words(64);
    let expected = x.iter().enumerate().map(|(i, x)| {
        let (wide, x) = (u64::from(*x) << 20, x >> (i & 31));
        let first = if x == 0 { 0 } else { x.trailing_zeros() + 1 };
        let first_wide = if wide == 0 { 0 } else { wide.trailing_zeros() + 1 };
        let counts = x.count_ones() + 100 * x.leading_zeros() + 10000 * first;
        let others = wide.count_ones() ^ wide.leading_zeros() << 8 ^ first_wide << 16;
        counts ^ x.reverse_bits() ^ others ^ (wide.reverse_bits() >> 32) as u32
    });
    case(text, Grid::new(1, 64), &x, expected)
}

fn bits_are_interleaved() -> Case {
    let text = r#"
        __device__ unsigned spread(unsigned x) {
            x &= 0xffff;
            x = (x ^ (x << 8)) & 0x00ff00ff;
            x = (x ^ (x << 4)) & 0x0f0f0f0f;
            x = (x ^ (x << 2)) & 0x33333333;
            return (x ^ (x << 1)) & 0x55555555;
        }
        extern "C" __global__ void run(const unsigned *in, unsigned *out, int n) {
            int i = threadIdx.x;
            out[i] = spread(in[i]) | spread(in[i] >> 16) << 1;
        }
    "#;
    let x = words(32);
    let interleaved = |x: &u32| {
        (0..16).fold(0, |sum, bit| {
            sum | (x >> bit & 1) << (2 * bit) | (x >> (16 + bit) & 1) << (2 * bit + 1)
        })
    };
    case(text, Grid::new(1, 32), &x, x.iter().map(interleaved))
}

fn bytes_are_permuted_and_compared() -> Case {
    let text = r#"
        int i = threadIdx.x;
        unsigned x = in[i], y = in[(i + 1) % n];
        unsigned mixed = __byte_perm(x, y, 0x5140);
        unsigned shifted = __funnelshift_r(x, y, 12);
        out[i] = mixed ^ shifted ^ __umulhi(x, y) ^ __mulhi((int)x, (int)y);
    "#;
    let x = words(32);
    let expected = (0..32).map(|i| {
        let (x, y) = (x[i], x[(i + 1) % 32]);
        let both = [x.to_le_bytes(), y.to_le_bytes()].concat();
        let mixed = u32::from_le_bytes([both[0], both[4], both[1], both[5]]);
        let shifted = x >> 12 | y << 20;
        let high = ((u64::from(x) * u64::from(y)) >> 32) as u32;
        let signed = ((i64::from(x as i32) * i64::from(y as i32)) >> 32) as u32;
        mixed ^ shifted ^ high ^ signed
    });
    case(text, Grid::new(1, 32), &x, expected)
}

fn products_of_packed_integers_are_summed() -> Case {
    let text = r#"
        int i = threadIdx.x, x = in[i], y = in[(i + 1) % n], *o = out + 8 * i;
        unsigned u = x, v = y;
        o[0] = __dp4a(x, y, -5);
        o[1] = __dp4a(u, v, 5u);
        o[2] = __dp2a_lo(x, y, i);
        o[3] = __dp2a_hi(x, y, i);
        o[4] = __dp2a_lo(u, v, 5u);
        o[5] = __dp2a_hi(u, v, 5u);
        o[6] = __dp4a(make_char4(-1, 2, -3, 4), make_char4(x, y, i, 7), 1);
        o[7] = __dp2a_lo(make_short2(-300, 2), make_char4(x, y, i, 7), 1);
    "#;
    let x: Vec<i32> = words(32).iter().map(|x| *x as i32).collect();
    let of = |i: usize| {
        let (x, y, last) = (x[i], x[(i + 1) % 32], i as i32);
        let (a, b) = (x.to_le_bytes(), y.to_le_bytes());
        let signed = |at: usize| i32::from(a[at] as i8) * i32::from(b[at] as i8);
        let unsigned = |at: usize| i32::from(a[at]) * i32::from(b[at]);
        let halves = [x as i16, (x >> 16) as i16];
        let of_two =
            |at: usize| (0..2).map(|k| i32::from(halves[k]) * i32::from(b[at + k] as i8)).sum();
        let of_two: [i32; 2] = [of_two(0), of_two(2)];
        let unsigned_two = |at: usize| -> i32 {
            (0..2).map(|k| i32::from(halves[k] as u16) * i32::from(b[at + k])).sum()
        };
        let (low_x, low_y) = (i32::from(x as i8), i32::from(y as i8));
        [
            (0..4).map(signed).sum::<i32>() - 5,
            (0..4).map(unsigned).sum::<i32>() + 5,
            of_two[0] + last,
            of_two[1] + last,
            unsigned_two(0) + 5,
            unsigned_two(2) + 5,
            -low_x + 2 * low_y - 3 * last + 28 + 1,
            -300 * low_x + 2 * low_y + 1,
        ]
    };
    case(text, Grid::new(1, 32), &x, (0..32).flat_map(of))
}

/// Four results of lanes of eight bits, and of two of sixteen.
fn by_lanes(x: u32, y: u32, bits: u32, of: impl Fn(i64, i64) -> i64) -> u32 {
    let lane = |word: u32, at: u32| i64::from(word >> at & (u32::MAX >> (32 - bits)));
    let lanes = (0..32 / bits).map(|index| index * bits);
    lanes.fold(0, |word, at| word | (lane(of(lane(x, at), lane(y, at)) as u32, 0) as u32) << at)
}

fn words_are_computed_by_lanes() -> Case {
    let text = r#"
        int t = threadIdx.x;
        unsigned x = in[t], y = in[(t + 1) % n], *o = out + 16 * t;
        o[0] = __vadd4(x, y), o[1] = __vsub4(x, y);
        o[2] = __vmins4(x, y), o[3] = __vsetltu4(x, y);
        o[4] = __vaddss4(x, y), o[5] = __vsubss4(x, y);
        o[6] = __vaddus4(x, y), o[7] = __vsubus4(x, y);
        o[8] = __vcmpgts4(x, y), o[9] = __vcmpleu2(x, y);
        o[10] = __vsetne4(x, y & 0xff00ff00u | x & 0x00ff00ffu), o[11] = __vmaxs4(x, y);
        o[12] = __vminu4(x, y), o[13] = __vavgu4(x, y);
        o[14] = __vhaddu4(x, y), o[15] = __vcmpeq2(x, y & 0xffff0000u | x & 0x0000ffffu);
    "#;
    let x = words(32);
    let of = |i: usize| {
        let (x, y) = (x[i], x[(i + 1) % 32]);
        let byte = |a: i64| i64::from(a as i8);
        let mask = |is: bool| -i64::from(is);
        [
            by_lanes(x, y, 8, |a, b| a + b),
            by_lanes(x, y, 8, |a, b| a - b),
            by_lanes(x, y, 8, |a, b| byte(a).min(byte(b))),
            by_lanes(x, y, 8, |a, b| i64::from(a < b)),
            by_lanes(x, y, 8, |a, b| (byte(a) + byte(b)).clamp(-128, 127)),
            by_lanes(x, y, 8, |a, b| (byte(a) - byte(b)).clamp(-128, 127)),
            by_lanes(x, y, 8, |a, b| (a + b).min(255)),
            by_lanes(x, y, 8, |a, b| (a - b).max(0)),
            by_lanes(x, y, 8, |a, b| mask(byte(a) > byte(b))),
            by_lanes(x, y, 16, |a, b| mask(a <= b)),
            by_lanes(x, y & 0xff00_ff00 | x & 0x00ff_00ff, 8, |a, b| i64::from(a != b)),
            by_lanes(x, y, 8, |a, b| byte(a).max(byte(b))),
            by_lanes(x, y, 8, i64::min),
            by_lanes(x, y, 8, |a, b| (a + b + 1) >> 1),
            by_lanes(x, y, 8, |a, b| (a + b) >> 1),
            by_lanes(x, y & 0xffff_0000 | x & 0xffff, 16, |a, b| mask(a == b)),
        ]
    };
    case(text, Grid::new(1, 32), &x, (0..32).flat_map(of))
}

fn lanes_differ_by_so_much() -> Case {
    let text = r#"
        int t = threadIdx.x;
        unsigned x = in[t], y = in[(t + 1) % n], *o = out + 10 * t;
        o[0] = __vabsdiffu4(x, y), o[1] = __vabsdiffs2(x, y), o[2] = __vabs4(x);
        o[3] = __vneg2(x), o[4] = __vsadu4(x, y), o[5] = __vsadu2(x, y);
        o[6] = __vmaxu2(x, y), o[7] = __vmins2(x, y);
        o[8] = __vadd2(x, y), o[9] = __vsub2(x, y);
    "#;
    let x = words(32);
    let of = |i: usize| {
        let (x, y) = (x[i], x[(i + 1) % 32]);
        let half = |a: i64| i64::from(a as i16);
        let apart = |bits: u32| by_lanes(x, y, bits, |a, b| (a - b).abs());
        [
            apart(8),
            by_lanes(x, y, 16, |a, b| (half(a) - half(b)).abs()),
            by_lanes(x, 0, 8, |a, _| i64::from(a as i8).abs()),
            by_lanes(x, 0, 16, |a, _| -a),
            apart(8).to_le_bytes().into_iter().map(u32::from).sum(),
            (apart(16) & 0xffff) + (apart(16) >> 16),
            by_lanes(x, y, 16, i64::max),
            by_lanes(x, y, 16, |a, b| half(a).min(half(b))),
            by_lanes(x, y, 16, |a, b| a + b),
            by_lanes(x, y, 16, |a, b| a - b),
        ]
    };
    case(text, Grid::new(1, 32), &x, (0..32).flat_map(of))
}

fn sums_of_absolute_differences() -> Case {
    let text = r#"
        unsigned x = in[threadIdx.x], y = in[(threadIdx.x + 1) % n];
        out[threadIdx.x] = __usad(x, y, 7u) + __uhadd(x, y) ^ __urhadd(x, y);
    "#;
    let x = words(32);
    let difference = |i: usize| {
        let (x, y) = (x[i], x[(i + 1) % 32]);
        let sum = u64::from(x) + u64::from(y);
        let (down, up) = ((sum >> 1) as u32, ((sum + 1) >> 1) as u32);
        x.abs_diff(y).wrapping_add(7).wrapping_add(down) ^ up
    };
    case(text, Grid::new(1, 32), &x, (0..32).map(difference))
}

fn gray_codes_and_parity() -> Case {
    let text = r#"
        unsigned i = threadIdx.x, gray = in[i] ^ in[i] >> 1, back = gray;
        for (unsigned shift = 1; shift < 32; shift <<= 1) back ^= back >> shift;
        out[i] = back == in[i] ? gray * 2 + (__popc(gray) & 1) : 0;
    "#;
    let x = words(40);
    let code = |x: &u32| {
        let gray = x ^ x >> 1;
        gray.wrapping_mul(2).wrapping_add(gray.count_ones() & 1)
    };
    case(text, Grid::new(1, 40), &x, x.iter().map(code))
}

fn murmur(mut h: u32) -> u32 {
    h = (h ^ h >> 16).wrapping_mul(0x85eb_ca6b);
    h = (h ^ h >> 13).wrapping_mul(0xc2b2_ae35);
    h ^ h >> 16
}

fn mixing_of_bits_for_a_hash() -> Case {
    let text = r#"
        __device__ __forceinline__ unsigned mix(unsigned h) {
            h ^= h >> 16; h *= 0x85ebca6bu; h ^= h >> 13; h *= 0xc2b2ae35u; h ^= h >> 16;
            return h;
        }
        extern "C" __global__ void run(const unsigned *in, unsigned *out, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) out[i] = mix(in[i] + i);
        }
    "#;
    let x = words(70);
    case(text, Grid::new(3, 32), &x, x.iter().zip(0..).map(|(x, i)| murmur(x.wrapping_add(i))))
}

fn hashes_of_texts() -> Case {
    let text = r#"
        const char *text = in + 8 * threadIdx.x;
        unsigned hash = 2166136261u;
        for (int k = 0; k < 8 && text[k]; ++k) { hash ^= (unsigned char)text[k];
            hash *= 16777619u; }
        out[threadIdx.x] = hash;
    "#;
    let texts = ["", "a", "kernel", "CUDA C\u{1}", "warp", "12345678", "\u{7f}~", "zz"];
    let mut x = Vec::new();
    texts.iter().for_each(|text| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(8, 0);
        x.extend(bytes.into_iter().map(|byte| byte as i8));
    });
    let hash = |text: &&str| {
        text.bytes()
            .fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619))
    };
    case(text, Grid::new(1, 8), &x, texts.iter().map(hash))
}

fn hash_table_with_open_addressing() -> Case {
    let text = r#"
        #define SLOTS 128u
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        unsigned key = in[i] | 1, slot = key * 2654435761u >> 25;
        while (true) {
            unsigned old = atomicCAS(&out[slot], 0u, key);
            if (old == 0 || old == key) break;
            slot = (slot + 1) & (SLOTS - 1);
        }
        atomicAdd(&out[SLOTS], key);
    "#;
    // Each key has a slot of its own, so that the table does not depend on the order.
    let mut table = vec![0_u32; 129];
    let mut x = Vec::new();
    for word in words(400) {
        let slot = ((word | 1).wrapping_mul(2_654_435_761) >> 25) as usize;
        if table[slot] == 0 {
            table[slot] = word | 1;
            x.push(word);
        }
    }
    table[128] = table[..128].iter().fold(0, |sum: u32, x| sum.wrapping_add(*x));
    case(text, Grid::new(4, 32), &x, table)
}

fn cyclic_redundancy_check() -> Case {
    let text = r#"
        unsigned crc = ~0u;
        const unsigned char *part = in + 16 * threadIdx.x;
        for (int k = 0; k < 16; ++k) {
            crc ^= part[k];
            for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
        }
        out[threadIdx.x] = ~crc;
    "#;
    let x: Vec<u8> = words(128).iter().map(|x| (x >> 4) as u8).collect();
    let crc = |part: &[u8]| {
        !part.iter().fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
                if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 }
            })
        })
    };
    case(text, Grid::new(1, 8), &x, x.chunks(16).map(crc))
}

fn random_numbers_by_shifts() -> Case {
    let text = r#"
        struct State { unsigned x, y, z, w, sum; };
        __device__ unsigned next(State *s) {
            unsigned t = s->x ^ s->x >> 2;
            s->x = s->y; s->y = s->z; s->z = s->w;
            s->w = s->w ^ s->w << 4 ^ t ^ t << 1;
            s->sum += 362437;
            return s->w + s->sum;
        }
        extern "C" __global__ void run(const unsigned *in, unsigned *out, int n) {
            State s = {in[threadIdx.x], 362436069u, 521288629u, 88675123u, threadIdx.x};
            for (int k = 0; k < 10; ++k) out[threadIdx.x * 10 + k] = next(&s);
        }
    "#;
    let x = words(16);
    let mut expected = Vec::new();
    for (i, seed) in x.iter().enumerate() {
        let mut s = [*seed, 362_436_069, 521_288_629, 88_675_123];
        let mut sum = i as u32;
        for _ in 0..10 {
            let t = s[0] ^ s[0] >> 2;
            let w = s[3] ^ s[3] << 4 ^ t ^ t << 1;
            s = [s[1], s[2], s[3], w];
            sum = sum.wrapping_add(362_437);
            expected.push(w.wrapping_add(sum));
        }
    }
    case(text, Grid::new(1, 16), &x, expected)
}

fn random_numbers_by_counter() -> Case {
    let text = r#"
        __device__ uint4 round_of(uint4 c, uint2 key) {
            unsigned long long a = 0xD2511F53ull * c.x, b = 0xCD9E8D57ull * c.z;
            return make_uint4((unsigned)(b >> 32) ^ c.y ^ key.x, (unsigned)b,
                              (unsigned)(a >> 32) ^ c.w ^ key.y, (unsigned)a);
        }
        extern "C" __global__ void run(const unsigned *in, uint4 *out, int n) {
            uint4 c = make_uint4(threadIdx.x, 0, 0, 0);
            uint2 key = make_uint2(in[0], in[1]);
            for (int k = 0; k < 10; ++k) {
                c = round_of(c, key);
                key.x += 0x9E3779B9u;
                key.y += 0xBB67AE85u;
            }
            out[threadIdx.x] = c;
        }
    "#;
    let x = words(2);
    let numbers = |i: u32| {
        let (mut c, mut key) = ([i, 0, 0, 0], [x[0], x[1]]);
        for _ in 0..10 {
            let (a, b) = (0xD251_1F53 * u64::from(c[0]), 0xCD9E_8D57 * u64::from(c[2]));
            c = [
                (b >> 32) as u32 ^ c[1] ^ key[0],
                b as u32,
                (a >> 32) as u32 ^ c[3] ^ key[1],
                a as u32,
            ];
            key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
        }
        c
    };
    case(text, Grid::new(1, 8), &x, (0..8).map(numbers))
}

fn text_search() -> Case {
    let text = r#"
        __constant__ char pattern[] = "abba";
        extern "C" __global__ void run(const char *in, int *out, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x, k = 0;
            if (i + 4 > n) return;
            while (pattern[k] && in[i + k] == pattern[k]) ++k;
            if (!pattern[k]) atomicAdd(&out[0], 1);
            out[i + 10] = k;
        }
    "#;
    let x: Vec<i8> =
        words(200).iter().map(|x| if x >> 9 & 1 == 1 { b'a' } else { b'b' } as i8).collect();
    let pattern = b"abba";
    let same = |i: usize| (0..4).take_while(|k| x[i + k] as u8 == pattern[*k]).count() as i32;
    let lengths: Vec<i32> = (0..197).map(same).collect();
    let found = lengths.iter().filter(|len| **len == 4).count();
    let mut expected = vec![0; 10];
    expected[0] = found as i32;
    expected.extend(lengths);
    case(text, Grid::new(7, 32), &x, expected)
}

fn letters_are_changed_and_counted() -> Case {
    let text = r#"
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        unsigned char c = in[i];
        switch (c >> 5) {
            case 2: c = c >= 'A' && c <= 'Z' ? (c - 'A' + 13) % 26 + 'A' : c; break;
            case 3: if (c >= 'a' && c <= 'z') c = (c - 'a' + 13) % 26 + 'a'; break;
            case 0: case 1: c = ' '; break;
            default: c ^= 0x80;
        }
        out[i] = c;
    "#;
    let x: Vec<u8> = (0..=255).collect();
    let rotated = |c: &u8| match *c {
        b'A'..=b'Z' => (c - b'A' + 13) % 26 + b'A',
        b'a'..=b'z' => (c - b'a' + 13) % 26 + b'a',
        ..=63 => b' ',
        128.. => c ^ 0x80,
        _ => *c,
    };
    case(text, Grid::new(4, 64), &x, x.iter().map(rotated))
}

fn distances_of_bits() -> Case {
    let text = r#"
        __shared__ unsigned long long all[16];
        int i = threadIdx.x, j = threadIdx.y;
        if (j == 0) all[i] = in[i];
        __syncthreads();
        out[j * 16 + i] = __popcll(all[i] ^ all[j]);
    "#;
    let x: Vec<u64> = words(16).iter().map(|x| u64::from(*x).wrapping_mul(0x1_2345_6789)).collect();
    case(
        text,
        Grid::new(1, (16, 16)),
        &x,
        (0..256).map(|i| (x[i % 16] ^ x[i / 16]).count_ones() as i32),
    )
}

fn numbers_of_many_words_are_added() -> Case {
    let text = r#"
        // 128 bits: the carry is what is less than a summand.
        ulonglong2 a = in[threadIdx.x], b = in[(threadIdx.x + 1) % n], r;
        r.x = a.x + b.x;
        r.y = a.y + b.y + (r.x < a.x);
        unsigned long long low = a.x * b.x, high = __umul64hi(a.x, b.x);
        r.x ^= low;
        r.y ^= high;
        out[threadIdx.x] = r;
    "#;
    let wide = |x: &[u32]| u64::from(x[0]) << 32 | u64::from(x[1]);
    let x: Vec<[u64; 2]> = words(32).chunks(4).map(|x| [wide(&x[..2]), wide(&x[2..])]).collect();
    let number = |x: [u64; 2]| u128::from(x[1]) << 64 | u128::from(x[0]);
    let expected = (0..8).map(|i| {
        let (a, b) = (x[i], x[(i + 1) % 8]);
        let product = u128::from(a[0]) * u128::from(b[0]);
        let result = number(a).wrapping_add(number(b)) ^ product;
        [result as u64, (result >> 64) as u64]
    });
    case(text, Grid::new(1, 8), &x, expected)
}
