// `__nv_bfloat16` on the host, and `__half`, as in the toolkit.

#ifndef RESIDENT_CUDA_BF16_H
#define RESIDENT_CUDA_BF16_H

#include "cuda_fp16.h"

namespace resident {
namespace host {
using bfloat16_format = small_float<7, 127>;
} // namespace host
} // namespace resident

RESIDENT_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat162, bfloat16, resident::host::bfloat16_format)

using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

#endif // RESIDENT_CUDA_BF16_H
