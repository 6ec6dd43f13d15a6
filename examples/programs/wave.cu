extern "C" __global__ void wave(float c2, resident::View2<const float> now,
                                resident::View2<float> before) {
    long long n = resident::thread(), i = n / now.shape[1], j = n % now.shape[1];
    if (i < 1 || j < 1 || i >= now.shape[0] - 1 || j >= now.shape[1] - 1) return;
    float around = now(i - 1, j) + now(i + 1, j) + now(i, j - 1) + now(i, j + 1);
    before(i, j) = 2 * now(i, j) - before(i, j) + c2 * (around - 4 * now(i, j));
}
