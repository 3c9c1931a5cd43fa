// sweep_plan.h: combinations of settings that `sweep` trains.
// Contract: --over PATH=VALUES takes a list (0.1,0.01; commas inside brackets do not separate) or an inclusive range:
// 4:64:2x multiplies, 1:9:+2 adds, 1:5 adds 1. The result is the Cartesian product; the last axis varies fastest.
// Throws Error (kind input). Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace graphrun::cli {

struct Axis {
  std::string path;  // "train.optimizer.adam.lr"
  std::vector<std::string> values;
};

using GridPoint = std::vector<std::string>;  // one value per axis

Axis axis_of(const std::string& over);
std::vector<GridPoint> settings_of(const std::vector<Axis>& axes);

// Rungs of successive halving (Jamieson and Talwalkar, 2016): each rung trains its settings up to `epochs` epochs, and
// the best of them continue. Every rung has 1/factor of the settings of the rung before (rounded up) and `factor` times
// its epochs. The last rung has at most `factor` settings and all epochs.
struct Rung {
  std::size_t settings = 0;
  std::int64_t epochs = 0;
};
std::vector<Rung> rungs_of(std::size_t settings, std::int64_t epochs, std::size_t factor);

struct SweepPlan {
  struct Trial {
    std::size_t setting = 0;
    std::uint64_t seed = 0;
    std::int64_t fold = 0;
    std::string name;
  };
  std::vector<Axis> axes;
  std::vector<GridPoint> settings;
  std::vector<Trial> trials;
  std::optional<std::uint64_t> split_seed;  // same for all runs, regardless of their seeds
  std::int64_t folds = 0;                   // trained for each combination and seed; 0: the model's own split
  std::vector<Rung> rungs;                  // for --halving; else empty
  std::vector<std::size_t> rung_of;         // per setting: last rung that it trains, from 1; empty without --halving
};

}  // namespace graphrun::cli
