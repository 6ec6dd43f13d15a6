// `__half` on the host.

#ifndef RESIDENT_CUDA_FP16_H
#define RESIDENT_CUDA_FP16_H

#include "half_on_host.hpp"

namespace resident {
namespace host {
using half_format = small_float<10, 15>;
} // namespace host
} // namespace resident

RESIDENT_SMALL_FLOAT(__half, __half2, half, resident::host::half_format)

using half = __half;
using half2 = __half2;
using nv_half = __half;
using nv_half2 = __half2;
using __nv_half = __half;
using __nv_half2 = __half2;

#endif // RESIDENT_CUDA_FP16_H
