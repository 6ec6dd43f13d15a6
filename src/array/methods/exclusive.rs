//! Methods that need exclusive access to an array or a part.

/// Guards live as long as the borrow of `self`.
macro_rules! exclusive_methods {
    () => {
        /// The host's copy of this part, to change. Downloads the bytes that are stale on the host
        /// and waits for all queued work that uses the host's copy. The host then has the newest
        /// contents, and devices upload what they need at their next use.
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut counts = SmartArray::from(vec![1_u32; 10]);
        /// drop(counts.gpu()?);                              // both sides are valid
        /// counts.host_mut()?[3] = 7;
        /// assert_eq!(counts.residency().on(&Device::cpu()), Validity::Stale);
        /// assert_eq!(counts.host()?.sum(), 16);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`host`](crate::SmartArray::host).
        #[doc(alias = "iter_mut")]
        #[doc(alias = "map_inplace")]
        #[doc(alias = "mapv_inplace")]
        #[doc(alias = "as_slice_mut")]
        #[inline]
        #[track_caller]
        pub fn host_mut(&mut self) -> Result<HostMut<'_, T, D>> {
            self.part().host_mut(Access::ReadWrite, call_site())
        }

        /// The host's copy of this part, to overwrite. Downloads nothing, and marks the whole part
        /// as written, including elements that were lost. Write every element: the others have
        /// earlier contents of the same array, or zeros. Waits for queued work that uses the host's
        /// copy.
        ///
        /// ```
        /// use resident::{Device, SmartArray};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut frame = SmartArray::<f32, _>::uninit(1000);
        /// drop(frame.gpu_overwrite()?);                     // newest on the device
        /// frame.host_overwrite()?.fill(0.25);               // the old contents do not matter
        /// assert_eq!(frame.traffic().to_host.bytes, 0);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// - [`OutOfMemory`](crate::Error::OutOfMemory) if the host has no memory for a first copy.
        /// - [`Backend`](crate::Error::Backend) or [`DeviceLost`](crate::Error::DeviceLost) if
        ///   waiting for work that uses the host's copy fails.
        /// - [`InsideKernel`](crate::Error::InsideKernel) if the call would have to wait for such
        ///   work inside a kernel body.
        #[inline]
        #[track_caller]
        pub fn host_overwrite(&mut self) -> Result<HostMut<'_, T, D>> {
            self.part().host_mut(Access::Overwrite, call_site())
        }

        /// Requests the current device's copy of this part, so that external work on the current
        /// stream can change it: see [`gpu_mut_on`](Self::gpu_mut_on).
        ///
        /// # Errors
        ///
        /// As [`gpu`](crate::SmartArray::gpu).
        #[inline]
        #[track_caller]
        pub fn gpu_mut(&mut self) -> Result<DeviceMut<'_, T, D>> {
            self.part().gpu_mut_on(
                Access::ReadWrite,
                &Part::<T, D>::current_stream(call_site())?,
                call_site(),
            )
        }

        /// Requests the copy of `stream`'s device, so that external work on that stream (launches
        /// and library calls made outside this crate) can change it. Uploads the bytes that are
        /// stale on the device. The device has the newest contents from the moment the guard is
        /// created. Work queued on the stream while the guard lives is ordered after all earlier
        /// uses of these bytes, and all later uses, on any stream or on the host, are ordered after
        /// that work.
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity};
        ///
        /// let stream = Device::cpu().new_stream()?;
        /// let mut particles = SmartArray::from(vec![[0.0_f32; 4]; 1000]);
        /// {
        ///     let guard = particles.gpu_mut_on(&stream)?;   // uploads 16,000 bytes
        ///     let (address, len) = (guard.address(), guard.len());
        ///     // ... a library queues work on `stream` that changes `len` elements there ...
        /// #     let _ = (address, len);
        /// }                                                 // the end of that work
        /// assert_eq!(particles.residency().host(), Validity::Stale);
        /// particles.host()?;                                // waits for it
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`gpu_on`](crate::SmartArray::gpu_on).
        #[inline]
        #[track_caller]
        pub fn gpu_mut_on(&mut self, stream: &Stream) -> Result<DeviceMut<'_, T, D>> {
            self.part().gpu_mut_on(Access::ReadWrite, stream, call_site())
        }

        /// Requests the current device's copy of this part, so that external work on the current
        /// stream can overwrite it: see [`gpu_overwrite_on`](Self::gpu_overwrite_on).
        ///
        /// # Errors
        ///
        /// As [`gpu_overwrite_on`](Self::gpu_overwrite_on), and
        /// [`NoDevice`](crate::Error::NoDevice) if there is no current device.
        #[inline]
        #[track_caller]
        pub fn gpu_overwrite(&mut self) -> Result<DeviceMut<'_, T, D>> {
            self.part().gpu_mut_on(
                Access::Overwrite,
                &Part::<T, D>::current_stream(call_site())?,
                call_site(),
            )
        }

        /// Requests the copy of `stream`'s device, so that external work on that stream (launches
        /// and library calls made outside this crate) can overwrite it. Uploads nothing, and marks
        /// the whole part as written when the guard is created, including elements that were lost.
        /// The work must write every element: the others have earlier contents of the same array,
        /// or zeros; on a GPU they have whatever its memory held. Order is as for
        /// [`gpu_mut_on`](Self::gpu_mut_on).
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity};
        ///
        /// let device = Device::cpu();
        /// let mut noise = SmartArray::<f32, _>::uninit(1 << 16);
        /// let address = noise.gpu_overwrite_on(&device.stream())?.address();
        /// // ... a generator of random numbers queues its work ...
        /// assert_eq!(noise.residency().on(&device), Validity::Valid);
        /// assert_eq!(noise.traffic().to_device.bytes, 0);
        /// # let _ = address;
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// - [`OutOfMemory`](crate::Error::OutOfMemory) if the device has no memory left.
        /// - [`TooManyDevices`](crate::Error::TooManyDevices) if 63 open devices have one already.
        /// - [`Backend`](crate::Error::Backend) if the device refuses a call.
        /// - [`DeviceLost`](crate::Error::DeviceLost) if the device died.
        /// - [`InsideKernel`](crate::Error::InsideKernel) if the call would have to wait inside a
        ///   kernel body.
        #[inline]
        #[track_caller]
        pub fn gpu_overwrite_on(&mut self, stream: &Stream) -> Result<DeviceMut<'_, T, D>> {
            self.part().gpu_mut_on(Access::Overwrite, stream, call_site())
        }

        /// Declares that other code changed the host's copy of this part through a pointer, without
        /// a guard. The host then has the newest contents. Waits for queued work that uses the
        /// host's copy. Numba calls this operation `mark_changed('host')`, but does not detect lost
        /// updates. Prefer [`host_mut`](Self::host_mut), after which no such call is needed.
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut samples = SmartArray::from(vec![0.0_f32; 8]);
        /// let pointer = samples.host_mut()?.as_mut_ptr();   // a driver keeps it to write there
        /// drop(samples.gpu()?);                             // both sides are valid
        /// // SAFETY: the array keeps its memory, and nothing else accesses it at the same time.
        /// unsafe { pointer.write(1.5) };
        /// samples.host_changed()?;
        /// assert_eq!(samples.residency().on(&Device::cpu()), Validity::Stale);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// - [`LostUpdate`](crate::Error::LostUpdate) if the host does not have the newest contents
        ///   of the whole part; nothing changes then. A constant that the host has never read does
        ///   not count as contents of the host.
        /// - [`Backend`](crate::Error::Backend) or [`DeviceLost`](crate::Error::DeviceLost) if
        ///   waiting for work that uses the host's copy fails.
        /// - [`InsideKernel`](crate::Error::InsideKernel) if the call would have to wait inside a
        ///   kernel body.
        #[track_caller]
        pub fn host_changed(&mut self) -> Result<()> {
            self.part().host_changed(call_site())
        }

        /// Declares that external work on the current stream changed the current device's
        /// copy of this part: see [`gpu_changed_on`](Self::gpu_changed_on).
        ///
        /// # Errors
        ///
        /// As [`gpu_changed_on`](Self::gpu_changed_on), and [`NoDevice`](crate::Error::NoDevice) if
        /// there is no current device.
        #[track_caller]
        pub fn gpu_changed(&mut self) -> Result<()> {
            self.part().gpu_changed_on(&Part::<T, D>::current_stream(call_site())?, call_site())
        }

        /// Declares that external work, already queued on `stream`, changes the copy of the
        /// stream's device. That device then has the newest contents, and later uses are ordered
        /// after that work. Numba calls this `mark_changed('gpu')`. The caller must order the work
        /// after earlier uses on other streams. Prefer [`gpu_mut_on`](Self::gpu_mut_on), which does
        /// this itself.
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity};
        ///
        /// let stream = Device::cpu().stream();
        /// let mut state = SmartArray::from(vec![0_u32; 64]);
        /// let address = state.gpu_mut_on(&stream)?.address();       // a library keeps it
        /// state.host()?;                                            // both sides are valid
        /// // ... the library queues work on `stream` that writes at `address` ...
        /// state.gpu_changed_on(&stream)?;
        /// assert_eq!(state.residency().host(), Validity::Stale);
        /// # let _ = address;
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// - [`LostUpdate`](crate::Error::LostUpdate) if the device does not have the newest
        ///   contents of the whole part, or never had a copy; nothing changes then.
        /// - [`Backend`](crate::Error::Backend) if the device refuses a call.
        /// - [`DeviceLost`](crate::Error::DeviceLost) if the device died.
        /// - [`InsideKernel`](crate::Error::InsideKernel) if the call would have to wait inside a
        ///   kernel body.
        #[track_caller]
        pub fn gpu_changed_on(&mut self, stream: &Stream) -> Result<()> {
            self.part().gpu_changed_on(stream, call_site())
        }

        /// Makes this part a constant: every element is `value`, including elements that were lost.
        /// The call itself writes and copies no elements. The host's copy and each device's copy
        /// are filled in place at their next use; a fill is not a transfer.
        ///
        /// ```
        /// use resident::{Device, SmartArray, ndarray::s};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut mask = SmartArray::<u8, _>::uninit((480, 640));
        /// mask.fill(0)?;
        /// mask.slice_mut(s![100..200, ..]).fill(1)?;        // a part can be another constant
        /// drop(mask.gpu()?);                                // the device fills its copy
        /// assert_eq!(mask.host()?.iter().filter(|x| **x == 1).count(), 100 * 640);
        /// assert_eq!(mask.traffic().to_device.count + mask.traffic().to_host.count, 0);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if the part is one of a
        /// [`reinterpret_mut`](crate::SmartArray::reinterpret_mut) view and cuts a number of the
        /// array.
        #[track_caller]
        pub fn fill(&mut self, value: T) -> Result<()> {
            self.part().fill(value, call_site())
        }

        /// Forgets the contents of this part: no side has them any more, so nothing is copied back
        /// or written to make room, and reading them is
        /// [`Uninitialised`](crate::Error::Uninitialised) until they are written again. Memory
        /// stays. Neither copies nor waits; uses no device. As StarPU's `invalidate`. The contents
        /// of a [`DeviceArray`](crate::DeviceArray) are never copied to make room, so it has no
        /// such method.
        ///
        /// ```
        /// use resident::{Device, Error, SmartArray, Validity};
        ///
        /// let device = Device::cpu();
        /// let mut scratch = SmartArray::<f32, _>::uninit(1000);
        /// drop(scratch.gpu_overwrite_on(&device.stream())?);    // a kernel would write it
        /// scratch.discard();
        /// assert!(matches!(scratch.host(), Err(Error::Uninitialised { .. })));
        /// scratch.release_on(&device)?;                         // downloads nothing
        /// assert_eq!(scratch.traffic().to_host.bytes, 0);
        /// # Ok::<(), resident::Error>(())
        /// ```
        #[track_caller]
        pub fn discard(&mut self) {
            self.part().discard(call_site());
        }

        /// As [`fill`](Self::fill), and queues the fill of the copy on `stream`'s device now.
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity};
        ///
        /// let stream = Device::cpu().stream();
        /// let mut sums = SmartArray::<f64, _>::uninit(100);
        /// sums.fill_on(&stream, 0.0)?;
        /// assert_eq!(sums.residency().on(&Device::cpu()), Validity::Valid);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`gpu_overwrite_on`](Self::gpu_overwrite_on). Contents are unchanged then, unless the
        /// error says how many bytes were already written
        /// ([`CalledAt::written_bytes`](crate::CalledAt::written_bytes)): a GPU's driver may take
        /// several calls for a part with gaps, and refuse a later one. A repeated call writes all.
        #[track_caller]
        pub fn fill_on(&mut self, stream: &Stream, value: T) -> Result<()> {
            self.part().fill_on(stream, value, call_site())
        }

        /// Copies the elements of an array or view, in any axis order. A source of another shape is
        /// repeated along axes of length 1 and new first axes, as ndarray's `assign` does. Nothing
        /// is copied between host and device. The copy is made
        ///
        /// - on the device where this part is newest, if `source` has a copy there or on a device
        ///   to which that device has peer access;
        /// - else on the host, if `source` is valid there;
        /// - else on `source`'s device.
        ///
        /// Afterwards this part is newest at that place. Constants stay constants.
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity, ndarray::s};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut now = SmartArray::from(vec![1.0_f32; 100]);
        /// let mut before = SmartArray::<f32, _>::uninit(100);
        /// drop(now.gpu_mut()?);                                     // newest on the device
        /// before.assign(&now)?;                                     // copied there
        /// assert_eq!(before.residency().on(&Device::cpu()), Validity::Valid);
        /// before.slice_mut(s![..10]).assign(&now.slice(s![90..]))?; // parts too
        /// assert_eq!(now.traffic().to_host.count, 0);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// - [`Shape`](crate::Error::Shape) if `source` has another shape, and does not broadcast
        ///   to this one.
        /// - [`Uninitialised`](crate::Error::Uninitialised) or [`Lost`](crate::Error::Lost) if some
        ///   elements of `source` have no contents.
        /// - [`OutOfMemory`](crate::Error::OutOfMemory) if there is no memory where the copy is
        ///   made.
        /// - [`TooManyDevices`](crate::Error::TooManyDevices) if 63 other devices have a copy of
        ///   this array already.
        /// - [`Backend`](crate::Error::Backend) if a device refuses a call.
        /// - [`DeviceLost`](crate::Error::DeviceLost) if a device that takes part died.
        /// - [`InsideKernel`](crate::Error::InsideKernel) if the call would have to wait inside a
        ///   kernel body.
        ///
        /// The contents of this part are unchanged then, unless the error says how many bytes were
        /// already written ([`CalledAt::written_bytes`](crate::CalledAt::written_bytes)). This can
        /// only be so if `source` is a broadcast view, if its parts are newest on several devices,
        /// or, on a GPU, if a part has gaps or another axis order: such copies take several
        /// operations, of which a later one may be refused. A repeated call writes all.
        #[track_caller]
        pub fn assign<E: Dimension>(&mut self, source: &impl AsView<T, E>) -> Result<()> {
            let source = source.as_view();
            self.part().assign_broadcast(source.part(), Target::WhereNewest, call_site())
        }

        /// Copies the elements of an array or view of the same shape to the copy on `stream`'s
        /// device, in that stream's order. Contents of `source` on a device to which `stream`'s
        /// device has peer access are copied directly. Other contents are first copied into
        /// `source`'s own copy on `stream`'s device, where they stay valid.
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity};
        ///
        /// let stream = Device::cpu().stream();
        /// let template = SmartArray::from(vec![1.0_f32; 100]);
        /// let mut work = SmartArray::<f32, _>::uninit(100);
        /// work.assign_on(&stream, &template)?;      // uploads `template` once
        /// work.assign_on(&stream, &template)?;
        /// assert_eq!(template.traffic().to_device.count, 1);
        /// assert_eq!(work.traffic().to_device.count, 0);
        /// assert_eq!(work.residency().host(), Validity::Absent);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`assign`](Self::assign).
        #[track_caller]
        pub fn assign_on<E: Dimension>(
            &mut self,
            stream: &Stream,
            source: &impl AsView<T, E>,
        ) -> Result<()> {
            let source = source.as_view();
            self.part().assign_broadcast(source.part(), Target::On(stream), call_site())
        }

        /// Writes one element where it is newest: on the host if the element is valid there, else
        /// on a device. Copies nothing between host and device. On the host, waits for queued work
        /// that uses this element.
        ///
        /// ```
        /// use resident::{Device, SmartArray};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut grid = SmartArray::<f32, _>::zeros((100, 100));
        /// drop(grid.gpu_mut()?);                            // newest on the device
        /// grid.set((50, 50), 1.0)?;                         // written there
        /// assert_eq!(grid.traffic().to_host.count, 0);
        /// assert_eq!(grid.get((50, 50))?, 1.0);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// The element is unchanged then.
        ///
        /// - [`Shape`](crate::Error::Shape) if the index is out of bounds.
        /// - [`OutOfMemory`](crate::Error::OutOfMemory) if the host has no memory for a first copy.
        /// - [`Backend`](crate::Error::Backend) if a device refuses a call.
        /// - [`DeviceLost`](crate::Error::DeviceLost) if a device that takes part died.
        /// - [`InsideKernel`](crate::Error::InsideKernel) if the call would have to wait inside a
        ///   kernel body.
        #[track_caller]
        pub fn set(&mut self, index: impl IntoDimension<Dim = D>, value: T) -> Result<()> {
            self.part().set(None, index.into_dimension().slice(), value, call_site())
        }

        /// Overwrites the elements with those of a slice, in row-major order. Downloads nothing;
        /// the host then has the newest contents.
        ///
        /// ```
        /// use resident::SmartArray;
        ///
        /// let mut samples = SmartArray::<f32, _>::uninit(4);
        /// samples.copy_from_slice(&[0.5, 1.0, 1.5, 2.0])?;
        /// assert_eq!(samples.host()?.sum(), 5.0);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if the slice has another number of elements; else as
        /// [`host_overwrite`](Self::host_overwrite). The contents are then unchanged.
        #[track_caller]
        pub fn copy_from_slice(&mut self, elements: &[T]) -> Result<()> {
            self.part().copy_from_slice(elements, call_site())
        }
    };
}

pub(super) use exclusive_methods;
