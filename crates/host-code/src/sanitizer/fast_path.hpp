// Before `entry.hpp`, where a kernel is compiled to be checked: the accesses that compiled code
// checks itself, because they are simple and have no fault. The library checks all others.

/// One area of memory, of whole units. Changes here are changes in `fast_path.rs`.
struct resident_area {
    unsigned long long start, len_bytes;
    /// The stamps of each unit, as in `shadow.rs`: its writer and two readers. None if all bytes
    /// have contents and may only be read.
    unsigned long long (*units)[3];
    unsigned int unit_bytes;
    /// Whether what nobody has written yet may be read.
    bool may_read_contents;
    /// Whether each block has such memory of its own, so that what others did there is over.
    bool is_of_block;
};

/// What the library tells of the running block.
struct resident_fast_path {
    /// The areas to which simple accesses pass; none as long as the library checks all.
    const resident_area *areas, *areas_end;
    /// The accesses that have passed.
    unsigned long long accesses;
    /// The stamps of the running thread and of the block's thread 0 now, and the block's lowest.
    unsigned long long me, now, block_start;
    /// Stamps of the block below this one, counted from the lowest, come before all that its
    /// threads do now.
    unsigned long long ordered;
    /// The stack of the running thread, if it is this one.
    unsigned long long stack_start, stack_bytes;
};

/// One launch at a time runs the code. Defined by `hooks.hpp`.
extern "C" __attribute__((visibility("hidden"))) resident_fast_path resident_path;

#define RESIDENT_FAST RESIDENT_UNCHECKED __attribute__((always_inline)) static inline

/// The library checks all accesses, until it tells of the block again.
RESIDENT_FAST void resident_close_path() { resident_path.areas_end = resident_path.areas; }

/// The bits of a stamp: a read, an atomic access, the thread, and above the time the block.
constexpr unsigned long long resident_stamp_reads = 1, resident_stamp_is_atomic = 2;
constexpr unsigned int resident_stamp_thread = 2, resident_stamp_block = 36;
constexpr unsigned long long resident_stamp_owner =
    0x3ffull << resident_stamp_thread | ~0ull << resident_stamp_block;

/// Another thread of the block runs.
RESIDENT_FAST void resident_start_thread(unsigned long long number) {
    resident_path.me = resident_path.now | number << resident_stamp_thread;
}

/// Whether an earlier access is the running thread's own, or comes before all that it does.
RESIDENT_FAST bool resident_is_ordered(unsigned long long earlier) {
    return ((earlier ^ resident_path.me) & resident_stamp_owner) == 0 ||
           earlier - resident_path.block_start < resident_path.ordered;
}

/// Whether a write of a unit may follow an access.
RESIDENT_FAST bool resident_is_harmless(const resident_area &area, unsigned long long earlier) {
    return earlier == 0 || resident_is_ordered(earlier) ||
           (area.is_of_block && (earlier ^ resident_path.me) >> resident_stamp_block != 0);
}

/// Records a write of a unit, if it is simple.
RESIDENT_FAST bool resident_writes_unit(const resident_area &area, unsigned long long *unit) {
    const unsigned long long writer = unit[0], first = unit[1], second = unit[2];
    if ((writer | first | second) != 0) {
        if (!resident_is_harmless(area, first) || !resident_is_harmless(area, writer) ||
            !resident_is_harmless(area, second))
            return false;
        unit[1] = unit[2] = 0;
    }
    unit[0] = resident_path.me;
    return true;
}

/// Records a read of a unit, if it is simple.
RESIDENT_FAST bool resident_reads_unit(const resident_area &area, unsigned long long *unit) {
    const unsigned long long writer = unit[0], first = unit[1], second = unit[2];
    if (writer == 0 ? !area.may_read_contents : !resident_is_ordered(writer)) return false;
    const unsigned long long reading = resident_path.me | resident_stamp_reads;
    if ((first | second) != 0) {
        if (first == reading || second == reading)
            return ((first | second) & resident_stamp_is_atomic) == 0;
        if (second != 0 || (first & resident_stamp_is_atomic) || !resident_is_ordered(first))
            return false;
    }
    unit[1] = reading;
    return true;
}

/// Records an access to a unit of an area, if it is simple.
RESIDENT_FAST bool resident_passes_unit(const resident_area &area, unsigned long long index,
                                        bool is_write) {
    if (!area.units) return !is_write;
    unsigned long long *unit = area.units[index];
    return is_write ? resident_writes_unit(area, unit) : resident_reads_unit(area, unit);
}

/// Records an access to one unit, if it is simple. The address is a multiple of `bytes`.
RESIDENT_FAST bool resident_passes(unsigned long long address, unsigned long long bytes,
                                   bool is_write) {
    const resident_area *area = resident_path.areas, *const end = resident_path.areas_end;
    unsigned long long offset;
    for (;; ++area) {
        if (area == end) return false;
        offset = address - area->start;
        if (offset < area->len_bytes) break;
    }
    if (area->unit_bytes != bytes || !resident_passes_unit(*area, offset / bytes, is_write))
        return false;
    ++resident_path.accesses;
    return true;
}

/// Records an access to several units, if it is simple, or to the running thread's own stack.
RESIDENT_FAST bool resident_passes_range(unsigned long long address, unsigned long long bytes,
                                         bool is_write) {
    const resident_area *area = resident_path.areas, *const end = resident_path.areas_end;
    if (area == end) return false;
    while (area != end && address - area->start >= area->len_bytes) ++area;
    if (area == end) {
        const unsigned long long frame =
            reinterpret_cast<unsigned long long>(__builtin_frame_address(0));
        if (address - resident_path.stack_start >= resident_path.stack_bytes ||
            frame - resident_path.stack_start >= resident_path.stack_bytes)
            return false;
    } else {
        const unsigned long long offset = address - area->start;
        if (bytes > area->len_bytes - offset) return false;
        if (!area->units && is_write) return false;
        if (area->units && ((offset | bytes) & (area->unit_bytes - 1)) != 0) return false;
        // If a later unit is not simple, the library finds the thread's own access to the first.
        const unsigned long long units = area->units ? bytes / area->unit_bytes : 0;
        for (unsigned long long index = 0; index < units; ++index)
            if (!resident_passes_unit(*area, offset / area->unit_bytes + index, is_write))
                return false;
    }
    ++resident_path.accesses;
    return true;
}
#undef RESIDENT_FAST
