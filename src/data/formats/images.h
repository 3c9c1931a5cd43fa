// images.h: folders of PNG files as a data source: {"images": "photos"} has a folder for each class.
// Contract: classes and files in byte order of their names; all images have the same size and channels. Throws Error
// that names the file. Not here: decoding (png.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graphrun/types.h"

namespace graphrun::data {

struct ImageFolder {
  std::string path;
  std::vector<std::string> files;    // relative to `path`: "cat/1.png"
  std::vector<std::string> classes;  // class of each file; empty if the folder has no class folders
  Shape shape;                       // (files, height, width, channels), by the header of the first file
};

// Lists the files, and opens the first. `needs_classes`: false accepts a single file, and files without class folders.
ImageFolder list_images(const std::string& path, bool needs_classes);

std::vector<std::uint8_t> read_pixels(const ImageFolder& folder);

}  // namespace graphrun::data
