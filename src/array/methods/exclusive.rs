//! Methods that need exclusive access to an array or a part.

/// Methods that need exclusive access; guards live as long as the borrow of `self`.
macro_rules! exclusive_methods {
    () => {
        /// The host's copy of this part, to be changed. What is stale there comes down first, and
        /// whatever is queued that uses the host's copy is waited for; then the host is the newest
        /// side, and devices bring up what they need of it when they next use it.
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut counts = SmartArray::from(vec![1_u32; 10]);
        /// drop(counts.gpu()?);                                                  // both sides valid
        /// counts.host_mut()?[3] = 7;
        /// assert_eq!(counts.residency().on(&Device::cpu()), Validity::Stale);
        /// assert_eq!(counts.host()?.sum(), 16);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`host`](Self::host).
        #[inline]
        #[track_caller]
        pub fn host_mut(&mut self) -> Result<HostMut<'_, T, D>> {
            self.part().host_mut(Access::ReadWrite, call_site())
        }

        /// The host's copy of this part, to be rewritten: nothing comes down, and all of it counts
        /// as written from now on. Elements that are not rewritten show zeros, old contents or
        /// poison. What is queued that uses the host's copy is waited for. Lost elements have
        /// contents again.
        ///
        /// ```
        /// use resident::{Device, SmartArray};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut frame = SmartArray::<f32, _>::uninit(1000);
        /// drop(frame.gpu_overwrite()?);                                         // newest on the device
        /// frame.host_overwrite()?.fill(0.25);                                   // what was there is of no use any more
        /// assert_eq!(frame.traffic().to_host.bytes, 0);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`OutOfMemory`](crate::Error::OutOfMemory) if the host has no room for a first copy;
        /// [`Backend`](crate::Error::Backend) or [`DeviceLost`](crate::Error::DeviceLost) if work
        /// that uses the host's copy cannot be waited for;
        /// [`InsideKernel`](crate::Error::InsideKernel) if there is such work and it would have to
        /// wait inside a kernel body.
        #[inline]
        #[track_caller]
        pub fn host_overwrite(&mut self) -> Result<HostMut<'_, T, D>> {
            self.part().host_mut(Access::Overwrite, call_site())
        }

        /// The current device's copy of this part, to be changed by foreign work on its default
        /// stream: [`gpu_mut_on`](Self::gpu_mut_on) that stream.
        ///
        /// # Errors
        ///
        /// As [`gpu`](Self::gpu).
        #[inline]
        #[track_caller]
        pub fn gpu_mut(&mut self) -> Result<DeviceMut<'_, T, D>> {
            self.part().gpu_mut_on(Access::ReadWrite, &Part::<D>::current_stream()?, call_site())
        }

        /// The copy of `stream`'s device, to be changed by foreign work on that stream. What is
        /// stale there goes up first; then that device is the newest side, from the moment the
        /// guard is handed out. Work that is queued on the stream while the guard lives comes after
        /// all earlier uses of these bytes, and later uses, wherever they are, come after that
        /// work.
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity};
        ///
        /// let stream = Device::cpu().new_stream()?;
        /// let mut particles = SmartArray::from(vec![[0.0_f32; 4]; 1000]);
        /// {
        ///     let guard = particles.gpu_mut_on(&stream)?;                       // 16,000 bytes go up
        ///     let (address, len) = (guard.address(), guard.len());
        ///     // ... a library queues work on this very stream that changes `len` elements at `address` ...
        /// #     let _ = (address, len);
        /// }                                                                     // says where that work ends
        /// assert_eq!(particles.residency().host(), Validity::Stale);
        /// particles.host()?;                                                    // comes behind it
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`gpu_on`](Self::gpu_on).
        #[inline]
        #[track_caller]
        pub fn gpu_mut_on(&mut self, stream: &Stream) -> Result<DeviceMut<'_, T, D>> {
            self.part().gpu_mut_on(Access::ReadWrite, stream, call_site())
        }

        /// The current device's copy of this part, to be rewritten by foreign work on its default
        /// stream: [`gpu_overwrite_on`](Self::gpu_overwrite_on) that stream.
        ///
        /// # Errors
        ///
        /// As [`gpu_overwrite_on`](Self::gpu_overwrite_on), and
        /// [`NoDevice`](crate::Error::NoDevice) if there is no current device.
        #[inline]
        #[track_caller]
        pub fn gpu_overwrite(&mut self) -> Result<DeviceMut<'_, T, D>> {
            self.part().gpu_mut_on(Access::Overwrite, &Part::<D>::current_stream()?, call_site())
        }

        /// The copy of `stream`'s device, to be rewritten by foreign work on that stream: nothing
        /// goes up, and all of this part counts as written from the moment the guard is handed out.
        /// Elements that are not rewritten show zeros, old contents or poison. Else as
        /// [`gpu_mut_on`](Self::gpu_mut_on). Lost elements have contents again.
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity};
        ///
        /// let device = Device::cpu();
        /// let mut noise = SmartArray::<f32, _>::uninit(1 << 16);
        /// let address = noise.gpu_overwrite_on(&device.stream())?.address();    // for a generator of random numbers, say
        /// assert_eq!(noise.residency().on(&device), Validity::Valid);
        /// assert_eq!(noise.traffic().to_device.bytes, 0);
        /// # let _ = address;
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`OutOfMemory`](crate::Error::OutOfMemory) if the device has no room;
        /// [`TooManyDevices`](crate::Error::TooManyDevices) if the array is on 63 devices already;
        /// [`Backend`](crate::Error::Backend) if a call is refused;
        /// [`DeviceLost`](crate::Error::DeviceLost) if the device died;
        /// [`InsideKernel`](crate::Error::InsideKernel) if it would have to wait inside a kernel
        /// body.
        #[inline]
        #[track_caller]
        pub fn gpu_overwrite_on(&mut self, stream: &Stream) -> Result<DeviceMut<'_, T, D>> {
            self.part().gpu_mut_on(Access::Overwrite, stream, call_site())
        }

        /// Says that the host's copy of this part was changed behind the library's back, through a
        /// pointer that was kept: the host is the newest side then. What is queued that uses the
        /// host's copy is waited for. Numba calls it `mark_changed('host')`, and does not notice a
        /// lost update. Where it can be, take [`host_mut`](Self::host_mut), which needs no such
        /// call.
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut samples = SmartArray::from(vec![0.0_f32; 8]);
        /// let pointer = samples.host_mut()?.as_mut_ptr();                       // given to a driver that goes on writing there
        /// drop(samples.gpu()?);                                                 // both sides valid
        /// // SAFETY: the array keeps its memory, and nobody else looks at it meanwhile.
        /// unsafe { pointer.write(1.5) };
        /// samples.host_changed()?;
        /// assert_eq!(samples.residency().on(&Device::cpu()), Validity::Stale);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`LostUpdate`](crate::Error::LostUpdate) if the host does not hold the newest contents
        /// of all of it (a constant that was never looked at there it does not hold): nothing is
        /// changed then. [`Backend`](crate::Error::Backend) or
        /// [`DeviceLost`](crate::Error::DeviceLost) if work that uses the host's copy cannot be
        /// waited for; [`InsideKernel`](crate::Error::InsideKernel) if it would have to wait inside
        /// a kernel body.
        #[track_caller]
        pub fn host_changed(&mut self) -> Result<()> {
            self.part().host_changed(call_site())
        }

        /// Says that the current device's copy of this part was changed by work on its default
        /// stream that the library does not know of: [`gpu_changed_on`](Self::gpu_changed_on) that
        /// stream.
        ///
        /// # Errors
        ///
        /// As [`gpu_changed_on`](Self::gpu_changed_on), and [`NoDevice`](crate::Error::NoDevice) if
        /// there is no current device.
        #[track_caller]
        pub fn gpu_changed(&mut self) -> Result<()> {
            self.part().gpu_changed_on(&Part::<D>::current_stream()?, call_site())
        }

        /// Says that the copy of `stream`'s device was changed by work on that stream that the
        /// library does not know of and that is queued by now. That device is the newest side then,
        /// and later uses come after that work. Numba calls it `mark_changed('gpu')`. That the work
        /// came after earlier uses on other streams is the caller's affair: where it can be, take
        /// [`gpu_mut_on`](Self::gpu_mut_on), which sees to it.
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity};
        ///
        /// let stream = Device::cpu().stream();
        /// let mut state = SmartArray::from(vec![0_u32; 64]);
        /// let address = state.gpu_mut_on(&stream)?.address();                   // given to a library once, which keeps it
        /// state.host()?;                                                        // both sides valid
        /// // ... the library queues work on `stream` that writes at `address` ...
        /// state.gpu_changed_on(&stream)?;
        /// assert_eq!(state.residency().host(), Validity::Stale);
        /// # let _ = address;
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`LostUpdate`](crate::Error::LostUpdate) if that device does not hold the newest
        /// contents of all of it, and if it never held the array: nothing is changed then.
        /// [`Backend`](crate::Error::Backend) if a call is refused;
        /// [`DeviceLost`](crate::Error::DeviceLost) if the device died;
        /// [`InsideKernel`](crate::Error::InsideKernel) if it would have to wait inside a kernel
        /// body.
        #[track_caller]
        pub fn gpu_changed_on(&mut self, stream: &Stream) -> Result<()> {
            self.part().gpu_changed_on(stream, call_site())
        }

        /// Makes every element `value`, as a constant: nothing is written or moved now, and each
        /// place fills its own copy when it first needs it, which is no transfer. Lost elements
        /// have contents again.
        ///
        /// ```
        /// use resident::{Device, SmartArray, ndarray::s};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut mask = SmartArray::<u8, _>::uninit((480, 640));
        /// mask.fill(0)?;
        /// mask.slice_mut(s![100..200, ..]).fill(1)?;                            // a part is a constant of its own
        /// drop(mask.gpu()?);                                                    // filled there
        /// assert_eq!(mask.host()?.iter().filter(|x| **x == 1).count(), 100 * 640);
        /// assert_eq!(mask.traffic().to_device.count + mask.traffic().to_host.count, 0);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// None today.
        #[track_caller]
        pub fn fill(&mut self, value: T) -> Result<()> {
            self.part().fill(value, call_site());
            Ok(())
        }

        /// Makes every element `value`, and queues the fill of `stream`'s device's copy now; other
        /// places fill theirs when they need it. Nothing is moved.
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
        /// As [`gpu_overwrite_on`](Self::gpu_overwrite_on): the contents are as they were then.
        #[track_caller]
        pub fn fill_on(&mut self, stream: &Stream, value: T) -> Result<()> {
            self.part().fill_on(stream, value, call_site())
        }

        /// Copies the elements of an array or view of the same shape, of whatever axis order.
        /// Nothing moves between host and device. Where this part is newest on a device, and
        /// `source` has a copy on one that it reaches, they are copied there, from device to device
        /// if need be; else on the host if the host has `source`, else on `source`'s device. That
        /// is where this part is newest afterwards. Constants stay constants.
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity, ndarray::s};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut now = SmartArray::from(vec![1.0_f32; 100]);
        /// let mut before = SmartArray::<f32, _>::uninit(100);
        /// drop(now.gpu_mut()?);                                                 // newest on the device
        /// before.assign(&now)?;                                                 // copied there
        /// assert_eq!(before.residency().on(&Device::cpu()), Validity::Valid);
        /// before.slice_mut(s![..10]).assign(&now.slice(s![90..]))?;             // parts too
        /// assert_eq!(now.traffic().to_host.count, 0);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if the shapes differ;
        /// [`Uninitialised`](crate::Error::Uninitialised) or [`Lost`](crate::Error::Lost) if
        /// `source` has parts without contents; [`OutOfMemory`](crate::Error::OutOfMemory) if there
        /// is no room where it is copied; [`TooManyDevices`](crate::Error::TooManyDevices) if this
        /// array is on 63 other devices already; [`Backend`](crate::Error::Backend) if a call is
        /// refused; [`DeviceLost`](crate::Error::DeviceLost) if a device died that is concerned;
        /// [`InsideKernel`](crate::Error::InsideKernel) if it would have to wait inside a kernel
        /// body.
        #[track_caller]
        pub fn assign<E: Dimension>(&mut self, source: &impl AsView<T, E>) -> Result<()> {
            self.part().assign(source.as_view().part(), Target::WhereNewest, call_site())
        }

        /// Copies the elements of an array or view of the same shape to the copy of `stream`'s
        /// device, in that stream's order. What `source` has on another device that this one
        /// reaches is copied from there directly; what it has elsewhere is brought to its own copy
        /// on this device first, which stays.
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity};
        ///
        /// let stream = Device::cpu().stream();
        /// let template = SmartArray::from(vec![1.0_f32; 100]);
        /// let mut work = SmartArray::<f32, _>::uninit(100);
        /// work.assign_on(&stream, &template)?;                                  // `template` goes up once; the copy is made on the device
        /// work.assign_on(&stream, &template)?;
        /// assert_eq!((template.traffic().to_device.count, work.traffic().to_device.count), (1, 0));
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
            self.part().assign(source.as_view().part(), Target::On(stream), call_site())
        }

        /// Writes one element where its newest contents are: on a device if the host does not have
        /// them, else on the host. Nothing is moved; on the host, what is queued that uses this
        /// element is waited for.
        ///
        /// ```
        /// use resident::{Device, SmartArray};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut grid = SmartArray::<f32, _>::zeros((100, 100));
        /// drop(grid.gpu_mut()?);                                                // newest on the device
        /// grid.set((50, 50), 1.0)?;                                             // written there
        /// assert_eq!(grid.traffic().to_host.count, 0);
        /// assert_eq!(grid.get((50, 50))?, 1.0);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if the index lies outside;
        /// [`OutOfMemory`](crate::Error::OutOfMemory) if the host has no room for a first copy;
        /// [`Backend`](crate::Error::Backend) if a call is refused;
        /// [`DeviceLost`](crate::Error::DeviceLost) if a device died that is concerned;
        /// [`InsideKernel`](crate::Error::InsideKernel) if it would have to wait inside a kernel
        /// body.
        #[track_caller]
        pub fn set(&mut self, index: impl IntoDimension<Dim = D>, value: T) -> Result<()> {
            self.part().set(index.into_dimension().slice(), value, call_site())
        }

        /// A part to be written, by ndarray's `s![..]`. It shares the array's coherence: only its
        /// bytes ever move, and writing it makes no other part stale.
        ///
        /// ```
        /// use resident::{Device, SmartArray, ndarray::{Array2, s}};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut image = SmartArray::from(Array2::<u8>::zeros((100, 100)));
        /// drop(image.gpu()?);                                                   // 10,000 bytes go up
        /// image.slice_mut(s![..10, ..]).host_mut()?.fill(255);                  // the device keeps its other 90 rows
        /// drop(image.gpu()?);                                                   // 1,000 bytes go up
        /// assert_eq!(image.traffic().to_device.bytes, 11_000);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `slice_mut`, if an index lies outside.
        #[track_caller]
        pub fn slice_mut<I: SliceArg<D>>(&mut self, info: I) -> SmartViewMut<'_, T, I::OutDim> {
            let part = self.part();
            SmartViewMut::new(part.storage, part.layout.slice(&info))
        }

        /// Up to six disjoint parts at once, by a tuple of ndarray's `s![..]`, as ndarray's
        /// `multi_slice_mut`. Interleaved steps are disjoint too.
        ///
        /// ```
        /// use resident::{Device, Grid, In, Kernel, Out, SmartArray, ndarray::{Ix1, s}};
        ///
        /// let negate = Kernel::<(In<i32, Ix1>, Out<i32, Ix1>)>::new("negate").host(|_grid, (x, mut y)| y.assign(&x.mapv(|x| -x)));
        /// let _here = Device::cpu().enter();
        /// let mut line = SmartArray::from(vec![1, 0, 2, 0, 3, 0]);
        /// let (even, mut odd) = line.multi_slice_mut((s![..;2], s![1..;2]));
        /// negate.launch(Grid::cover(3), (&even, &mut odd))?;                    // one reads what the other does not write
        /// assert_eq!(line.host()?.to_vec(), [1, -1, 2, -2, 3, -3]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `multi_slice_mut`, if two of them share an element or an index lies
        /// outside.
        #[track_caller]
        pub fn multi_slice_mut<'m, M: MultiSlice<'m, T, D>>(&'m mut self, slices: M) -> M::Output {
            let part = self.part();
            slices.views(part.storage, part.layout)
        }

        /// The parts before and from `index` on along an axis, as ndarray's `split_at`. Both may be
        /// used at once, on different streams and by different threads.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::Axis};
        ///
        /// let mut table = SmartArray::<f32, _>::zeros((6, 4));
        /// let (mut head, mut tail) = table.split_at_mut(Axis(0), 2);
        /// assert_eq!((head.shape(), tail.shape()), (&[2, 4][..], &[4, 4][..]));
        /// head.fill(1.0)?;
        /// tail.host_mut()?.fill(2.0);
        /// assert_eq!(table.host()?.sum(), 8.0 + 32.0);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `split_at`, if there is no such axis or `index` lies beyond its end.
        #[track_caller]
        pub fn split_at_mut(
            &mut self,
            axis: Axis,
            index: usize,
        ) -> (SmartViewMut<'_, T, D>, SmartViewMut<'_, T, D>) {
            let part = self.part();
            let (first, second) = part.layout.split_at(axis, index);
            (SmartViewMut::new(part.storage, first), SmartViewMut::new(part.storage, second))
        }
    };
}

pub(super) use exclusive_methods;
