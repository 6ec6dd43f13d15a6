//! The elements that two runs of a launch have computed.

use crate::compute::compare::value;
use crate::memory::number;
use crate::recorded::Argument;
use crate::words::Type;

/// An element that differs.
#[derive(Clone, PartialEq, Debug)]
pub struct Difference {
    /// The position of the argument.
    pub argument: usize,
    /// The position of the element in the order of indices.
    pub element: usize,
    pub host: Vec<u8>,
    pub ptx: Vec<u8>,
    /// The distance in units of the last place, of numbers with a fraction.
    pub ulp: Option<u64>,
}

/// What of an argument differs. NaN is equal to NaN, whatever its other bits are.
pub(crate) fn differences(index: usize, argument: &Argument, found: &[u8]) -> Vec<Difference> {
    let Some(array) = &argument.array else { return Vec::new() };
    let len = array.element_bytes as usize;
    let types = types_of(&argument.rust_name, len);
    let pairs = array.after.chunks_exact(len).zip(found.chunks_exact(len)).enumerate();
    let different = pairs.filter(|(_, (host, ptx))| host != ptx);
    let described = different.map(|(element, (host, ptx))| Difference {
        argument: index,
        element,
        host: host.to_vec(),
        ptx: ptx.to_vec(),
        ulp: distance(&types, host, ptx),
    });
    described.filter(|difference| difference.ulp != Some(0)).collect()
}

/// The numbers that an element consists of, if their type is known by the name of the element's.
fn types_of(rust_name: &str, len: usize) -> Vec<Type> {
    let plain = rust_name.rsplit("::").next().unwrap_or(rust_name);
    let ty = match plain {
        _ if rust_name.contains("Complex<f32>") => Type::F32,
        _ if rust_name.contains("Complex<f64>") => Type::F64,
        "f16" => Type::F16,
        "bf16" => Type::Bf16,
        _ if plain.starts_with("f32") || rust_name.starts_with("[f32;") => Type::F32,
        _ if plain.starts_with("f64") || rust_name.starts_with("[f64;") => Type::F64,
        _ => return Vec::new(),
    };
    vec![ty; len / ty.len_bytes() as usize]
}

/// The largest distance of two numbers of an element. 0 if they are equal but for bits of NaN.
fn distance(types: &[Type], host: &[u8], ptx: &[u8]) -> Option<u64> {
    let ty = *types.first()?;
    let len = ty.len_bytes() as usize;
    let pairs = host.chunks_exact(len).zip(ptx.chunks_exact(len));
    pairs.map(|(host, ptx)| distance_of_numbers(ty, number(host), number(ptx))).max()
}

fn distance_of_numbers(ty: Type, host: u64, ptx: u64) -> u64 {
    if value(ty, host, false).is_nan() && value(ty, ptx, false).is_nan() {
        return 0;
    }
    let place = |bits: u64| {
        let sign = 1_i128 << (ty.bits() - 1);
        let bits = i128::from(bits);
        if bits >= sign { sign - 1 - bits } else { bits }
    };
    // 0 and -0 are neighbours: they are not the same bits.
    place(host).abs_diff(place(ptx)) as u64
}

#[cfg(test)]
mod tests {
    use super::distance_of_numbers;
    use crate::words::Type;

    #[test]
    fn distances_are_in_units_of_the_last_place() {
        let float = |x: f32| u64::from(x.to_bits());
        let cases = [
            (float(1.0), float(1.0_f32.next_up()), 1),
            (float(1.0), float(1.0), 0),
            (float(0.0), float(-0.0), 1),
            (float(f32::NAN), 0xffff_ffff, 0),
            (float(f32::NAN), float(1.0), 0x7fc0_0000 - 0x3f80_0000),
            (float(f32::from_bits(1)), float(-f32::from_bits(1)), 3),
        ];
        for (a, b, expected) in cases {
            assert_eq!(distance_of_numbers(Type::F32, a, b), expected, "{a:#x} {b:#x}");
        }
        assert_eq!(distance_of_numbers(Type::F16, 0x7e00, 0x7fff), 0);
        assert_eq!(distance_of_numbers(Type::Bf16, 0x3f80, 0x3f81), 1);
    }
}
