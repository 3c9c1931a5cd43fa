// verify_models.h: small models that reach what the verifier looks at.
// Contract: each call builds the same model, with its data in memory; both train and predict. Leaves to
// others: what is verified of them (verify_*_test.cpp).
#pragma once

#include <limits>
#include <string>

#include "graphrun/model.h"

namespace graphrun::test {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Seven samples in batches of three: the third batch has one row. Square matrices, so that a wrong transposition or
// axis is not seen from shapes.
Model verified_model(std::string optimizer = "momentum");

// Classes, draws and elements that move: what verified_model() leaves out.
Model classifier();

}  // namespace graphrun::test
