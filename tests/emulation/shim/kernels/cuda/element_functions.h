// element_functions.h: the real header of that name (src/kernels/cuda/element_functions.h) for a host.
// Contract: same meaning, except that floats out of integer range saturate only on a device. Leaves to others: ptx.h.
#pragma once

#define __device__
#define __forceinline__ inline
#include_next "kernels/cuda/element_functions.h"
#undef __forceinline__
#undef __device__
