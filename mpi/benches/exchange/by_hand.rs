//! Exchanges by hand, on MPI's functions and plain vectors.

use mpi_sys as ffi;

/// A part with a halo of one cell, or of the whole part for a line, as a program by hand has it:
/// rows are sent from where they are, columns are packed.
pub(crate) struct ByHand {
    pub(crate) cells: Vec<f64>,
    faces: Vec<Face>,
}

/// What goes to one neighbour, and what comes from it.
struct Face {
    rank: i32,
    tags: [i32; 2],
    sent: Place,
    received: Place,
    packed: [Vec<f64>; 2],
}

/// Elements at one distance from each other.
#[derive(Clone, Copy)]
struct Place {
    first: usize,
    stride: usize,
    len: usize,
}

impl ByHand {
    pub(crate) fn new(
        [rows, columns]: [usize; 2],
        [rank_rows, rank_columns]: [[i32; 2]; 2],
    ) -> Self {
        let width = columns + 2;
        let row = |i: usize| Place { first: i * width + 1, stride: 1, len: columns };
        let column = |j: usize| Place { first: width + j, stride: width, len: rows };
        let faces = vec![
            Face::new(rank_rows[0], [0, 1], row(1), row(0)),
            Face::new(rank_rows[1], [1, 0], row(rows), row(rows + 1)),
            Face::new(rank_columns[0], [2, 3], column(1), column(0)),
            Face::new(rank_columns[1], [3, 2], column(columns), column(columns + 1)),
        ];
        Self { cells: vec![1.0; (rows + 2) * width], faces }
    }

    pub(crate) fn line(len: usize, ranks: [i32; 2]) -> Self {
        let part = |index: usize| Place { first: index * len, stride: 1, len };
        let faces = vec![
            Face::new(ranks[0], [0, 1], part(1), part(0)),
            Face::new(ranks[1], [1, 0], part(1), part(2)),
        ];
        Self { cells: vec![1.0; 3 * len], faces }
    }

    pub(crate) fn exchange(&mut self) {
        let mut requests = Vec::with_capacity(2 * self.faces.len());
        for face in &mut self.faces {
            let memory = face.memory(&mut self.cells, face.received, 1);
            requests.push(receive(memory, face.received.len, face.rank, face.tags[1]));
        }
        for face in &mut self.faces {
            if face.sent.stride > 1 {
                let Place { first, stride, .. } = face.sent;
                let packed = face.packed[0].iter_mut().enumerate();
                packed.for_each(|(at, x)| *x = self.cells[first + at * stride]);
            }
            let memory = face.memory(&mut self.cells, face.sent, 0);
            requests.push(send(memory, face.sent.len, face.rank, face.tags[0]));
        }
        wait(&mut requests);
        for face in self.faces.iter().filter(|face| face.received.stride > 1) {
            let Place { first, stride, .. } = face.received;
            let packed = face.packed[1].iter().enumerate();
            packed.for_each(|(at, x)| self.cells[first + at * stride] = *x);
        }
    }
}

impl Face {
    fn new(rank: i32, tags: [i32; 2], sent: Place, received: Place) -> Self {
        let packed = [vec![0.0; sent.len], vec![0.0; received.len]];
        Self { rank, tags, sent, received, packed }
    }

    /// Where MPI reads or writes.
    fn memory(&mut self, cells: &mut [f64], place: Place, packed: usize) -> *mut f64 {
        match place {
            Place { first, stride: 1, len } => cells[first..first + len].as_mut_ptr(),
            _ => self.packed[packed].as_mut_ptr(),
        }
    }
}

fn receive(to: *mut f64, len: usize, rank: i32, tag: i32) -> ffi::MPI_Request {
    // SAFETY: constants of the C library.
    let (mut request, world) = unsafe { (ffi::RSMPI_REQUEST_NULL, ffi::RSMPI_COMM_WORLD) };
    // SAFETY: as above.
    let double = unsafe { ffi::RSMPI_DOUBLE };
    // SAFETY: MPI runs; `to` has room for `len` elements until `wait`.
    unsafe { ffi::MPI_Irecv(to.cast(), len as i32, double, rank, tag, world, &mut request) };
    request
}

fn send(from: *const f64, len: usize, rank: i32, tag: i32) -> ffi::MPI_Request {
    // SAFETY: constants of the C library.
    let (mut request, world) = unsafe { (ffi::RSMPI_REQUEST_NULL, ffi::RSMPI_COMM_WORLD) };
    // SAFETY: as above.
    let double = unsafe { ffi::RSMPI_DOUBLE };
    // SAFETY: MPI runs; `from` has `len` elements that nothing writes until `wait`.
    unsafe { ffi::MPI_Isend(from.cast(), len as i32, double, rank, tag, world, &mut request) };
    request
}

fn wait(requests: &mut [ffi::MPI_Request]) {
    // SAFETY: a constant of the C library.
    let ignore = unsafe { ffi::RSMPI_STATUSES_IGNORE };
    // SAFETY: MPI runs, and the requests are of it.
    unsafe { ffi::MPI_Waitall(requests.len() as i32, requests.as_mut_ptr(), ignore) };
}
