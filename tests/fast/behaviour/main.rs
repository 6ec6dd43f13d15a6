//! The behaviour of the public API, on embedded devices.

mod addresses;
mod bad_input;
mod bodies_for_each_element;
mod chains;
mod contents_given_up;
mod contract;
mod device_arrays;
mod device_memory;
mod device_views;
#[cfg(feature = "dlpack")]
mod dlpack;
mod elements;
#[cfg(target_os = "linux")]
mod ending_threads;
mod environment;
mod eviction;
mod fields;
mod forget;
#[cfg(target_os = "linux")]
mod forked_children;
mod full_devices;
mod fuzz_regressions;
mod host_memory;
mod hostile_names;
mod inside_bodies;
mod kinds_of_views;
mod late_failures;
mod leftovers;
mod liveness;
mod memory_for_parts;
mod mistakes;
mod numba_defects;
mod numba_device_array_defects;
mod one_memory;
mod order;
mod owners;
mod parts_drawn;
mod peer_hazards;
mod reinterpreted;
mod remembered_parts;
mod repeated_launches;
mod scattered;
mod soundness;
mod subscribers;
mod thread_pools;
mod threads;
mod threads_and_faults;
mod tracing_events;
mod views;
mod views_out_of_guards;
mod watching;
mod write_back;
