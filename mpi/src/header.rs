//! Headers that are sent beside messages.

use std::rc::Rc;
use std::time::Instant;

use crate::call::{Peer, Request};
pub(crate) use crate::description::Header;
use crate::error::Result;
use crate::transfer::Transfer;
use crate::world::{Awaited, World};

/// Sends a header.
pub(crate) fn send(world: &World, header: Header, peer: Peer) -> Result<Rc<Transfer<Header>>> {
    let transfer = Transfer::new(header, Request::null());
    world.start(&transfer, |session, header, request| {
        *request = header.send_request(session, peer)?;
        // SAFETY: the header is memory of the transfer: it lives, where it is, until the transfer
        // is complete, and nothing accesses it before (`Transfer::start`).
        unsafe { request.start(session) }
    })?;
    Ok(transfer)
}

/// Begins to receive a header.
pub(crate) fn receive(world: &World, peer: Peer) -> Result<Rc<Transfer<Header>>> {
    let transfer = Transfer::new(Header::empty(), Request::null());
    world.start(&transfer, |session, header, request| {
        *request = header.receive_request(session, peer)?;
        // SAFETY: as in `send`.
        unsafe { request.start(session) }
    })?;
    Ok(transfer)
}

/// Waits for a header.
pub(crate) fn wait(
    world: &World,
    transfer: &Transfer<Header>,
    awaited: &Awaited,
    deadline: Instant,
) -> Result<Header> {
    world.complete(transfer, awaited, deadline)?;
    Ok(*transfer.memory().expect("it is complete"))
}
