//! How many processes each axis gets, if the program does not say.

use std::cmp::Reverse;

/// The processes along each axis, whose product is `size`. `None` without axes for several.
pub(crate) fn balanced<const N: usize>(
    size: usize,
    shape: [usize; N],
    halos: [usize; N],
    periodic: [bool; N],
) -> Option<[usize; N]> {
    let divisors: Vec<usize> = (1..=size).filter(|divisor| size.is_multiple_of(*divisor)).collect();
    let mut choices = Vec::new();
    choose(&divisors, size, 0, &mut [1; N], &mut choices);
    let choice = |processes| Choice { processes, shape, halos, periodic };
    choices.into_iter().min_by_key(|processes| choice(*processes).cost())
}

/// Adds all ways to write `rest` as a product of factors for the axes from `axis` on.
fn choose<const N: usize>(
    divisors: &[usize],
    rest: usize,
    axis: usize,
    processes: &mut [usize; N],
    choices: &mut Vec<[usize; N]>,
) {
    if axis == N {
        choices.extend((rest == 1).then_some(*processes));
        return;
    }
    for factor in divisors.iter().filter(|factor| rest.is_multiple_of(**factor)) {
        processes[axis] = *factor;
        choose(divisors, rest / factor, axis + 1, processes, choices);
    }
}

struct Choice<const N: usize> {
    processes: [usize; N],
    shape: [usize; N],
    halos: [usize; N],
    periodic: [bool; N],
}

/// What a choice costs, the worst first: axes whose halo is wider than a part, and those with
/// parts without cells; the cells that a process sends; its own cells; processes along one axis. Of
/// equals, the first axes get more processes: faces between rows lie in one piece in memory.
type Cost<const N: usize> = (usize, usize, u128, u128, usize, Reverse<[usize; N]>);

impl<const N: usize> Choice<N> {
    fn cost(&self) -> Cost<N> {
        let cut = || (0..N).filter(|axis| self.processes[*axis] > 1);
        let least = |axis: usize| self.shape[axis] / self.processes[axis];
        (
            cut().filter(|axis| least(*axis) < self.halos[*axis]).count(),
            cut().filter(|axis| least(*axis) == 0).count(),
            cut().map(|axis| self.sent(axis)).fold(0, u128::saturating_add),
            self.cells(N),
            self.processes.into_iter().max().unwrap_or(1),
            Reverse(self.processes),
        )
    }

    /// The cells that a process with neighbours on both sides, if any has, sends along this axis.
    fn sent(&self, axis: usize) -> u128 {
        let sides = if self.processes[axis] == 2 && !self.periodic[axis] { 1 } else { 2 };
        // Without halos the faces are what a halo of one cell would send.
        let width = if self.halos == [0; N] { 1 } else { self.halos[axis] as u128 };
        (sides * width).saturating_mul(self.cells(axis))
    }

    /// The cells of the largest part in one layer across the axis, or in all if there is no such.
    fn cells(&self, across: usize) -> u128 {
        (0..N)
            .filter(|axis| *axis != across)
            .map(|axis| self.shape[axis].div_ceil(self.processes[axis]) as u128)
            .fold(1, u128::saturating_mul)
    }
}
