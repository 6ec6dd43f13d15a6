// Particles in a square, which they leave nowhere.
extern "C" __global__ void drift(float time, resident::View1<float> at, resident::View1<float> v) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (!at.contains(i)) return;
    float next = at(i) + v(i) * time;
    if (next < 0 || next >= 1) {
        v(i) = -v(i);
        next = fminf(fmaxf(next, 0.0f), 0.999999f);
    }
    at(i) = next;
}
