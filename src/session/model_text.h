// model_text.h: the text of a model file, read once for several calls.
// Contract: LoadOptions::text, where it is set, is filled by the first call and read by the others, so that a model may
// come from a pipe. Leaves to others: what the text means.
#pragma once

#include <string>

#include "base/json.h"
#include "graphrun/model.h"

namespace graphrun {

// The same options, with a text to share.
LoadOptions reading_once(LoadOptions options);

json::Document read_document(const std::string& path, const LoadOptions& options);

}  // namespace graphrun
