// One thread per pixel; all threads count into the 256 bins.

extern "C" __global__ void histogram(resident::View2<const float> grey, unsigned *bins) {
    long long pixel = resident::thread();
    if (pixel >= grey.size()) return;
    // Values below black and NaN go to the first bin, values above white to the last.
    float scaled = grey.at(pixel) * 256.0f;
    int bin = scaled >= 255.0f ? 255 : scaled > 0.0f ? static_cast<int>(scaled) : 0;
    atomicAdd(&bins[bin], 1u);
}
