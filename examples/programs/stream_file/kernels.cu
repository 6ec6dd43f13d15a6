// One thread for each sample of a chunk of rows.

using resident::View2;

// As in `kernels.rs`.
constexpr float DARK = 100, VOLTS_PER_COUNT = 0.25f;

struct Place {
    long long row, column;
};

template <typename T>
__device__ Place place_of_thread(const View2<T>& view) {
    long long n = resident::thread(), columns = view.shape[1] > 0 ? view.shape[1] : 1;
    return {n / columns, n % columns};
}

extern "C" __global__ void calibrate(View2<const unsigned short> counts, View2<float> volts) {
    Place here = place_of_thread(counts);
    if (!counts.contains(here.row, here.column)) return;
    volts(here.row, here.column) = VOLTS_PER_COUNT * (counts(here.row, here.column) - DARK);
}

extern "C" __global__ void smooth(View2<const float> volts, View2<float> smoothed) {
    Place here = place_of_thread(volts);
    if (!volts.contains(here.row, here.column)) return;
    long long row = here.row, column = here.column;
    long long left = column > 0 ? column - 1 : 0;
    long long right = column + 1 < volts.shape[1] ? column + 1 : column;
    smoothed(row, column) =
        0.25f * volts(row, left) + 0.5f * volts(row, column) + 0.25f * volts(row, right);
}

extern "C" __global__ void quantise(View2<const float> volts, View2<unsigned short> counts) {
    Place here = place_of_thread(volts);
    if (!volts.contains(here.row, here.column)) return;
    float rounded = volts(here.row, here.column) / VOLTS_PER_COUNT + DARK + 0.5f;
    counts(here.row, here.column) = (unsigned short)fminf(fmaxf(rounded, 0), 65535);
}
