// arguments.h: the parsed command line.
// Contract: parse() only reads; it throws Error (kind input, code "usage.*") if the line is invalid. Flags may be
// anywhere among the other words, take one value or none, and override environment variables. Not handled here: the
// table of flags (flags.h) and the verbs (verbs.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line/diagnostics.h"
#include "graphrun/checkpoint.h"
#include "graphrun/model.h"
#include "graphrun/session.h"

namespace graphrun::cli {

struct Arguments {
  std::string verb = "train";          // canonical name, also if an alias was typed
  std::string model;                   // path
  std::string word;                    // second word: data, completion's shell, help's verb
  bool man = false;                    // help
  bool help = false, version = false;  // if set, the other members are unused

  LoadOptions load;
  SessionOptions session;
  std::string save_weights;               // path; empty: none
  std::string column;                     // init: --label
  std::string report;                     // train, eval: path of the page; empty: none
  std::string output;                     // init, predict, plot, plan: path; empty: stdout
  std::vector<std::string> files;         // plot: paths
  std::vector<std::string> columns;       // plot: drawn; runs: printed; empty: automatic
  std::string x_column = "epoch";         // plot
  std::string log_axes;                   // plot: "x", "y", "xy"
  std::string title;                      // plot
  std::string picture, split, array;      // plot: of a model; empty: automatic. show: split
  std::vector<std::string> keep;          // predict: columns
  std::vector<std::string> more_weights;  // predict: weights files after the first, load.weights
  std::vector<std::string> grid;          // predict: axes, "u=-3:3:40"; empty: a data file
  bool has_header = true;                 // init
  std::int64_t window = 0;                // init: rows; 0: none
  std::string importance;                 // eval: a metric; empty: none
  bool coefficients = false;              // eval
  bool intervals = false;                 // train, eval
  bool labels = false;                    // predict
  bool probabilities = false;             // predict
  std::vector<std::string> logs;          // train: paths
  std::string tensorboard;                // train: path of a folder; empty: none
  bool hash_weights = false;              // train: in the logs
  std::uint64_t watch_every = 0;          // train: steps; 0: with each report
  bool nan_trace = true;                  // train
  std::string losses;                     // train: path; empty: none
  int ranks = 0;                          // train: processes; 0: one, or those of a launcher
  bool mpi = false;                       // train: the processes of mpirun, over MPI
  std::string profile_trace;              // train: path; empty: none
  std::optional<std::uint64_t> steps;     // verify, bench, predict
  bool assert_no_alloc = false;           // train, bench
  std::string certificate;                // train: path; empty: none
  bool svg = false, html = false;         // plan, show; plan
  std::string run_dir, run_name;          // train, sweep; empty: none
  std::string checkpoint_dir;             // train; empty: none
  CheckpointEvery checkpoint_every;       // train
  std::optional<int> checkpoint_keep;     // train
  std::string resume;                     // train: "auto", or a path; empty: start from the beginning
  std::vector<std::string> command;       // the command line
  std::vector<std::string> passed_on;     // sweep: flags passed to each training
  std::vector<std::string> over;          // sweep: PATH=VALUES
  int seeds = 1;                          // sweep
  bool folds = false;                     // sweep
  int halving = 0;                        // sweep: factor of successive halving; 0: off
  std::int64_t stop_epoch = 0;            // train: interrupt after this epoch; 0: never. No flag: set by sweep
  int ensemble = 0;                       // train: number of networks; 0: a single training
  int at_once = 0, jobs = 0;              // sweep: trainings in threads; 0: automatic. Processes; 0: threads
  int gpus = 0;                           // train, sweep: GPUs; 0: automatic
  std::string sort;                       // runs, sweep: a column; empty: none
  bool compare = false;                   // runs: settings, over seeds
  bool csv = false;                       // plan, runs, sweep
  std::vector<std::string> names;         // show: arrays; empty: all. runs: folders
  // eval: none: as stored with the weights
  std::optional<ThresholdRule> threshold;
  struct Show {
    bool gradients = false, dot = false, whole_step = false, rows = false, source = false, settings = false;
    bool values = false;     // over a batch
    bool arrays = false;     // arrays of --weights, without a model
    std::string of;          // differentiated expression; empty: the loss
    std::string save_array;  // path; empty: none
  } show;
  struct Plan {
    std::string lock, check;                // paths; empty: none
    std::string buffers;                    // path of a list of buffers, instead of a model
    std::optional<std::uint64_t> capacity;  // --buffers: in the unit of the list
    double time_limit = 10;                 // --buffers: seconds
  } plan;
  struct Verify {
    std::string against = "ref", dump, dump_to;  // dump: the name of a value; dump_to: a path, empty: none
    std::optional<double> tolerance;
    bool trajectory = false;
  } verify;
  struct Bench {
    std::uint64_t warmup = 10;  // number of steps before the measured ones
    std::optional<double> idle_gap_ms, deadline_us;
  } bench;
  struct Studio {
    int port = 0;  // 0: any free port
    bool browser = true;
  } studio;
  bool json = false;
  bool program = false;
  bool quiet = false;
  bool verbose = false;
};

Arguments parse(int argc, const char* const* argv);

// Reads only the format, for the errors of parse().
Diagnostics::Format diagnostics_format(int argc, const char* const* argv);

}  // namespace graphrun::cli
