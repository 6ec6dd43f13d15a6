//! What a call does with one array.

use super::step::{Accessed, Argument, Launched};
use super::symbols::{Place, Symbol, Symbols};

/// A launch with an array, or another access of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    pub(super) is_launch: bool,
    pub(super) place: Place,
    pub(super) site: Symbol,
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// Whether it writes all of the array.
    pub(super) writes_all: bool,
}

impl Used {
    pub(super) fn of_access(access: &Accessed<'_>, symbols: &mut Symbols) -> Self {
        let one = [(access.access, access.is_whole)];
        let (place, site) = (symbols.place(access.device), symbols.of(access.site));
        Self::of(place, site, one.into_iter())
    }

    /// What all arguments of a launch that are this array are together.
    pub(super) fn of_launch(launch: &Launched<'_>, array: u64, symbols: &mut Symbols) -> Self {
        let own = arguments_of(launch, array).map(|argument| (argument.access, argument.is_whole));
        let (place, site) = (symbols.place(Some(launch.device)), symbols.of(launch.site));
        Self { is_launch: true, ..Self::of(place, site, own) }
    }

    /// What several uses by one call, which is no launch, are together.
    fn of<'a>(place: Place, site: Symbol, uses: impl Iterator<Item = (&'a str, bool)>) -> Self {
        let (is_launch, reads, writes, writes_all) = (false, false, false, false);
        let mut all = Self { is_launch, place, site, reads, writes, writes_all };
        for (access, is_whole) in uses {
            let writes = access != "in";
            all.reads |= access != "out";
            all.writes |= writes;
            all.writes_all |= writes && is_whole;
        }
        all
    }
}

/// The arguments of a launch that are this array.
pub(super) fn arguments_of<'l, 'a>(
    launch: &'l Launched<'a>,
    array: u64,
) -> impl Iterator<Item = &'l Argument<'a>> {
    launch.arguments.iter().filter(move |argument| argument.array == array)
}
