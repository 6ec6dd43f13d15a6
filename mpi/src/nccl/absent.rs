//! What stands for NCCL without feature `nccl`: a communicator that cannot exist.

use std::marker::PhantomData;
use std::time::Duration;

use resident::ndarray::Dimension;
use resident::{Element, Stream};

use super::wish::Gpu;
use crate::awaited::Awaited;
use crate::call::{Number, Reduce};
use crate::error::{Error, Result};
use crate::packed::Packed;
use crate::transport::Reachable;

pub(crate) enum Communicator {}

pub(crate) struct Group<'a> {
    never: Communicator,
    _operations: PhantomData<&'a ()>,
}

pub(super) struct Own;

pub(super) const ID_BYTES: usize = 128;

impl Own {
    pub(super) fn find() -> std::result::Result<(Self, Gpu), String> {
        Err("runs a program without feature `nccl` of `resident-mpi`".into())
    }

    pub(super) fn join(
        self,
        _id: [u8; ID_BYTES],
        _ranks: [usize; 2],
        _timeout: Duration,
    ) -> std::result::Result<Communicator, String> {
        Err(String::new())
    }
}

pub(super) fn new_id() -> std::result::Result<[u8; ID_BYTES], String> {
    Err(String::new())
}

impl Communicator {
    pub(crate) fn error(&self) -> Option<Error> {
        match *self {}
    }

    pub(crate) fn is_idle(&self) -> Result<bool> {
        match *self {}
    }

    pub(crate) fn reachable(&self) -> &Reachable {
        match *self {}
    }

    pub(crate) fn exchange<M>(
        &self,
        _awaited: Awaited,
        _behind: &Stream,
        _messages: &mut M,
        _add: impl for<'a> FnOnce(&'a mut M, &mut Group<'a>) -> Result<()>,
    ) -> Result<()> {
        match *self {}
    }

    #[allow(clippy::extra_unused_type_parameters, reason = "as with the feature")]
    pub(crate) fn reduces<T: Number>(&self) -> bool {
        match *self {}
    }

    pub(crate) fn all_reduce<T: Number, D: Dimension + 'static>(
        &self,
        _awaited: Awaited,
        _behind: &Stream,
        _reduce: Reduce,
        _from: &Packed<T, D>,
        _to: &mut Packed<T, D>,
    ) -> Result<()> {
        match *self {}
    }

    pub(crate) fn broadcast<T: Element, D: Dimension>(
        &self,
        _awaited: Awaited,
        _behind: &Stream,
        _memory: &mut Packed<T, D>,
        _root: usize,
    ) -> Result<()> {
        match *self {}
    }
}

impl<'a> Group<'a> {
    pub(crate) fn send<T: Element, D: Dimension>(
        &mut self,
        _memory: &'a Packed<T, D>,
        _to: usize,
    ) -> Result<()> {
        match self.never {}
    }

    pub(crate) fn receive<T: Element, D: Dimension>(
        &mut self,
        _memory: &'a mut Packed<T, D>,
        _from: usize,
    ) -> Result<()> {
        match self.never {}
    }
}
