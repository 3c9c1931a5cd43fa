// model_text.h: text of a model file, read once for several calls; for a safetensors file, the embedded model.
// Contract: the first call fills LoadOptions::text, if set, with the bytes of the file; later calls read it, so a model
// may come from a pipe. Not here: parsing of the text.
#pragma once

#include <string>

#include "base/json.h"
#include "graphrun/model.h"

namespace graphrun {

// Returns options that share the bytes of the model at `path`. If the file holds weights, they become the options'
// weights unless others are set.
LoadOptions reading_once(const std::string& path, LoadOptions options);

// `options`: from reading_once(). Throws Error for weights without a model.
json::Document read_document(const std::string& path, const LoadOptions& options);

}  // namespace graphrun
