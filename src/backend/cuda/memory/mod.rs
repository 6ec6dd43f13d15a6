//! Memory that the CUDA backend manages.
//!
//! | file | contents |
//! |---|---|
//! | `allocator`, `pool` | device memory: the live allocations, and the driver's pool |
//! | `external` | device memory that belongs to cudarc's slices |
//! | `staging`, `staging_limit` | pinned blocks for copies with pageable memory, and their limit |
//! | `numa` | the processors near a GPU |
//! | `pageable` | the backend's own pageable blocks |
//! | `registered` | arrays' host memory, registered with the driver |

pub(crate) mod allocator;
pub(crate) mod external;
mod numa;
pub(crate) mod pageable;
mod pool;
pub(crate) mod registered;
pub(crate) mod staging;
mod staging_limit;
