//! Methods that need only shared access to an array or a part.

/// `$life` is the lifetime of guards: the borrow of `self`, or `'a` for a `SmartView<'a>`. `$part`
/// returns the part with that lifetime.
macro_rules! guard_methods {
    ($life:lifetime, $part:ident) => {
        /// The host's copy of this part, in its shape. Downloads the bytes that are stale on the
        /// host, and returns when the download and all queued work that writes the part are
        /// complete. Then the copies of the host and of the source device are valid. If nothing is
        /// stale, the call copies nothing and uses no device.
        ///
        /// Numba's `SmartArray.get('host')` does the same for whole arrays; this method copies only
        /// the bytes of the part.
        ///
        /// ```
        /// use resident::{Device, SmartArray, ndarray::{Array2, s}};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut field = SmartArray::from(Array2::<f32>::ones((100, 100)));
        /// drop(field.gpu_mut()?);                                   // a kernel would write it
        /// assert_eq!(field.slice(s![7, ..]).host()?.sum(), 100.0);  // downloads 400 bytes
        /// assert_eq!(field.host()?.sum(), 10_000.0);                // downloads the other rows
        /// assert_eq!(field.traffic().to_host.bytes, 100 * 100 * 4);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// - [`Uninitialised`](crate::Error::Uninitialised) if some elements were never written.
        /// - [`Lost`](crate::Error::Lost) if work that should have written some of them failed.
        /// - [`OutOfMemory`](crate::Error::OutOfMemory) if the host has no memory for a first copy.
        /// - [`Backend`](crate::Error::Backend) if the device refuses a call or the copy fails. A
        ///   failed copy loses nothing.
        /// - [`DeviceLost`](crate::Error::DeviceLost) if a device died that has the newest contents
        ///   or whose work the call must wait for.
        /// - [`InsideKernel`](crate::Error::InsideKernel) if the call would have to wait inside a
        ///   kernel body.
        #[doc(alias = "iter")]
        #[doc(alias = "indexed_iter")]
        #[doc(alias = "mapv")]
        #[doc(alias = "as_slice")]
        #[inline]
        #[track_caller]
        pub fn host(&self) -> Result<HostRef<$life, T, D>> {
            self.$part().host(call_site())
        }

        /// The host's copy of this part if it is valid and no queued work writes it, else `None`:
        /// where [`host`](Self::host) would download or wait. Fills in constants. Never copies from
        /// a device.
        ///
        /// ```
        /// use resident::{Device, SmartArray};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut field = SmartArray::from(vec![1.0_f32; 100]);
        /// assert!(field.try_host()?.is_some());
        /// drop(field.gpu_mut()?);                                   // a kernel would write it
        /// assert!(field.try_host()?.is_none());
        /// assert_eq!(field.traffic().to_host.count, 0);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Uninitialised`](crate::Error::Uninitialised), [`Lost`](crate::Error::Lost) and
        /// [`OutOfMemory`](crate::Error::OutOfMemory) as [`host`](Self::host).
        #[track_caller]
        pub fn try_host(&self) -> Result<Option<HostRef<$life, T, D>>> {
            self.$part().try_host(call_site())
        }

        /// The current device's copy of this part, ordered on the current stream: see
        /// [`gpu_on`](Self::gpu_on).
        ///
        /// ```
        /// use resident::{Device, SmartArray};
        ///
        /// let _here = Device::cpu().enter();
        /// let weights = SmartArray::from(vec![0.5_f32; 256]);
        /// let copy = weights.gpu()?;                                // uploads 1,024 bytes
        /// assert_eq!((copy.shape(), copy.device()), (&[256][..], Device::cpu()));
        /// assert_eq!(weights.gpu()?.address(), copy.address());     // moves nothing
        /// assert_eq!(weights.traffic().to_device.count, 1);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`gpu_on`](Self::gpu_on), and [`NoDevice`](crate::Error::NoDevice) if there is no
        /// current device.
        #[inline]
        #[track_caller]
        pub fn gpu(&self) -> Result<DeviceRef<$life, T, D>> {
            self.$part().gpu_on(&Part::<T, D>::current_stream(call_site())?, call_site())
        }

        /// Requests the copy of `stream`'s device, so that external work on that stream (launches
        /// and library calls made outside this crate) can read it. Uploads the bytes that are stale
        /// on the device; the source stays valid. Makes the stream wait for all work that writes
        /// these bytes.
        ///
        /// The host does not wait for the device. It may block for a pending download, for staging
        /// memory, or for device memory. Pageable bytes have been copied to staging memory when the
        /// call returns. If the device is full, the library frees copies there of other arrays that
        /// are also valid on the host.
        ///
        /// ```
        /// use resident::{Device, SmartArray};
        ///
        /// let stream = Device::cpu().new_stream()?;
        /// let signal = SmartArray::from(vec![1.0_f32; 4096]);
        /// let mut spectrum = SmartArray::<f32, _>::uninit(4096);
        /// {
        ///     let input = signal.gpu_on(&stream)?;                  // uploads `signal`
        ///     let output = spectrum.gpu_overwrite_on(&stream)?;     // uploads nothing
        ///     let (from, to, len) = (input.address(), output.address(), input.len());
        ///     // ... a library queues work on `stream` that reads `len` elements at `from` and
        ///     // writes `len` elements at `to` ...
        /// #     let _ = (from, to, len);
        /// }
        /// spectrum.host()?;                                         // waits for that work
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// - [`Uninitialised`](crate::Error::Uninitialised) if some elements were never written.
        /// - [`Lost`](crate::Error::Lost) if work that should have written some of them failed.
        /// - [`OutOfMemory`](crate::Error::OutOfMemory) if the device has no memory left, or the
        ///   host none for staging.
        /// - [`TooManyDevices`](crate::Error::TooManyDevices) if 63 open devices have one already.
        /// - [`Backend`](crate::Error::Backend) if the device refuses a call.
        /// - [`DeviceLost`](crate::Error::DeviceLost) if this device died, or another that has the
        ///   newest contents.
        /// - [`InsideKernel`](crate::Error::InsideKernel) if the call would have to wait inside a
        ///   kernel body.
        #[inline]
        #[track_caller]
        pub fn gpu_on(&self, stream: &Stream) -> Result<DeviceRef<$life, T, D>> {
            self.$part().gpu_on(stream, call_site())
        }
    };
}

/// Copies, now or early.
macro_rules! copy_methods {
    () => {
        /// Uploads this part to `stream`'s device ahead of its use, in that stream's order. The
        /// source stays valid. A later use on any stream waits for the copy, not for later work of
        /// `stream`. With pageable data, the call returns once the data is in staging memory; with
        /// pinned data, and between devices with peer access, it returns immediately. CUDA's
        /// `cudaMemPrefetchAsync` does the same for managed memory.
        ///
        /// ```
        /// use resident::{Device, Grid, InOut, Kernel, SmartArray};
        ///
        /// let double = Kernel::<(InOut<f32>,)>::new("double")
        ///     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
        /// let device = Device::cpu();
        /// let (copies, work) = (device.new_stream()?, device.stream());
        /// let mut tiles = [1.0_f32, 2.0, 3.0].map(|value| SmartArray::from(vec![value; 1000]));
        /// tiles[0].prefetch(&copies)?;
        /// for index in 0..tiles.len() {
        ///     if let Some(next) = tiles.get(index + 1) {
        ///         next.prefetch(&copies)?;                          // overlaps the launch
        ///     }
        ///     double.launch_on(&work, Grid::cover(1000), (&mut tiles[index],))?;
        /// }
        /// assert_eq!(tiles[2].host()?[0], 6.0);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`gpu_on`](Self::gpu_on).
        #[track_caller]
        pub fn prefetch(&self, stream: &Stream) -> Result<()> {
            self.part().prefetch(stream, call_site())
        }

        /// Downloads this part ahead of its use and returns when the copies are queued. They run on
        /// the stream that this thread entered, if it is one of the device; else on the stream that
        /// wrote the part last if it is still busy, else on the default stream. A later
        /// [`host`](Self::host) waits for them. Constants are filled in before the call returns. If
        /// the default stream is the busy one, use [`prefetch_host_on`](Self::prefetch_host_on) to
        /// overlap the copies with its work.
        ///
        /// ```
        /// use resident::{Device, SmartArray};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut result = SmartArray::from(vec![1.0_f32; 1000]);
        /// drop(result.gpu_mut()?);                                  // a kernel would write it
        /// result.prefetch_host()?;                                  // the copy is queued
        /// let other: f32 = (0..1000).map(|number| number as f32).sum();
        /// assert_eq!(result.host()?.sum() + other, 500_500.0);      // moves nothing more
        /// assert_eq!(result.traffic().to_host.count, 1);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`host`](Self::host), except for copies that fail later: the next `host` repeats
        /// them.
        #[track_caller]
        pub fn prefetch_host(&self) -> Result<()> {
            self.part().prefetch_host(None, "prefetch_host", call_site())
        }

        /// Downloads this part ahead of its use, in the order of `stream`: after the work that
        /// wrote the part, and concurrently with later work of other streams. Contents on devices
        /// other than `stream`'s are downloaded as by [`prefetch_host`](Self::prefetch_host).
        /// Returns when the copies are queued. A later [`host`](Self::host) waits for them, and
        /// later writes of the part are ordered after them.
        ///
        /// ```
        /// use resident::{Device, Grid, InOut, Kernel, SmartArray};
        ///
        /// let double = Kernel::<(InOut<f32>,)>::new("double")
        ///     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
        /// let device = Device::cpu();
        /// let (work, copies) = (device.stream(), device.new_stream()?);
        /// let mut tiles = [1.0_f32, 2.0, 3.0].map(|value| SmartArray::from(vec![value; 1000]));
        /// for tile in &mut tiles {
        ///     double.launch_on(&work, Grid::cover(1000), (&mut *tile,))?;
        ///     tile.prefetch_host_on(&copies)?;      // overlaps the next launch
        /// }
        /// assert_eq!(tiles[2].host()?[0], 6.0);
        /// assert_eq!(tiles[2].traffic().to_host.count, 1);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`prefetch_host`](Self::prefetch_host).
        #[track_caller]
        pub fn prefetch_host_on(&self, stream: &Stream) -> Result<()> {
            self.part().prefetch_host(Some(stream), "prefetch_host_on", call_site())
        }

        /// A copy of this part's present contents in separate memory, in the axis order of this
        /// part and without gaps, so that unbroken memory takes one plain copy. Later writes do not
        /// change it, and no residency changes. Contents that are valid on the host are copied
        /// before the call returns. Contents that are valid only on devices are downloaded
        /// asynchronously: on `stream` if it belongs to that device, else as by
        /// [`prefetch_host`](Self::prefetch_host). For example, a program can examine one state of
        /// a simulation while it computes the next. Mapped and managed memory is valid on the host
        /// always: before the host copies it, the call waits for kernels that write it.
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity};
        ///
        /// let stream = Device::cpu().stream();
        /// let mut field = SmartArray::from(vec![1.0_f32; 100]);
        /// drop(field.gpu_mut_on(&stream)?);                 // newest on the device
        /// let earlier = field.snapshot_on(&stream)?;        // queues a copy of 400 bytes
        /// field.fill(0.0)?;                                 // does not wait for the copy
        /// assert_eq!(earlier.wait()?.sum(), 100.0);
        /// assert_eq!(field.residency().host(), Validity::Stale);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`host`](Self::host). [`Pending::wait`](crate::Pending::wait) returns later failures.
        #[track_caller]
        pub fn snapshot_on(&self, stream: &Stream) -> Result<Pending<Array<T, D>>> {
            self.part().snapshot_on(stream, "snapshot_on", call_site())
        }

        /// As [`snapshot_on`](Self::snapshot_on), into memory that the program has and uses again:
        /// overwrites a [`PinnedArray`](crate::PinnedArray), a page-locked array, or a part of one,
        /// of the same shape, with this part's present contents. No residency of this array
        /// changes, and nothing is allocated for the contents. For example, a program can send one
        /// edge after the other to other processes from the same memory.
        ///
        /// If one device has the newest contents, it writes the pinned memory itself, later: on
        /// `stream` if that is one of its streams, else as by
        /// [`prefetch_host`](Self::prefetch_host). The call returns at once, this array may be
        /// changed or dropped meanwhile, and the next access of `to` by the host waits for the
        /// copy. The host then has the newest contents of `to`; if the copy fails later, they are
        /// [`Lost`](crate::Error::Lost).
        ///
        /// Contents that are valid on the host are copied before the call returns. So are those
        /// that are in several places, those whose axes are in another order in `to`, and all if
        /// the memory of `to` is not pinned for the device: the call then waits, and uses memory of
        /// its own meanwhile, unless the host had the contents.
        ///
        /// ```
        /// use resident::{Device, PinnedArray, SmartArray, Validity, ndarray::{Ix2, s}};
        ///
        /// let stream = Device::cpu().stream();
        /// let mut field = SmartArray::<f32, Ix2>::ones((100, 100));
        /// let mut edge = PinnedArray::<f32, _>::uninit(100)?;       // one message, used again
        /// for step in 0..3 {
        ///     drop(field.gpu_mut_on(&stream)?);                     // newest on the device
        ///     field.slice(s![7, ..]).snapshot_into(&stream, &mut edge)?;
        ///     field.fill(step as f32)?;                             // does not wait for the copy
        ///     let expected = if step == 0 { 1.0 } else { step as f32 - 1.0 };
        ///     assert_eq!(edge.host()?.sum(), 100.0 * expected);     // waits for the copy
        /// }
        /// assert_eq!(field.traffic().to_host.bytes, 3 * 400);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if the shapes differ; else as
        /// [`host`](Self::host). `to` is unchanged then, unless the error says how many of its
        /// bytes were already written
        /// ([`CalledAt::written_bytes`](crate::CalledAt::written_bytes)).
        #[track_caller]
        pub fn snapshot_into(&self, stream: &Stream, to: &mut impl AsViewMut<T, D>) -> Result<()> {
            self.part().snapshot_into(stream, &to.as_view_mut().part(), call_site())
        }

        /// A new array with these contents. Each region is copied where it is newest: on a device
        /// where it is valid, else on the host, so nothing is copied between host and device. A
        /// constant is also a constant in the clone, and elements that were never written are
        /// unwritten in the clone too. The clone has the axis order of its source if the source has
        /// no gaps; else it is row-major.
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut state = SmartArray::from(vec![1.0_f32; 1000]);
        /// drop(state.gpu_mut()?);                           // newest on the device
        /// let backup = state.try_clone()?;                  // copied there
        /// assert_eq!(backup.residency().on(&Device::cpu()), Validity::Valid);
        /// assert_eq!(backup.residency().host(), Validity::Absent);
        /// assert_eq!(backup.traffic().to_host.bytes + backup.traffic().to_device.bytes, 0);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// - [`Lost`](crate::Error::Lost) if work that should have written some elements failed.
        /// - [`OutOfMemory`](crate::Error::OutOfMemory) if there is no memory for the clone.
        /// - [`Backend`](crate::Error::Backend) if the device refuses a call.
        /// - [`DeviceLost`](crate::Error::DeviceLost) if the device that has the newest contents
        ///   died.
        /// - [`InsideKernel`](crate::Error::InsideKernel) if the call would have to wait inside a
        ///   kernel body.
        #[track_caller]
        pub fn try_clone(&self) -> Result<SmartArray<T, D>> {
            SmartArray::cloned(self.part(), call_site())
        }

        /// As [`try_clone`](Self::try_clone), in row-major order whatever the order here. NumPy's
        /// `ascontiguousarray`, but always a copy.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::array};
        ///
        /// let table = SmartArray::from(array![[1, 2, 3], [4, 5, 6]]);
        /// assert!(table.t().reshape(6).is_err());           // has no strides
        /// let columns = table.t().to_contiguous()?;
        /// assert_eq!(columns.reshape(6)?.host()?, array![1, 4, 2, 5, 3, 6]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`try_clone`](Self::try_clone).
        #[track_caller]
        pub fn to_contiguous(&self) -> Result<SmartArray<T, D>> {
            SmartArray::cloned_in_order(Order::RowMajor, self.part(), call_site())
        }

        /// As [`to_contiguous`](Self::to_contiguous), in row-major or column-major order. NumPy's
        /// `asfortranarray` with [`Order::F`](ndarray::Order::F), but always a copy.
        ///
        /// # Errors
        ///
        /// As [`try_clone`](Self::try_clone).
        #[track_caller]
        pub fn to_contiguous_in(&self, order: Order) -> Result<SmartArray<T, D>> {
            SmartArray::cloned_in_order(order, self.part(), call_site())
        }

        /// The elements in row-major order, in a vector of their own. Downloads the bytes that are
        /// stale on the host, as [`host`](Self::host).
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::array};
        ///
        /// let table = SmartArray::from(array![[1, 2, 3], [4, 5, 6]]);
        /// assert_eq!(table.t().to_vec()?, [1, 4, 2, 5, 3, 6]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`host`](Self::host). [`OutOfMemory`](crate::Error::OutOfMemory) if the host has no
        /// room for the vector, as for a large view that [`broadcast`](Self::broadcast) made.
        #[track_caller]
        pub fn to_vec(&self) -> Result<Vec<T>> {
            self.part().to_vec(call_site())
        }
    };
}

pub(super) use {copy_methods, guard_methods};
