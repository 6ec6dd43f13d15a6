//! What a suite begins with whose launches of CUDA C are recorded (`recording`). Without NVIDIA's
//! backend nothing is.

/// Lets a program of tests record its launches. Stands once in its `main.rs`.
#[macro_export]
macro_rules! record_launches {
    () => {
        #[cfg(all(target_os = "linux", feature = "cuda"))]
        mod record_launches {
            // Runs before `main`, which is the harness's own.
            #[used]
            #[unsafe(link_section = ".init_array")]
            static BEGIN: extern "C" fn() = $crate::recording::begin;
        }
    };
}
