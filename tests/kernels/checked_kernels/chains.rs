//! Chains of checked steps: what one does wrong is found where it was recorded.

use std::sync::LazyLock;

use resident::emulation::{Finding, FindingKind};
use resident::ndarray::Ix1;
use resident::{Chain, CudaSource, Device, Error, In, InOut, Kernel, Out, Signature, SmartArray};
use resident::{Grid, Temp};

use crate::device;

/// `fill` writes the elements of `out` below `end`; `past` adds 1 to those from `at`.
const SOURCE: &str = r#"
    extern "C" __global__ void fill(float *out, int end) {
        int i = threadIdx.x;
        if (i < end) out[i] = i;
    }
    extern "C" __global__ void copy(const float *in, float *out) {
        int i = threadIdx.x;
        out[i] = in[i];
    }
    extern "C" __global__ void past(float *x, int at) {
        x[threadIdx.x + at] += 1;
    }
"#;

const LEN: usize = 32;

type Numbers = SmartArray<f32, Ix1>;
/// `end`, `at`, two outputs and a temporary.
type Checked = Chain<(i32, i32, Out<f32, Ix1>, Out<f32, Ix1>, Temp<f32, Ix1>)>;

fn kernel<S: Signature>(name: &str) -> Kernel<S> {
    static ALL: LazyLock<CudaSource> = LazyLock::new(|| CudaSource::c(SOURCE));
    // SAFETY: the device ends threads before they access what they must not.
    unsafe { Kernel::new(name).cuda(ALL.clone().entry(name)) }
}

/// Fills the temporary below `end`, copies it to the second output and from there to the first, and
/// adds 1 to the second from `at`. With the line before that of the recording.
fn chain() -> (Checked, u32) {
    let fill = kernel::<(Out<f32>, i32)>("fill");
    let copy = kernel::<(In<f32>, Out<f32>)>("copy");
    let past = kernel::<(InOut<f32>, i32)>("past");
    let (grid, line) = (Grid::new(1, LEN as u32), line!());
    let chain = Checked::record("checked", |r, (end, at, first, second, tmp)| {
        r.launch(&fill, grid, (tmp.write(), end))?;
        r.copy(tmp.read(), second.write())?;
        r.launch(&copy, grid, (second.read(), first.write()))?;
        r.launch(&past, grid, (second.read_write(), at))
    });
    (chain.unwrap_or_else(|error| panic!("{error}")), line)
}

fn errors(device: &Device) -> Vec<Finding> {
    let all = device.emulation().expect("it is emulated").findings();
    all.into_iter().filter(|finding| finding.kind.is_error()).collect()
}

#[test]
fn a_step_that_is_wrong_is_found_at_its_line() -> Result<(), Error> {
    let ((chain, line), device) = (chain(), device());
    let stream = device.new_stream()?;
    let (mut first, mut second) = (Numbers::uninit(LEN), Numbers::uninit(LEN));
    let scratch = Temp::shape(LEN);
    let mut replay = |end: usize, at: usize, count| {
        let arguments = (end as i32, at as i32, &mut first, &mut second, scratch);
        chain.repeat_on(&stream, count, arguments)?;
        let failure = device.synchronize().err().map(|error| error.to_string());
        Ok::<_, Error>((failure, first.to_vec(), second.to_vec()))
    };
    for count in [1, 3] {
        let (failure, first, second) = replay(LEN, 0, count)?;
        assert_eq!(failure, None);
        assert_eq!((first?[LEN - 1], &second?[1..4]), (31.0, &[2.0, 3.0, 4.0][..]));
        assert_eq!(errors(&device), []);
    }
    let (failure, first, second) = replay(LEN, 1, 1)?;
    let failure = failure.expect("it is out of bounds");
    let place = format!("chains.rs:{}:", line + 5);
    assert!(failure.contains("kernel \"past\" of chain \"checked\""), "{failure}");
    assert!(failure.contains(&place), "{place} {failure}");
    assert_eq!(first?[1], 1.0, "written before");
    assert!(matches!(second, Err(Error::Lost { .. })), "{second:?}");
    let [found] = &errors(&device)[..] else { panic!("{:?}", errors(&device)) };
    assert_eq!((found.kind, &*found.kernel), (FindingKind::OutOfBounds, "past"));
    Ok(())
}

/// A copy within the device copies what was left out, too.
#[test]
fn what_a_step_leaves_out_is_found_in_the_step_that_reads_it() -> Result<(), Error> {
    let ((chain, line), device) = (chain(), device());
    let (mut first, mut second) = (Numbers::uninit(LEN), Numbers::uninit(LEN));
    let arguments = (LEN as i32 - 4, 0, &mut first, &mut second, Temp::shape(LEN));
    chain.launch_on(&device.stream(), arguments)?;
    let failure = device.synchronize().expect_err("a step reads them").to_string();
    assert!(failure.contains("kernel \"copy\" of chain \"checked\""), "{failure}");
    assert!(failure.contains(&format!("chains.rs:{}:", line + 4)), "{failure}");
    let [found] = &errors(&device)[..] else { panic!("{:?}", errors(&device)) };
    assert_eq!((found.kind, &*found.kernel), (FindingKind::Uninitialised, "copy"));
    assert_eq!(found.left_out_by.as_deref(), Some("fill"));
    Ok(())
}
