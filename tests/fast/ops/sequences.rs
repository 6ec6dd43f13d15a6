//! Evenly spaced numbers, as ndarray's.

use ndarray::Array1;
use resident::{Result, SmartArray};
use support::panics::text_of;

#[test]
fn floats_are_ndarrays() -> Result<()> {
    macro_rules! each {
        ($($type:ident),+) => {
            $({
                let ranges = [(0.0, 1.0, 0.1), (5.0, -5.0, -0.3), (1.0, 1.0, 2.0), (0.0, 0.5, 7.0)];
                for (start, end, step) in ranges {
                    let expected = Array1::<$type>::range(start, end, step);
                    assert_eq!(*SmartArray::range(start, end, step).host()?, expected);
                }
                for n in [0, 1, 2, 10, 1000] {
                    let expected = Array1::<$type>::linspace(-1.0, 0.3, n);
                    assert_eq!(*SmartArray::linspace(-1.0, 0.3, n).host()?, expected);
                }
            })+
        };
    }
    each!(f32, f64);
    Ok(())
}

#[test]
fn integers_are_those_of_numpy() -> Result<()> {
    assert_eq!(SmartArray::range(-3, 4, 2).to_vec()?, [-3, -1, 1, 3]);
    assert_eq!(SmartArray::range(-3, 5, 2).to_vec()?, [-3, -1, 1, 3]);
    assert_eq!(SmartArray::range(4_i64, -3, -3).to_vec()?, [4, 1, -2]);
    assert_eq!(SmartArray::range(7_u8, 7, 1).len(), 0);
    let ends = SmartArray::range(i32::MIN, i32::MAX, i32::MAX);
    assert_eq!(ends.to_vec()?, [i32::MIN, -1, i32::MAX - 1]);
    assert_eq!(
        SmartArray::range(0_u64, u64::MAX, 1 << 62).to_vec()?,
        [0, 1 << 62, 1 << 63, 3 << 62]
    );
    assert_eq!(SmartArray::range(250_u8, 255, 3).to_vec()?, [250, 253]);
    Ok(())
}

#[test]
fn steps_that_do_not_lead_to_the_end_panic() {
    let cases: [fn(); 6] = [
        || drop(SmartArray::range(0.0, 1.0, -0.1)),
        || drop(SmartArray::range(0.0, 1.0, 0.0)),
        || drop(SmartArray::range(0.0, f64::NAN, 1.0)),
        || drop(SmartArray::range(0, 5, -1)),
        || drop(SmartArray::range(0_u32, 5, 0)),
        || drop(SmartArray::range(5_u64, 0, 1)),
    ];
    for case in cases {
        let panic = std::panic::catch_unwind(case).expect_err("no such range");
        let expected = "a range whose step does not lead from start to end";
        assert_eq!(text_of(&*panic), Some(expected));
    }
}
