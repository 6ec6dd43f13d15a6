"""Steps of the heat equation on a torus, as in heat.rs, by mpi4py and NumPy."""

import time

import numpy as np
from mpi4py import MPI

BATCHES = 50
BATCH = 0.002  # seconds
CELLS_OF_PART = 1024
CELLS_OF_PLATE = 2048

world = MPI.COMM_WORLD
low = (world.rank - 1) % world.size
high = (world.rank + 1) % world.size


def exchange(now, columns):
    """Rows are sent from where they are, columns are packed: as by hand in heat.rs."""
    requests = [
        world.Irecv(now[0, 1:-1], low, 1),
        world.Irecv(now[-1, 1:-1], high, 0),
        world.Irecv(columns[0], world.rank, 3),
        world.Irecv(columns[1], world.rank, 2),
        world.Isend(now[1, 1:-1], low, 0),
        world.Isend(now[-2, 1:-1], high, 1),
        world.Isend(np.ascontiguousarray(now[1:-1, 1]), world.rank, 2),
        world.Isend(np.ascontiguousarray(now[1:-1, -2]), world.rank, 3),
    ]
    MPI.Request.Waitall(requests)
    now[1:-1, 0], now[1:-1, -1] = columns


def means(now, out):
    """The means of the four neighbours, without new arrays."""
    np.add(now[1:-1, :-2], now[1:-1, 2:], out=out[1:-1, 1:-1])
    out[1:-1, 1:-1] += now[:-2, 1:-1]
    out[1:-1, 1:-1] += now[2:, 1:-1]
    out[1:-1, 1:-1] *= 0.25


def measure(name, rows, columns):
    now = np.fromfunction(lambda i, j: (i + j) % 7, (rows + 2, columns + 2))
    out = np.zeros_like(now)
    received = np.zeros((2, rows))

    def step():
        nonlocal now, out
        exchange(now, received)
        means(now, out)
        now, out = out, now

    def timed(count):
        world.Barrier()
        begin = time.perf_counter()
        for _ in range(count):
            step()
        return world.allreduce((time.perf_counter() - begin) / count, MPI.MAX)

    step()
    count = min(max(int(BATCH / timed(1)), 1), 10_000)
    least = min(timed(count) for _ in range(BATCHES))
    if world.rank == 0:
        print(f"{name:30}{least * 1e6:15.1f}")


if __name__ == "__main__":
    if world.rank == 0:
        print(f"\n{world.size} processes, mpi4py")
    measure(f"heat, {CELLS_OF_PART} x {CELLS_OF_PART} cells each", CELLS_OF_PART, CELLS_OF_PART)
    plate = CELLS_OF_PLATE
    measure(f"heat, {plate} x {plate} cells in all", plate // world.size, plate)
