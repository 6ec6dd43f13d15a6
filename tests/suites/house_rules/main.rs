//! The rules of the house, read from the sources: who may import whom, what must stand where, and
//! what must not stand anywhere.

mod circles;
mod documents;
mod layers;
mod modules;
mod safety;
mod sources;
mod text;
mod tokens;
