//! Memory that the CUDA backend manages.
//!
//! | file | contents |
//! |---|---|
//! | `allocator`, `pool` | device memory: the live allocations, and the driver's pool behind them |
//! | `external` | device memory that lives in cudarc's slices |
//! | `staging`, `staging_limit` | pinned blocks for copies with pageable memory, and their bound |
//! | `numa` | the processors near a GPU |
//! | `pageable` | pageable blocks of the backend's own |
//! | `registered` | arrays' host memory, registered with the driver |

pub(crate) mod allocator;
pub(crate) mod external;
mod numa;
pub(crate) mod pageable;
mod pool;
pub(crate) mod registered;
pub(crate) mod staging;
mod staging_limit;
