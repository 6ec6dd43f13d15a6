//! What each rank gets of the contributions of all.

use serde::{Deserialize, Serialize};

use crate::elements::{Element, Reduction};

/// A collective, as all ranks must call it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Collective {
    pub(crate) kind: Kind,
    pub(crate) element: Element,
    /// Elements of one rank's part.
    pub(crate) count: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Kind {
    AllReduce(Reduction),
    Reduce { reduction: Reduction, root: usize },
    Broadcast { root: usize },
    AllGather,
    ReduceScatter(Reduction),
}

/// What one rank brings.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Contribution {
    pub(crate) collective: Collective,
    pub(crate) bytes: Vec<u8>,
}

impl Collective {
    /// The bytes that a rank of so many brings, if it brings some.
    pub(crate) fn read_bytes(self, rank: usize, ranks: usize) -> Option<usize> {
        let part = self.part_bytes();
        match self.kind {
            Kind::AllReduce(_) | Kind::Reduce { .. } | Kind::AllGather => Some(part),
            Kind::Broadcast { root } => (rank == root).then_some(part),
            Kind::ReduceScatter(_) => Some(part * ranks),
        }
    }

    /// The bytes that a rank of so many gets, if it gets some.
    pub(crate) fn written_bytes(self, rank: usize, ranks: usize) -> Option<usize> {
        let part = self.part_bytes();
        match self.kind {
            Kind::AllReduce(_) | Kind::Broadcast { .. } | Kind::ReduceScatter(_) => Some(part),
            Kind::Reduce { root, .. } => (rank == root).then_some(part),
            Kind::AllGather => Some(part * ranks),
        }
    }

    /// What a rank gets.
    pub(crate) fn result(self, rank: usize, contributions: &[Contribution]) -> Vec<u8> {
        let parts = |from: usize, len_bytes: usize| {
            contributions.iter().map(|part| &part.bytes[from..from + len_bytes]).collect::<Vec<_>>()
        };
        let part = self.part_bytes();
        match self.kind {
            Kind::AllReduce(reduction) | Kind::Reduce { reduction, .. } => {
                self.element.reduce(reduction, &parts(0, part))
            }
            Kind::ReduceScatter(reduction) => {
                self.element.reduce(reduction, &parts(rank * part, part))
            }
            Kind::Broadcast { root } => contributions[root].bytes.clone(),
            Kind::AllGather => parts(0, part).concat(),
        }
    }

    fn part_bytes(self) -> usize {
        self.count * self.element.len_bytes()
    }
}
