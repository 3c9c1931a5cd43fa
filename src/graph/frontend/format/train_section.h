// train_section.h: reads the section "train" of a model file.
// Contract: that of model_file.h. Plain settings are read by fields.h, optimizers by json_values.h.
#pragma once

#include <optional>

#include "base/json_reader.h"
#include "graph/frontend/expressions/expression.h"
#include "graph/frontend/format/model_file.h"

namespace graphrun {

// The node of a name, or of a constant. Returns nullopt if the value was reported or depends on a reported error.
std::optional<ir::NodeId> read_value_name(json::Reader& reader, const expression::Scope& scope, const json::Ref& at);

// Reads the section into file.model.train and the batch of the file, which has read the sections above. Without the
// names of the graph nothing that refers to them is read.
void read_train(json::Reader& reader, const json::Ref& at, const expression::Scope& scope, ModelFile& file);

}  // namespace graphrun
