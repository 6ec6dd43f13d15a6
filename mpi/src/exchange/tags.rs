//! The tags of the messages of an exchange.

use crate::error::{Result, Side};
use crate::world::World;

/// The most arrays of an exchange.
const FIELDS_MAX: i32 = 4;

/// One tag for each direction of each array, and then those of the headers.
pub(crate) struct Tags {
    first: i32,
    directions: i32,
}

impl Tags {
    /// As many for each exchange, so that processes that describe others stay in step.
    pub(super) fn new<const N: usize>(world: &World, operation: &'static str) -> Result<Self> {
        let directions = 3_i32.pow(N as u32);
        let first = world.face_tags(operation, FIELDS_MAX * directions + 2 * N as i32)?;
        Ok(Self { first, directions })
    }

    /// The tag of what an array sends in a direction.
    pub(super) fn direction(&self, field: i32, direction: usize) -> i32 {
        self.first + field * self.directions + direction as i32
    }

    /// The tag of the header that goes to one side of an axis.
    pub(super) fn header(&self, axis: usize, side: Side) -> i32 {
        let side = i32::from(side == Side::High);
        self.first + FIELDS_MAX * self.directions + 2 * axis as i32 + side
    }
}
