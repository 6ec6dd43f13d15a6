//! The functions that a text may call. None writes memory, and each has a value for all arguments.

use super::nearest::nearest;
use super::types::Type;
use super::value::Value;

/// Functions of floats, and how many arguments they take. With an `f` behind the name they compute
/// in `float`.
const OF_FLOATS: [(&str, usize); 47] = [
    ("acos", 1),
    ("acosh", 1),
    ("asin", 1),
    ("asinh", 1),
    ("atan", 1),
    ("atan2", 2),
    ("atanh", 1),
    ("cbrt", 1),
    ("ceil", 1),
    ("copysign", 2),
    ("cos", 1),
    ("cosh", 1),
    ("cospi", 1),
    ("erf", 1),
    ("erfc", 1),
    ("exp", 1),
    ("exp10", 1),
    ("exp2", 1),
    ("expm1", 1),
    ("fabs", 1),
    ("fdim", 2),
    ("floor", 1),
    ("fma", 3),
    ("fmax", 2),
    ("fmin", 2),
    ("fmod", 2),
    ("hypot", 2),
    ("log", 1),
    ("log10", 1),
    ("log1p", 1),
    ("log2", 1),
    ("nearbyint", 1),
    ("nextafter", 2),
    ("pow", 2),
    ("rcbrt", 1),
    ("remainder", 2),
    ("rint", 1),
    ("round", 1),
    ("rsqrt", 1),
    ("sin", 1),
    ("sinh", 1),
    ("sinpi", 1),
    ("sqrt", 1),
    ("tan", 1),
    ("tanh", 1),
    ("tgamma", 1),
    ("trunc", 1),
];

/// Functions of all types, and of several: how many arguments they take.
const OF_ALL: [(&str, usize); 6] =
    [("abs", 1), ("min", 2), ("max", 2), ("isnan", 1), ("isinf", 1), ("isfinite", 1)];

/// Functions of complex numbers, and of real ones. Their names are free for variables too: they are
/// functions in front of `(`.
const OF_COMPLEX: [(&str, usize); 4] = [("re", 1), ("im", 1), ("conj", 1), ("complex", 2)];

/// The number of arguments of a function of floats, and its name for `double`.
fn of_floats(name: &str) -> Option<(&'static str, usize, bool)> {
    let found = |name: &str| OF_FLOATS.into_iter().find(|(known, _)| *known == name);
    match found(name) {
        Some((name, count)) => Some((name, count, false)),
        None => found(name.strip_suffix('f')?).map(|(name, count)| (name, count, true)),
    }
}

/// The names of the functions of floats, and how many arguments they take.
#[cfg(all(test, feature = "nccl"))]
pub(in crate::ops) fn functions_of_floats() -> impl Iterator<Item = (&'static str, usize)> {
    OF_FLOATS.into_iter()
}

fn of_all(name: &str) -> Option<usize> {
    OF_ALL.into_iter().find(|(known, _)| *known == name).map(|(_, count)| count)
}

fn of_complex(name: &str) -> Option<usize> {
    OF_COMPLEX.into_iter().find(|(known, _)| *known == name).map(|(_, count)| count)
}

/// Whether a name is a function's where `(` follows.
pub(super) fn is_of_complex(name: &str) -> bool {
    of_complex(name).is_some()
}

pub(super) fn is_function(name: &str) -> bool {
    of_all(name).is_some() || of_floats(name).is_some()
}

/// Methods of Rust and functions of Python whose names here are others.
const OF_OTHERS: [(&str, &str); 10] = [
    ("powi", "pow"),
    ("powf", "pow"),
    ("power", "pow"),
    ("ln", "log"),
    ("ln_1p", "log1p"),
    ("exp_m1", "expm1"),
    ("mul_add", "fma"),
    ("is_nan", "isnan"),
    ("is_infinite", "isinf"),
    ("is_finite", "isfinite"),
];

/// The function that is most likely meant by a name.
pub(super) fn instead_of(name: &str) -> Option<&'static str> {
    let own = OF_FLOATS.iter().chain(&OF_ALL).map(|(known, _)| *known);
    let other = OF_OTHERS.into_iter().find(|(other, _)| *other == name);
    other.map(|(_, own)| own).or_else(|| nearest(name, own))
}

/// The call of a function; the error says what is wrong with its arguments.
pub(super) fn call(name: &str, arguments: &[Value]) -> Result<Value, String> {
    let count = of_all(name).or_else(|| of_complex(name));
    let count = count.or_else(|| of_floats(name).map(|(_, count, _)| count)).unwrap_or(0);
    if arguments.len() != count {
        let plural = if count == 1 { "" } else { "s" };
        return Err(format!("it takes {count} argument{plural}, and has {}", arguments.len()));
    }
    let are_real = arguments.iter().all(|argument| !argument.kind.is_complex());
    Ok(match (name, arguments) {
        ("re" | "im" | "conj", [z]) => member(name, &z.to(z.kind.complex())),
        ("abs", [z]) if !are_real => member(name, z),
        ("complex", [re, im]) if are_real => complex(re, im),
        _ if !are_real => {
            return Err(String::from(
                "it has no complex form; of a complex number there are `re(z)`, `im(z)`, \
                 `conj(z)` and `abs(z)`",
            ));
        }
        ("abs", [x]) => absolute(x),
        ("min" | "max", [x, y]) => extreme(name, x, y),
        ("isnan" | "isinf" | "isfinite", [x]) => {
            let kind = Type::of_function([x.kind].into_iter());
            Value::call(&format!("text::{name}_of"), Type::Bool, &[&x.to(kind)])
        }
        _ => float(name, arguments),
    })
}

/// A part of a complex number, or what a function of `complex.cu` makes of it.
fn member(name: &str, z: &Value) -> Value {
    match name {
        "conj" => Value::member(z, "conj()", z.kind),
        "abs" => Value::member(z, "abs()", z.kind.part()),
        part => Value::member(z, part, z.kind.part()),
    }
}

fn complex(re: &Value, im: &Value) -> Value {
    let kind = Type::of_function([re.kind, im.kind].into_iter()).complex();
    Value::call(kind.c(), kind, &[&re.to(kind.part()), &im.to(kind.part())])
}

fn absolute(x: &Value) -> Value {
    let x = x.to(x.kind.promoted());
    if x.kind.is_float() {
        return float("fabs", &[x]);
    }
    Value::call("text::absolute", x.kind, &[&x])
}

/// The smaller or larger of two: of floats as `fmin` and `fmax` choose, which leave out NaN.
fn extreme(name: &str, x: &Value, y: &Value) -> Value {
    let (x, y) = Value::balanced(x, y);
    if x.kind.is_float() {
        return float(&format!("f{name}"), &[x, y]);
    }
    let function = if name == "min" { "text::smaller" } else { "text::larger" };
    Value::call(function, x.kind, &[&x, &y])
}

/// A call of a function of floats, whose name and number of arguments are known.
fn float(name: &str, arguments: &[Value]) -> Value {
    let (name, _, is_f32) = of_floats(name).unwrap_or(("fabs", 1, false));
    let of_arguments = Type::of_function(arguments.iter().map(|argument| argument.kind));
    let kind = if is_f32 { Type::F32 } else { of_arguments };
    let converted: Vec<Value> = arguments.iter().map(|argument| argument.to(kind)).collect();
    let converted: Vec<&Value> = converted.iter().collect();
    let suffix = if kind == Type::F32 { "f" } else { "" };
    Value::call(&format!("{name}{suffix}"), kind, &converted)
}
