//! Memory: of the launch, of a block, of a thread. Each access is checked.

use crate::Outcome;
use crate::module::{
    Module, PARAMETERS_START, SHARED_BYTES_MAX, SHARED_START, STACK_BYTES_MAX, STACK_START,
};
use crate::words::Space;

/// What memory holds before anything is written to it.
const NOTHING: u8 = 0xcd;

/// Memory that all blocks see.
#[derive(Debug)]
pub(crate) struct Range {
    pub(crate) start: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_constant: bool,
}

/// The memory that the threads of one block can access.
#[derive(Debug)]
pub(crate) struct Memory {
    ranges: Vec<Range>,
    /// The range that was used last.
    last: usize,
    shared: Vec<u8>,
    shared_bytes: usize,
}

/// An access: the address, and the number of bytes, to which it must be aligned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) address: u64,
    pub(crate) len_bytes: u64,
    pub(crate) space: Option<Space>,
}

impl Memory {
    /// The memory of a launch. `parameters` are those of the kernel.
    pub(crate) fn new(
        module: &Module,
        parameters: Vec<u8>,
        ranges: Vec<Range>,
        dynamic_bytes: u32,
    ) -> Outcome<Self> {
        let shared_bytes = module.shared_bytes + u64::from(dynamic_bytes);
        if shared_bytes > SHARED_BYTES_MAX {
            return Err(format!("{shared_bytes} bytes of shared memory"));
        }
        let mut all = ranges;
        all.push(Range { start: PARAMETERS_START, bytes: parameters, is_constant: true });
        all.extend(module.variables.iter().map(|variable| Range {
            start: variable.address,
            bytes: variable.contents.clone(),
            is_constant: variable.is_constant,
        }));
        let shared_bytes = shared_bytes as usize;
        Ok(Self { ranges: all, last: 0, shared: vec![NOTHING; shared_bytes], shared_bytes })
    }

    pub(crate) fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    pub(crate) fn shared_bytes(&self) -> u64 {
        self.shared_bytes as u64
    }

    /// A new block knows nothing of the shared memory of those before.
    pub(crate) fn begin_block(&mut self) {
        self.shared.fill(NOTHING);
    }

    pub(crate) fn read<'a>(&'a mut self, stack: &'a [u8], access: Access) -> Outcome<&'a [u8]> {
        access.check_alignment()?;
        if let Some(at) = access.within(SHARED_START, self.shared_bytes, Space::Shared) {
            return Ok(&self.shared[at]);
        }
        if let Some(at) = access.within(STACK_START, stack.len(), Space::Local) {
            return Ok(&stack[at]);
        }
        let (range, at) = self.find(access)?;
        Ok(&self.ranges[range].bytes[at])
    }

    pub(crate) fn write<'a>(
        &'a mut self,
        stack: &'a mut [u8],
        access: Access,
    ) -> Outcome<&'a mut [u8]> {
        access.check_alignment()?;
        if let Some(at) = access.within(SHARED_START, self.shared_bytes, Space::Shared) {
            return Ok(&mut self.shared[at]);
        }
        if let Some(at) = access.within(STACK_START, stack.len(), Space::Local) {
            return Ok(&mut stack[at]);
        }
        let (range, at) = self.find(access)?;
        if self.ranges[range].is_constant {
            return Err(format!("a write to constant memory at {:#x}", access.address));
        }
        Ok(&mut self.ranges[range].bytes[at])
    }

    fn find(&mut self, access: Access) -> Outcome<(usize, std::ops::Range<usize>)> {
        let within = |range: &Range| access.within_any(range.start, range.bytes.len());
        if matches!(access.space, Some(Space::Shared | Space::Local)) {
            return Err(access.outside());
        }
        if let Some(at) = self.ranges.get(self.last).and_then(within) {
            return Ok((self.last, at));
        }
        let mut found = self.ranges.iter().enumerate();
        let found = found.find_map(|(index, range)| Some((index, within(range)?)));
        let (range, at) = found.ok_or_else(|| access.outside())?;
        self.last = range;
        Ok((range, at))
    }
}

impl Access {
    fn check_alignment(self) -> Outcome {
        if self.address.is_multiple_of(self.len_bytes) {
            return Ok(());
        }
        Err(format!("the address {:#x} is not aligned to {} bytes", self.address, self.len_bytes))
    }

    /// Where it is in a memory, unless the instruction names another one.
    fn within(self, start: u64, len: usize, space: Space) -> Option<std::ops::Range<usize>> {
        let is_frame = space == Space::Local && self.space == Some(Space::Param);
        let may_be = self.space.is_none_or(|named| named == space) || is_frame;
        if may_be { self.within_any(start, len) } else { None }
    }

    fn within_any(self, start: u64, len: usize) -> Option<std::ops::Range<usize>> {
        let offset = self.address.checked_sub(start)?;
        let end = offset.checked_add(self.len_bytes)?;
        (end <= len as u64).then_some(offset as usize..end as usize)
    }

    fn outside(self) -> String {
        let space = self.space.map_or("any".to_owned(), |space| format!("{space:?}"));
        format!("no {} bytes at {:#x} in {space} memory", self.len_bytes, self.address)
    }
}

/// Whether a generic address is in a memory.
pub(crate) fn is_in(space: Space, address: u64) -> bool {
    let shared = (SHARED_START..SHARED_START + SHARED_BYTES_MAX).contains(&address);
    let local = (STACK_START..STACK_START + STACK_BYTES_MAX).contains(&address);
    match space {
        Space::Shared => shared,
        Space::Local => local,
        _ => !shared && !local,
    }
}

/// Makes a thread's memory longer.
pub(crate) fn grow(stack: &mut Vec<u8>, len: usize) {
    stack.resize(len, NOTHING);
}

/// The number in some bytes, the lowest first.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}
