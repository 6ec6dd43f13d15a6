
// Before the source: how the blocks of a launch run.

namespace resident {
namespace host {

/// The indices of a row's threads while they run. The end of its life tells the compiler that
/// nothing reads `threadIdx` afterwards, so that it need not be stored where the kernel is inlined:
/// stores in a loop are moved behind it, whatever the kernel's branches and stores.
struct running_thread {
    uint3 index;
    ~running_thread() {}
};

#ifdef RESIDENT_SANITIZE
// Each access is one of the thread that runs.
RESIDENT_UNCHECKED inline void start_thread(resident_progress &progress, unsigned int number) {
    progress.next = number;
    progress.running = number - 1;
    resident_start_thread(number - 1);
}
RESIDENT_UNCHECKED inline bool has_waited(resident_progress &progress, unsigned int number) {
    return progress.next != number;
}
#else
// Where a kernel never waits, the compiler sees that nothing of this changes.
inline void start_thread(resident_progress &, unsigned int) { resident_has_waited = false; }
inline bool has_waited(resident_progress &, unsigned int) { return resident_has_waited; }
#endif

/// A parameter, copied from words to where it is aligned.
template <typename Parameter> union aligned_parameter {
    Parameter value;
    RESIDENT_UNCHECKED explicit aligned_parameter(const void *words) {
        RESIDENT_UNCHECKED_COPY(static_cast<void *>(&value), words, sizeof(Parameter));
    }
    RESIDENT_UNCHECKED ~aligned_parameter() {}
};

template <typename Parameter>
using parameter_of = aligned_parameter<plain_t<Parameter>>;

template <typename Kernel> struct entry;

template <typename T> constexpr bool is_reference = false;
template <typename T> constexpr bool is_reference<T &> = true;
template <typename T> constexpr bool is_reference<T &&> = true;

template <typename... Parameters> struct entry<void (*)(Parameters...)> {
    static_assert(!(is_reference<Parameters> || ...),
                  "a launch passes no references to a kernel: make the parameter a pointer");
    static constexpr unsigned int count = sizeof...(Parameters);
    static constexpr unsigned int sizes[count + 1] = {sizeof(Parameters)..., 0};

    /// Runs the threads of a block from `first` on, until another stack has taken the next one.
    template <void (*kernel)(Parameters...)>
    RESIDENT_UNCHECKED static bool block(const resident_launch &launch,
                                         resident_progress &progress, unsigned int first,
                                         Parameters... parameters) {
        const unsigned int width = launch.block[0], height = launch.block[1];
        const unsigned int depth = launch.block[2];
        unsigned int number = first, x = first % width, y = first / width % height;
        for (unsigned int z = first / width / height; z < depth; ++z, y = 0)
            for (; y < height; ++y, x = 0) {
                // Iterations are not independent: all share the memory of a kernel's local
                // arrays here. So no pragma says that they are.
                for (; x < width; ++x) {
                    RESIDENT_PLACE(thread) = {x, y, z};
                    start_thread(progress, ++number);
                    kernel(parameters...);
                    if (has_waited(progress, number)) return false;
                }
                reinterpret_cast<running_thread &>(RESIDENT_PLACE(thread)).~running_thread();
            }
        progress.next = width * height * depth;
        return true;
    }

    template <void (*kernel)(Parameters...)>
    RESIDENT_UNCHECKED static void start(const resident_launch *launch,
                                         const resident_runtime *library,
                                         resident_progress *progress, unsigned long long end,
                                         unsigned int first) {
        run<kernel>(*launch, *library, *progress, end, first, numbers_below<count>());
    }

    template <void (*kernel)(Parameters...), unsigned int... Index>
    RESIDENT_UNCHECKED static void run(const resident_launch &launch,
                                       const resident_runtime &library,
                                       resident_progress &progress, unsigned long long end,
                                       unsigned int first, numbers<Index...>) {
#ifdef RESIDENT_SANITIZE
        resident_of_thread.functions = library;
        resident_library = &resident_of_thread.functions;
        resident_of_thread.kernel = launch.kernel;
        if (resident_patience == 0) resident_patience = 1;
#else
        resident_kernel_name = launch.kernel;
        resident_library = &library;
        resident_progress_of_stack = &progress;
#endif
        RESIDENT_PLACE(grid_shape) = dim3(launch.grid[0], launch.grid[1], launch.grid[2]);
        RESIDENT_PLACE(block_shape) = dim3(launch.block[0], launch.block[1], launch.block[2]);
        const unsigned long long start = progress.block, width = launch.grid[0];
        for (unsigned long long number = start; number < end; ++number, first = 0) {
            const unsigned long long row = number / width;
            RESIDENT_PLACE(block) = {static_cast<unsigned int>(number % width),
                                               static_cast<unsigned int>(row % launch.grid[1]),
                                               static_cast<unsigned int>(row / launch.grid[1])};
            progress.block = number;
#ifdef RESIDENT_SANITIZE
            resident_close_path();
#endif
            if (!block<kernel>(launch, progress, first,
                               parameter_of<Parameters>(launch.parameters[Index]).value...))
                return;
        }
        progress.block = end;
    }
};

} // namespace host
} // namespace resident
