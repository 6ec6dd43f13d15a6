//! The methods that arrays and their parts share, written once: `reading!` for shared access, `writing!` for exclusive access.

/// Methods that need only shared access. `$life` is how long guards live: the borrow of `self`, or for a `SmartView<'a>` all of `'a`.
macro_rules! reading {
    ($life:lifetime) => {
        /// The host's copy. What is stale there comes down first, and both sides are valid then.
        ///
        /// # Errors
        ///
        /// [`Uninitialised`](crate::Error::Uninitialised) and [`Lost`](crate::Error::Lost) if some of it has no contents;
        /// [`OutOfMemory`](crate::Error::OutOfMemory) if the host has no room for a first copy; [`Backend`](crate::Error::Backend) if a copy fails;
        /// [`InsideKernel`](crate::Error::InsideKernel) if it would have to wait inside a kernel body.
        #[inline]
        #[track_caller]
        pub fn host(&self) -> Result<HostRef<$life, T, D>> {
            self.part().host(Location::caller())
        }

        /// The current device's copy, ordered on its default stream. What is stale there goes up first, and both sides are valid then.
        ///
        /// # Errors
        ///
        /// As [`gpu_on`](Self::gpu_on), and [`NoDevice`](crate::Error::NoDevice) if there is no current device.
        #[inline]
        #[track_caller]
        pub fn gpu(&self) -> Result<DeviceRef<$life, T, D>> {
            self.part().gpu_on(&Part::<D>::current_stream()?, Location::caller())
        }

        /// The copy of `stream`'s device, for foreign work on that stream. What is stale there goes up first, and both sides are valid then.
        ///
        /// # Errors
        ///
        /// [`Uninitialised`](crate::Error::Uninitialised) and [`Lost`](crate::Error::Lost) if some of it has no contents;
        /// [`OutOfMemory`](crate::Error::OutOfMemory) if the device has no room; [`Backend`](crate::Error::Backend) if a call is refused;
        /// [`TooManyDevices`](crate::Error::TooManyDevices) beyond 63 devices.
        #[inline]
        #[track_caller]
        pub fn gpu_on(&self, stream: &Stream) -> Result<DeviceRef<$life, T, D>> {
            self.part().gpu_on(stream, Location::caller())
        }

        /// Brings it to `stream`'s device early, in that stream's order. Returns when its bytes are in staging memory.
        ///
        /// # Errors
        ///
        /// As [`gpu_on`](Self::gpu_on).
        #[track_caller]
        pub fn prefetch(&self, stream: &Stream) -> Result<()> {
            self.part().prefetch(stream, Location::caller())
        }

        /// Brings it to the host early. Returns at once; a later [`host`](Self::host) waits for the rest.
        ///
        /// # Errors
        ///
        /// As [`host`](Self::host).
        #[track_caller]
        pub fn prefetch_host(&self) -> Result<()> {
            self.part().prefetch_host(Location::caller())
        }

        /// A copy of its contents as they are at this point of the program, in memory of its own. Residency is left as it is. Parts that are only on
        /// a device come down, on `stream` if it is of that device.
        ///
        /// # Errors
        ///
        /// As [`host`](Self::host); what fails later is told by [`Pending::wait`](crate::Pending::wait).
        #[track_caller]
        pub fn snapshot_on(&self, stream: &Stream) -> Result<Pending<Array<T, D>>> {
            self.part().snapshot_on(Some(stream), "snapshot_on", Location::caller())
        }

        /// One element, read where it is newest: a device is asked for its bytes alone. Residency is left as it is.
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if the index lies outside; else as [`host`](Self::host).
        #[track_caller]
        pub fn get(&self, index: impl IntoDimension<Dim = D>) -> Result<T> {
            self.part().get(index.into_dimension().slice(), Location::caller())
        }

        /// An array of its own with these contents, each part copied where it is newest: on a device what lives on a device. No transfer.
        ///
        /// # Errors
        ///
        /// [`OutOfMemory`](crate::Error::OutOfMemory), [`Lost`](crate::Error::Lost), [`Backend`](crate::Error::Backend). What was never written is
        /// not written in the clone either.
        #[track_caller]
        pub fn try_clone(&self) -> Result<SmartArray<T, D>> {
            SmartArray::cloned(self.part(), Location::caller())
        }

        /// A part, by ndarray's `s![..]`. It shares the array's coherence: only its bytes ever move.
        ///
        /// # Panics
        ///
        /// As ndarray's `slice`, if an index lies outside.
        #[track_caller]
        pub fn slice<I: SliceArg<D>>(&self, info: I) -> SmartView<$life, T, I::OutDim> {
            SmartView::new(self.part().storage, self.part().layout.slice(&info))
        }

        /// Elements along each axis.
        #[must_use]
        pub fn shape(&self) -> &[usize] {
            self.part().layout.shape()
        }

        /// Elements from one to the next along each axis, on the host and on every device.
        #[must_use]
        pub fn strides(&self) -> &[isize] {
            self.part().layout.strides()
        }

        /// Elements along each axis, as ndarray's dimension.
        #[must_use]
        pub fn raw_dim(&self) -> D {
            self.part().layout.dim().clone()
        }

        /// Elements.
        #[must_use]
        pub fn len(&self) -> usize {
            self.part().layout.len()
        }

        /// Whether there are none.
        #[must_use]
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }

        /// The array's name; if it was given none, its type, shape and the line that made it.
        #[must_use]
        pub fn name(&self) -> Arc<str> {
            self.part().storage.name()
        }

        /// Where it can be read right now. Moves nothing.
        #[must_use]
        pub fn residency(&self) -> Residency {
            self.part().residency()
        }

        /// What the whole array has moved so far. Moves nothing.
        #[must_use]
        pub fn traffic(&self) -> Traffic {
            self.part().storage.lock().traffic()
        }

        /// Whether elements lie row by row without gaps. Axes of length 1 do not count, as in NumPy's relaxed strides.
        #[must_use]
        pub fn is_c_contiguous(&self) -> bool {
            self.part().layout.is_c_contiguous()
        }

        /// Whether elements lie column by column without gaps. Axes of length 1 do not count, as in NumPy's relaxed strides.
        #[must_use]
        pub fn is_f_contiguous(&self) -> bool {
            self.part().layout.is_f_contiguous()
        }
    };
}

/// Methods that need exclusive access; guards live as long as the borrow of `self`.
macro_rules! writing {
    () => {
        /// The host's copy, to be changed. What is stale there comes down first; then the host is the newest side.
        ///
        /// # Errors
        ///
        /// As [`host`](Self::host).
        #[inline]
        #[track_caller]
        pub fn host_mut(&mut self) -> Result<HostMut<'_, T, D>> {
            self.part().host_mut(Access::ReadWrite, Location::caller())
        }

        /// The host's copy, to be rewritten: nothing comes down, and the whole part counts as written from now on. Elements that are not rewritten
        /// show zeros, old contents or poison.
        ///
        /// # Errors
        ///
        /// [`OutOfMemory`](crate::Error::OutOfMemory) if the host has no room; [`InsideKernel`](crate::Error::InsideKernel) if it would have to wait
        /// inside a kernel body.
        #[inline]
        #[track_caller]
        pub fn host_overwrite(&mut self) -> Result<HostMut<'_, T, D>> {
            self.part().host_mut(Access::Overwrite, Location::caller())
        }

        /// The current device's copy, to be changed on its default stream. What is stale there goes up first; then it is the newest.
        ///
        /// # Errors
        ///
        /// As [`gpu`](Self::gpu).
        #[inline]
        #[track_caller]
        pub fn gpu_mut(&mut self) -> Result<DeviceMut<'_, T, D>> {
            self.part().gpu_mut_on(Access::ReadWrite, &Part::<D>::current_stream()?, Location::caller())
        }

        /// The copy of `stream`'s device, to be changed by foreign work on that stream. What is stale there goes up first; then it is the newest.
        ///
        /// # Errors
        ///
        /// As [`gpu_on`](Self::gpu_on).
        #[inline]
        #[track_caller]
        pub fn gpu_mut_on(&mut self, stream: &Stream) -> Result<DeviceMut<'_, T, D>> {
            self.part().gpu_mut_on(Access::ReadWrite, stream, Location::caller())
        }

        /// The current device's copy, to be rewritten: nothing goes up, and the whole part counts as written from now on.
        ///
        /// # Errors
        ///
        /// As [`gpu_overwrite_on`](Self::gpu_overwrite_on), and [`NoDevice`](crate::Error::NoDevice) if there is no current device.
        #[inline]
        #[track_caller]
        pub fn gpu_overwrite(&mut self) -> Result<DeviceMut<'_, T, D>> {
            self.part().gpu_mut_on(Access::Overwrite, &Part::<D>::current_stream()?, Location::caller())
        }

        /// The copy of `stream`'s device, to be rewritten by foreign work on that stream: nothing goes up, and the whole part counts as written.
        ///
        /// # Errors
        ///
        /// [`OutOfMemory`](crate::Error::OutOfMemory) if the device has no room; [`Backend`](crate::Error::Backend) if a call is refused;
        /// [`TooManyDevices`](crate::Error::TooManyDevices) beyond 63 devices.
        #[inline]
        #[track_caller]
        pub fn gpu_overwrite_on(&mut self, stream: &Stream) -> Result<DeviceMut<'_, T, D>> {
            self.part().gpu_mut_on(Access::Overwrite, stream, Location::caller())
        }

        /// Says that the host's copy was changed behind the library's back, through a raw pointer.
        ///
        /// # Errors
        ///
        /// [`LostUpdate`](crate::Error::LostUpdate) if the host did not hold the newest contents: nothing is changed then.
        #[track_caller]
        pub fn host_changed(&mut self) -> Result<()> {
            self.part().host_changed(Location::caller())
        }

        /// Says that the current device's copy was changed by work on its default stream that the library does not know of.
        ///
        /// # Errors
        ///
        /// As [`gpu_changed_on`](Self::gpu_changed_on).
        #[track_caller]
        pub fn gpu_changed(&mut self) -> Result<()> {
            self.part().gpu_changed_on(&Part::<D>::current_stream()?, Location::caller())
        }

        /// Says that the copy of `stream`'s device was changed by work on that stream that the library does not know of.
        ///
        /// # Errors
        ///
        /// [`LostUpdate`](crate::Error::LostUpdate) if that device did not hold the newest contents: nothing is changed then.
        #[track_caller]
        pub fn gpu_changed_on(&mut self, stream: &Stream) -> Result<()> {
            self.part().gpu_changed_on(stream, Location::caller())
        }

        /// Makes every element `value`. Nothing is written or moved: each place fills its own copy when it first needs it.
        ///
        /// # Errors
        ///
        /// None today.
        #[track_caller]
        pub fn fill(&mut self, value: T) -> Result<()> {
            self.part().fill(value, Location::caller());
            Ok(())
        }

        /// Makes every element `value`, and fills the copy of `stream`'s device now.
        ///
        /// # Errors
        ///
        /// As [`gpu_overwrite_on`](Self::gpu_overwrite_on).
        #[track_caller]
        pub fn fill_on(&mut self, stream: &Stream, value: T) -> Result<()> {
            self.part().fill_on(stream, value, Location::caller())
        }

        /// Copies the elements of an array or view of the same shape, each part where it is newest: on a device what is newest on a device, directly
        /// from one device to another where they are on different ones. Nothing moves between host and device.
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if the shapes differ; [`Uninitialised`](crate::Error::Uninitialised) and [`Lost`](crate::Error::Lost) if
        /// `source` has parts without contents; [`OutOfMemory`](crate::Error::OutOfMemory), [`Backend`](crate::Error::Backend).
        #[track_caller]
        pub fn assign<E: Dimension>(&mut self, source: &impl AsView<T, E>) -> Result<()> {
            self.part().assign(source.as_view().part(), Target::WhereNewest, Location::caller())
        }

        /// Copies the elements of an array or view of the same shape to the copy of `stream`'s device.
        ///
        /// # Errors
        ///
        /// As [`assign`](Self::assign).
        #[track_caller]
        pub fn assign_on<E: Dimension>(&mut self, stream: &Stream, source: &impl AsView<T, E>) -> Result<()> {
            self.part().assign(source.as_view().part(), Target::On(stream), Location::caller())
        }

        /// Writes one element where its newest contents are.
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if the index lies outside; [`OutOfMemory`](crate::Error::OutOfMemory),
        /// [`Backend`](crate::Error::Backend).
        #[track_caller]
        pub fn set(&mut self, index: impl IntoDimension<Dim = D>, value: T) -> Result<()> {
            self.part().set(index.into_dimension().slice(), value, Location::caller())
        }

        /// A part to be written, by ndarray's `s![..]`. It shares the array's coherence: only its bytes ever move.
        ///
        /// # Panics
        ///
        /// As ndarray's `slice_mut`, if an index lies outside.
        #[track_caller]
        pub fn slice_mut<I: SliceArg<D>>(&mut self, info: I) -> SmartViewMut<'_, T, I::OutDim> {
            let part = self.part();
            SmartViewMut::new(part.storage, part.layout.slice(&info))
        }

        /// Several disjoint parts at once, by a tuple of ndarray's `s![..]`: `(s![..4, ..], s![4.., ..])`.
        ///
        /// # Panics
        ///
        /// As ndarray's `multi_slice_mut`, if two of them share an element or an index lies outside.
        #[track_caller]
        pub fn multi_slice_mut<'m, M: MultiSlice<'m, T, D>>(&'m mut self, slices: M) -> M::Output {
            let part = self.part();
            slices.views(part.storage, part.layout)
        }

        /// The parts before and from `index` on along an axis.
        ///
        /// # Panics
        ///
        /// As ndarray's `split_at`, if there is no such axis or `index` lies beyond its end.
        #[track_caller]
        pub fn split_at_mut(&mut self, axis: Axis, index: usize) -> (SmartViewMut<'_, T, D>, SmartViewMut<'_, T, D>) {
            let part = self.part();
            let (first, second) = part.layout.split_at(axis, index);
            (SmartViewMut::new(part.storage, first), SmartViewMut::new(part.storage, second))
        }
    };
}

pub(super) use {reading, writing};
