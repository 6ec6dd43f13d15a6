//! The C declaration of a kernel with a signature, for `Kernel::prototype` and error messages.

use resident_backend::{ElementLayout, ParameterLayout};
use resident_core::Access;

/// The size in bytes of a pointer, a length, or a stride.
pub const WORD_BYTES: usize = 8;

/// The C declaration of a kernel with these parameters. Scalars are named a, b, c, ..., arrays x,
/// y, z, x3, ..., and the length of an array `x_len`.
pub fn declaration(entry: &str, parameters: &[ParameterLayout]) -> String {
    let (mut scalars, mut arrays) = (0, 0);
    let one = |parameter: &ParameterLayout| match parameter {
        ParameterLayout::Scalar(element) => {
            scalars += 1;
            format!("{} {}", c_type(element), char::from(b'a' + (scalars - 1) % 26))
        }
        ParameterLayout::Flat { element, access } => {
            arrays += 1;
            format!("{}{} *{}", constness(*access), c_type(element), array_name(arrays - 1))
        }
        ParameterLayout::Sized { element, ndim, access } => {
            arrays += 1;
            let element = format!("{}{}", constness(*access), c_type(element));
            format!("{} {}", view(&element, *ndim), array_name(arrays - 1))
        }
        ParameterLayout::Length => {
            let array = array_name(arrays.saturating_sub(1));
            format!("{} {array}_len", c_type(&parameter.element()))
        }
    };
    let list: Vec<String> = parameters.iter().map(one).collect();
    format!("extern \"C\" __global__ void {}({})", identifier(entry), list.join(", "))
}

/// The types of the parameters in C.
pub(crate) fn types(parameters: &[ParameterLayout]) -> Vec<String> {
    let one = |parameter: &ParameterLayout| match parameter {
        ParameterLayout::Scalar(element) => c_type(element),
        ParameterLayout::Flat { element, access } => {
            format!("{}{} *", constness(*access), c_type(element))
        }
        ParameterLayout::Sized { element, ndim, access } => {
            view(&format!("{}{}", constness(*access), c_type(element)), *ndim)
        }
        ParameterLayout::Length => c_type(&parameter.element()),
    };
    parameters.iter().map(one).collect()
}

/// The size of a parameter in the kernel's parameter list. `None` if the size is only determined at
/// launch.
pub fn parameter_bytes(parameter: &ParameterLayout) -> Option<usize> {
    match parameter {
        ParameterLayout::Scalar(element) => Some(element.len_bytes),
        ParameterLayout::Flat { .. } | ParameterLayout::Length => Some(WORD_BYTES),
        ParameterLayout::Sized { ndim, .. } => ndim.map(view_bytes),
    }
}

/// The size of a view: pointer, shape, strides.
pub fn view_bytes(ndim: usize) -> usize {
    WORD_BYTES * (1 + 2 * ndim)
}

fn view(element: &str, ndim: Option<usize>) -> String {
    match ndim {
        Some(ndim) => format!("resident::View{ndim}<{element}>"),
        None => format!("resident::View<{element}, /* dimensions */ 2>"),
    }
}

fn constness(access: Access) -> &'static str {
    if access.writes() { "" } else { "const " }
}

fn array_name(index: usize) -> String {
    ["x", "y", "z"].get(index).map_or_else(|| format!("x{index}"), |name| (*name).to_owned())
}

/// The C type of an element. For a type without a C counterpart: a name that the user must declare,
/// and the size.
fn c_type(element: &ElementLayout) -> String {
    let known = match element.rust_name {
        "f32" => "float",
        "f64" => "double",
        "i8" => "signed char",
        "u8" => "unsigned char",
        "i16" => "short",
        "u16" => "unsigned short",
        "i32" => "int",
        "u32" => "unsigned int",
        "i64" | "isize" => "long long",
        "u64" | "usize" => "unsigned long long",
        "i128" => "__int128",
        "u128" => "unsigned __int128",
        name if name.ends_with("binary16::f16") => "__half",
        name if name.ends_with("bfloat::bf16") => "__nv_bfloat16",
        name => return format!("{} /* {name}, {} bytes */", type_name(name), element.len_bytes),
    };
    known.to_owned()
}

/// `Particle` for `my_crate::Particle`, `f32_3` for `[f32; 3]`.
fn type_name(rust_name: &str) -> String {
    let words = rust_name
        .split(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == ':'));
    let last =
        words.filter(|word| !word.is_empty()).map(|word| word.rsplit("::").next().unwrap_or(word));
    identifier(&last.collect::<Vec<_>>().join("_"))
}

/// Whether the text is a C identifier.
pub fn is_identifier(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    !name.is_empty()
        && name.chars().all(is_letter)
        && !name.starts_with(|first: char| first.is_ascii_digit())
}

/// The nearest C identifier.
pub fn identifier(name: &str) -> String {
    let clean: String = name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
        .collect();
    if is_identifier(&clean) { clean } else { format!("_{clean}") }
}

#[cfg(test)]
mod tests {
    use super::{declaration, identifier, is_identifier, parameter_bytes};
    use resident_backend::{ElementLayout, ParameterLayout};
    use resident_core::Access;

    fn element(rust_name: &'static str, len_bytes: usize) -> ElementLayout {
        ElementLayout { len_bytes, align_bytes: len_bytes.min(8), rust_name }
    }

    #[test]
    fn a_signature_becomes_a_c_declaration() {
        let float = element("f32", 4);
        let parameters = [
            ParameterLayout::Scalar(float),
            ParameterLayout::Flat { element: float, access: Access::Read },
            ParameterLayout::Sized { element: float, ndim: Some(2), access: Access::ReadWrite },
        ];
        let expected =
            "extern \"C\" __global__ void axpy(float a, const float *x, resident::View2<float> y)";
        assert_eq!(declaration("axpy", &parameters), expected);
        assert_eq!(
            parameters.iter().map(parameter_bytes).collect::<Vec<_>>(),
            [Some(4), Some(8), Some(40)]
        );
    }

    #[test]
    fn a_slice_is_declared_as_a_pointer_and_a_length() {
        let array = |access| ParameterLayout::Flat { element: element("f32", 4), access };
        let (read, written) = (array(Access::Read), array(Access::Overwrite));
        let parameters = [read, ParameterLayout::Length, written, ParameterLayout::Length];
        assert_eq!(
            declaration("copy", &parameters),
            "extern \"C\" __global__ void copy(const float *x, unsigned long long x_len, \
             float *y, unsigned long long y_len)"
        );
        assert_eq!(parameter_bytes(&parameters[1]), Some(8));
    }

    #[test]
    fn elements_without_a_c_type_get_a_name_and_their_size() {
        let parameters = [
            ParameterLayout::Flat {
                element: element("my_crate::cloud::Particle", 16),
                access: Access::Read,
            },
            ParameterLayout::Scalar(element("[f32; 3]", 12)),
            ParameterLayout::Flat {
                element: element("num_complex::Complex<f64>", 16),
                access: Access::ReadWrite,
            },
            ParameterLayout::Flat {
                element: element("half::binary16::f16", 2),
                access: Access::ReadWrite,
            },
            ParameterLayout::Flat {
                element: element("half::bfloat::bf16", 2),
                access: Access::ReadWrite,
            },
            ParameterLayout::Sized { element: element("u64", 8), ndim: None, access: Access::Read },
        ];
        let expected = "extern \"C\" __global__ void two_words(\
            const Particle /* my_crate::cloud::Particle, 16 bytes */ *x, \
            f32_3 /* [f32; 3], 12 bytes */ a, \
            Complex_f64 /* num_complex::Complex<f64>, 16 bytes */ *y, \
            __half *z, __nv_bfloat16 *x3, \
            resident::View<const unsigned long long, /* dimensions */ 2> x4)";
        assert_eq!(declaration("two words", &parameters), expected);
        assert_eq!(parameter_bytes(&parameters[5]), None, "only the launch knows it");
    }

    #[test]
    fn names_become_identifiers() {
        assert_eq!(
            ["blur", "blur rows", "3d", ""].map(identifier),
            ["blur", "blur_rows", "_3d", "_"]
        );
        assert_eq!(
            ["blur", "blur rows", "3d", "", "scale<float>"].map(is_identifier),
            [true, false, false, false, false]
        );
    }
}
