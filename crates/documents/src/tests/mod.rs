//! Documents that no device made: every kind of record, and numbers just below and at each limit.

mod findings;
mod formats;
mod samples;
mod spared_copies;
