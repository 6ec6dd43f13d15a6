//! A chain over more arrays than a device holds, in which each backend call fails in turn, either
//! immediately or when its work runs. What is not lost is exact; what a write-back loses is what
//! only the device had, and what was computed from it.

use resident::emulation::Call;
use support::prelude::*;

use crate::each_call::fault;
use crate::seeds::RUNS_LATE;

const ARRAYS: usize = 5;
const LEN: usize = 64;

type Bytes = SmartArray<u8, Ix1>;

/// One step of the chain.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Adds the first array to the second one.
    Add(usize, usize),
    /// Increments part of an array.
    IncrementHalf(usize),
    /// Reads an array on the host.
    Read(usize),
    /// Overwrites an array on the host.
    Overwrite(usize),
    /// Copies an array to the host ahead of its use.
    PrefetchHost(usize),
}

const STEPS: [Step; 15] = [
    Step::Add(0, 1),
    Step::Add(1, 2),
    Step::Add(2, 3),
    Step::IncrementHalf(1),
    Step::PrefetchHost(1),
    Step::Add(3, 4),
    Step::Add(4, 0),
    Step::Read(2),
    Step::Add(1, 2),
    Step::Overwrite(3),
    Step::Add(3, 1),
    Step::Add(0, 2),
    Step::IncrementHalf(4),
    Step::Add(4, 3),
    Step::Add(2, 4),
];

struct Chain {
    device: Device,
    arrays: Vec<Bytes>,
    expected: Vec<[u8; LEN]>,
    /// The number of the call whose work fails, if there is one.
    late: Option<u64>,
    /// The arrays whose contents may be lost.
    doubted: [bool; ARRAYS],
}

impl Chain {
    fn new(emulation: Emulation, late: Option<u64>) -> Self {
        // Room for two arrays, but not for three.
        let device = Device::emulated(emulation.memory(2 * LEN as u64 + LEN as u64 / 2));
        let array = |value| Bytes::from(vec![value; LEN]).named(format!("a{value}"));
        let arrays = (0..ARRAYS as u8).map(array).collect();
        let expected = (0..ARRAYS as u8).map(|value| [value; LEN]).collect();
        Self { device, arrays, expected, late, doubted: [false; ARRAYS] }
    }

    fn try_take(&mut self, step: Step) -> Result<()> {
        let add = Kernel::<(In<u8>, InOut<u8>)>::new("add")
            .host(|_, (x, y)| y.iter_mut().zip(x).for_each(|(y, x)| *y = y.wrapping_add(*x)));
        let increment = Kernel::<(InOut<u8>,)>::new("increment")
            .host(|_, (x,)| x.iter_mut().for_each(|x| *x += 1));
        let (stream, grid) = (self.device.stream(), Grid::cover(LEN));
        match step {
            Step::Add(from, to) => {
                let [from, to] = self.arrays.get_disjoint_mut([from, to]).expect("two arrays");
                add.launch_on(&stream, grid, (&*from, to))
            }
            Step::IncrementHalf(array) => {
                let mut half = self.arrays[array].slice_mut(s![..LEN / 2]);
                increment.launch_on(&stream, grid, (&mut half,))
            }
            Step::Read(array) => {
                let host = self.arrays[array].host()?;
                assert_eq!(host.as_slice().expect("in order"), &self.expected[array], "{step:?}");
                Ok(())
            }
            Step::Overwrite(array) => {
                self.arrays[array].host_overwrite()?.fill(77);
                Ok(())
            }
            Step::PrefetchHost(array) => self.arrays[array].prefetch_host(),
        }
    }

    /// What the step makes of the contents.
    fn model(&mut self, step: Step) {
        match step {
            Step::Add(from, to) => {
                for index in 0..LEN {
                    self.expected[to][index] =
                        self.expected[to][index].wrapping_add(self.expected[from][index]);
                }
                self.doubted[to] |= self.doubted[from];
            }
            Step::IncrementHalf(array) => {
                self.expected[array][..LEN / 2].iter_mut().for_each(|x| *x += 1);
            }
            Step::Overwrite(array) => {
                self.expected[array] = [77; LEN];
                self.doubted[array] = false;
            }
            Step::Read(_) | Step::PrefetchHost(_) => {}
        }
    }

    fn calls(&self) -> Vec<Call> {
        self.device.emulation().expect("it is emulated").calls()
    }

    /// Takes a step, and repeats it if a call was refused.
    fn take(&mut self, step: Step) {
        let before = self.calls().len();
        for attempt in 0.. {
            assert!(attempt < 4, "{step:?} fails for ever");
            let taken = self.try_take(step);
            self.doubt_work_since(before, step);
            match taken {
                Ok(()) => return self.model(step),
                Err(Error::Lost { array, .. }) => {
                    let number = array.trim_matches(['a', '"']).parse::<usize>();
                    assert!(self.doubted[number.expect("a name")], "{step:?}: {array}");
                    // A launch whose argument is lost does nothing.
                    return;
                }
                Err(Error::Backend { .. }) => {}
                Err(error) => panic!("{step:?}: {error}"),
            }
        }
    }

    /// A launch that fails late, or whose upload does, loses what it was to write, and a write-back
    /// that does what only the device had.
    fn doubt_work_since(&mut self, before: usize, step: Step) {
        let calls = self.calls();
        let Some(call) = calls[before..].iter().find(|call| Some(call.number) == self.late) else {
            return;
        };
        match (call.kind, step) {
            (
                CallKind::Launch | CallKind::Upload,
                Step::Add(_, array) | Step::IncrementHalf(array),
            ) => {
                self.doubted[array] = true;
            }
            (CallKind::Download, _) => {
                let of = |number: &usize| *call.label == format!("write-back of \"a{number}\"");
                (0..ARRAYS).filter(of).for_each(|number| self.doubted[number] = true);
            }
            _ => {}
        }
    }

    /// Checks all contents, and returns how many arrays are lost.
    fn finish(self) -> usize {
        let Self { device, arrays, expected, doubted, .. } = self;
        let _told = device.synchronize();
        let mut lost = 0;
        for (number, (array, expected)) in arrays.iter().zip(&expected).enumerate() {
            for attempt in 0.. {
                match array.host() {
                    Ok(host) => {
                        assert_eq!(host.as_slice().expect("in order"), expected, "{number}");
                    }
                    Err(Error::Lost { operation, .. }) => {
                        assert!(doubted[number], "a{number}: {operation}");
                        lost += 1;
                    }
                    Err(Error::Backend { .. }) if attempt < 3 => continue,
                    Err(error) => panic!("a{number}: {error}"),
                }
                break;
            }
        }
        let _told = device.synchronize();
        device.synchronize().expect("each failure is reported once");
        assert_ordered(&device);
        drop(arrays);
        device.synchronize().expect("nothing fails");
        assert_eq!(device.memory().in_use, 0);
        lost
    }
}

/// Runs the chain, and returns its calls, and how many arrays were lost.
fn run(emulation: Emulation, late: Option<u64>) -> (Vec<Call>, usize) {
    let mut chain = Chain::new(emulation, late);
    for step in STEPS {
        chain.take(step);
    }
    (chain.calls(), chain.finish())
}

fn sweep(mode: fn() -> Emulation, late: bool) -> usize {
    let (calls, lost) = run(mode(), None);
    assert_eq!(lost, 0);
    let written_back = calls.iter().filter(|call| call.label.starts_with("write-back of"));
    assert!(written_back.count() >= 5, "the device was full");
    let mut lost_by_write_backs = 0;
    for call in calls.iter().filter(|call| !late || RUNS_LATE.contains(&call.kind)) {
        let (made, lost) = run(mode().fail(fault(call.number, late)), late.then_some(call.number));
        assert!(late || lost == 0, "{call}: a refused call loses nothing");
        // With workers, another run makes other calls.
        let failed = made.iter().find(|made| made.number == call.number);
        if failed.is_some_and(|failed| failed.label.starts_with("write-back of")) {
            lost_by_write_backs += lost;
        }
    }
    lost_by_write_backs
}

const MODES: [fn() -> Emulation; 5] = [
    || Emulation::new().seed(1),
    || Emulation::new().seed(2).pieces(24),
    || Emulation::new().seed(3).page_bytes(4),
    Emulation::new,
    || Emulation::new().pieces(24).poison(false),
];

#[test]
fn refused_calls_on_a_full_device_lose_nothing() {
    for mode in MODES {
        sweep(mode, false);
    }
}

#[test]
fn work_that_fails_late_on_a_full_device_loses_only_what_it_was_to_write() {
    for (number, mode) in MODES.into_iter().enumerate() {
        let lost = sweep(mode, true);
        // On seeded devices work runs late, so that write-backs fail after their source is freed.
        assert!(lost > 0 || number >= 3, "mode {number}");
    }
}

/// A device that knows what launches left out waits for its write-backs, and so loses nothing.
#[test]
fn write_backs_that_fail_late_lose_nothing_on_a_device_that_checks_kernels() {
    for mode in [|| Emulation::new().seed(1).sanitize(true), || Emulation::new().sanitize(true)] {
        assert_eq!(sweep(mode, true), 0);
    }
}
