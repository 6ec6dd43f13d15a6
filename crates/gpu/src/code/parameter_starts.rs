//! Where the parameters of a kernel start in the words of a launch.

use std::ffi::c_void;

use resident_backend::ParameterLayout;

/// The most parameters that a kernel has: 16 in its signature, each of which may be a pointer and a
/// length.
pub(crate) const PARAMETERS_MAX: usize = 32;

/// The words at which the parameters of a kernel without sized arrays start. Sized arrays have the
/// number of their dimensions in the words, which is compared with that of the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ParameterStarts {
    starts: [u16; PARAMETERS_MAX],
    count: u16,
    /// The number of words in all.
    words: u16,
}

impl ParameterStarts {
    /// `None` if the words do not start at fixed places, or are too many.
    pub(crate) fn of(layouts: &[ParameterLayout]) -> Option<Self> {
        let mut found = Self::default();
        for layout in layouts {
            if matches!(layout, ParameterLayout::Sized { .. }) {
                return None;
            }
            *found.starts.get_mut(usize::from(found.count))? = found.words;
            found.count += 1;
            found.words = found.words.checked_add(u16::try_from(layout.words(0)).ok()?)?;
        }
        Some(found)
    }

    #[inline]
    pub(crate) fn fits(&self, words: &[u64]) -> bool {
        words.len() == usize::from(self.words)
    }

    #[inline]
    pub(crate) fn write(&self, words: &mut [u64], parameters: &mut [*mut c_void; PARAMETERS_MAX]) {
        let start = words.as_mut_ptr();
        let count = usize::from(self.count).min(PARAMETERS_MAX);
        for (parameter, first) in parameters[..count].iter_mut().zip(&self.starts) {
            *parameter = start.wrapping_add(usize::from(*first)).cast();
        }
    }
}
