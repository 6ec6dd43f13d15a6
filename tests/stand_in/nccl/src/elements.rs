//! Types of elements, and reductions.

use half::{bf16, f16};
use serde::{Deserialize, Serialize};

use crate::status::{Outcome, Status};

/// An ncclDataType_t.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Element {
    I8,
    U8,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
    Bf16,
}

/// An ncclRedOp_t.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Reduction {
    Sum,
    Product,
    Max,
    Min,
    Mean,
}

impl Element {
    pub(crate) fn of(code: u32) -> Outcome<Self> {
        Ok(match code {
            0 => Self::I8,
            1 => Self::U8,
            2 => Self::I32,
            3 => Self::U32,
            4 => Self::I64,
            5 => Self::U64,
            6 => Self::F16,
            7 => Self::F32,
            8 => Self::F64,
            9 => Self::Bf16,
            _ => return Err(Status::INVALID_ARGUMENT),
        })
    }

    pub(crate) fn len_bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// The reduction of the parts, of equal lengths, element by element.
    pub(crate) fn reduce(self, reduction: Reduction, parts: &[&[u8]]) -> Vec<u8> {
        match self {
            Self::I8 => reduce::<i8>(reduction, parts),
            Self::U8 => reduce::<u8>(reduction, parts),
            Self::I32 => reduce::<i32>(reduction, parts),
            Self::U32 => reduce::<u32>(reduction, parts),
            Self::I64 => reduce::<i64>(reduction, parts),
            Self::U64 => reduce::<u64>(reduction, parts),
            Self::F16 => reduce::<f16>(reduction, parts),
            Self::F32 => reduce::<f32>(reduction, parts),
            Self::F64 => reduce::<f64>(reduction, parts),
            Self::Bf16 => reduce::<bf16>(reduction, parts),
        }
    }
}

impl Reduction {
    pub(crate) fn of(code: u32) -> Outcome<Self> {
        Ok(match code {
            0 => Self::Sum,
            1 => Self::Product,
            2 => Self::Max,
            3 => Self::Min,
            4 => Self::Mean,
            _ => return Err(Status::INVALID_ARGUMENT),
        })
    }
}

fn reduce<N: Number>(reduction: Reduction, parts: &[&[u8]]) -> Vec<u8> {
    let len_bytes = parts.first().map_or(0, |part| part.len());
    let element = |at: usize| {
        let numbers = parts.iter().map(|part| N::read(&part[at..at + size_of::<N>()]));
        let all = numbers.reduce(|a, b| a.combined(b, reduction));
        match all {
            Some(sum) if reduction == Reduction::Mean => sum.divided(parts.len()),
            Some(all) => all,
            None => N::read(&[0; 8][..size_of::<N>()]),
        }
    };
    let mut bytes = Vec::with_capacity(len_bytes);
    (0..len_bytes).step_by(size_of::<N>()).for_each(|at| element(at).append(&mut bytes));
    bytes
}

/// A type of numbers. Ranks are combined in their order, so that all get the same result.
trait Number: Copy {
    fn read(bytes: &[u8]) -> Self;
    fn append(self, bytes: &mut Vec<u8>);
    fn combined(self, other: Self, reduction: Reduction) -> Self;
    fn divided(self, by: usize) -> Self;
}

macro_rules! number {
    ($($number:ty: |$a:ident, $b:ident| $sum:expr, $product:expr, $max:expr, $min:expr;
       |$total:ident, $count:ident| $mean:expr;)*) => {$(
        impl Number for $number {
            fn read(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<Self>()];
                own.copy_from_slice(bytes);
                Self::from_le_bytes(own)
            }

            fn append(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }

            fn combined(self, other: Self, reduction: Reduction) -> Self {
                let ($a, $b) = (self, other);
                match reduction {
                    Reduction::Sum | Reduction::Mean => $sum,
                    Reduction::Product => $product,
                    Reduction::Max => $max,
                    Reduction::Min => $min,
                }
            }

            fn divided(self, by: usize) -> Self {
                let ($total, $count) = (self, by);
                $mean
            }
        }
    )*};
}

macro_rules! integers {
    ($($number:ty)*) => {number! {$(
        $number: |a, b| a.wrapping_add(b), a.wrapping_mul(b), a.max(b), a.min(b);
        |total, count| <$number>::try_from(count).map_or(0, |count| total / count);
    )*}};
}

integers! { i8 u8 i32 u32 i64 u64 }
number! {
    f32: |a, b| a + b, a * b, a.max(b), a.min(b); |total, count| total / count as f32;
    f64: |a, b| a + b, a * b, a.max(b), a.min(b); |total, count| total / count as f64;
    f16: |a, b| a + b, a * b, a.max(b), a.min(b);
         |total, count| total / Self::from_f64(count as f64);
    bf16: |a, b| a + b, a * b, a.max(b), a.min(b);
         |total, count| total / Self::from_f64(count as f64);
}
