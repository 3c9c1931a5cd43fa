// import.h: converts an ONNX file to a model.
// Contract: see import_onnx() in deployment.h; `file` is the file name for messages.
#pragma once

#include <string>

#include "graphrun/deployment.h"

namespace graphrun::onnx {

ImportedModel imported(const std::string& bytes, const std::string& file);

}  // namespace graphrun::onnx
