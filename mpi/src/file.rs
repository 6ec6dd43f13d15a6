//! A global array in one file: its elements in row-major order, as they are in memory, and nothing
//! else. All processes write and read it at once, each its own cells, through MPI-IO.

use std::ffi::{CStr, CString};
use std::path::Path;

use resident::ndarray::{Dim, Dimension};
use resident::{AsView, Element, SmartArray, bytemuck};

use crate::agreement::agree;
use crate::call::{Access, File, FilePart};
use crate::error::{Error, Result};
use crate::header::Header;
use crate::local::{Decomposition, reserve};
use crate::watchdog::Watchdog;

const WRITE: &str = "Decomposition::write";
const READ: &str = "Decomposition::read";

impl<const N: usize> Decomposition<N>
where
    Dim<[usize; N]>: Dimension,
{
    /// Writes the global array, of the own cells of all processes, to a file: the elements in
    /// row-major order, each as its bytes in memory, without a header. NumPy reads it by
    /// `np.fromfile(path, dtype).reshape(shape)`. All processes call it, with the same path, in a
    /// file system that all of them see. An existing file is overwritten.
    ///
    /// Only own cells are read, and downloaded if they are newest on a device. MPI-IO writes them.
    /// Its calls cannot be left: if they take longer than the time-out, the job ends, so for files
    /// that take longer set `RESIDENT_MPI_TIMEOUT` to more seconds.
    ///
    /// ```no_run
    /// # use resident::{SmartArray, ndarray::Ix2};
    /// # fn main() -> resident_mpi::Result<()> {
    /// let mpi = resident_mpi::init()?;
    /// let plate = mpi.grid([400, 300]).halo(1).build()?;
    /// let now: SmartArray<f64, Ix2> = plate.array(|[i, j]| (i + j) as f64)?;
    /// plate.write(&now, "plate.f64")?;
    /// let again: SmartArray<f64, Ix2> = plate.read("plate.f64")?;
    /// assert_eq!(plate.interior(&again).to_vec()?, plate.interior(&now).to_vec()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// - [`Argument`](Error::Argument) if the array has another shape than this process's part with
    ///   its halo, or the path cannot be passed to C.
    /// - [`Mismatch`](Error::Mismatch) in all processes if one of them writes another type or file,
    ///   or cannot read its cells. No file is opened then.
    /// - [`Mpi`](Error::Mpi) if the file cannot be written, or this MPI has no MPI-IO.
    /// - [`TimedOut`](Error::TimedOut) if a process does not call it within the time-out.
    #[track_caller]
    pub fn write<T: Element>(
        &self,
        array: &impl AsView<T, Dim<[usize; N]>>,
        path: impl AsRef<Path>,
    ) -> Result<()> {
        let cells = self
            .check_shape(WRITE, array)
            .and_then(|()| Ok(self.interior(array).to_vec()?))
            .and_then(|cells| Ok((cells, self.in_file::<T>(WRITE, path.as_ref())?)));
        let (cells, (path, part)) = self.all_ready::<T, _>(WRITE, path.as_ref(), cells)?;
        let _limit = Watchdog::start(WRITE, self.mpi().timeout());
        let mut file = self.open(&path, Access::Write)?;
        file.set_len_bytes(self.len_bytes::<T>())?;
        let is_written = file.write(&part, bytes_of(&cells))?;
        file.close()?;
        if is_written {
            return Ok(());
        }
        let text = format!("{path:?} did not take all elements; look at the space of its disk");
        Err(Error::Argument { operation: WRITE, text })
    }

    /// Reads what [`write`](Self::write) has written: each process its own cells. Halos hold zeros
    /// until an exchange fills them. All processes call it, with the same path.
    ///
    /// # Errors
    ///
    /// - [`Argument`](Error::Argument) if the file has not as many bytes as the global array has.
    /// - [`Mismatch`](Error::Mismatch) in all processes if one of them reads another type or file.
    /// - [`Mpi`](Error::Mpi) if the file cannot be read, or this MPI has no MPI-IO.
    /// - [`TimedOut`](Error::TimedOut) if a process does not call it within the time-out.
    #[track_caller]
    pub fn read<T: Element>(
        &self,
        path: impl AsRef<Path>,
    ) -> Result<SmartArray<T, Dim<[usize; N]>>> {
        let prepared = self.zeros::<T>().and_then(|array| {
            let mut cells = reserve(READ, self.local_shape())?;
            cells.resize(self.local_shape().iter().product(), T::zeroed());
            Ok((array, cells, self.in_file::<T>(READ, path.as_ref())?))
        });
        let (mut array, mut cells, (path, part)) =
            self.all_ready::<T, _>(READ, path.as_ref(), prepared)?;
        let _limit = Watchdog::start(READ, self.mpi().timeout());
        let mut file = self.open(&path, Access::Read)?;
        let (found, expected) = (file.len_bytes()?, self.len_bytes::<T>());
        let is_read = found == expected && file.read(&part, bytes_of_mut(&mut cells))?;
        file.close()?;
        if !is_read {
            let text = format!(
                "{path:?} has {found} bytes, expected {expected}: elements of {} in shape {:?}; \
                 read it with the type and the grid that it was written with",
                std::any::type_name::<T>(),
                self.global_shape()
            );
            return Err(Error::Argument { operation: READ, text });
        }
        self.interior_mut(&mut array).copy_from_slice(&cells)?;
        Ok(array)
    }

    fn open(&self, path: &CStr, access: Access) -> Result<File<'_>> {
        let opened = self.mpi().0.session().open_file(path, access);
        opened.map_err(|error| match error {
            Error::Mpi { call, code, text } => {
                let text = format!(
                    "{text}; {path:?} cannot be opened to {access}: look at the path and its \
                     permissions, and whether this MPI has MPI-IO"
                );
                Error::Mpi { call, code, text }
            }
            error => error,
        })
    }

    /// Waits until all processes are about to do the same with this file. If one of them has an
    /// error, all return errors.
    fn all_ready<T, R>(
        &self,
        operation: &'static str,
        path: &Path,
        prepared: Result<R>,
    ) -> Result<R> {
        let world = &self.mpi().0;
        world.check()?;
        let text = match &prepared {
            Ok(_) => {
                format!("{operation} {}, {}", path.display(), Header::of::<T>(&self.global_shape()))
            }
            Err(error) => format!("{operation}, which failed: {error}"),
        };
        let agreed = agree(world, operation, text);
        let prepared = prepared?;
        agreed?;
        Ok(prepared)
    }

    /// The path, and where this process's own cells are in the file, as MPI counts.
    fn in_file<T>(&self, operation: &'static str, path: &Path) -> Result<(CString, FilePart)> {
        let error = |text| Error::Argument { operation, text };
        let bytes = path.as_os_str().as_encoded_bytes();
        let c_path = CString::new(bytes).map_err(|_| {
            error(format!("the path {} has a zero in it; name another file", path.display()))
        })?;
        let int = |value: usize| {
            i32::try_from(value).map_err(|_| {
                error(format!(
                    "an axis of the grid, of shape {:?}, or an element has more than 2^31 - 1 \
                     cells or bytes, which MPI cannot count; write parts by other means",
                    self.global_shape()
                ))
            })
        };
        let shape = self.global_shape().into_iter().map(int).collect::<Result<_>>()?;
        let ranges = self.blocks().cells(self.rank());
        let part = ranges.into_iter().map(|range| Ok(int(range.start)?..int(range.end)?));
        let mut part: Vec<_> = part.collect::<Result<_>>()?;
        // MPI divides by the size of an element.
        let element_bytes = int(size_of::<T>().max(1))?;
        if size_of::<T>() == 0 {
            part.clear();
        }
        Ok((c_path, FilePart { shape, part, element_bytes }))
    }

    /// The bytes of the global array; saturating, as no file is that long.
    fn len_bytes<T>(&self) -> u64 {
        let shape = self.global_shape().map(|cells| cells as u64);
        shape.into_iter().fold(size_of::<T>() as u64, u64::saturating_mul)
    }
}

fn bytes_of<T: Element>(cells: &[T]) -> &[u8] {
    if size_of::<T>() == 0 { &[] } else { bytemuck::cast_slice(cells) }
}

fn bytes_of_mut<T: Element>(cells: &mut [T]) -> &mut [u8] {
    if size_of::<T>() == 0 { &mut [] } else { bytemuck::cast_slice_mut(cells) }
}
