// import.h: an ONNX file that was read, as a model.
// Contract: deployment.h's of import_onnx(); `file` is its name, for messages.
#pragma once

#include <string>

#include "graphrun/deployment.h"

namespace graphrun::onnx {

ImportedModel imported(const std::string& bytes, const std::string& file);

}  // namespace graphrun::onnx
