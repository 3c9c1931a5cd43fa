// image_template.h: a starter model file for a folder of PNG files: a convolutional classifier of its classes.
// Contract: opens one image. Throws Error if the folder is not a data source, or has one class.
#pragma once

#include <string>

#include "graphrun/model_template.h"

namespace graphrun {

ModelTemplate image_template(const std::string& folder, const std::string& source);

}  // namespace graphrun
