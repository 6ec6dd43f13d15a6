// One thread for each pixel; the 256 bins are counted by all of them at once.

extern "C" __global__ void histogram(resident::View2<const float> grey, unsigned *bins) {
    long long pixel = resident::thread();
    if (pixel >= grey.size()) return;
    // What is below black goes to the first bin, and so does what is no number; what is beyond white to the last.
    float scaled = grey.at(pixel) * 256.0f;
    int bin = scaled >= 255.0f ? 255 : scaled > 0.0f ? static_cast<int>(scaled) : 0;
    atomicAdd(&bins[bin], 1u);
}
