//! Programs with chains, by the public interface.

use resident::ndarray::{Array2, Ix2};
use resident::{Chain, Error, Grid, In, InOut, Kernel, Out, SmartArray, Stream, Temp};
use support::{in_own_process, own_process};

use super::{WITHOUT_GRAPHS, assert_clean, take_graph_calls};
use crate::face::Settings;
use crate::matrices::{code, open};

type Matrix = SmartArray<u32, Ix2>;
type Steps = Chain<(u32, In<u32, Ix2>, InOut<u32, Ix2>, Temp<u32, Ix2>)>;

const SHAPE: (usize, usize) = (12, 10);

/// `b = 3 * (b + a + 9 + k) + k`, by way of a temporary.
fn steps() -> Steps {
    // SAFETY: host functions replace the kernels, which access only the elements of their views.
    let plus =
        unsafe { Kernel::<(u32, In<u32, Ix2>, Out<u32, Ix2>)>::new("plus").cuda(code("plus")) };
    // SAFETY: as above.
    let mix = unsafe { Kernel::<(In<u32, Ix2>, InOut<u32, Ix2>)>::new("mix").cuda(code("mix")) };
    // SAFETY: as above.
    let scale = unsafe { Kernel::<(u32, InOut<u32, Ix2>)>::new("scale").cuda(code("scale")) };
    let grid = Grid::cover(SHAPE.0 * SHAPE.1);
    Steps::record("steps", |r, (k, a, b, temporary)| {
        r.fill(temporary.write(), 9)?;
        r.launch(&mix, grid, (a.read(), temporary.read_write()))?;
        r.launch(&mix, grid, (temporary.read(), b.read_write()))?;
        r.copy(b.read(), temporary.write())?;
        r.launch(&plus, grid, (k, temporary.read(), b.write()))?;
        r.launch(&scale, grid, (k, b.read_write()))
    })
    .expect("it is recorded")
}

fn matrix(first: u32) -> (Matrix, Array2<u32>) {
    let value = |(row, column)| first + 100 * row as u32 + column as u32;
    let plain = Array2::from_shape_fn(SHAPE, value);
    (SmartArray::from(plain.clone()), plain)
}

fn apply(k: u32, a: &Array2<u32>, b: &mut Array2<u32>) {
    b.zip_mut_with(a, |b, a| {
        let sum = b.wrapping_add(*a).wrapping_add(9).wrapping_add(k);
        *b = sum.wrapping_mul(3).wrapping_add(k);
    });
}

/// Two arrays that change places, on streams in turn, with writes of the host between.
fn run(seed: u64) {
    let device = open(Settings::new().seed(seed), 1).remove(0);
    let streams: [Stream; 2] = [(); 2].map(|()| device.new_stream().expect("a stream"));
    let (chain, scratch) = (steps(), Temp::shape(SHAPE));
    let ((mut a, mut plain_a), (mut b, mut plain_b)) = (matrix(1), matrix(5));
    for round in 0..12 {
        let (stream, count) = (&streams[round / 2 % 2], 1 + round as u64 % 3);
        let k = 7 * (round as u32 / 4);
        chain.repeat_on(stream, count, (k, &a, &mut b, scratch)).expect("queued");
        (0..count).for_each(|_| apply(k, &plain_a, &mut plain_b));
        if round % 5 == 4 {
            a.host_mut().expect("a guard")[(1, 1)] = 3;
            plain_a[(1, 1)] = 3;
            assert_eq!(*b.host().expect("nothing fails"), plain_b, "round {round}");
        }
        std::mem::swap(&mut a, &mut b);
        std::mem::swap(&mut plain_a, &mut plain_b);
    }
    assert_eq!(*a.host().expect("nothing fails"), plain_a);
    assert_eq!(*b.host().expect("nothing fails"), plain_b);
}

#[test]
fn a_program_with_a_chain_computes_the_same() {
    in_own_process!(run(4));
    let calls = take_graph_calls();
    assert_eq!(calls["InstantiateWithFlags"], 2, "one for each stream: {calls:?}");
    assert_eq!((calls["Launch"], calls["ExecDestroy"]), (24, 2), "{calls:?}");
    assert_clean();
}

#[test]
fn a_program_with_a_chain_computes_the_same_without_graphs() {
    own_process!(WITHOUT_GRAPHS);
    run(4);
    assert!(take_graph_calls().is_empty());
    assert_clean();
}

/// The device has room for one replay's arrays; others are evicted.
#[test]
fn chains_share_a_full_device() {
    let bytes = (4 * SHAPE.0 * SHAPE.1) as u64;
    let settings = Settings::new().page_bytes(0).memory(4 * bytes.next_multiple_of(256)).seed(8);
    let device = in_own_process!(open(settings, 1).remove(0));
    let stream = device.stream();
    let (chain, scratch) = (steps(), Temp::shape(SHAPE));
    let mut pairs: Vec<_> = (0..4).map(|first| (matrix(first), matrix(first + 9))).collect();
    for round in 0..3 {
        for ((a, plain_a), (b, plain_b)) in &mut pairs {
            chain.launch_on(&stream, (round, &*a, &mut *b, scratch)).expect("there is room");
            apply(round, plain_a, plain_b);
        }
    }
    for (_, (b, plain_b)) in &pairs {
        assert_eq!(*b.host().expect("nothing fails"), *plain_b);
    }
    drop((chain, pairs));
    stream.synchronize().expect("nothing fails");
    assert_clean();
}

#[test]
fn what_a_chain_was_to_write_is_lost_with_its_device() {
    let device = in_own_process!(open(Settings::new(), 1).remove(0));
    // SAFETY: the host function accesses no memory.
    let broken = unsafe { Kernel::<(u32, InOut<u32, Ix2>)>::new("broken").cuda(code("broken")) };
    let chain = Chain::<(u32, InOut<u32, Ix2>)>::record("failing", |r, (k, a)| {
        r.launch(&broken, Grid::cover(120), (k, a.read_write()))
    })
    .expect("it is recorded");
    let (stream, (mut a, _)) = (device.stream(), matrix(1));
    drop(a.gpu_mut_on(&stream).expect("an upload"));
    stream.synchronize().expect("nothing fails");
    chain.launch_on(&stream, (1, &mut a)).expect("queued");
    let told = stream.synchronize().expect_err("the device dies").to_string();
    assert!(told.contains("kernel \"broken\" of chain \"failing\""), "{told}");
    let seen = a.host().map(drop);
    assert!(matches!(seen, Err(Error::Lost { .. } | Error::DeviceLost { .. })), "{seen:?}");
    assert_eq!(take_graph_calls()["Launch"], 1);
}
