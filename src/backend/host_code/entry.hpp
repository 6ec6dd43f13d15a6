
// Behind the source: what the library calls. RESIDENT_ENTRY is the kernel, a name or a name
// expression such as `scale<float>`.

namespace resident {
namespace host {

template <typename Kernel> struct entry;

template <typename... Parameters> struct entry<void (*)(Parameters...)> {
    static constexpr unsigned int count = sizeof...(Parameters);
    static constexpr unsigned int sizes[count + 1] = {sizeof(Parameters)..., 0};

    /// Runs the threads of a block from `first` on, until another stack has taken the next one.
    template <void (*kernel)(Parameters...), std::size_t... Index>
    RESIDENT_UNCHECKED static bool block(const resident_launch &launch, resident_progress &progress,
                      unsigned int first, std::index_sequence<Index...>) {
        const unsigned int width = launch.block[0], height = launch.block[1];
        const unsigned int threads = width * height * launch.block[2];
        uint3 thread{first % width, first / width % height, first / width / height};
        for (unsigned int number = first; number < threads; ++number) {
            resident_set().thread = thread;
            progress.next = number + 1;
            kernel(*static_cast<std::remove_reference_t<Parameters> *>(
                launch.parameters[Index])...);
            if (progress.next != number + 1) return false;
            if (++thread.x == width) {
                thread.x = 0;
                if (++thread.y == height) thread.y = 0, ++thread.z;
            }
        }
        return true;
    }

    template <void (*kernel)(Parameters...)>
    RESIDENT_UNCHECKED static void run(const resident_launch &launch, const resident_runtime &library,
                    resident_progress &progress, unsigned long long end, unsigned int first) {
#ifdef RESIDENT_SANITIZE
        resident_of_thread.functions = library;
        resident_library = &resident_of_thread.functions;
#else
        resident_library = &library;
#endif
        resident_set().grid_shape = dim3(launch.grid[0], launch.grid[1], launch.grid[2]);
        resident_set().block_shape = dim3(launch.block[0], launch.block[1], launch.block[2]);
        const unsigned long long start = progress.block, width = launch.grid[0];
        for (unsigned long long number = start; number < end; ++number, first = 0) {
            const unsigned long long row = number / width;
            resident_set().block = {static_cast<unsigned int>(number % width),
                        static_cast<unsigned int>(row % launch.grid[1]),
                        static_cast<unsigned int>(row / launch.grid[1])};
            progress.block = number;
            if (!block<kernel>(launch, progress, first, std::index_sequence_for<Parameters...>()))
                return;
        }
        progress.block = end;
    }
};

} // namespace host
} // namespace resident

// Here, so that the name is looked up where the source's is.
using resident_kernel = resident::host::entry<decltype(&RESIDENT_ENTRY)>;

extern "C" RESIDENT_UNCHECKED __attribute__((visibility("default"))) void resident_host_run(
    const resident_launch *launch, const resident_runtime *library, resident_progress *progress,
    unsigned long long end, unsigned int first) {
    resident_kernel::run<&RESIDENT_ENTRY>(*launch, *library, *progress, end, first);
}

extern "C" __attribute__((visibility("default"))) const unsigned int *resident_host_parameters(
    unsigned int *count) {
    *count = resident_kernel::count;
    return resident_kernel::sizes;
}
