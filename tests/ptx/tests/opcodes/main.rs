//! Each family of instructions beside what the manual of PTX says of it.

mod arithmetic;
mod bits;
mod control;
mod conversions;
mod floats;
mod memory;
mod selection;
mod threads;

use resident_ptx_interpreter::{Launch, Order, parse, run};

/// Where the array of a test kernel is.
const ARRAY: u64 = 0x10_0000_0000;

/// Instructions of one thread: registers `%a`, `%b`, `%c`, `%e` have the inputs, and the result is
/// in `%d`.
#[track_caller]
fn result(body: &str, inputs: &[u64]) -> Result<u64, String> {
    let registers = ["a", "b", "c", "e"];
    let loads = registers.iter().enumerate().fold(String::new(), |loads, (index, name)| {
        loads + &format!("ld.global.u64 %{name}, [%array+{}];\n", 8 * index)
    });
    let text = format!(
        ".reg .b64 %a, %b, %c, %d, %e;\n{loads}{body};\nst.global.u64 [%array+32], %d;\nret;"
    );
    let mut words = inputs.to_vec();
    words.resize(5, 0);
    Ok(launch(&text, 1, &words)?[4])
}

/// Runs the body of a kernel, to which `%array` points, with threads of one block.
fn launch(body: &str, threads: u32, words: &[u64]) -> Result<Vec<u64>, String> {
    launch_module("", body, threads, words, Order::Ascending)
}

fn launch_module(
    declarations: &str,
    body: &str,
    threads: u32,
    words: &[u64],
    order: Order,
) -> Result<Vec<u64>, String> {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n{declarations}\n\
         .visible .entry test(.param .u64 array) {{\n\
         .reg .b64 %array;\nld.param.u64 %array, [array];\n{body}\n}}\n"
    );
    let module = parse(&text)?;
    let memory = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let launch = Launch {
        grid: [1, 1, 1],
        block: [threads, 1, 1],
        shared_bytes: 64,
        parameters: vec![ARRAY.to_le_bytes().to_vec()],
        memory: vec![(ARRAY, memory)],
        order,
        instructions_max: 1_000_000,
    };
    let after = run(&module, "test", launch)?;
    let words = after[0].chunks_exact(8);
    Ok(words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect())
}

/// An instruction, its inputs, its result.
type Case<'a> = (&'a str, &'a [u64], u64);

/// Runs `opcode %d, inputs..`. Results of less than 64 bits are compared by as many bits.
#[track_caller]
fn check<const BITS: u32>(cases: &[Case<'_>]) {
    for (opcode, inputs, expected) in cases {
        let operands = ["%a", "%b", "%c", "%e"][..inputs.len()].join(", ");
        let found = result(&format!("{opcode} %d, {operands}"), inputs);
        let found = found.unwrap_or_else(|fault| panic!("{opcode}: {fault}"));
        let found = found & (u64::MAX >> (64 - BITS));
        assert_eq!(found, *expected, "{opcode} {inputs:x?}: {found:#x}, not {expected:#x}");
    }
}

/// The bits of a float.
fn f(value: f32) -> u64 {
    value.to_bits().into()
}

/// The bits of a double.
fn d(value: f64) -> u64 {
    value.to_bits()
}

/// The bits of a number with a sign.
fn s(value: i64) -> u64 {
    value as u64
}
