//! The tests of the kernels on the CUDA backend, over the stand-in driver, whose stand-in for NVRTC
//! compiles their CUDA C.

use resident::Device;
use resident_stand_in::{self as driver, Settings};

/// Runs a test on the stand-in's device.
fn run(test: fn()) {
    driver::load(Settings::new()).expect("the stand-in driver loads");
    resident_stand_in_nvrtc::load().expect("the stand-in for NVRTC loads");
    let gpu = Device::cuda(0).expect("the stand-in has a device");
    let here = gpu.enter();
    test();
    drop(here);
    assert_eq!(driver::take_hazards(), [""; 0]);
    assert_eq!(driver::take_notes(), [""; 0]);
    let calls = driver::take_calls();
    let launches = calls.iter().filter(|call| call.name == "cuLaunchKernel" && call.code == 0);
    assert!(launches.count() > 0, "the test runs on the stand-in");
}

macro_rules! on_the_stand_in {
    ($($module:ident { $($test:ident),+ $(,)? })+) => {
        $(mod $module {
            $(#[test]
            fn $test() {
                support::own_process!();
                super::run(crate::$module::$test);
            })+
        })+
    };
}

on_the_stand_in! {
    conjugate_gradient {
        multiply_survives_wrong_sizes,
        a_matrix_may_hold_anything,
        a_matrix_of_noise_is_multiplied_as_by_a_loop,
        vectors_become_those_of_ndarray,
        vectors_survive_wrong_sizes,
        products_survive_wrong_sizes_and_wrong_blocks,
        a_step_survives_wrong_sizes,
    }
    heat {
        start_survives_wrong_sizes,
        jacobi_survives_wrong_sizes_and_leaves_the_frame_alone,
        residual_survives_wrong_sizes,
        the_start_is_the_sum_of_the_waves,
        steps_and_residuals_are_those_of_ndarray,
    }
    live {
        wave_survives_wrong_sizes,
        drop_fills_any_size_and_leaves_the_border_at_zero,
        a_watched_run_shows_states_that_the_wave_had,
    }
    pipeline {
        kernels_survive_wrong_sizes,
        the_sheet_and_the_histogram_survive_wrong_sizes,
        labels_may_be_anything,
        brightness_may_be_anything,
    }
    stream_file {
        kernels_survive_wrong_sizes,
        kernels_compute_the_same_in_rust_and_in_cuda_c,
    }
}
