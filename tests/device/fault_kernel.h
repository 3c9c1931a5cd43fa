// fault_kernel.h: makes a kernel of this process fault, which ends its use of the device.
#pragma once

bool fault();  // whether CUDA noticed
