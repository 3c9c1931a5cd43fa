// canonical.h: the canonical form of a model file, with every default filled in.
// Contract: the file was read and built without errors. Reading the canonical form gives the same model, and its
// canonical form is itself. Data sources are copied as given. base/json_text.h does the layout.
#pragma once

#include "base/json.h"
#include "graph/frontend/format/model_file.h"

namespace graphrun {

json::Value canonical(const ModelFile& file, Model& model);

// Formats one entry of the graph for listings: "h = tanh(x @ W)", "h2 = dense(h, units=10, ...)".
std::string entry_text(const json::Value& canonical_entry);

}  // namespace graphrun
