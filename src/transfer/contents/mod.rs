//! What calls do with contents where these are: constants, single elements, assignments, and copies
//! from and to memory that no array owns.

pub(super) mod assign;
pub(super) mod constant;
pub(super) mod copy_out;
pub(super) mod element;
pub(super) mod lent;
pub(super) mod newest;
pub(super) mod pinned_copy;
pub(super) mod snapshot;
