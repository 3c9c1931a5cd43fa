// device.h: finding the GPU, and saying in one line what is missing when there is none.
// Contract: open_device() is the first thing of load(); only it and list_devices() look at drivers and devices; nothing
// here runs when the library is loaded or when supports() is asked.
#pragma once

#include <string_view>

#include "graphrun/executor.h"

namespace graphrun::cuda {

// "", "0", "1", ...: the number of the device. Throws Error (kind input) for anything else.
int parse_device(std::string_view argument);

// Makes the device current. Throws Error (kind device): no driver, driver too old, no such device, no code for it.
void open_device(int device);

// Opens each device to ask for its free memory; the present one stays so. Does not throw for what is missing.
DeviceList list_devices();

}  // namespace graphrun::cuda
