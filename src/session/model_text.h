// model_text.h: the text of a model file, read once for several calls; of a safetensors file, the model inside.
// Contract: LoadOptions::text, where it is set, is filled with the file's bytes by the first call and read by the
// others, so that a model may come from a pipe. Leaves to others: what the text means.
#pragma once

#include <string>

#include "base/json.h"
#include "graphrun/model.h"

namespace graphrun {

// The same options for the model at `path`, with its bytes to share; if these are weights, they are those of the
// options unless there are others.
LoadOptions reading_once(const std::string& path, LoadOptions options);

// `options` are those of reading_once(). Throws Error: weights without a model.
json::Document read_document(const std::string& path, const LoadOptions& options);

}  // namespace graphrun
