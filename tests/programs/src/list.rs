//! A list that uses all remaining bytes of the input.

use arbitrary::{Arbitrary, Result, Unstructured};

/// A list with as many values as the remaining bytes of the input yield. A `Vec` decides before
/// each value whether there is another, so random bytes make short vectors.
#[derive(Debug)]
pub struct List<T>(pub Vec<T>);

impl<'a, T: Arbitrary<'a>> Arbitrary<'a> for List<T> {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        let mut list = Vec::new();
        while !bytes.is_empty() {
            list.push(bytes.arbitrary()?);
        }
        Ok(Self(list))
    }
}
