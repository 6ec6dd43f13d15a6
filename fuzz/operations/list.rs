//! A list that takes all the bytes there are.

use arbitrary::{Arbitrary, Result, Unstructured};

/// As many values as the input has bytes for. A `Vec` asks before each value whether there is
/// another, so that random bytes make short ones.
#[derive(Debug)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<'a, T: Arbitrary<'a>> Arbitrary<'a> for List<T> {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        let mut list = Vec::new();
        while !bytes.is_empty() {
            list.push(bytes.arbitrary()?);
        }
        Ok(Self(list))
    }
}
