//! Which texts are refused, where and why; and that what is written consists of known words.

use std::thread;

use super::{Type, Variable, check_names, expression, statements};

const NAMES: [Variable<'static>; 5] = [
    variable("a", Type::F32, false),
    variable("x", Type::F32, false),
    variable("n", Type::I32, false),
    variable("k", Type::U8, false),
    variable("y", Type::F32, true),
];

const fn variable(name: &'static str, kind: Type, is_output: bool) -> Variable<'static> {
    Variable { name, kind, is_output, is_half: false }
}

fn read(text: &str) -> Result<String, String> {
    statements(text, &NAMES).map(|statements| statements.c)
}

/// Texts that try to reach what no text may reach, each with what the refusal must contain.
const HOSTILE: &[(&str, &str)] = &[
    // Pointers, addresses, arrays.
    ("y = *x", "line 1, column 5, at `*`: there are no pointers"),
    ("y = a * *x", "column 9, at `*`: there are no pointers"),
    ("y = a - *x", "at `*`"),
    ("y = (*x)", "column 6, at `*`"),
    ("*x = 1", "at `*`: there are no pointers"),
    ("y = &x", "at `&`: there are no addresses"),
    ("y = a + &x", "at `&`"),
    ("y = *(float *)0", "at `*`"),
    ("y = a * (float *)0", "at `*`: `)` is expected"),
    ("y = *(&x + 1000000)", "at `*`"),
    ("y = x[0]", "column 6, at `[`: there are no arrays"),
    ("y = 0[x]", "at `[`"),
    ("y[0] = 1", "at `[`"),
    ("float *p = 0; y = 1", "at `*`: there are no pointers"),
    ("float &p = y; y = 1", "at `&`"),
    ("float p[4] = 0; y = 1", "at `[`"),
    ("y = x->z", "at `->`"),
    ("y = x.z", "at `.`: there are no methods and no fields; call a function, such as `sqrt(x)`"),
    ("y = (float)(*x)", "at `*`"),
    ("y = (long long)&y", "at `&`"),
    ("y = a ? *x : 1", "at `*`"),
    ("y = a && *x", "at `*`"),
    ("y = a & &x", "at `&`"),
    ("y = a &&& x", "at `&`"),
    ("y = fabs(*x)", "at `*`"),
    ("y = -*x", "at `*`"),
    ("y = !&x", "at `&`"),
    // Directives, line continuations, trigraphs, digraphs.
    ("#include \"/etc/passwd\"\ny = 1", "line 1, column 1, at `#`"),
    ("y = 1\n#define x 2", "line 2, column 1, at `#`"),
    ("%:include <stdio.h>\ny = 1", "at `%`"),
    ("?\x3f=include <stdio.h>\ny = 1", "at `?`"),
    ("y = x<:0:>", "at `:`"),
    ("y = 1; <% y = 2; %>", "at `<`"),
    ("y = 1 \\\n+ 1", "at `\\`: lines need no continuation"),
    ("_Pragma(\"once\") y = 1", "at `\"`"),
    ("y = __FILE__", "no variable of this name"),
    ("y = __COUNTER__", "no variable of this name"),
    // Ends of the function.
    ("y = 1; } void f() {", "at `}`"),
    ("}", "at `}`"),
    ("y = 1; }}} extern \"C\" int main() {{{", "at `\"`"),
    ("{ y = 1;", "a block is not closed"),
    ("y = (1", "`)` is expected"),
    ("y = 1)", "at `)`"),
    ("y = 1; ) ; (", "at `)`"),
    ("y = ({ int z = 1; z; })", "at `{`"),
    ("y = 1 */ + 2", "at `/`"),
    ("/* y = 1", "line 1, column 1, at `/*`: the comment does not end"),
    ("y = 1; return", "this statement is not there"),
    // Attributes, assembly, keywords.
    ("[[noreturn]] y = 1", "at `[`"),
    ("__attribute__((constructor)) int f = 1; y = 1", "no function of this name"),
    ("asm(\"syscall\"); y = 1", "at `\"`"),
    ("__asm__ volatile (1); y = 1", "no variable of this name"),
    ("goto end; end: y = 1", "this statement is not there"),
    ("static int z = 0; y = 1", "no variable of this name"),
    ("extern int z; y = 1", "no variable of this name"),
    ("volatile int z = 0; y = 1", "no variable of this name"),
    ("register int z = 0; y = 1", "no variable of this name"),
    ("thread_local int z = 0; y = 1", "no variable of this name"),
    ("__shared__ float z = 0; y = 1", "no variable of this name"),
    ("y = sizeof(x)", "no function of this name"),
    ("y = sizeof x", "no variable of this name"),
    ("y = alignof(float)", "no function of this name"),
    ("auto z = 1; y = z", "this type is not there"),
    ("decltype(x) z = 1; y = z", "no function of this name"),
    ("y = new float", "no variable of this name"),
    ("delete y", "no variable of this name"),
    ("throw 1", "no variable of this name"),
    ("try { y = 1; } catch (...) {}", "no variable of this name"),
    ("y = this->z", "no variable of this name"),
    ("y = typeid(x)", "no function of this name"),
    ("y = operator+(a, x)", "no variable of this name"),
    ("using namespace std; y = 1", "no variable of this name"),
    ("namespace z {} y = 1", "no variable of this name"),
    ("struct Z { int z; }; y = 1", "no variable of this name"),
    ("union { float f; int i; } z; y = 1", "no variable of this name"),
    ("enum { Z = 1 }; y = 1", "no variable of this name"),
    ("typedef float *P; y = 1", "no variable of this name"),
    ("template <int> y = 1", "no variable of this name"),
    ("switch (n) { case 0: y = 1; }", "no function of this name"),
    ("long z = 1; y = z", "this type is not there"),
    ("unsigned long z = 1; y = z", "this type is not there"),
    ("void *z = 0; y = 1", "this type is not there"),
    // Templates, casts, functions, lambdas.
    ("y = reinterpret_cast<float>(n)", "no variable of this name"),
    ("y = static_cast<int>(x)", "no variable of this name"),
    ("y = std::sqrt(x)", "no variable of this name"),
    ("y = ::sqrt(x)", "at `::`"),
    ("y = resident::thread()", "no variable of this name"),
    ("y = text::sum(n, n)", "no variable of this name"),
    ("float f(float z) { return z; } y = f(1)", "at `(`: `=` is expected"),
    ("y = [](float z) { return z; }(1)", "at `[`"),
    ("y = system(n)", "no function of this name"),
    ("y = printf(n)", "no function of this name"),
    ("y = malloc(8)", "no function of this name"),
    ("y = memcpy(y, x, 8)", "no function of this name"),
    ("y = atomicAdd(y, 1)", "no function of this name"),
    ("y = __syncthreads()", "no function of this name"),
    ("y = __trap()", "no function of this name"),
    ("y = sqrt", "`(` is expected"),
    ("y = sqrt()", "it takes 1 argument, and has 0"),
    ("y = sqrt(x,)", "column 12, at `)`: a value is expected"),
    ("y = sqrt(x", "`)` is expected behind the arguments"),
    ("sqrt(x) = 1", "no function of this name"),
    ("y = float(n)", "write `(float)(..)`"),
    ("y = (unsigned short)n", "this type is not there"),
    ("y = (const float)n", "at `const`"),
    ("y = (float x)", "`)` is expected behind the type"),
    ("y = (x)(n)", "at `(`"),
    ("y = (float){1}", "at `{`"),
    ("y = (int[2]){1, 2}", "at `[`"),
    ("y = __builtin_trap()", "no function of this name"),
    ("y = EOF", "no variable of this name"),
    ("y = __LINE__", "no variable of this name"),
    ("y = T", "no variable of this name"),
    ("y = p1.data", "no variable of this name"),
    ("y = sqrt(1, 2)", "it takes 1 argument, and has 2"),
    ("y = (sqrt)(x)", "`(` is expected"),
    ("y = x(1)", "at `(`"),
    ("y = u_x", "no variable of this name"),
    ("y = p0", "no variable of this name"),
    ("y = d1", "no variable of this name"),
    ("y = rounds", "no variable of this name"),
    ("y = threadIdx", "no variable of this name"),
    // Operators in words, and those of later standards.
    ("y = n and k", "column 7, at `and`"),
    ("y = n bitand k", "at `bitand`"),
    ("y = compl n", "no variable of this name"),
    ("y = n <=> k", "at `>`"),
    ("y = x...", "at `.`"),
    ("y = x ## n", "at `#`"),
    ("y = \\u0041", "at `\\`"),
    // Literals.
    ("y = R\"(x)\"", "at `\"`: there are no characters"),
    ("y = u8'x'", "at `'`: there are no characters"),
    ("y = 0x1.8p3", "this is no number"),
    ("y = 0b2", "this is no number"),
    ("y = 0b", "digits are missing"),
    ("y = 1ee5", "this is no number"),
    ("y = 1e+", "this is no number"),
    ("y = 1uu", "this is no number"),
    ("y = 1lul", "this is no number"),
    ("y = 1.5u", "this is no number"),
    ("y = 1.f.f", "this is no number"),
    ("y = 18446744073709551616u", "write a smaller"),
    ("y = 0xfffffffffffffffff", "write a smaller"),
    ("y = \"a\"", "there are no characters and strings"),
    ("y = 'a'", "there are no characters and strings"),
    ("y = 1'000", "at `'`"),
    ("y = 1_km", "this is no number"),
    ("y = 1.0_km", "this is no number"),
    ("y = 0x1p3", "this is no number"),
    ("y = 0x", "digits are missing"),
    ("y = 08", "this is no number"),
    ("y = 1..2", "this is no number"),
    ("y = 1e", "this is no number"),
    ("y = 1e999", "write `INFINITY`"),
    ("y = 1e39f", "write `INFINITY`"),
    ("y = 99999999999999999999", "write a smaller"),
    ("y = 9223372036854775808", "add the suffix `ull`"),
    ("y = n - 9223372036854775808", "column 9, at `9223372036854775808`: `long long` has no"),
    ("y = -(9223372036854775808)", "add the suffix `ull`"),
    ("y = +9223372036854775808", "add the suffix `ull`"),
    ("y = ~9223372036854775808ll", "add the suffix `ull`"),
    ("y = (long long)9223372036854775808", "add the suffix `ull`"),
    ("y = -9223372036854775809", "add the suffix `ull`"),
    ("y = 1.0l", "this is no number"),
    ("y = inf", "no variable of this name"),
    // Other characters.
    ("y = x @ 2", "at `@`"),
    ("y = x$", "at `$`"),
    ("y = `x`", "at ```"),
    ("y = é", "no text has this character"),
    ("y = x\u{202e}", "at `\\u{202e}`"),
    ("y = x\0", "at `\\0`"),
    ("y\u{a0}= x", "at `\\u{a0}`"),
    ("y = \u{ff11}", "no text has this character"),
    ("y = x\u{2028}+ 1", "at `\\u{2028}`"),
    ("y = x\u{c}", "at `\\u{c}`"),
    ("\u{feff}y = 1", "column 1, at `\\u{feff}`"),
    ("y = x\u{200b}", "at `\\u{200b}`"),
    ("\u{443} = 1", "no text has this character"),
    // Values that C++ leaves open: unsequenced changes, no first value.
    ("y = y++ + y++", "assignments are statements"),
    ("y = ++y", "assignments are statements"),
    ("y = (y = 1)", "assignments are statements"),
    ("y = y = 1", "assignments are statements"),
    ("y = x---n", "at `--`: assignments are statements"),
    ("y = x+++n", "at `++`: assignments are statements"),
    ("++y++", "at `++`"),
    ("++++y", "at `++`"),
    ("y++ + 1", "at `+`"),
    ("(y) = 1", "a statement is expected"),
    ("1 = y", "a statement is expected"),
    ("if (int i = 1) y = 1", "no variable of this name"),
    ("for (y = 1; y = 2; ) {}", "assignments are statements"),
    ("if (y = 1) y = 2", "assignments are statements"),
    ("float z; y = z", "a new variable, which needs a value"),
    ("float z = z; y = z", "no variable of this name"),
    ("{ float z = 1; } y = z", "no variable of this name"),
    ("for (int i = 0; i < 3; ++i) { } y = i", "no variable of this name"),
    ("y = x % 2", "`%` has no floats"),
    ("y = x << 2", "`<<` has no floats"),
    ("y = ~x", "`~` has no floats"),
    ("y %= 2", "`%` has no floats"),
    // Statements that are none, or that change what is read.
    ("", "the output `y` is never assigned"),
    ("x", "an assignment is expected"),
    ("a * x", "an assignment is expected"),
    ("y == x", "an assignment is expected"),
    ("x = 1", "this is an input"),
    ("++a", "this is an input"),
    ("const float z = 1; z = 2; y = z", "this is `const`"),
    ("float x = 1; y = x", "there is a variable of this name"),
    ("float y = 1", "there is a variable of this name"),
    ("float sqrt = 1; y = 1", "has a meaning in C"),
    ("float __z = 1; y = 1", "begins as names of compilers do"),
    ("int int = 1; y = 1", "has a meaning in C"),
    ("break; y = 1", "there is no loop around it"),
    ("if (n) continue; y = 1", "there is no loop around it"),
    ("y = 1 y = 2", "`;` is expected"),
    ("if n y = 1", "`(` is expected"),
    ("if (n)", "a statement is expected"),
    ("else y = 1", "no variable of this name"),
    ("do y = 1; until (n)", "`while` is expected"),
    ("for (;;", "at the end"),
    ("for (;;;) y = 1", "at `;`"),
    ("for (;; y = 1,) { }", "at `)`"),
    ("for (;; int i = 0) { }", "at `int`"),
    ("for (int i : y) y = 1", "at `:`"),
    ("for (int i = 0, float j = 0; i < 3;) y = 1", "at `float`"),
    ("for (int i = 0; i < 3; ++i, ++n) { }", "this is an input"),
    ("int i = 1, *p = 0; y = 1", "at `*`: there are no pointers"),
    ("int i = 1, i = 2; y = i", "there is a variable of this name"),
    ("const int z; y = 1", "which needs a value; write it here"),
    ("if (n) ; ; else y = 2", "at `else`"),
    ("if (n) { y = 1; else y = 2; }", "at `else`"),
    ("do y = 1; while (n) y = 2", "`;` is expected"),
    ("while () y = 1", "a value is expected"),
    ("label: y = 1", "no variable of this name"),
    ("y = 1 /* /* */ + 1 */", "at `/`"),
    ("y = 1 /*/ + 1", "column 7, at `/*`: the comment does not end"),
    ("y = 1,2", "a statement is expected"),
    ("y = (1, 2)", "`)` is expected"),
    ("y = n ?: 1", "a value is expected"),
    ("y = n ? 1", "`:` is expected"),
];

#[test]
fn hostile_texts_are_refused_with_their_place() {
    assert!(HOSTILE.len() > 150);
    for (text, expected) in HOSTILE {
        match read(text) {
            Ok(c) => panic!("{text:?} is accepted: {c}"),
            Err(fault) => assert!(fault.contains(expected), "{text:?}: {fault}"),
        }
    }
}

/// Texts that look hostile, but whose hostile part is a comment, white space or an operator.
#[test]
fn harmless_texts_leave_nothing_of_themselves() {
    let texts = [
        "y = x // } system(\"rm\"); \\\n",
        "y = x /* */ + /* *x } #include */ 1",
        "y = x /* ?\x3f/ */",
        "y = x // ?\x3f/\n + 1",
        "y = a*x",
        "y = n&n",
        "y = n & -n",
        "y = a - -x",
        "y = a * -x",
        "y = a * +x",
        "y = a < x > n",
        "y = n<n>n",
        "y = (float)(int)x",
        "y = n >> 64 << -1",
        "int u_x = 1; y = u_x",
        "int p0 = 1, d0 = 2, i = 3, len = 4, at = 5, rounds = 6, T = 7; y = p0 + d0 + i + len + at",
        "int main = 1, printf = 2, text = 3, resident = 4; y = main + printf + text + resident",
        ";;;y = 1;;;",
        "{{{ y = 1; }}}",
        "while (true) y = 1",
        "for (;;) { y = 1; }",
        "do { y = n / 0; } while (1)",
        "if (x) y = 1; else if (a) y = 2; else y = 3",
        "y += 1; y -= 1, y *= 2; y /= 2; y++; --y",
        "y = isnan(x) ? NAN : -INFINITY + M_PI",
        "y = 0x7fffffffffffffff + 0b101 + 017 + 1u + 1ll + 1ull + .5f + 1.f + 1.e3",
        "y = INFINITY\r\n\t;",
    ];
    for text in texts {
        let c = read(text).unwrap_or_else(|fault| panic!("{text:?}: {fault}"));
        assert_clean(&c);
    }
}

/// Whether CUDA C consists of what this module writes.
fn assert_clean(c: &str) {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    for letter in c.chars() {
        assert!(is_word(letter) || " \n(){};,=<>+-*/%&|^~!?:.".contains(letter), "{letter}: {c}");
    }
    assert!(!c.contains("/*") && !c.contains("//") && !c.contains("++"), "{c}");
    for word in c.split(|letter| !is_word(letter)).filter(|word| !word.is_empty()) {
        let known = [
            "if",
            "else",
            "for",
            "while",
            "do",
            "break",
            "continue",
            "true",
            "false",
            "bool",
            "int",
            "unsigned",
            "char",
            "long",
            "float",
            "double",
            "text",
            "go_on",
            "rounds",
            "to",
            "__int_as_float",
            "to_odd",
            "Complex",
            "re",
            "im",
            "conj",
        ];
        let is_own =
            word.starts_with("u_") || word.starts_with(|first: char| first.is_ascii_digit());
        let is_function = super::functions::is_function(word);
        let is_support = super::SUPPORT.contains(&format!(" {word}("));
        assert!(is_own || is_function || is_support || known.contains(&word), "{word}: {c}");
    }
    let depth = |open: char, close: char| {
        c.chars().fold(0_i64, |depth, letter| {
            let depth = depth + i64::from(letter == open) - i64::from(letter == close);
            assert!(depth >= 0, "{c}");
            depth
        })
    };
    assert_eq!((depth('(', ')'), depth('{', '}')), (0, 0), "{c}");
}

#[test]
fn loops_are_known() {
    let has_loops = |text: &str| statements(text, &NAMES).expect("a text").has_loops;
    for text in ["while (n) y = 1", "do y = 1; while (n);", "if (n) { for (;;) y = 1; }"] {
        assert!(has_loops(text), "{text}");
    }
    assert!(!has_loops("if (n) { float z = x; y = z; } else y = n ? 1 : 2"));
}

#[test]
fn deep_and_long_texts_are_refused() {
    let nested = |open: &str, close: &str, count: usize| {
        format!("y = {}1{}", open.repeat(count), close.repeat(count))
    };
    assert!(read(&nested("(", ")", 50)).is_ok());
    let deep = [
        nested("(", ")", 10_000),
        nested("- ", "", 10_000),
        nested("!", "", 10_000),
        nested("(int)", "", 5_000),
        nested("1 ? ", " : 1", 3_000),
        nested("1 ? 1 : ", "", 3_000),
        nested("sqrt(", ")", 4_000),
        nested("1||1&&1|1^1&1==1<1<<1+1*(", ")", 1_000),
        nested("sqrt((int)-(1 ? 1 : ", "))", 1_000),
        format!("y = {}1", "1 + ".repeat(8_000)),
        format!("y = {}1", "1 && ".repeat(6_000)),
        format!("y = {}x", "x * ".repeat(8_000)),
        format!("{}y = 1;{}", "{".repeat(10_000), "}".repeat(10_000)),
        format!("{}y = 1", "if (1) ".repeat(4_000)),
        format!("{}y = 1", "if (1) y = 1; else ".repeat(1_500)),
        format!("{}y = 1", "for (;;) ".repeat(3_000)),
        format!("{}y = 1", "while (1) ".repeat(3_000)),
        format!("{}y = 1; while (1)", "do ".repeat(3_000)),
    ];
    let refused = || {
        for text in &deep {
            let fault = read(text).expect_err("too deep");
            let is_named =
                fault.contains("more than 64 levels") || fault.contains("too many parts");
            assert!(is_named, "{}: {fault}", &text[..40]);
        }
    };
    // Threads of programs may have less stack than those of tests.
    thread::scope(|scope| {
        let small = thread::Builder::new().stack_size(1 << 20).spawn_scoped(scope, refused);
        small.expect("a thread").join().expect("each is refused");
    });
    let long = read(&format!("y = 1{}", " ".repeat(40_000))).expect_err("too long");
    assert!(long.contains("it has 40005 bytes, and may have 32768"), "{long}");
    assert!(read(&"y = 1;".repeat(5_000)).is_ok(), "many statements are no depth");
}

#[test]
fn random_tokens_are_refused_or_clean() {
    let words = "y x n k a z int float unsigned long const if else for while do break continue \
                 sqrt min ( ) { } ; , = += <<= ++ -- + - * / % & | ^ ~ ! < > << >> == && || ? : \
                 1 0.5 2.0f 3u (int) // /* */ # [ \\ :: .";
    let lines = ["\n", "y =", "y = x", "int z = 1;"];
    let tokens: Vec<&str> = words.split_whitespace().chain(lines).collect();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) as usize % below
    };
    let mut accepted = 0;
    for _ in 0..60_000 {
        let mut text = String::from(["", "y = ", "y = x ", "int z = n; y = z "][random(4)]);
        for _ in 0..random(8) {
            text.push_str(tokens[random(tokens.len())]);
            text.push_str(["", " "][random(2)]);
        }
        if let Ok(c) = read(&text) {
            accepted += 1;
            assert_clean(&c);
        }
    }
    assert!(accepted > 2_000, "{accepted} were accepted");
}

#[test]
fn operations_are_written_with_the_types_of_c() {
    let of = |text: &str| expression(text, &NAMES, Type::F32).expect("a value");
    assert_eq!(of("a * x + 1"), "((u_a * u_x) + ((float)1))");
    assert_eq!(of("2.0 * x"), "((float)(2.0 * ((double)u_x)))");
    assert_eq!(of("n + k"), "((float)text::sum(u_n, ((int)u_k)))");
    assert_eq!(of("n / 2u"), "((float)text::quotient(((unsigned int)u_n), 2u))");
    assert_eq!(of("-n >> 3"), "((float)text::right(text::negated(u_n), ((unsigned long long)3)))");
    assert_eq!(of("n < x ? n : 2ll"), "((float)((((float)u_n) < u_x) ? ((long long)u_n) : 2ll))");
    assert_eq!(of("pow(x, 2) + max(n, x)"), "(powf(u_x, ((float)2)) + fmaxf(((float)u_n), u_x))");
    assert_eq!(of("sqrt(n)"), "((float)sqrt(((double)u_n)))");
    assert_eq!(of("!x && (bool)n"), "((float)((!(u_x != 0)) && (u_n != 0)))");
    assert_eq!(of("(int)x"), "((float)text::to<int>(u_x))");
    assert_eq!(of("(unsigned char)x"), "((float)text::to<unsigned char>(u_x))");
    let lowest = "(-9223372036854775807ll - 1)";
    for text in ["-9223372036854775808", "- 9223372036854775808LL", "-/* */9223372036854775808l"] {
        assert_eq!(expression(text, &NAMES, Type::I64).expect("a value"), lowest);
    }
    assert_eq!(
        of("n - -9223372036854775808"),
        format!("((float)text::difference(((long long)u_n), {lowest}))")
    );
    assert_eq!(of("-0x8000000000000000"), "((float)text::negated(9223372036854775808ull))");
    assert_eq!(of("-2147483648"), "((float)text::negated(2147483648ll))");
    assert_eq!(of("1 - 2 - 3 * 4 % 5"), of("((1 - 2) - ((3 * 4) % 5))"));
    assert_eq!(of("1 | 2 ^ 3 & 4 == 5 < 6 << 7 + 8"), of("1|(2^(3&(4==(5<(6<<(7+8))))))"));
    assert_eq!(expression("k", &NAMES, Type::U8).expect("a value"), "u_k");
    let fault = expression("x; y", &NAMES, Type::F32).expect_err("a statement");
    assert!(fault.contains("column 2, at `;`: one expression is expected"), "{fault}");
}

/// Outputs of each type, and what becomes of floats and of wide integers that are stored there.
#[test]
fn floats_do_not_become_integers_unless_the_text_says_so() {
    let integers = [Type::U8, Type::I32, Type::U32, Type::I64, Type::U64];
    let floating = [
        "y = x",
        "y = 1.5",
        "y += x",
        "y *= 0.5f",
        "y = n ? 1 : x",
        "y = floor(x)",
        "y = n * 2.0",
        "y = pow(n, 2)",
        "if (n) y = 1; else y = -x",
        "y = max(n, x)",
        "y = NAN",
        "for (; n < 1; y += x) y = 1",
    ];
    let whole = [
        "y = n",
        "y = x > 0",
        "y = (int)x",
        "y = (unsigned char)(x * 2)",
        "y = (long long)round(x)",
        "y += k",
        "y++",
        "--y",
        "y = 18446744073709551615ull",
        "int i = x; y = i",
        "y = isnan(x)",
        "int i = 0; i += x; y = i",
    ];
    for kind in integers {
        let names =
            [NAMES[1].clone(), NAMES[2].clone(), NAMES[3].clone(), variable("y", kind, true)];
        for text in floating {
            let fault = statements(text, &names).expect_err("a float");
            let words = format!("the elements of this output are `{}`", kind.c());
            let advice = format!("`({})(..)` truncates", kind.c());
            assert!(fault.contains("at `y`: ") && fault.contains(&words), "{text}: {fault}");
            assert!(fault.contains(&advice), "{text}: {fault}");
        }
        for text in whole {
            statements(text, &names).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        }
        let fault = expression("n + x", &names, kind).expect_err("a float");
        let expected = "column 1, at `n`: the values of this reduction are";
        assert!(fault.contains(expected) && fault.contains("the value is a `float`"), "{fault}");
        expression("n > x", &names, kind).expect("a whole number");
    }
}

#[test]
fn values_of_more_digits_are_rounded_once_to_types_of_two_bytes() {
    let half = Variable { is_half: true, ..variable("y", Type::F32, true) };
    let names = [NAMES[1].clone(), NAMES[2].clone(), NAMES[3].clone(), half];
    let written = |text: &str| statements(text, &names).expect("a text").c;
    assert_eq!(written("y = x"), "u_y = u_x;\n");
    assert_eq!(written("y = 0.1"), "u_y = to_odd(0.1);\n");
    assert_eq!(written("y = n"), "u_y = to_odd(((double)u_n));\n");
    assert_eq!(written("y = 1ll"), "u_y = to_odd(1ll);\n");
    assert_eq!(written("y = k"), "u_y = ((float)u_k);\n");
    assert_eq!(written("y += 0.1"), "u_y = to_odd((((double)u_y) + 0.1));\n");
    assert_eq!(written("float z = 0.1; y = z"), "float u_z = ((float)0.1);\nu_y = u_z;\n");
}

/// Names of complex texts: a real, a narrow and a wide complex input, and a real output.
const COMPLEX_NAMES: [Variable<'static>; 5] = [
    variable("x", Type::F32, false),
    variable("n", Type::I32, false),
    variable("z", Type::C32, false),
    variable("w", Type::C64, false),
    variable("y", Type::F32, true),
];

#[test]
fn complex_numbers_are_written_with_the_types_of_c() {
    let cases = [
        ("z * z + 1", Type::C32, "((u_z * u_z) + ((Complex<float>)1))"),
        ("x * z", Type::C32, "(((Complex<float>)u_x) * u_z)"),
        ("2.0 * z", Type::C64, "(((Complex<double>)2.0) * ((Complex<double>)u_z))"),
        ("z - w", Type::C32, "((Complex<float>)(((Complex<double>)u_z) - u_w))"),
        ("-z / n", Type::C32, "((-u_z) / ((Complex<float>)u_n))"),
        ("x", Type::C64, "((Complex<double>)u_x)"),
        ("abs(z) + re(w) * im(z + z)", Type::F64, "double"),
        ("abs(z)", Type::F32, "u_z.abs()"),
        ("re(x) + im(n)", Type::F64, "double"),
        ("conj(z)", Type::C32, "u_z.conj()"),
        ("complex(x, n)", Type::C32, "Complex<float>(u_x, ((float)u_n))"),
        ("complex(n, 1)", Type::C64, "Complex<double>(((double)u_n), ((double)1))"),
        ("(complex<float>)n", Type::C32, "((Complex<float>)u_n)"),
        ("z == w || z != 1", Type::I32, "((int)(("),
        ("!z && z ? z : x", Type::C32, "((!(u_z != 0)) && (u_z != 0))"),
    ];
    for (text, kind, expected) in cases {
        let c = expression(text, &COMPLEX_NAMES, kind).unwrap_or_else(|fault| panic!("{fault}"));
        assert!(c.contains(expected), "{text}: {c}");
        assert_clean(&c);
    }
    let names = [variable("z", Type::C32, false), variable("y", Type::C32, true)];
    let statements = [
        "complex<double> s = 1, t = complex(1, 2); s += z; s++; const complex<float> u = s; y = u",
        "float re = re(z), im = im(z), complex = 1, conj = 2; y = re < im ? complex : conj",
        "int complex = 1; y = complex<2",
        "y = z; y *= 2; --y; y /= conj(y)",
    ];
    for text in statements {
        let written = super::statements(text, &names).unwrap_or_else(|fault| panic!("{fault}"));
        assert_clean(&written.c);
    }
}

#[test]
fn what_complex_numbers_do_not_have_is_refused_with_what_there_is() {
    let refused = [
        ("y = z", "at `y`: no complex number becomes a `float`; use `re(..)`"),
        ("y += z", "use `re(..)`, `im(..)` or `abs(..)`"),
        ("y = (float)z", "at `(`: no complex number becomes a `float`"),
        ("y = (int)w", "no complex number becomes a `int`"),
        ("float r = z; y = r", "at `r`: no complex number becomes a `float`"),
        ("int i = 1; i *= z; y = i", "no complex number becomes a `int`"),
        ("y = z < 1", "column 7, at `<`: `<` has no complex numbers; take `re(..)`"),
        ("y = x >= w", "`>=` has no complex numbers"),
        ("y = re(z % 2)", "`%` has no complex numbers"),
        ("y = re(z << 2)", "`<<` has no complex numbers"),
        ("y = n & z", "`&` has no complex numbers"),
        ("y = n; y %= z", "`%` has no complex numbers"),
        ("y = re(~z)", "`~` has no complex numbers"),
        (
            "y = re(exp(z))",
            "at `exp`: it has no complex form; of a complex number there are `re(z)`",
        ),
        ("y = max(z, 1)", "at `max`: it has no complex form"),
        ("y = isnan(z)", "at `isnan`: it has no complex form"),
        ("y = re(complex(z, 1))", "at `complex`: it has no complex form"),
        ("y = re(z, 1)", "it takes 1 argument, and has 2"),
        ("y = abs()", "it takes 1 argument, and has 0"),
        ("y = complex(1)", "it takes 2 arguments, and has 1"),
        ("y = re", "no variable of this name is known here"),
        ("y = re(z).re", "at `.`"),
        ("complex<int> c = 1; y = 1", "no variable of this name"),
        ("complex c = 1; y = 1", "no variable of this name"),
        ("complex<float> *p = 0; y = 1", "at `*`: there are no pointers"),
        ("y = (complex<float>){1, 2}", "at `{`"),
        ("y = re(complex<float>(1, 2))", "at `complex`"),
        ("re(z) = 1", "no function of this name"),
    ];
    for (text, expected) in refused {
        match statements(text, &COMPLEX_NAMES) {
            Ok(c) => panic!("{text:?} is accepted: {}", c.c),
            Err(fault) => assert!(fault.contains(expected), "{text:?}: {fault}"),
        }
    }
    let fault = expression("z", &COMPLEX_NAMES, Type::I32).expect_err("a complex number");
    assert!(fault.contains("no complex number becomes a `int`"), "{fault}");
    let half = Variable { is_half: true, ..variable("y", Type::F32, true) };
    let names = [variable("z", Type::C32, false), half];
    assert!(statements("y = z", &names).is_err());
}

#[test]
fn names_are_identifiers_of_their_own() {
    let check = |names: &[&str]| {
        let names: Vec<Box<str>> = names.iter().map(|name| Box::from(*name)).collect();
        check_names(&names, 2)
    };
    assert_eq!(check(&["x", "_y1"]), Ok(()));
    assert_eq!(check(&["re", "im"]), Ok(()));
    assert_eq!(check(&["conj", "complex"]), Ok(()));
    let refused = [
        (&["x"][..], "there are 1 names for 2 parameters"),
        (&["x", "y", "z"], "there are 3 names"),
        (&["x", "x"], "parameters 0 and 1 have the name `x`"),
        (&["x", ""], "the name `` of parameter 1 is not a name"),
        (&["x", "1y"], "is not a name"),
        (&["x", "y z"], "is not a name"),
        (&["x", "y;}"], "is not a name"),
        (&["x", "é"], "is not a name"),
        (&["x", "y\n"], "the name `y\\n` of parameter 1"),
        (&["x", "float"], "has a meaning in C"),
        (&["x", "sqrtf"], "has a meaning in C"),
        (&["x", "NAN"], "has a meaning in C"),
        (&["x", "abs"], "has a meaning in C"),
        (&["x", "__y"], "begins as names of compilers do"),
    ];
    for (names, expected) in refused {
        let fault = check(names).expect_err("no names");
        assert!(fault.contains(expected), "{names:?}: {fault}");
    }
}
