//! Threads that wait for memory which another thread writes. Without turns these tests hang.

use std::thread;

use resident::{Device, Emulation, Grid, In, InOut, Kernel, Result, Signature, SmartArray};

use crate::{one_of, progress_of_blocks};

/// The kernels of these tests.
const SOURCE: &str = r#"
    extern "C" __global__ void wait_for_flag(int *x) {
        volatile int *flag = x;
        if (threadIdx.x == 0) {
            while (*flag == 0);
            __threadfence();
            x[2] = x[1] + 1;
        } else if (threadIdx.x == blockDim.x - 1) {
            x[1] = 41;
            __threadfence();
            *flag = 1;
        }
    }
    extern "C" __global__ void wait_by_goto(int *x) {
        volatile int *flag = x;
        if (threadIdx.x == 0) {
        again:
            if (*flag == 0) goto again;
            __threadfence();
            x[2] = x[1] + 1;
        } else if (threadIdx.x == blockDim.x - 1) {
            x[1] = 41;
            __threadfence();
            *flag = 1;
        }
    }
    extern "C" __global__ void wait_for_next(int *x) {
        __shared__ int turn;
        if (threadIdx.x == 0) turn = blockDim.x - 1;
        __syncthreads();
        while (atomicAdd(&turn, 0) != threadIdx.x) __nanosleep(20);
        int *own = x + blockIdx.x;
        *own = *own * 3 + threadIdx.x;
        __threadfence();
        atomicSub(&turn, 1);
    }
    extern "C" __global__ void count(int *x) {
        int *lock = x + 2 * blockIdx.x, *counter = lock + 1;
        while (atomicCAS(lock, 0, 1) != 0);
        __threadfence();
        int before = *counter;
        // Others find the lock taken.
        __syncwarp(1u << threadIdx.x % 32);
        for (int i = 0; i < 20; ++i) __nanosleep(50);
        *counter = before + 1;
        __threadfence();
        atomicExch(lock, 0);
    }
    extern "C" __global__ void sum(int *x) {
        __shared__ int ready, sums[4];
        if (threadIdx.x == 0) ready = 0;
        __syncthreads();
        int lane = threadIdx.x % 32, warp = threadIdx.x / 32, value = threadIdx.x;
        for (int by = 16; by > 0; by /= 2) value += __shfl_down_sync(~0u, value, by);
        if (warp > 0 && lane == 0) {
            sums[warp] = value;
            __threadfence_block();
            atomicAdd(&ready, 1);
        }
        if (threadIdx.x == 0) {
            do __threadfence_block(); while (atomicOr(&ready, 0) < 3);
            x[0] = value + sums[1] + sums[2] + sums[3];
        }
        __syncthreads();
        x[1 + threadIdx.x] = x[0];
    }
    extern "C" __global__ void wait_for_last(int *x) {
        int *flag = x + 2 * blockIdx.x;
        if (threadIdx.x == 0) while (atomicMax(flag, 0) == 0);
        else if (threadIdx.x == blockDim.x - 1) atomicAdd(flag, 1);
        if (threadIdx.x == 0) flag[1] = 7;
    }
    extern "C" __global__ void add(const int *x, int *y) { y[threadIdx.x] += x[threadIdx.x]; }
"#;

/// A kernel of these tests, or of those of blocks. All are one source.
pub(crate) fn waiting_kernel<S: Signature>(entry: &str) -> Kernel<S> {
    one_of(&[SOURCE, progress_of_blocks::SOURCE].concat(), entry)
}

/// A device that checks kernels, and one that does not.
pub(crate) fn devices() -> [Device; 2] {
    [false, true].map(|checks| Device::emulated(Emulation::new().sanitize(checks)))
}

/// Launches a kernel on zeros, on both devices, and compares the results.
fn compare(name: &str, grid: Grid, len: usize, expected: &[i32]) -> Result<()> {
    let kernel = waiting_kernel::<(InOut<i32>,)>(name);
    for device in devices() {
        let mut x = SmartArray::<i32, _>::zeros(len);
        kernel.launch_on(&device.stream(), grid, (&mut x,))?;
        assert_eq!(x.to_vec()?, expected, "{device:?}");
    }
    Ok(())
}

/// The first thread waits for the last one, of another warp.
#[test]
fn a_thread_waits_for_a_flag_that_is_volatile() -> Result<()> {
    compare("wait_for_flag", Grid::new(1, 96), 3, &[1, 41, 42])
}

/// The loop is made of `goto`.
#[test]
fn a_thread_waits_for_a_flag_by_goto() -> Result<()> {
    compare("wait_by_goto", Grid::new(1, 96), 3, &[1, 41, 42])
}

/// Each thread waits for the next one, and so for all that come later.
#[test]
fn each_thread_of_many_blocks_waits_for_the_next() -> Result<()> {
    let of_block = (0..40).rev().fold(0_i32, |x, thread| x.wrapping_mul(3).wrapping_add(thread));
    compare("wait_for_next", Grid::new(20, 40), 20, &[of_block; 20])
}

/// The lanes of a warp too.
#[test]
fn threads_take_a_lock_in_turns() -> Result<()> {
    for (blocks, threads) in [(1, 33), (2, 128), (12, 33)] {
        let expected = [0, i32::try_from(threads).expect("it fits")].repeat(blocks);
        compare("count", Grid::new(blocks as u32, threads), 2 * blocks, &expected)?;
    }
    Ok(())
}

/// A thread that waits for the block stands behind one that waits for memory.
#[test]
fn barriers_and_waits_for_memory_go_together() -> Result<()> {
    compare("sum", Grid::new(1, 128), 129, &[127 * 64; 129])
}

/// Beside launches that wait, on several devices at once, short ones end.
#[test]
fn launches_of_several_devices_go_on_together() -> Result<()> {
    let waiting = waiting_kernel::<(InOut<i32>,)>("wait_for_last");
    let add = waiting_kernel::<(In<i32>, InOut<i32>)>("add");
    let wait_often = |device: &Device| -> Result<()> {
        for _ in 0..5 {
            let mut x = SmartArray::<i32, _>::zeros(2 * 128);
            waiting.launch_on(&device.stream(), Grid::new(128, 128), (&mut x,))?;
            assert_eq!(x.to_vec()?, [1, 7].repeat(128));
        }
        Ok(())
    };
    thread::scope(|scope| {
        let devices: Vec<Device> = devices().into_iter().chain(devices()).collect();
        let threads = devices.into_iter().map(|device| scope.spawn(move || wait_often(&device)));
        let threads: Vec<_> = threads.collect();
        let x = SmartArray::from(vec![1; 4]);
        let mut y = SmartArray::<i32, _>::zeros(4);
        let device = Device::emulated(Emulation::new());
        for _ in 0..200 {
            add.launch_on(&device.stream(), Grid::new(1, 4), (&x, &mut y))?;
        }
        assert_eq!(y.to_vec()?, [200; 4]);
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })
}
