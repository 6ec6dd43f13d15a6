//! A launch as a test made it: the source, the arguments, and their elements before and after.

use serde::{Deserialize, Serialize};

/// A recorded launch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Recorded {
    pub source: Source,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub arguments: Vec<Argument>,
}

/// CUDA C, and what decides how it is compiled.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Source {
    /// The name of the kernel.
    pub kernel: String,
    /// The function to run, if it is not called as the kernel.
    pub entry: Option<String>,
    pub text: String,
    /// The file that has the text.
    pub file: Option<String>,
    pub defines: Vec<(String, String)>,
    pub options: Vec<String>,
    pub includes: Vec<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Argument {
    /// The Rust name of its type, or of the type of its elements.
    pub rust_name: String,
    /// What the kernel is passed. That of an array begins with an address.
    pub passed: Vec<u8>,
    pub array: Option<Array>,
}

/// The elements of an array, in the order of their indices.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Array {
    /// Whether the kernel gets its shape and strides.
    pub is_view: bool,
    /// Where the element with index 0, 0, ... was.
    pub address: u64,
    pub element_bytes: u64,
    pub shape: Vec<u64>,
    /// In elements.
    pub strides: Vec<i64>,
    pub before: Vec<u8>,
    pub after: Vec<u8>,
}

impl Recorded {
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        postcard::to_stdvec(self).map_err(|fault| fault.to_string())
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        postcard::from_bytes(bytes).map_err(|fault| fault.to_string())
    }
}

impl Array {
    /// Calls `visit` with the address of each element, the last index fastest.
    pub fn for_each_address(&self, mut visit: impl FnMut(u64)) {
        let mut index = vec![0; self.shape.len()];
        for _ in 0..self.shape.iter().product::<u64>() {
            let places = index.iter().zip(&self.strides);
            let offset: i64 = places.map(|(index, stride)| *index as i64 * stride).sum();
            visit(self.address.wrapping_add_signed(offset * self.element_bytes as i64));
            for axis in (0..index.len()).rev() {
                index[axis] += 1;
                if index[axis] < self.shape[axis] {
                    break;
                }
                index[axis] = 0;
            }
        }
    }

    /// From the lowest address to behind the highest byte. `None` if there is no element.
    pub fn range(&self) -> Option<(u64, u64)> {
        let (mut low, mut high) = (self.address, self.address + self.element_bytes);
        for (count, stride) in self.shape.iter().zip(&self.strides) {
            let span = stride * (count.checked_sub(1)? as i64) * self.element_bytes as i64;
            if span < 0 {
                low = low.wrapping_add_signed(span);
            } else {
                high = high.wrapping_add_signed(span);
            }
        }
        Some((low, high))
    }
}
