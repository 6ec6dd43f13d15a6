//! Memory that the GPU backend manages.
//!
//! | file | contents |
//! |---|---|
//! | `allocator`, `pool` | device memory: the live allocations, and the driver's pool |
//! | `pages`, `reservations`, `page_driver` | memory by pages: commits; tables; driver calls |
//! | `external`, `cudarc_slice` | device memory of other code; that of cudarc's slices |
//! | `staging`, `staging_settings` | pinned blocks for copies with pageable memory, and limits |
//! | `managed` | managed memory, its prefetches and advice |
//! | `numa` | the processors near a GPU |
//! | `pageable` | the backend's own pageable blocks |
//! | `pinned` | arrays' host memory, allocated by the driver |
//! | `pinned_ranges` | all host memory that the library pinned |
//! | `pointer` | what the driver knows of an address |
//! | `registered` | arrays' host memory, registered with the driver |

pub(crate) mod allocator;
#[cfg(feature = "cuda")]
pub(crate) mod cudarc_slice;
pub(crate) mod external;
pub(crate) mod managed;
mod numa;
mod page_driver;
pub(crate) mod pageable;
mod pages;
pub(crate) mod pinned;
pub(crate) mod pinned_ranges;
pub(crate) mod pointer;
mod pool;
pub(crate) mod registered;
mod reservations;
pub(crate) mod staging;
pub(crate) mod staging_settings;
