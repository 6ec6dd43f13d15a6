// One thread per pixel of the sheet. The colours and the gap are those of `sheet.rs`.

extern "C" __global__ void sheet(resident::View3<const unsigned char> photo,
                                 resident::View2<const float> strength,
                                 resident::View3<const unsigned char> overlay,
                                 resident::View3<unsigned char> sheet) {
    constexpr long long GAP = 8;
    constexpr unsigned char GAP_COLOUR = 255;
    constexpr float STRENGTH_GAIN = 3.0f;
    long long row = blockIdx.y * (long long)blockDim.y + threadIdx.y;
    long long column = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (!sheet.contains(row, column, 0)) return;
    long long columns = photo.shape[1], middle = columns + GAP, last = 2 * (columns + GAP);
    for (int channel = 0; channel < 3; ++channel) {
        unsigned char value = GAP_COLOUR;
        if (column < columns) {
            value = photo(row, column, channel);
        } else if (column >= middle && column < middle + columns) {
            float shade = fminf(strength(row, column - middle) * STRENGTH_GAIN * 255.0f, 255.0f);
            value = shade > 0.0f ? static_cast<unsigned char>(shade) : 0;
        } else if (column >= last) {
            value = overlay(row, column - last, channel);
        }
        sheet(row, column, channel) = value;
    }
}
