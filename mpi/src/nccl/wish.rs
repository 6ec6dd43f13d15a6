//! What processes tell each other before they use NCCL, and what they conclude: the same in each.

use crate::error::{Error, Result};

/// What a process wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    /// `RESIDENT_MPI` chooses another transport.
    Never,
    /// If all processes can.
    IfPossible,
    /// `RESIDENT_MPI` is `nccl`.
    Always,
}

/// The number by which a GPU is known on all machines.
pub(super) type Gpu = [u8; 16];

/// What a process says: its wish, and its GPU or why it cannot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Said {
    pub(super) wish: Wish,
    pub(super) gpu: std::result::Result<Gpu, String>,
}

/// The same number for all processes.
pub(super) const SAID_BYTES: usize = 160;
const HEAD_BYTES: usize = 2;

impl Said {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.wish as u8, u8::from(self.gpu.is_ok())];
        match &self.gpu {
            Ok(gpu) => bytes.extend(gpu),
            Err(reason) => bytes.extend(reason.bytes().take(SAID_BYTES - HEAD_BYTES)),
        }
        bytes.resize(SAID_BYTES, 0);
        bytes
    }

    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        let (head, text) = bytes.split_at(HEAD_BYTES);
        let wish = match head[0] {
            0 => Wish::Never,
            1 => Wish::IfPossible,
            _ => Wish::Always,
        };
        let gpu = if head[1] == 1 {
            Ok(std::array::from_fn(|at| text[at]))
        } else {
            Err(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned())
        };
        Self { wish, gpu }
    }
}

/// Whether all use NCCL, or else why not, by what all have said in the order of ranks.
///
/// # Errors
///
/// In all processes, if one wants NCCL always and it cannot be.
pub(super) fn conclude(all: &[Said]) -> Result<std::result::Result<(), String>> {
    let Some(reason) = obstacle(all) else { return Ok(Ok(())) };
    match all.iter().position(|said| said.wish == Wish::Always) {
        None => Ok(Err(reason)),
        Some(rank) => Err(Error::Argument {
            operation: "init",
            text: format!("RESIDENT_MPI is `nccl` on rank {rank}, but {reason}"),
        }),
    }
}

fn obstacle(all: &[Said]) -> Option<String> {
    let by_rank = || all.iter().enumerate();
    if let Some((rank, _)) = by_rank().find(|(_, said)| said.wish == Wish::Never) {
        return Some(format!("RESIDENT_MPI chooses another transport on rank {rank}"));
    }
    by_rank().find_map(|(rank, said)| match &said.gpu {
        Err(reason) => Some(format!("rank {rank} {reason}")),
        Ok(gpu) => {
            let other = all[..rank].iter().position(|other| other.gpu.as_ref() == Ok(gpu))?;
            Some(format!("ranks {other} and {rank} use the same GPU"))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn can(wish: Wish, gpu: u8) -> Said {
        Said { wish, gpu: Ok([gpu; 16]) }
    }

    fn cannot(wish: Wish) -> Said {
        Said { wish, gpu: Err("has no NVIDIA GPU".into()) }
    }

    #[test]
    fn what_is_said_arrives() {
        let long = Said { wish: Wish::Always, gpu: Err("e".repeat(1000)) };
        for said in [can(Wish::Never, 3), cannot(Wish::IfPossible), can(Wish::Always, 0)] {
            assert_eq!(said.to_bytes().len(), SAID_BYTES);
            assert_eq!(Said::of_bytes(&said.to_bytes()), said);
        }
        let cut = Said::of_bytes(&long.to_bytes()).gpu.unwrap_err();
        assert_eq!(cut.len(), SAID_BYTES - HEAD_BYTES);
    }

    #[test]
    fn all_use_it_or_none() {
        use Wish::{Always, IfPossible, Never};
        let concluded = |all: &[Said]| conclude(all).map_err(|error| error.to_string());
        assert_eq!(concluded(&[can(IfPossible, 1), can(Always, 2)]), Ok(Ok(())));
        let same = "ranks 0 and 2 use the same GPU";
        let twice = [can(IfPossible, 1), can(IfPossible, 2), can(IfPossible, 1)];
        assert_eq!(concluded(&twice), Ok(Err(same.into())));
        let none = "rank 1 has no NVIDIA GPU";
        assert_eq!(concluded(&[can(IfPossible, 1), cannot(IfPossible)]), Ok(Err(none.into())));
        let error = format!("`init`: RESIDENT_MPI is `nccl` on rank 0, but {none}");
        assert_eq!(concluded(&[can(Always, 1), cannot(IfPossible)]), Err(error));
        let other = "RESIDENT_MPI chooses another transport on rank 1";
        assert_eq!(concluded(&[can(IfPossible, 1), can(Never, 2)]), Ok(Err(other.into())));
    }
}
