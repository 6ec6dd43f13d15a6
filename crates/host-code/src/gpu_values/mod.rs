//! A GPU's values where C leaves a result open: shifts by at least as many bits as a number has,
//! and explicit conversions of numbers that an integer cannot hold. Pure.
//!
//! The compiler of the host gives such an expression its processor's value, or one that it takes
//! for granted. So `a << b` becomes `a << resident_shift << b`, whose operators (`operators.hpp`)
//! do a GPU's shift, and `(int)x` becomes `cast<int>(x)`. The text is looked through behind the
//! preprocessor, with what macros and included files make of it. Conversions that it does not show
//! are where the compiler says (`implicit`). What is not understood without a doubt stays, as do
//! literals of integers, and `<<=` of fields that have a number of bits where their record is
//! found by a call.

mod casts;
mod edit;
pub(super) mod implicit;
mod shifts;
mod tokens;
mod types;

use edit::applied;
use resident_code::words::code_only;
use tokens::Tokens;

/// The operators and functions that the text uses.
pub(super) const HEADER: &str = include_str!("operators.hpp");

/// What distinguishes code by these rules from code by other ones.
pub(super) const VERSION: &str = "3";

/// The text whose shifts and conversions have a GPU's values, on the same lines.
pub(super) fn with_gpu_values(text: &str) -> String {
    let code = code_only(text);
    let tokens = Tokens::of(&code);
    let types = types::integers(&tokens);
    let mut edits = shifts::edits(&tokens, &code);
    edits.extend(casts::edits(&tokens, text, &types));
    applied(text, edits)
}

#[cfg(test)]
mod tests {
    use super::with_gpu_values;

    /// With short names.
    fn of(text: &str) -> String {
        let changed = with_gpu_values(text);
        assert_eq!(changed.lines().count(), text.lines().count());
        let changed = changed.replace("resident_shift", "@");
        let changed = changed.replace("::resident::gpu::left_of", "LEFT");
        let changed = changed.replace("::resident::gpu::right_of", "RIGHT");
        changed.replace(" ::resident::gpu::cast<", "CAST<")
    }

    #[test]
    fn shifts_get_a_tag_between_their_operands() {
        for (text, expected) in [
            ("x = 1u << n;", "x = 1u << @ << n;"),
            ("x = a+b>>c*d;", "x = a+b>> @ >>c*d;"),
            ("x <<= n; y[i] >>= n;", "x <<= @ = n; y[i] >>= @ = n;"),
            ("x = a << 3 + i;", "x = a << @ << 3 + i;"),
            ("x = a << b >> c;", "x = a << @ << b >> @ >> c;"),
            ("if (i < n && j < m >> k) ;", "if (i < n && j < m >> @ >> k) ;"),
            ("for (int i = 0; i<n; i += a>>b) ;", "for (int i = 0; i<n; i += a>> @ >>b) ;"),
            ("A<(1 << n)> x;", "A<(1 << @ << n)> x;"),
            (
                "struct S { unsigned w : 3; }; s.v <<= n;",
                "struct S { unsigned w : 3; }; s.v <<= @ = n;",
            ),
            (
                "struct S { unsigned w : 3; }; s.w <<= n + 1; p[2 * i]->a.w >>= n;",
                "struct S { unsigned w : 3; }; s.w = LEFT(s.w) = n + 1; \
                 p[2 * i]->a.w = RIGHT(p[2 * i]->a.w) = n;",
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
            "// a << b\n\"a << b\"",
            "struct S { unsigned w : 3; }; f().w <<= n; (*p).w <<= n; p[i++].w <<= n;",
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
            ("x = ((int)((y) + 1.0f));", "x = (CAST<int>(((y) + 1.0f)));"),
            ("x = ~(int)y; z = (const int)y;", "x = ~CAST<int>(y); z = CAST<const int>(y);"),
            (
                "x = (unsigned char)300.0f; y = int(1e3);",
                "x = CAST<unsigned char>(300.0f); y = CAST<int>(1e3);",
            ),
            ("enum class E : int { a }; x = (E)y;", "enum class E : int { a }; x = CAST<E>(y);"),
            (
                "enum E { a }; x = (E)(y + 1) + E(z);",
                "enum E { a }; x = CAST<E>((y + 1)) + CAST<E>(z);",
            ),
            ("x = (other)y; z = (ns::other)w;", "x = CAST<other>(y); z = CAST<ns::other>(w);"),
            ("x = (typename A<T>::type)(y);", "x = CAST<typename A<T>::type>((y));"),
            ("x = static_cast<typename A<T, 3>::type>(y);", "x = CAST<typename A<T, 3>::type>(y);"),
            (
                "x = (decltype(n))y + decltype(n)(z);",
                "x = CAST<decltype(n)>(y) + CAST<decltype(n)>(z);",
            ),
            (
                "typedef typename A<T>::type I; x = I(y);",
                "typedef typename A<T>::type I; x = CAST<I>(y);",
            ),
            ("x[(int)y << n] = 1;", "x[CAST<int>(y) << @ << n] = 1;"),
            ("x = (int)R{y} + (int)A<float>{z};", "x = CAST<int>(R{y}) + CAST<int>(A<float>{z});"),
            ("x = (std::int32_t)*p;", "x = CAST<std::int32_t>(*p);"),
        ] {
            assert_eq!(of(text), expected);
        }
    }

    #[test]
    fn what_is_no_conversion_of_a_float_stays() {
        for text in [
            "x = (int)2; y = (char)'a' + b; z = (size_t)resident_thread_index().x; w = int(3);",
            "p = (int *)y; q = (float)y; r = (s)(y); t = (a) - b; (void)y;",
            "x = static_cast<float>(y) + static_cast<T &&>(z) + *static_cast<T *>(w);",
            "int f(int); int g(int) const; auto h = [](int) { }; void (*i)(int);",
            "x = sizeof(int) * y; z = sizeof (int) - 1; operator int(); new int(x);",
            "function<int(float)> f; int (x); int(y);",
            "{ typedef int a; } char a(float x); y = a(x);",
            "struct S { operator unsigned() const; }; void k(int (*f)(int), int (&x)[3]);",
        ] {
            assert_eq!(of(text), text);
        }
    }
}
