// png.h: decodes PNG files with libpng, which is opened on first use.
// Contract: 8 bits per channel, grey or RGB. A palette becomes RGB; grey of 1, 2 or 4 bits becomes 8. Any damage is an
// Error that names the file, and so are 16 bits, transparency, and a missing libpng. Not here: folders (images.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "graphrun/types.h"

namespace graphrun::data {

// Returns (height, width, channels). If that is `expected`, also writes the pixels in this order: expected.elements()
// bytes.
Shape read_png(const std::string& path, std::string_view bytes, const Shape& expected, std::uint8_t* pixels);

}  // namespace graphrun::data
