// device.h: finding the GPU, and saying in one line what is missing when there is none.
// Contract: open_device() is the first thing of load() and the only place that looks at drivers and devices; nothing
// here runs when the library is loaded or when supports() is asked.
#pragma once

#include <string_view>

namespace graphrun::cuda {

// "", "0", "1", ...: the number of the device. Throws Error (kind input) for anything else.
int parse_device(std::string_view argument);

// Makes the device current. Throws Error (kind device): no driver, driver too old, no such device, no code for it.
void open_device(int device);

}  // namespace graphrun::cuda
