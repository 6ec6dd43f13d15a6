//! Messages from process to process.

use resident::ndarray::{Array, Array2, Ix2, s};
use resident::{Device, Emulation, SmartArray};

use crate::launch::run;

#[test]
fn a_ring_of_whole_arrays() {
    run(4, |mpi| {
        let (next, last) = ((mpi.rank() + 1) % 4, (mpi.rank() + 3) % 4);
        let own = SmartArray::from(vec![mpi.rank() as f64; 1000]);
        let mut other = SmartArray::<f64, _>::uninit(1000);
        let sending = mpi.isend(&own, next, 3).unwrap();
        mpi.recv(&mut other, last, 3).unwrap();
        sending.wait().unwrap();
        assert_eq!(other.to_vec().unwrap(), vec![last as f64; 1000]);
    });
}
