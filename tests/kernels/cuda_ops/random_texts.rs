//! Random expressions of `Elementwise`, computed as Rust computes them: each operator and type,
//! also where C++ leaves the value open.

use resident::ops::Elementwise;
use resident::{Device, In, Out, Result, SmartArray};

use crate::elementwise_texts::checked;
use crate::part::Random;
use crate::{compiling, sample};

/// A value with one of the types of texts.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Value {
    Bool(bool),
    U8(u8),
    I32(i32),
    U32(u32),
    I64(i64),
    U64(u64),
    F32(f32),
    F64(f64),
}

use Value::{Bool, F32, F64, I32, I64, U8, U32, U64};

/// Calls the macro's body with the number in a value.
macro_rules! with {
    ($value:expr, |$x:ident| $result:expr) => {
        match $value {
            Bool($x) => {
                let $x = u8::from($x);
                $result
            }
            U8($x) => $result,
            I32($x) => $result,
            U32($x) => $result,
            I64($x) => $result,
            U64($x) => $result,
            F32($x) => $result,
            F64($x) => $result,
        }
    };
}

impl Value {
    /// The place among types by which C chooses that of an operation.
    fn rank(self) -> usize {
        match self {
            Bool(_) | U8(_) | I32(_) => 2,
            U32(_) => 3,
            I64(_) => 4,
            U64(_) => 5,
            F32(_) => 6,
            F64(_) => 7,
        }
    }

    fn is_float(self) -> bool {
        self.rank() > 5
    }

    /// Rust's `as`.
    fn to(self, rank: usize) -> Self {
        match rank {
            0 => Bool(self.holds()),
            1 => with!(self, |x| U8(x as u8)),
            2 => with!(self, |x| I32(x as i32)),
            3 => with!(self, |x| U32(x as u32)),
            4 => with!(self, |x| I64(x as i64)),
            5 => with!(self, |x| U64(x as u64)),
            6 => with!(self, |x| F32(x as f32)),
            _ => with!(self, |x| F64(x as f64)),
        }
    }

    fn holds(self) -> bool {
        with!(self, |x| x as f64 != 0.0)
    }

    fn promoted(self) -> Self {
        self.to(self.rank())
    }
}

/// `$a op $b` of integers of one type.
macro_rules! integers {
    ($a:expr, $b:expr, |$x:ident, $y:ident| $value:expr) => {
        match ($a, $b) {
            (I32($x), I32($y)) => I32($value),
            (U32($x), U32($y)) => U32($value),
            (I64($x), I64($y)) => I64($value),
            (U64($x), U64($y)) => U64($value),
            other => unreachable!("{other:?}"),
        }
    };
}

/// `$a op $b` of floats, or of integers, of one type.
macro_rules! numbers {
    ($a:expr, $b:expr, |$x:ident, $y:ident| $float:expr, $integer:expr) => {
        match ($a, $b) {
            (F32($x), F32($y)) => F32($float),
            (F64($x), F64($y)) => F64($float),
            (a, b) => integers!(a, b, |$x, $y| $integer),
        }
    };
}

fn compare(a: Value, b: Value) -> Option<std::cmp::Ordering> {
    match (a, b) {
        (F32(a), F32(b)) => a.partial_cmp(&b),
        (F64(a), F64(b)) => a.partial_cmp(&b),
        (I32(a), I32(b)) => a.partial_cmp(&b),
        (U32(a), U32(b)) => a.partial_cmp(&b),
        (I64(a), I64(b)) => a.partial_cmp(&b),
        (U64(a), U64(b)) => a.partial_cmp(&b),
        other => unreachable!("{other:?}"),
    }
}

fn shifted(a: Value, operator: &str, b: Value) -> Value {
    let U64(by) = b.to(5) else { unreachable!() };
    let is_left = operator == "<<";
    let by = u32::try_from(by).unwrap_or(u32::MAX);
    match a.promoted() {
        I32(a) if is_left => I32(a.checked_shl(by).unwrap_or(0)),
        U32(a) if is_left => U32(a.checked_shl(by).unwrap_or(0)),
        I64(a) if is_left => I64(a.checked_shl(by).unwrap_or(0)),
        U64(a) if is_left => U64(a.checked_shl(by).unwrap_or(0)),
        I32(a) => I32(a.checked_shr(by).unwrap_or(if a < 0 { -1 } else { 0 })),
        U32(a) => U32(a.checked_shr(by).unwrap_or(0)),
        I64(a) => I64(a.checked_shr(by).unwrap_or(if a < 0 { -1 } else { 0 })),
        U64(a) => U64(a.checked_shr(by).unwrap_or(0)),
        other => unreachable!("{other:?}"),
    }
}

fn binary(a: Value, operator: &str, b: Value) -> Value {
    match operator {
        "&&" => return Bool(a.holds() && b.holds()),
        "||" => return Bool(a.holds() || b.holds()),
        "<<" | ">>" => return shifted(a, operator, b),
        _ => {}
    }
    let rank = a.rank().max(b.rank());
    let (a, b) = (a.to(rank), b.to(rank));
    match operator {
        "+" => numbers!(a, b, |x, y| x + y, x.wrapping_add(y)),
        "-" => numbers!(a, b, |x, y| x - y, x.wrapping_sub(y)),
        "*" => numbers!(a, b, |x, y| x * y, x.wrapping_mul(y)),
        "/" => numbers!(a, b, |x, y| x / y, if y == 0 { 0 } else { x.wrapping_div(y) }),
        "%" => integers!(a, b, |x, y| if y == 0 { 0 } else { x.wrapping_rem(y) }),
        "&" => integers!(a, b, |x, y| x & y),
        "|" => integers!(a, b, |x, y| x | y),
        "^" => integers!(a, b, |x, y| x ^ y),
        "min" => integers!(a, b, |x, y| x.min(y)),
        "max" => integers!(a, b, |x, y| x.max(y)),
        "==" => Bool(compare(a, b).is_some_and(|order| order.is_eq())),
        "!=" => Bool(compare(a, b).is_none_or(|order| order.is_ne())),
        "<" => Bool(compare(a, b).is_some_and(|order| order.is_lt())),
        "<=" => Bool(compare(a, b).is_some_and(|order| order.is_le())),
        ">" => Bool(compare(a, b).is_some_and(|order| order.is_gt())),
        ">=" => Bool(compare(a, b).is_some_and(|order| order.is_ge())),
        other => unreachable!("{other}"),
    }
}

fn unary(operator: &str, a: Value) -> Value {
    let a = a.promoted();
    match operator {
        "-" => match a {
            F32(a) => F32(-a),
            F64(a) => F64(-a),
            a => integers!(a, a, |x, _y| x.wrapping_neg()),
        },
        "+" => a,
        "!" => Bool(!a.holds()),
        "~" => integers!(a, a, |x, _y| !x),
        "abs" => match a {
            F32(a) => F32(a.abs()),
            F64(a) => F64(a.abs()),
            I32(a) => I32(a.wrapping_abs()),
            I64(a) => I64(a.wrapping_abs()),
            a => a,
        },
        "isnan" | "isinf" | "isfinite" => {
            let F64(a) = a.to(7) else { unreachable!() };
            Bool(match operator {
                "isnan" => a.is_nan(),
                "isinf" => a.is_infinite(),
                _ => a.is_finite(),
            })
        }
        function => match a {
            F32(a) => F32(of_float(function, f64::from(a)) as f32),
            a => {
                let F64(a) = a.to(7) else { unreachable!() };
                F64(of_float(function, a))
            }
        },
    }
}

/// Functions that are exact, so that a `float`'s is that of the same `double`.
fn of_float(function: &str, a: f64) -> f64 {
    match function {
        "sqrt" => a.sqrt(),
        "floor" => a.floor(),
        "ceil" => a.ceil(),
        "trunc" => a.trunc(),
        "round" => a.round(),
        "rint" => a.round_ties_even(),
        other => unreachable!("{other}"),
    }
}

/// The values of the seven inputs at one index.
type Inputs = [Value; 7];

const NAMES: [&str; 7] = ["k", "n", "u", "l", "q", "f", "d"];
const TYPES: [&str; 8] = [
    "bool",
    "unsigned char",
    "int",
    "unsigned int",
    "long long",
    "unsigned long long",
    "float",
    "double",
];

/// An expression: its text, its type (by an example), and its value.
struct Expression {
    text: String,
    example: Value,
    value: Box<dyn Fn(&Inputs) -> Value>,
}

impl Expression {
    fn random(depth: usize, random: &mut Random) -> Self {
        match random.below(if depth == 0 { 3 } else { 14 }) {
            0 | 1 => Self::name(random.below(7)),
            2 => Self::literal(random),
            3 | 4 => Self::unary(depth, random),
            5 => {
                let (rank, inner) = (random.below(8), Self::random(depth - 1, random));
                let text = format!("({})({})", TYPES[rank], inner.text);
                let value = inner.value;
                let example = inner.example.to(rank);
                Self { text, example, value: Box::new(move |inputs| value(inputs).to(rank)) }
            }
            6 => Self::choice(depth, random),
            _ => Self::binary(depth, random),
        }
    }

    fn name(index: usize) -> Self {
        let example = examples(0)[index];
        let text = String::from(NAMES[index]);
        Self { text, example, value: Box::new(move |inputs| inputs[index]) }
    }

    fn literal(random: &mut Random) -> Self {
        let number = random.below(70) as u32;
        let (text, value) = match random.below(6) {
            0 => (format!("{number}"), I32(number as i32)),
            1 => (format!("0x{number:x}u"), U32(number)),
            2 => (format!("{number}ll"), I64(number.into())),
            3 => (format!("{number}ULL"), U64(number.into())),
            4 => (format!("{number}.5f"), F32(number as f32 + 0.5)),
            _ => (format!("{number}e-1"), F64(format!("{number}e-1").parse().expect("a number"))),
        };
        Self { text, example: value, value: Box::new(move |_| value) }
    }

    fn unary(depth: usize, random: &mut Random) -> Self {
        let inner = Self::random(depth - 1, random);
        let all = [
            "-", "+", "!", "abs", "isnan", "isinf", "isfinite", "sqrt", "floor", "ceil", "trunc",
            "round", "rint", "~",
        ];
        let count = if inner.example.is_float() { 13 } else { 14 };
        let operator = all[random.below(count)];
        let text = format!("{operator}({})", inner.text);
        let (example, value) = (unary(operator, inner.example), inner.value);
        Self { text, example, value: Box::new(move |inputs| unary(operator, value(inputs))) }
    }

    fn choice(depth: usize, random: &mut Random) -> Self {
        let [condition, a, b] = [(); 3].map(|()| Self::random(depth - 1, random));
        let text = format!("({} ? {} : {})", condition.text, a.text, b.text);
        let is_one_type = std::mem::discriminant(&a.example) == std::mem::discriminant(&b.example);
        let rank = a.example.rank().max(b.example.rank());
        let common = move |value: Value| if is_one_type { value } else { value.to(rank) };
        let value = move |inputs: &Inputs| {
            common(if (condition.value)(inputs).holds() {
                (a.value)(inputs)
            } else {
                (b.value)(inputs)
            })
        };
        Self { text, example: common(a.example), value: Box::new(value) }
    }

    fn binary(depth: usize, random: &mut Random) -> Self {
        let [a, b] = [(); 2].map(|()| Self::random(depth - 1, random));
        let all = [
            "+", "-", "*", "/", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "%", "&", "|", "^",
            "<<", ">>", "min", "max",
        ];
        let has_float = a.example.is_float() || b.example.is_float();
        let operator = all[random.below(if has_float { 12 } else { all.len() })];
        let text = match operator {
            "min" | "max" => format!("{operator}({}, {})", a.text, b.text),
            _ => format!("({} {operator} {})", a.text, b.text),
        };
        let example = binary(a.example, operator, b.example);
        let value = move |inputs: &Inputs| binary((a.value)(inputs), operator, (b.value)(inputs));
        Self { text, example, value: Box::new(value) }
    }
}

/// The inputs at an index: ends of types, and numbers in between.
fn examples(index: usize) -> Inputs {
    let mut random = Random::new(index as u64 + 1);
    let bits = random.next();
    let pick = |count: usize| index % count;
    // The next below the least `int`, and numbers near other ends.
    let (nan, inf, below_i32) = (f32::NAN, f32::INFINITY, -2_147_483_904.0);
    let (nan64, inf64, above_u32, near_i32) =
        (f64::NAN, f64::INFINITY, 4_294_967_295.5, -2_147_483_648.5);
    [
        U8([0, 1, 255, 128, bits as u8][pick(5)]),
        I32([i32::MIN, -1, 0, 1, i32::MAX, bits as i32, 31, -7][pick(8)]),
        U32([0, u32::MAX, 1, bits as u32, 32, 9, 0x8000_0000][pick(7)]),
        I64([-1, i64::MIN, 0, i64::MAX, (bits << 16) as i64, 63, 5, -100, 1, 1 << 40, 2][pick(11)]),
        U64([u64::MAX, 0, bits, 1, 64, 1 << 63, 7, 3, 1000, 65, 31, 12, 99][pick(13)]),
        F32([
            0.0, -1.5, 1e30, nan, inf, -1e20, 2.5, 255.5, 3e9, -0.75, 1e-40, 0.5, below_i32,
            16777217.0, 100.25, 7.0, -3.5,
        ][pick(17)]),
        F64([
            1e300, -0.0, nan64, 2.5, -1e19, 1.8e19, -inf64, above_u32, -2.0, 0.1, 1e-310, 255.99,
            near_i32, 9.3e18, 3.0, -0.5, 1e10, 6.0, 1.5,
        ][pick(19)]),
    ]
}

type Signature = (
    In<u8>,
    In<i32>,
    In<u32>,
    In<i64>,
    In<u64>,
    In<f32>,
    In<f64>,
    Out<u8>,
    Out<i32>,
    Out<u32>,
    Out<i64>,
    Out<u64>,
    Out<f32>,
    Out<f64>,
);

const LEN: usize = 300;

macro_rules! column {
    ($kind:ident, $index:expr) => {
        SmartArray::from(Vec::from_iter((0..LEN).map(|index| match examples(index)[$index] {
            Value::$kind(value) => value,
            _ => unreachable!(),
        })))
    };
}

/// Compares the results of seven expressions, each as an output of one type.
fn check(case: u64, devices: &[Device]) -> Result<()> {
    let mut random = Random::new(1000 + case);
    let expressions: Vec<Expression> = (0..7).map(|_| Expression::random(4, &mut random)).collect();
    let names = ["rk", "rn", "ru", "rl", "rq", "rf", "rd"];
    let lines = names.iter().zip(&expressions).zip(&TYPES[1..]);
    // Integers are stored of floats only if the text converts them.
    let value = |it: &Expression, to: &str| match it.example.is_float() {
        true => format!("({to})({})", it.text),
        false => it.text.clone(),
    };
    let lines: Vec<String> =
        lines.map(|((name, it), to)| format!("{name} = {}", value(it, to))).collect();
    let text = lines.join(";\n");
    let operation =
        Elementwise::<Signature>::new("random", text.clone(), NAMES.into_iter().chain(names));
    let (k, n, u, l) = (column!(U8, 0), column!(I32, 1), column!(U32, 2), column!(I64, 3));
    let (q, f, d) = (column!(U64, 4), column!(F32, 5), column!(F64, 6));
    for device in devices {
        let _here = device.enter();
        let (mut rk, mut rn) = (SmartArray::uninit(LEN), SmartArray::uninit(LEN));
        let (mut ru, mut rl) = (SmartArray::uninit(LEN), SmartArray::uninit(LEN));
        let (mut rq, mut rf) = (SmartArray::uninit(LEN), SmartArray::uninit(LEN));
        let mut rd = SmartArray::uninit(LEN);
        operation.apply((
            &k, &n, &u, &l, &q, &f, &d, &mut rk, &mut rn, &mut ru, &mut rl, &mut rq, &mut rf,
            &mut rd,
        ))?;
        let results = (rk.to_vec()?, rn.to_vec()?, ru.to_vec()?, rl.to_vec()?);
        let (rq, rf, rd) = (rq.to_vec()?, rf.to_vec()?, rd.to_vec()?);
        for index in 0..LEN {
            let seen = [
                U8(results.0[index]),
                I32(results.1[index]),
                U32(results.2[index]),
                I64(results.3[index]),
                U64(rq[index]),
                F32(rf[index]),
                F64(rd[index]),
            ];
            let inputs = examples(index);
            for (line, (expression, seen)) in expressions.iter().zip(seen).enumerate() {
                let expected = (expression.value)(&inputs).to(line + 1);
                let are_nan = with!(seen, |x| (x as f64).is_nan())
                    && with!(expected, |x| (x as f64).is_nan());
                assert!(
                    seen == expected || are_nan,
                    "case {case}: {} of {inputs:?} is {seen:?}, not {expected:?}",
                    lines[line]
                );
            }
        }
    }
    Ok(())
}

#[test]
fn random_expressions_are_rusts() -> Result<()> {
    let device = compiling();
    (0..sample(3, 15)).try_for_each(|case| check(case, std::slice::from_ref(&device)))
}

#[test]
fn random_expressions_are_rusts_where_they_are_checked() -> Result<()> {
    let device = checked();
    (100..sample(101, 103)).try_for_each(|case| check(case, std::slice::from_ref(&device)))
}
