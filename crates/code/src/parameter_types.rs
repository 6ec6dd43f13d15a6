//! The types of compiled parameters, compared with the signature: the other side of
//! `parameters.cuh`.

use crate::c_declaration::{WORD_BYTES, declaration, view_bytes};
use resident_backend::{ElementLayout, ParameterLayout};
use resident_core::Access;

/// What a compiled parameter is: `resident::parameters::Type`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ParameterType {
    shape: u8,
    is_const: u8,
    kind: u8,
    dimensions: u8,
    element_bytes: u32,
}

const VALUE: u8 = 0;
const POINTER: u8 = 1;

/// The kinds of values and elements. All others count as records.
const FLOATING: u8 = 1;
const INTEGER: u8 = 2;
const VOID: u8 = 3;
const BOOL: u8 = 5;

/// The bytes of a description.
pub const DESCRIPTION_BYTES: usize = size_of::<ParameterType>();

impl ParameterType {
    /// The types that these bytes describe, which end with an empty one.
    pub fn read_all(bytes: &[u8]) -> Vec<Self> {
        let mut types: Vec<Self> = bytes
            .as_chunks::<DESCRIPTION_BYTES>()
            .0
            .iter()
            .map(|&[shape, is_const, kind, dimensions, a, b, c, d]| Self {
                shape,
                is_const,
                kind,
                dimensions,
                element_bytes: u32::from_ne_bytes([a, b, c, d]),
            })
            .collect();
        types.pop();
        types
    }

    /// Its size in the kernel's parameter list.
    pub fn len_bytes(self) -> usize {
        match self.shape {
            VALUE => self.element_bytes as usize,
            POINTER => WORD_BYTES,
            _ => view_bytes(usize::from(self.dimensions)),
        }
    }

    /// Whether a parameter of a signature is passed as this one. Integers may differ in their sign,
    /// and a record of one side may be a number of as many bytes on the other.
    fn fits(self, parameter: &ParameterLayout) -> bool {
        match parameter {
            // The size is compared elsewhere.
            ParameterLayout::Scalar(element) => self.shape != VALUE || self.has_kind_of(element),
            ParameterLayout::Length => {
                self.shape == VALUE && self.has_kind_of(&parameter.element())
            }
            ParameterLayout::Flat { element, access } => {
                self.shape == POINTER && (self.kind == VOID || self.holds(element, *access))
            }
            ParameterLayout::Sized { element, access, .. } => {
                self.shape > POINTER && self.holds(element, *access) || self.shape == VALUE
            }
        }
    }

    /// Whether elements of an array are such ones. A `bool` of C is 0 or 1, and what is read of an
    /// array of integers may be another number.
    fn holds(self, element: &ElementLayout, access: Access) -> bool {
        let is_read = access != Access::Overwrite;
        let is_integer = matches!(element.rust_name, "i8" | "u8");
        let is_other = self.kind == BOOL && is_read && is_integer;
        self.has_size_of(element) && self.has_kind_of(element) && !is_other
    }

    fn has_size_of(self, element: &ElementLayout) -> bool {
        self.element_bytes as usize == element.len_bytes
    }

    fn has_kind_of(self, element: &ElementLayout) -> bool {
        let expected = match element.rust_name {
            "f32" | "f64" => FLOATING,
            "i8" | "u8" | "i16" | "u16" | "i32" | "u32" | "i64" | "u64" | "isize" | "usize" => {
                INTEGER
            }
            _ => return true,
        };
        !matches!(self.kind, FLOATING | INTEGER) || self.kind == expected
    }

    /// The type in C, as far as it is known.
    fn in_c(self) -> String {
        let constness = if self.is_const == 1 { "const " } else { "" };
        let element = match (self.kind, self.element_bytes) {
            (FLOATING, 4) => "float".to_owned(),
            (FLOATING, _) => "double".to_owned(),
            (INTEGER, 1) => "char".to_owned(),
            (INTEGER, 2) => "short".to_owned(),
            (INTEGER, 4) => "int".to_owned(),
            (INTEGER, _) => "long long".to_owned(),
            (VOID, _) => "void".to_owned(),
            (BOOL, _) => "bool".to_owned(),
            (_, bytes) => format!("a type of {bytes} bytes"),
        };
        match self.shape {
            VALUE => element,
            POINTER => format!("{constness}{element} *"),
            _ => format!("resident::View{}<{constness}{element}>", self.dimensions),
        }
    }
}

/// The types in C, as far as they are known.
pub(crate) fn in_c(types: &[ParameterType]) -> String {
    types.iter().map(|one| one.in_c()).collect::<Vec<_>>().join(", ")
}

/// Compares the compiled types of a kernel's parameters with the signature, whose number and sizes
/// of parameters fit. Does nothing where the compiled code does not say its types.
pub fn check(
    entry: &str,
    expected: &[ParameterLayout],
    compiled: &[ParameterType],
) -> Result<(), String> {
    let mut pairs = expected.iter().zip(compiled);
    let Some(index) = pairs.position(|(parameter, compiled)| !compiled.fits(parameter)) else {
        return Ok(());
    };
    Err(format!(
        "the parameters of `{entry}` are not those of the signature: parameter {index} is `{}` in \
         the source, whose parameters are ({}), and another type in the signature; declare it \
         as\n    {}",
        compiled[index].in_c(),
        in_c(compiled),
        declaration(entry, expected)
    ))
}

#[cfg(test)]
mod tests {
    use super::{ParameterType, check};
    use resident_backend::{ElementLayout, ParameterLayout};
    use resident_core::Access;

    fn element(rust_name: &'static str, len_bytes: usize) -> ElementLayout {
        ElementLayout { len_bytes, align_bytes: len_bytes, rust_name }
    }

    fn flat(rust_name: &'static str, len_bytes: usize) -> ParameterLayout {
        ParameterLayout::Flat { element: element(rust_name, len_bytes), access: Access::Read }
    }

    fn compiled(bytes: [u8; 4], element_bytes: u32) -> ParameterType {
        let [shape, is_const, kind, dimensions] = bytes;
        ParameterType { shape, is_const, kind, dimensions, element_bytes }
    }

    #[test]
    fn other_kinds_are_refused_and_both_are_shown() {
        let number = ParameterLayout::Scalar(element("u32", 4));
        let text = check("f", &[number], &[compiled([0, 0, 1, 0], 4)]).expect_err("a float");
        assert!(text.contains("`float` in") && text.contains("void f(unsigned int a)"), "{text}");
        let text = check("f", &[flat("f32", 4)], &[compiled([1, 1, 2, 0], 4)]).expect_err("int");
        assert!(text.contains("`const int *` in") && text.contains("const float *x"), "{text}");
        let wide = compiled([1, 1, 1, 0], 8);
        assert!(check("f", &[flat("f32", 4)], &[wide]).expect_err("wide").contains("double *"));
    }

    #[test]
    fn what_has_the_same_bytes_is_accepted() {
        let number = ParameterLayout::Scalar(element("u32", 4));
        for kind in [0, 2, 4] {
            assert_eq!(check("f", &[number], &[compiled([0, 0, kind, 0], 4)]), Ok(()));
        }
        for (parameter, kind, bytes) in [
            (flat("f32", 4), 0, 4),
            (flat("i64", 8), 2, 8),
            (flat("half::binary16::f16", 2), 2, 2),
            (flat("f32", 4), 3, 0),
            (flat("[f32; 3]", 12), 0, 12),
        ] {
            assert_eq!(check("f", &[parameter], &[compiled([1, 0, kind, 0], bytes)]), Ok(()));
        }
        assert_eq!(check("f", &[number], &[]), Ok(()), "nothing is known");
    }

    #[test]
    fn what_is_read_as_bool_is_no_integer() {
        let of =
            |rust_name, access| [ParameterLayout::Flat { element: element(rust_name, 1), access }];
        let pointer = [compiled([1, 1, 5, 0], 1)];
        for access in [Access::Read, Access::ReadWrite] {
            let text = check("f", &of("u8", access), &pointer).expect_err("it may be 2");
            assert!(text.contains("`const bool *` in") && text.contains("unsigned char *x"));
        }
        assert_eq!(check("f", &of("u8", Access::Overwrite), &pointer), Ok(()));
        assert_eq!(check("f", &of("my::Flag", Access::Read), &pointer), Ok(()));
        let scalar = [ParameterLayout::Scalar(element("u8", 1))];
        assert_eq!(check("f", &scalar, &[compiled([0, 0, 5, 0], 1)]), Ok(()));
    }

    #[test]
    fn a_length_is_a_whole_number() {
        let slice = [flat("f32", 4), ParameterLayout::Length];
        let pointer = compiled([1, 1, 1, 0], 4);
        assert_eq!(check("f", &slice, &[pointer, compiled([0, 0, 2, 0], 8)]), Ok(()));
        for other in [compiled([0, 0, 1, 0], 8), compiled([1, 0, 0, 0], 4)] {
            let text = check("f", &slice, &[pointer, other]).expect_err("no length");
            assert!(text.ends_with("(const float *x, unsigned long long x_len)"), "{text}");
        }
    }

    #[test]
    fn descriptions_end_with_an_empty_one() {
        let bytes = [1, 1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(ParameterType::read_all(&bytes), [compiled([1, 1, 2, 0], 4)]);
        assert!(ParameterType::read_all(&[]).is_empty());
    }
}
