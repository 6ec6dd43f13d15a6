//! The rules of the repository, checked in the sources: which module may import which, what must be
//! present, and what must not occur.

mod circles;
mod documentation;
mod documents;
mod environment;
mod guide;
mod layers;
mod limits;
mod modules;
mod parameters;
mod safety;
mod sources;
mod text;
mod tokens;
