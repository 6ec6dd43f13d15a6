//! Methods that need only shared access to an array or a part.

/// Methods that need only shared access. `$life` is how long guards live: the borrow of `self`, or
/// for a `SmartView<'a>` all of `'a`.
macro_rules! shared_methods {
    ($life:lifetime) => {
        /// The host's copy of this part, in its shape. What is stale there comes down first, and
        /// the call returns once it is there and whatever was queued to write it is over. Both
        /// sides are valid then. Where nothing is stale nothing moves, and no device is asked.
        ///
        /// Numba's `SmartArray.get('host')` does the same for whole arrays; here only the bytes of
        /// the part come down.
        ///
        /// ```
        /// use resident::{Device, SmartArray, ndarray::{Array2, s}};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut field = SmartArray::from(Array2::<f32>::ones((100, 100)));
        /// drop(field.gpu_mut()?);                                               // a kernel would write all of it now
        /// assert_eq!(field.slice(s![7, ..]).host()?.sum(), 100.0);              // one row comes down: 400 bytes
        /// assert_eq!(field.host()?.sum(), 10_000.0);                            // and then the other rows
        /// assert_eq!(field.traffic().to_host.bytes, 100 * 100 * 4);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Uninitialised`](crate::Error::Uninitialised) if some of it was never written;
        /// [`Lost`](crate::Error::Lost) if work failed that was to write it;
        /// [`OutOfMemory`](crate::Error::OutOfMemory) if the host has no room for a first copy;
        /// [`Backend`](crate::Error::Backend) if a call is refused or the copy fails, which loses
        /// nothing; [`DeviceLost`](crate::Error::DeviceLost) if a device died that has the newest
        /// contents, or that has to be waited for; [`InsideKernel`](crate::Error::InsideKernel) if
        /// it would have to wait inside a kernel body.
        #[inline]
        #[track_caller]
        pub fn host(&self) -> Result<HostRef<$life, T, D>> {
            self.part().host(call_site())
        }

        /// The current device's copy of this part, ordered on its default stream:
        /// [`gpu_on`](Self::gpu_on) that stream.
        ///
        /// ```
        /// use resident::{Device, SmartArray};
        ///
        /// let _here = Device::cpu().enter();
        /// let weights = SmartArray::from(vec![0.5_f32; 256]);
        /// let copy = weights.gpu()?;                                            // 1,024 bytes go up
        /// assert_eq!((copy.shape(), copy.device()), (&[256][..], Device::cpu()));
        /// assert_eq!(weights.gpu()?.address(), copy.address());                 // nothing moves; the address stays
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
            self.part().gpu_on(&Part::<D>::current_stream()?, call_site())
        }

        /// The copy of `stream`'s device, to be read by foreign work on that stream: launches and
        /// library calls that this crate does not know of. What is stale there goes up first, and
        /// both sides are valid then. The stream is ordered behind whatever writes these bytes. The
        /// host does not wait for that; it waits for what is still on its way to its own copy, for
        /// staging memory, and for room. From ordinary memory the bytes of an upload are in staging
        /// memory when the call returns.
        ///
        /// A device that is full first lets go of copies of other arrays that the host has as well.
        ///
        /// ```
        /// use resident::{Device, SmartArray};
        ///
        /// let stream = Device::cpu().new_stream()?;
        /// let signal = SmartArray::from(vec![1.0_f32; 4096]);
        /// let mut spectrum = SmartArray::<f32, _>::uninit(4096);
        /// {
        ///     let (input, output) = (signal.gpu_on(&stream)?, spectrum.gpu_overwrite_on(&stream)?);      // only `signal` goes up
        ///     let (from, to, len) = (input.address(), output.address(), input.len());
        ///     // ... a library queues work on this very stream that reads `len` elements at `from` and writes them at `to` ...
        /// #     let _ = (from, to, len);
        /// }
        /// spectrum.host()?;                                                     // comes behind that work
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Uninitialised`](crate::Error::Uninitialised) if some of it was never written;
        /// [`Lost`](crate::Error::Lost) if work failed that was to write it;
        /// [`OutOfMemory`](crate::Error::OutOfMemory) if the device has no room, or the host none
        /// to stage in; [`TooManyDevices`](crate::Error::TooManyDevices) if the array is on 63
        /// devices already; [`Backend`](crate::Error::Backend) if a call is refused;
        /// [`DeviceLost`](crate::Error::DeviceLost) if this device died, or another that has the
        /// newest contents; [`InsideKernel`](crate::Error::InsideKernel) if it would have to wait
        /// inside a kernel body.
        #[inline]
        #[track_caller]
        pub fn gpu_on(&self, stream: &Stream) -> Result<DeviceRef<$life, T, D>> {
            self.part().gpu_on(stream, call_site())
        }

        /// Brings this part to `stream`'s device ahead of its use, in that stream's order. Both
        /// sides are valid then, and a later use on any stream comes behind the copy, and not
        /// behind what was queued on `stream` after it. Returns when the bytes of ordinary memory
        /// are in staging memory, and at once for page-locked memory and for what another device
        /// has that this one reaches. CUDA's `cudaMemPrefetchAsync` does the like for managed
        /// memory.
        ///
        /// ```
        /// use resident::{Device, Grid, InOut, Kernel, SmartArray};
        ///
        /// let double = Kernel::<(InOut<f32>,)>::new("double").host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
        /// let device = Device::cpu();
        /// let (copies, work) = (device.new_stream()?, device.stream());
        /// let mut tiles = [1.0_f32, 2.0, 3.0].map(|value| SmartArray::from(vec![value; 1000]));
        /// tiles[0].prefetch(&copies)?;
        /// for index in 0..tiles.len() {
        ///     if let Some(next) = tiles.get(index + 1) {
        ///         next.prefetch(&copies)?;                                      // goes up while this one is worked on
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

        /// Brings this part to the host ahead of its use. Returns when the copies are queued: on
        /// the stream that wrote the part last, while that is still at work, else on the device's
        /// default stream. A later [`host`](Self::host) waits for the rest. Parts that are
        /// constants are filled in here. Where the default stream is the one that works, let the
        /// copies overlap it on a stream of their own:
        /// [`prefetch_host_on`](Self::prefetch_host_on).
        ///
        /// ```
        /// use resident::{Device, SmartArray};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut result = SmartArray::from(vec![1.0_f32; 1000]);
        /// drop(result.gpu_mut()?);                                              // a kernel would write it
        /// result.prefetch_host()?;                                              // on its way
        /// let other: f32 = (0..1000).map(|number| number as f32).sum();         // meanwhile
        /// assert_eq!(result.host()?.sum() + other, 500_500.0);                  // nothing more comes down
        /// assert_eq!(result.traffic().to_host.count, 1);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`host`](Self::host), but for copies that fail later: the next `host` repeats them.
        #[track_caller]
        pub fn prefetch_host(&self) -> Result<()> {
            self.part().prefetch_host(None, "prefetch_host", call_site())
        }

        /// Brings this part to the host ahead of its use, in the order of `stream`: behind what
        /// wrote the part, and beside whatever other streams go on to do. What is on other devices
        /// than `stream`'s comes down as for [`prefetch_host`](Self::prefetch_host). Returns when
        /// the copies are queued; a later [`host`](Self::host) waits for the rest, and what writes
        /// the part later comes behind them.
        ///
        /// ```
        /// use resident::{Device, Grid, InOut, Kernel, SmartArray};
        ///
        /// let double = Kernel::<(InOut<f32>,)>::new("double").host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
        /// let device = Device::cpu();
        /// let (work, copies) = (device.stream(), device.new_stream()?);
        /// let mut tiles = [1.0_f32, 2.0, 3.0].map(|value| SmartArray::from(vec![value; 1000]));
        /// for tile in &mut tiles {
        ///     double.launch_on(&work, Grid::cover(1000), (&mut *tile,))?;
        ///     tile.prefetch_host_on(&copies)?;                                  // comes down while the next one is worked on
        /// }
        /// assert_eq!(tiles[2].host()?[0], 6.0);
        /// assert_eq!(tiles[2].traffic().to_host.count, 1);                      // nothing more came down
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

        /// A copy of this part as it is at this point of the program, in memory of its own with the
        /// first axis slowest. Later writes do not change it, and no residency changes. What the
        /// host has is copied here and now; what only devices have comes down asynchronously, on
        /// `stream` if it is of that device, else as for [`prefetch_host`](Self::prefetch_host).
        /// Use it to look at a state while the next one is computed.
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity};
        ///
        /// let stream = Device::cpu().stream();
        /// let mut field = SmartArray::from(vec![1.0_f32; 100]);
        /// drop(field.gpu_mut_on(&stream)?);                                     // newest on the device
        /// let earlier = field.snapshot_on(&stream)?;                            // on its way: 400 bytes
        /// field.fill(0.0)?;                                                     // does not wait for it, nor change it
        /// assert_eq!(earlier.wait()?.sum(), 100.0);
        /// assert_eq!(field.residency().host(), Validity::Stale);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`host`](Self::host); what fails later is told by
        /// [`Pending::wait`](crate::Pending::wait).
        #[track_caller]
        pub fn snapshot_on(&self, stream: &Stream) -> Result<Pending<Array<T, D>>> {
            self.part().snapshot_on(Some(stream), "snapshot_on", call_site())
        }

        /// One element, read where it is newest; residency is left as it is. From a device its
        /// bytes alone come down, and the call waits for them: for more than a few elements take
        /// [`host`](Self::host) of a part.
        ///
        /// ```
        /// use resident::{Device, SmartArray, ndarray::Array2};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut table = SmartArray::from(Array2::from_shape_fn((3, 4), |(row, column)| (10 * row + column) as u32));
        /// assert_eq!(table.get([2, 1])?, 21);                                   // from the host
        /// drop(table.gpu_mut()?);
        /// assert_eq!(table.get((2, 1))?, 21);                                   // from the device: four bytes
        /// assert_eq!(table.traffic().to_host.bytes, 4);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if the index lies outside; else as [`host`](Self::host).
        #[track_caller]
        pub fn get(&self, index: impl IntoDimension<Dim = D>) -> Result<T> {
            self.part().get(index.into_dimension().slice(), call_site())
        }

        /// An array of its own with these contents, each part copied where it is newest: on the
        /// device what a device has, else on the host. So nothing moves between places. Constants
        /// stay constants, and what was never written is not written in the clone either. The clone
        /// of a whole array, and of any part without gaps, has the axis order of its source; others
        /// lie with their first axis slowest.
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut state = SmartArray::from(vec![1.0_f32; 1000]);
        /// drop(state.gpu_mut()?);                                               // newest on the device
        /// let backup = state.try_clone()?;                                      // copied there
        /// assert_eq!(backup.residency().on(&Device::cpu()), Validity::Valid);
        /// assert_eq!(backup.residency().host(), Validity::Absent);
        /// assert_eq!(backup.traffic().to_host.bytes + backup.traffic().to_device.bytes, 0);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Lost`](crate::Error::Lost) if work failed that was to write some of it;
        /// [`OutOfMemory`](crate::Error::OutOfMemory) if there is no room for the clone;
        /// [`Backend`](crate::Error::Backend) if a call is refused;
        /// [`DeviceLost`](crate::Error::DeviceLost) if the device died that has the newest
        /// contents; [`InsideKernel`](crate::Error::InsideKernel) if it would have to wait inside a
        /// kernel body.
        #[track_caller]
        pub fn try_clone(&self) -> Result<SmartArray<T, D>> {
            SmartArray::cloned(self.part(), call_site())
        }

        /// A part, by ndarray's `s![..]`: ranges, steps, reversed axes, single indices, new axes.
        /// It shares the array's coherence, and only its bytes ever move. Nothing is copied, and no
        /// device is asked.
        ///
        /// ```
        /// use resident::{Device, SmartArray, ndarray::{Array2, s}};
        ///
        /// let _here = Device::cpu().enter();
        /// let image = SmartArray::from(Array2::<u8>::zeros((600, 800)));
        /// let tile = image.slice(s![..;2, 100..200]);                           // every other row of 100 columns
        /// assert_eq!(tile.shape(), [300, 100]);
        /// drop(tile.gpu()?);
        /// assert_eq!(image.traffic().to_device.bytes, 300 * 100);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `slice`, if an index lies outside.
        #[track_caller]
        pub fn slice<I: SliceArg<D>>(&self, info: I) -> SmartView<$life, T, I::OutDim> {
            SmartView::new(self.part().storage, self.part().layout.slice(&info))
        }
    };
}

pub(super) use shared_methods;
