//! Blocks that wait for each other, which a GPU holds at once. Without turns these tests hang.

use resident::{Grid, In, InOut, Out, Result, SmartArray};

use crate::progress::{devices, waiting_kernel};

/// The kernels of these tests.
pub(crate) const SOURCE: &str = r#"
    __device__ void wait_for_grid(int *count, int end) {
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(count, 1);
            while (atomicAdd(count, 0) < end);
            __threadfence();
        }
        __syncthreads();
    }
    extern "C" __global__ void two_steps(int *count, int *x, int *y) {
        __shared__ int own[16];
        extern __shared__ int dynamic[];
        int before = (blockIdx.x + gridDim.x - 1) % gridDim.x, i = threadIdx.x % 16;
        if (threadIdx.x < 16) own[i] = blockIdx.x + i;
        if (threadIdx.x < 16) dynamic[i] = 2 * blockIdx.x;
        if (threadIdx.x == 0) x[blockIdx.x] = blockIdx.x;
        wait_for_grid(count, gridDim.x);
        if (threadIdx.x == 0) y[blockIdx.x] = x[before] + own[3] + dynamic[5];
        wait_for_grid(count, 2 * gridDim.x);
        if (threadIdx.x == 0) x[blockIdx.x] = y[before];
    }
    extern "C" __global__ void running_sums(const int *x, int *sums, int *states) {
        __shared__ int number, before;
        if (threadIdx.x == 0) number = atomicAdd(states, 1);
        __syncthreads();
        if (threadIdx.x == 0) {
            int *state = states + 1 + number;
            before = 0;
            if (number > 0) {
                while ((before = atomicAdd(state - 1, 0)) == 0);
                before -= 1;
            }
            atomicExch(state, 1 + before + x[number]);
            sums[number] = before + x[number];
        }
    }
    extern "C" __global__ void wait_for_last_block(int *x) {
        volatile int *flag = x;
        if (blockIdx.x == gridDim.x - 1) {
            x[1] = 7;
            __threadfence();
            *flag = 1;
        } else {
            while (*flag == 0) __nanosleep(100);
            __threadfence();
            atomicAdd(x + 2, x[1]);
        }
    }
"#;

/// A barrier of the whole grid, which each block passes twice. Between the two, shared memory keeps
/// what the block has written there.
#[test]
fn blocks_pass_a_barrier_of_the_grid() -> Result<()> {
    let two_steps = waiting_kernel::<(InOut<i32>, InOut<i32>, Out<i32>)>("two_steps");
    for (device, blocks) in
        devices().into_iter().flat_map(|one| [1, 2, 150].map(|n| (one.clone(), n)))
    {
        let mut count = SmartArray::<i32, _>::zeros(1);
        let mut x = SmartArray::<i32, _>::zeros(blocks as usize);
        let mut y = SmartArray::<i32, _>::zeros(blocks as usize);
        let grid = Grid::new(blocks as u32, 64).shared_bytes(64);
        two_steps.launch_on(&device.stream(), grid, (&mut count, &mut x, &mut y))?;
        let before = |block: i32| (block + blocks - 1) % blocks;
        let of_block = |block: i32| before(block) + block + 3 + 2 * block;
        assert_eq!(y.to_vec()?, Vec::from_iter((0..blocks).map(of_block)));
        assert_eq!(x.to_vec()?, Vec::from_iter((0..blocks).map(|block| of_block(before(block)))));
    }
    Ok(())
}

/// The sum of all elements up to each, in one pass: blocks look back at those before them.
#[test]
fn blocks_look_back() -> Result<()> {
    type Signature = (In<i32>, Out<i32>, InOut<i32>);
    let sums = waiting_kernel::<Signature>("running_sums");
    for device in devices() {
        let x = SmartArray::from(Vec::from_iter(1..=2000));
        let mut out = SmartArray::<i32, _>::zeros(2000);
        let mut states = SmartArray::<i32, _>::zeros(2001);
        sums.launch_on(&device.stream(), Grid::new(2000, 32), (&x, &mut out, &mut states))?;
        assert_eq!(out.to_vec()?, Vec::from_iter((1..=2000).map(|i| i * (i + 1) / 2)));
    }
    Ok(())
}

/// Many blocks of one thread, and few of many, on one thread of the machine and on all.
#[test]
fn blocks_wait_for_a_later_one() -> Result<()> {
    let wait = waiting_kernel::<(InOut<i32>,)>("wait_for_last_block");
    let many: &[_] = &[(2, 1), (256, 1), (90, 92), (4, 1024)];
    for (device, cases) in devices().iter().zip([many, &[(2, 1), (30, 33)]]) {
        for &(blocks, threads) in cases {
            let mut x = SmartArray::<i32, _>::zeros(3);
            wait.launch_on(&device.stream(), Grid::new(blocks, threads), (&mut x,))?;
            let sum = 7 * (blocks - 1) * threads;
            assert_eq!(x.to_vec()?, [1, 7, i32::try_from(sum).expect("it fits")]);
        }
    }
    Ok(())
}

/// More blocks than there are at once cannot wait for the last one.
#[test]
fn a_launch_whose_blocks_wait_for_one_that_cannot_begin_fails() -> Result<()> {
    let wait = waiting_kernel::<(InOut<i32>,)>("wait_for_last_block");
    let many: &[_] = &[(300, 1, 256), (1100, 8, 256)];
    for (device, cases) in devices().iter().zip([many, &[(300, 1, 256)]]) {
        for &(blocks, threads, at_once) in cases {
            let mut x = SmartArray::<i32, _>::zeros(3);
            wait.launch_on(&device.stream(), Grid::new(blocks, threads), (&mut x,))?;
            let error = device.synchronize().expect_err("the last block cannot begin");
            let expected = format!("{at_once} of the {blocks} blocks, of {threads} threads each");
            let text = error.to_string();
            assert!(text.contains(&expected), "{text}");
            assert!(text.contains("hangs there too") && text.contains("\"kernel\""), "{text}");
        }
        let mut x = SmartArray::<i32, _>::zeros(3);
        wait.launch_on(&device.stream(), Grid::new(3, 1), (&mut x,))?;
        assert_eq!(x.to_vec()?, [1, 7, 14]);
    }
    Ok(())
}
