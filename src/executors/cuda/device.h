// device.h: finds the GPU, or reports in one line what is missing.
// Contract: load() calls open_device() first. Only it and list_devices() access drivers and devices; nothing here runs
// when the library is loaded or in supports().
#pragma once

#include <string_view>

#include "graphrun/executor.h"

namespace graphrun::cuda {

// Parses a device number: "", "0", "1", ... Throws Error (kind input) for anything else.
int parse_device(std::string_view argument);

// Makes the device current. Throws Error (kind device): no driver, driver too old, no such device, no code for it.
void open_device(int device);

// Opens each device to query its free memory, then restores the current one. Does not throw if something is missing.
DeviceList list_devices();

}  // namespace graphrun::cuda
