// `cooperative_groups.h` on the host: the threads of a block, tiles of a warp, and the lanes that
// run together. `cg::reduce`, the scans and `memcpy_async`, which CUDA has in headers of their own,
// are here too. Groups of several blocks, and tiles of several warps, are not there.

#ifndef RESIDENT_COOPERATIVE_GROUPS_H
#define RESIDENT_COOPERATIVE_GROUPS_H

namespace cooperative_groups {

/// All threads of the block.
class thread_block {
  public:
    RESIDENT_INLINE static void sync() { __syncthreads(); }
    static unsigned int thread_rank() {
        return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    }
    static unsigned int num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned int size() { return num_threads(); }
    static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
    static dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
    static dim3 dim_threads() { return group_dim(); }
};

inline thread_block this_thread_block() { return thread_block(); }

/// Lanes of a warp: those in a mask, numbered in order.
class lanes_of_warp {
  public:
    RESIDENT_INLINE void sync() const { __syncwarp(mask); }
    unsigned int num_threads() const { return __popc(mask); }
    unsigned int size() const { return num_threads(); }
    unsigned int thread_rank() const {
        return __popc(mask & ((1u << resident::host::lane()) - 1));
    }
    unsigned int meta_group_size() const { return groups; }
    unsigned int meta_group_rank() const { return group; }

    template <typename T> RESIDENT_INLINE T shfl(T value, unsigned int rank) const {
        const unsigned long long *lanes = resident::host::exchange(mask, value);
        return resident::host::of_lane<T>(lanes, lane_of(rank));
    }
    template <typename T> RESIDENT_INLINE T shfl_up(T value, unsigned int by) const {
        unsigned int rank = thread_rank();
        return shfl(value, rank < by ? rank : rank - by);
    }
    template <typename T> RESIDENT_INLINE T shfl_down(T value, unsigned int by) const {
        unsigned int rank = thread_rank();
        return shfl(value, rank + by < size() ? rank + by : rank);
    }
    template <typename T> RESIDENT_INLINE T shfl_xor(T value, unsigned int by) const {
        unsigned int rank = thread_rank(), other = rank ^ by;
        return shfl(value, other < size() ? other : rank);
    }
    int any(int predicate) const { return __any_sync(mask, predicate); }
    int all(int predicate) const { return __all_sync(mask, predicate); }
    /// A bit for each rank.
    unsigned int ballot(int predicate) const { return ranks(__ballot_sync(mask, predicate)); }
    template <typename T> unsigned int match_any(T value) const {
        return ranks(__match_any_sync(mask, value));
    }
    template <typename T> unsigned int match_all(T value, int &predicate) const {
        return ranks(__match_all_sync(mask, value, &predicate));
    }
    /// The lanes themselves, which CUDA does not tell.
    unsigned int resident_mask() const { return mask; }

  protected:
    lanes_of_warp(unsigned int mask, unsigned int group, unsigned int groups)
        : mask(mask), group(group), groups(groups) {}

    unsigned int lane_of(unsigned int rank) const {
        for (unsigned int lane = 0; lane < 32; ++lane)
            if (mask >> lane & 1 && rank-- == 0) return lane;
        return resident::host::lane();
    }
    unsigned int ranks(unsigned int lanes) const {
        unsigned int result = 0, rank = 0;
        for (unsigned int lane = 0; lane < 32; ++lane)
            if (mask >> lane & 1) result |= (lanes >> lane & 1) << rank++;
        return result;
    }

    unsigned int mask, group, groups;
};

/// How many threads what is divided into tiles has: those of a tile, or the block's.
template <typename Parent> struct threads_of {
    static unsigned int count() { return thread_block::size(); }
    static unsigned int rank() { return thread_block::thread_rank(); }
};

/// So many neighbours of a warp.
template <unsigned int count, typename Parent = void>
class thread_block_tile : public lanes_of_warp {
    static_assert(count > 0 && count <= 32 && (count & (count - 1)) == 0,
                  "tiles have 1, 2, 4, 8, 16 or 32 threads on the embedded device");

  public:
    thread_block_tile()
        : lanes_of_warp((count == 32 ? ~0u : (1u << count % 32) - 1)
                            << resident::host::lane() / count * count,
                        threads_of<Parent>::rank() / count,
                        (threads_of<Parent>::count() + count - 1) / count) {}
    template <typename Other>
    thread_block_tile(const thread_block_tile<count, Other> &other) : thread_block_tile() {}
    static constexpr unsigned int num_threads() { return count; }
    static constexpr unsigned int size() { return count; }
};

template <unsigned int parent_count, typename Parent>
struct threads_of<thread_block_tile<parent_count, Parent>> {
    static unsigned int count() { return parent_count; }
    static unsigned int rank() { return resident::host::lane() % parent_count; }
};

template <unsigned int count, typename Parent>
thread_block_tile<count, Parent> tiled_partition(const Parent &) {
    return thread_block_tile<count, Parent>();
}

/// The lanes that come here together, or parts of a group.
class coalesced_group : public lanes_of_warp {
  public:
    explicit coalesced_group(unsigned int mask, unsigned int group = 0, unsigned int groups = 1)
        : lanes_of_warp(mask, group, groups) {}
};

inline coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

/// The lanes of a group that pass the same number; the parts are numbered by their first lanes.
template <typename Group, typename T>
coalesced_group labeled_partition(const Group &group, T label) {
    unsigned int lanes = group.resident_mask(), part = __match_any_sync(lanes, label);
    unsigned int first = __ffs(part) - 1;
    unsigned int firsts = __ballot_sync(lanes, first == resident::host::lane());
    return coalesced_group(part, __popc(firsts & ((1u << first) - 1)), __popc(firsts));
}

/// The lanes of a group for which this is true, which are part 1, or the others.
template <typename Group> coalesced_group binary_partition(const Group &group, bool predicate) {
    unsigned int lanes = group.resident_mask(), set = __ballot_sync(lanes, predicate);
    if (set == lanes || set == 0) return coalesced_group(lanes);
    return coalesced_group(predicate ? set : lanes & ~set, predicate, 2);
}

template <typename Group> coalesced_group labeled_partition(const Group &group, bool label) {
    return binary_partition(group, label);
}

/// A block, or lanes of a warp: which of them is known when the kernel runs.
class thread_group {
  public:
    thread_group(const thread_block &) : mask(0) {}
    thread_group(const lanes_of_warp &lanes) : mask(lanes.resident_mask()) {}

    RESIDENT_INLINE void sync() const {
        if (mask) __syncwarp(mask);
        else __syncthreads();
    }
    unsigned int num_threads() const { return mask ? __popc(mask) : thread_block::size(); }
    unsigned int size() const { return num_threads(); }
    unsigned int thread_rank() const {
        if (!mask) return thread_block::thread_rank();
        return __popc(mask & ((1u << resident::host::lane()) - 1));
    }

  private:
    friend thread_group tiled_partition(const thread_group &group, unsigned int count);
    explicit thread_group(unsigned int mask) : mask(mask) {}

    /// 0 for a block.
    unsigned int mask;
};

/// Tiles of so many threads: a power of two up to 32.
inline thread_group tiled_partition(const thread_group &group, unsigned int count) {
    if (count == 0 || count > 32 || (count & (count - 1)) != 0) __trap();
    unsigned int first = group.thread_rank() / count * count, result = 0, rank = 0;
    unsigned int warp = thread_block::thread_rank() / 32 * 32, threads = thread_block::size();
    unsigned int lanes = threads - warp < 32 ? (1u << (threads - warp)) - 1 : ~0u;
    if (group.mask) lanes = group.mask;
    else first %= 32;
    for (unsigned int lane = 0; lane < 32; ++lane)
        if (lanes >> lane & 1) {
            if (rank >= first && rank < first + count) result |= 1u << lane;
            ++rank;
        }
    return thread_group(result);
}

template <typename Group> RESIDENT_INLINE void sync(const Group &group) { group.sync(); }
template <typename Group> unsigned int thread_rank(const Group &group) {
    return group.thread_rank();
}
template <typename Group> unsigned int group_size(const Group &group) { return group.size(); }

template <typename T = void> struct plus {
    template <typename U> U operator()(U a, U b) const { return a + b; }
};
template <typename T = void> struct less {
    template <typename U> U operator()(U a, U b) const { return b < a ? b : a; }
};
template <typename T = void> struct greater {
    template <typename U> U operator()(U a, U b) const { return a < b ? b : a; }
};
template <typename T = void> struct bit_and {
    template <typename U> U operator()(U a, U b) const { return a & b; }
};
template <typename T = void> struct bit_or {
    template <typename U> U operator()(U a, U b) const { return a | b; }
};
template <typename T = void> struct bit_xor {
    template <typename U> U operator()(U a, U b) const { return a ^ b; }
};

/// The value of all threads of a group, combined in the order of their ranks.
template <typename Group, typename T, typename Combine>
T reduce(const Group &group, T value, Combine combine) {
    T result = group.shfl(value, 0);
    for (unsigned int rank = 1; rank < group.size(); ++rank)
        result = combine(result, group.shfl(value, rank));
    return result;
}

/// That of the threads up to this one.
template <typename Group, typename T, typename Combine = plus<T>>
T inclusive_scan(const Group &group, T value, Combine combine = Combine()) {
    T result = value;
    for (unsigned int rank = 0; rank < group.size(); ++rank) {
        T other = group.shfl(value, rank);
        if (rank == 0) result = other;
        else if (rank <= group.thread_rank()) result = combine(result, other);
    }
    return result;
}

/// That of the threads before this one; of the first an empty value.
template <typename Group, typename T, typename Combine = plus<T>>
T exclusive_scan(const Group &group, T value, Combine combine = Combine()) {
    T sum = inclusive_scan(group, value, combine);
    T before = group.shfl_up(sum, 1);
    return group.thread_rank() == 0 ? T() : before;
}

/// Copies so many bytes, of which each thread of the group copies a part. Others may read them
/// after `wait`. Here it copies at once.
template <typename Group, typename T>
void memcpy_async(const Group &group, T *to, const T *from, size_t len_bytes) {
    size_t count = len_bytes / sizeof(T), rest = len_bytes % sizeof(T);
    for (size_t at = group.thread_rank(); at < count; at += group.size()) to[at] = from[at];
    if (group.thread_rank() == 0) memcpy(to + count, from + count, rest);
}
template <typename Group>
void memcpy_async(const Group &group, void *to, const void *from, size_t len_bytes) {
    memcpy_async(group, static_cast<char *>(to), static_cast<const char *>(from), len_bytes);
}
/// Copies as many elements as both have.
template <typename Group, typename T>
void memcpy_async(const Group &group, T *to, size_t to_len, const T *from, size_t from_len) {
    memcpy_async(group, to, from, (to_len < from_len ? to_len : from_len) * sizeof(T));
}
template <typename Group> RESIDENT_INLINE void wait(const Group &group) { group.sync(); }
template <unsigned int stages, typename Group> RESIDENT_INLINE void wait_prior(const Group &group) {
    group.sync();
}

} // namespace cooperative_groups

#endif // RESIDENT_COOPERATIVE_GROUPS_H
