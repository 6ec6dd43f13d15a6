//! The PTX that rustc made of the kernel in the guide computes what the kernel's function computes
//! on the host.

use resident_ptx_interpreter::{Launch, Order, parse, run};

mod escape {
    include!("../../../docs/guide/kernels_in_rust/escape.rs");
}

const PTX: &str = include_str!("../../../docs/guide/kernels_in_rust/kernel.ptx");

const SIDE: u32 = 32;
const STEPS_MAX: u32 = 50;

fn bytes(numbers: impl Iterator<Item = u32>) -> Vec<u8> {
    numbers.flat_map(u32::to_le_bytes).collect()
}

#[test]
fn ptx_of_rust_computes_what_its_function_computes() {
    let module = parse(PTX).expect("it is PTX");
    let place = |index: u32| 3.0 * index as f32 / SIDE as f32;
    let points = (0..SIDE * SIDE).map(|n| (place(n % SIDE) - 2.25, place(n / SIDE) - 1.5));
    let points: Vec<(f32, f32)> = points.collect();
    let length = |len: u32| u64::from(len).to_le_bytes().to_vec();
    let array = |start: u64| start.to_le_bytes().to_vec();
    // Far behind the addresses that the interpreter gives to parameters and variables.
    let (re, im, steps) = (1 << 42, 2 << 42, 3 << 42);
    // The last array is the shortest: no thread writes behind its end.
    let written = SIDE * SIDE - 5;
    for order in [Order::Ascending, Order::Descending] {
        let launch = Launch {
            grid: [SIDE, 1, 1],
            block: [SIDE, 1, 1],
            shared_bytes: 0,
            parameters: vec![
                STEPS_MAX.to_le_bytes().to_vec(),
                array(re),
                length(SIDE * SIDE),
                array(im),
                length(SIDE * SIDE),
                array(steps),
                length(written),
            ],
            memory: vec![
                (re, bytes(points.iter().map(|(re, _)| re.to_bits()))),
                (im, bytes(points.iter().map(|(_, im)| im.to_bits()))),
                (steps, bytes((0..written).map(|_| u32::MAX))),
            ],
            order,
            instructions_max: 10_000_000,
        };
        let after = run(&module, "escape", launch).expect("it runs to its end");
        let computed = points[..written as usize].iter();
        let computed = computed.map(|(re, im)| escape::escape_steps(*re, *im, STEPS_MAX));
        let computed: Vec<u32> = computed.collect();
        assert!(computed.contains(&STEPS_MAX) && computed.contains(&2), "some stay, others leave");
        assert_eq!(after[2], bytes(computed.into_iter()));
    }
}
