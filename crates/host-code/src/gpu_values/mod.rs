//! A GPU's values where C leaves a result open: shifts by at least as many bits as a number has,
//! and explicit conversions of numbers that an integer cannot hold. Pure.
//!
//! The compiler of the host gives such an expression its processor's value, or one that it takes
//! for granted. So `a << b` becomes `a << resident_shift << b`, whose operators (`operators.hpp`)
//! do a GPU's shift, and `(int)x` becomes `cast<int>(x)`. The text is looked through before the
//! preprocessor, with the bodies of its macros: in `#if` the inserted name is 0. What is not
//! understood without a doubt stays, as do literals, headers, and conversions that nothing in the
//! text shows.

mod casts;
mod edit;
pub(super) mod implicit;
mod shifts;
mod tokens;
mod types;

use edit::applied;
use resident_code::words::code_only;
use tokens::{Region, regions};

/// The operators and functions that the text uses.
pub(super) const HEADER: &str = include_str!("operators.hpp");

/// The text whose shifts and conversions have a GPU's values, on the same lines.
pub(super) fn with_gpu_values(text: &str) -> String {
    let code = code_only(text);
    let regions = regions(&code);
    let types = types::integers(&regions);
    let mut edits = Vec::new();
    for region in &regions {
        let kept = kept(region);
        let is_kept = |at: usize| kept.iter().any(|kept| kept.contains(&at));
        edits.extend(shifts::edits(region, &code, is_kept));
        edits.extend(casts::edits(region, text, &types, is_kept));
    }
    applied(text, edits)
}

/// What stays since messages show its text: the arguments of `assert`.
fn kept(region: &Region<'_>) -> Vec<std::ops::Range<usize>> {
    let asserts = (0..region.len()).filter(|at| region.is(*at, "assert"));
    asserts.filter_map(|at| Some(at..region.closing(at + 1)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::with_gpu_values;

    /// With short names.
    fn of(text: &str) -> String {
        let changed = with_gpu_values(text);
        assert_eq!(changed.lines().count(), text.lines().count());
        changed.replace("resident_shift", "@").replace(" ::resident::gpu::cast<", "CAST<")
    }

    #[test]
    fn shifts_get_a_tag_between_their_operands() {
        for (text, expected) in [
            ("x = 1u << n;", "x = 1u << @ << n;"),
            ("x = a+b>>c*d;", "x = a+b>> @ >>c*d;"),
            ("x <<= n; y[i] >>= n;", "x <<= @ = n; y[i] >>= @ = n;"),
            ("x = a << 3 + i;", "x = a << @ << 3 + i;"),
            ("x = a << b >> c;", "x = a << @ << b >> @ >> c;"),
            (
                "#define BIT(n) \\\n    (1 << n)\nint x;",
                "#define BIT(n) \\\n    (1 << @ << n)\nint x;",
            ),
            ("if (i < n && j < m >> k) ;", "if (i < n && j < m >> @ >> k) ;"),
            ("for (int i = 0; i<n; i += a>>b) ;", "for (int i = 0; i<n; i += a>> @ >>b) ;"),
            ("A<(1 << n)> x;", "A<(1 << @ << n)> x;"),
            (
                "struct S { unsigned w : 3; }; s.v <<= n;",
                "struct S { unsigned w : 3; }; s.v <<= @ = n;",
            ),
        ] {
            assert_eq!(of(text), expected);
        }
    }

    #[test]
    fn other_arrows_and_literal_counts_stay() {
        for text in [
            "x = 1 << 3; x >>= 0x1f; y = (a << 2) + (b >> 1);",
            "A<B<int>> x; A<B<C<int>>> y; f<g<3>>(z); static_cast<A<B<n>>>(x);",
            "template <typename T, typename = E<is<T>>> void f(A<B<T>> x);",
            "S operator<<(S a, int b); S operator >> (S a, int b); a.operator<<(b);",
            "k<<<1, n>>>(x);",
            "#if A << B\n#endif\n// a << b\n\"a << b\"",
            "struct S { unsigned w : 3; }; s.w <<= n;",
            "assert(1 << n);",
        ] {
            assert_eq!(of(text), text);
        }
    }

    #[test]
    fn conversions_to_integers_become_calls() {
        for (text, expected) in [
            ("x = (int)y;", "x = CAST<int>(y);"),
            ("x = (unsigned long long)-y * 2;", "x = CAST<unsigned long long>(-y) * 2;"),
            ("return (int)f(a, b)[i].c->d++ + 1;", "return CAST<int>(f(a, b)[i].c->d++) + 1;"),
            ("x = (float)(int)y;", "x = (float)CAST<int>(y);"),
            ("x = (short)(int)y + 1;", "x = CAST<short>(CAST<int>(y)) + 1;"),
            ("x = -(int)floorf(y / 2) < n;", "x = -CAST<int>(floorf(y / 2)) < n;"),
            ("x = (int)ns::f<float>(y) < z;", "x = CAST<int>(ns::f<float>(y)) < z;"),
            ("x = static_cast<unsigned>(y);", "x = CAST<unsigned>(y);"),
            ("x = int(y) + uint8_t(z);", "x = CAST<int>(y) + CAST<uint8_t>(z);"),
            ("x = (int)(a + b).c;", "x = CAST<int>((a + b).c);"),
            ("x = (int)static_cast<float>(y);", "x = CAST<int>(static_cast<float>(y));"),
            (
                "typedef unsigned int u32; x = (u32)y;",
                "typedef unsigned int u32; x = CAST<u32>(y);",
            ),
            ("using i8 = signed char; x = (i8)y;", "using i8 = signed char; x = CAST<i8>(y);"),
            (
                "template <typename T> T f(float x) { return (T)x + T(x); }",
                "template <typename T> T f(float x) { return CAST<T>(x) + CAST<T>(x); }",
            ),
            ("#define F(x) (int)floor(x)\n", "#define F(x) CAST<int>(floor(x))\n"),
            ("#define F(x) (int)(x)\n", "#define F(x) CAST<int>((x))\n"),
            ("x[(int)y << n] = 1;", "x[CAST<int>(y) << @ << n] = 1;"),
            ("x = (std::int32_t)*p;", "x = CAST<std::int32_t>(*p);"),
        ] {
            assert_eq!(of(text), expected);
        }
    }

    #[test]
    fn what_is_no_conversion_of_a_float_stays() {
        for text in [
            "x = (int)2.5f; y = (char)'a' + b; z = (size_t)threadIdx.x; w = int(3);",
            "p = (int *)y; q = (float)y; r = (S)y; (void)y;",
            "int f(int); int g(int) const; auto h = [](int) { }; void (*i)(int);",
            "x = sizeof(int) * y; z = sizeof (int) - 1; operator int(); new int(x);",
            "function<int(float)> f; int (x); int(y);",
            "#define F(x) (int)x\n#if (int)x\n#endif\n",
            "{ typedef int a; } char a(float x); y = a(x);",
            "struct S { operator unsigned() const; }; void k(int (*f)(int), int (&x)[3]);",
        ] {
            assert_eq!(of(text), text);
        }
    }
}
