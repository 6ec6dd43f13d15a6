//! The kernel. `kernel.ptx` is what rustc 1.96 made of it:
//!
//! ```sh
//! cargo +nightly rustc --release --target nvptx64-nvidia-cuda -Z build-std=core \
//!     -- --emit asm -C target-cpu=sm_80
//! ```

#![no_std]
#![feature(abi_ptx, stdarch_nvptx)]

use core::arch::nvptx;

mod escape;

/// # Safety
///
/// `re`, `im` and `steps` lead to as many elements as their lengths say; nothing else writes them.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn escape(
    steps_max: u32,
    re: *const f32,
    re_len: usize,
    im: *const f32,
    im_len: usize,
    steps: *mut u32,
    steps_len: usize,
) {
    // SAFETY: these read registers.
    let i = unsafe { nvptx::_block_idx_x() * nvptx::_block_dim_x() + nvptx::_thread_idx_x() };
    let i = i as usize;
    if i < re_len && i < im_len && i < steps_len {
        // SAFETY: the caller promises this, and `i` is below the lengths.
        unsafe { *steps.add(i) = escape::escape_steps(*re.add(i), *im.add(i), steps_max) }
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
