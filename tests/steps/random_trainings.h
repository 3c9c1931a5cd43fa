// random_trainings.h: models whose training is drawn from a seed.
// Contract: the same file for the same seed; the data are random and part of it, so that load_model() takes it
// wherever it lies. Rows are few, as an emulator needs them: at most 150. Every draw gives a model that the builder
// takes. Leaves to others: graphs without a training (support/random_graph.h).
#pragma once

#include <cstdint>
#include <string>

namespace graphrun::test {

std::string random_training(std::uint64_t seed);

}  // namespace graphrun::test
