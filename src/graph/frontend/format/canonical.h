// canonical.h: a model file said again with every default filled in.
// Contract: the file has been read and built without a mistake. Reading the canonical form gives the same model, and
// its canonical form is itself. Sources of data stand as they were given. Leaves to others: layout (base/json_text.h).
#pragma once

#include "base/json.h"
#include "graph/frontend/format/model_file.h"

namespace graphrun {

json::Value canonical(const ModelFile& file, Model& model);

// One entry of the graph as text, for listings: "h = tanh(x @ W)", "h2 = dense(h, units=10, ...)".
std::string entry_text(const json::Value& canonical_entry);

}  // namespace graphrun
