/* c.h: graphrun from C and from every language that can call C.

   Errors. A function that can fail gives NULL or an error that the caller owns (gr_error_free). What it would have
   given is then untouched. Nothing is printed and no exception leaves the library; a handle or pointer that is NULL
   where it may not be is an error of kind GR_INPUT.
   Ownership. Handles belong to the caller until their _free function, which takes NULL. A text through `char**` is
   owned (gr_text_free); a `const char*` is valid as long as its handle. Buffers of values are the caller's.
   Threads. A handle belongs to one thread at a time; different handles are independent. Two functions may be called
   from any thread or signal handler while their session is in use: gr_session_cancel and gr_session_step.
   JSON. Options are an object whose keys the function lists; NULL or "" is {}. A key that is not known is an error.
   Compatibility. Functions are only added. Structs begin with struct_size, which the caller sets to sizeof: fields are
   only added at the end, and one that the caller does not have is as 0. gr_abi_version() grows with every addition. */
#ifndef GRAPHRUN_C_H
#define GRAPHRUN_C_H

/* NOLINTBEGIN(modernize-deprecated-headers): it is C */
#include <stddef.h>
#include <stdint.h>
/* NOLINTEND(modernize-deprecated-headers) */

#if defined(__GNUC__)
#define GR_API __attribute__((visibility("default")))
#else
#define GR_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define GR_ABI_VERSION 5
#define GR_MAX_RANK 8

typedef struct gr_error gr_error;
typedef struct gr_model gr_model;
typedef struct gr_session gr_session;

/* ABI version of the library; a program may use it if this is at least its own GR_ABI_VERSION. */
GR_API uint32_t gr_abi_version(void);
GR_API const char* gr_version(void); /* "0.2.0" */

/* ---- errors: the kinds are the exit codes of the command line */

typedef enum gr_kind {
  GR_RUN = 1,   /* the run failed: nonfinite loss, file that could not be written */
  GR_INPUT = 2, /* invalid model, data, options or arguments */
  GR_CHECK = 3, /* a requested check or limit failed */
  GR_DEVICE = 4 /* a device, its library or its memory is not available */
} gr_kind;

GR_API gr_kind gr_error_kind(const gr_error* error);
GR_API const char* gr_error_message(const gr_error* error); /* all diagnostics, as the command line prints them */
/* [{"code", "message", "hint", "file", "line", "column", "pointer", "source_line"}, ...]; line 0: unknown. */
GR_API const char* gr_error_json(const gr_error* error);
GR_API void gr_error_free(gr_error* error);

GR_API void gr_text_free(char* text);

/* ---- values */

typedef enum gr_dtype { GR_F32 = 0, GR_F64 = 1, GR_I32 = 2, GR_U64 = 3, GR_BOOL = 4 } gr_dtype; /* a bool is a byte */

typedef struct gr_type {
  gr_dtype dtype;
  int32_t rank; /* 0: a scalar */
  int64_t shape[GR_MAX_RANK];
} gr_type;

/* ---- models */

/* Loads a model file (model-format.md) and its data, or a safetensors weights file that contains its model. Options:
   "set": {"train.epochs": 5, ...}, as with --set; "data_dir"; "weights": initial weights file; "data": "values",
   "sizes" (enough to plan) or "none" (rows come from gr_model_set_data, or predictions only). */
GR_API gr_error* gr_model_load(const char* path, const char* options, gr_model** model);
/* The same for a model's text. Messages call it <text>; data paths are relative to the working directory. */
GR_API gr_error* gr_model_parse(const char* json, const char* options, gr_model** model);
GR_API void gr_model_free(gr_model* model);

/* Sets the column of an input in a split: "train", "validation", "test". Dimension 0 of `type` counts the samples and
   is the same for all columns of a split. Values are copied, in original units; gr_session_open applies the model's
   "transform", fitted to the split "train" unless statistics came with weights or with data that were read. If the
   input lists table columns, a row has one number per column (c-api.md, "Rows"). An unknown input is an error. Since
   version 4, values of an f32 input may be f64. */
GR_API gr_error* gr_model_set_data(gr_model* model, const char* split, const char* input, const gr_type* type,
                                   const void* values);

/* {"name", "inputs": [{"name", "dtype", "shape", "target": false}], "outputs": [{"name", "target", "classes": false,
   "scores": "plain", "softmax_logits" or "sigmoid_logits", "labels", "multi_label"}]}, before a session takes the
   model. Shapes are per sample; no output depends on a target; labels are class labels. "multi_label": each value is a
   label of its own. "columns" of an input are the table columns that it lists: [{"name", "words"}], with their
   categorical values. Since version 2. */
GR_API gr_error* gr_model_describe(gr_model* model, char** json);

/* ---- sessions */

/* Plans the model and allocates all memory. Takes the model's content, even on failure: afterwards it can only be
   freed. Errors in the options leave the model unchanged.
   Options: "executor": "cpu", "cuda:1", "auto", path of a plug-in; "target"; "threads"; "jit": "prefer", "require" or
   "off"; "tiling"; "fuse": false; "passes": false; since version 2 "rows_vary": ["train"], the splits of
   gr_session_set_rows. */
GR_API gr_error* gr_session_open(gr_model* model, const char* options, gr_session** session);
GR_API void gr_session_free(gr_session* session);

/* {"model", "executor", "target", "math", "arena_bytes", "inputs": [{"name", "dtype", "shape"}], "outputs", "states":
   [{"name", "kind", "dtype", "shape", "bytes"}], "splits": [{"name", "samples"}], "fallbacks", "objectives": ["name"],
   "counters": {"allocations": 2}}. Shapes of inputs and outputs are those of a prediction batch. Counters have names of
   the executor: "allocations" counts device memory allocations and stays constant from the first step on. "objectives"
   and "counters" since version 3. An output with decision thresholds has "thresholds": the smallest probabilities at
   which the second class, or each label, is predicted. */
GR_API gr_error* gr_session_describe(gr_session* session, char** json);

typedef struct gr_report {
  size_t struct_size;
  int64_t epoch, epochs; /* finished, total */
  uint64_t step;
  double loss;            /* mean over the samples of the epoch */
  double validation_loss; /* NaN: not evaluated after this epoch */
  double seconds, steps_per_second;
  /* Since version 3: mean loss of each objective over the samples of the epoch, in the order of gr_session_describe's
     "objectives". Valid during the call. */
  size_t objective_count; /* 0: there is one loss */
  const double* objectives;
} gr_report;

typedef struct gr_train_options {
  size_t struct_size;
  int (*on_report)(void* user, const gr_report* report); /* in the calling thread; nonzero ends training */
  void* user;
} gr_train_options;

typedef struct gr_train_result {
  size_t struct_size;
  int64_t epochs;
  uint64_t steps;
  double seconds;
  int cancelled;
} gr_train_result;

/* Trains for the model's epochs; `options` and `result` may be NULL. A step allocates nothing. A callback may read,
   write, predict and evaluate; it may not train or advance the session. */
GR_API gr_error* gr_session_train(gr_session* session, const gr_train_options* options, gr_train_result* result);
/* Ends a running gr_session_train after its steps in flight; otherwise no effect. */
GR_API void gr_session_cancel(gr_session* session);

typedef struct gr_train_many_options {
  size_t struct_size;
  size_t at_once; /* sessions that train concurrently, each in a thread; 0: one per core */
  /* In the calling thread, one call at a time; `network` is the index of the session, which waits meanwhile. Positive
     ends its training, negative that of all sessions. */
  int (*on_report)(void* user, size_t network, const gr_report* report);
  void* user;
} gr_train_many_options;

/* Trains `count` different sessions, several at a time, with the bits of gr_session_train on each. A failure of one
   does not affect the others: errors[i] is NULL or the error of sessions[i], which the caller owns. `options` and
   `results` may be NULL; results[0].struct_size is that of each element. Open sessions on "cpu" with {"threads": 1}. A
   callback may use the session of its network as one of gr_session_train. On an error of the call itself nothing is
   trained or given. Since version 5. */
GR_API gr_error* gr_train_many(gr_session* const* sessions, size_t count, const gr_train_many_options* options,
                               gr_train_result* results, gr_error** errors);

/* Runs `steps` training steps without checking the loss. */
GR_API gr_error* gr_session_advance(gr_session* session, uint64_t steps);

typedef struct gr_advanced {
  size_t struct_size;
  uint64_t steps; /* steps run */
  int finite;     /* 0: one of their last 4096 losses is not finite */
  double loss;    /* last loss; NaN before the first step */
} gr_advanced;

/* Runs at most `most` training steps until a CLOCK_MONOTONIC time in nanoseconds (0: no deadline). A step starts if the
   fastest so far would end in time, and runs to its end. `done` may be NULL. Since version 2, like the next four. */
GR_API gr_error* gr_session_advance_until(gr_session* session, uint64_t most, int64_t deadline, gr_advanced* done);
GR_API uint64_t gr_session_step(const gr_session* session); /* current or last step, from 1; 0 before the first */
GR_API gr_error* gr_session_loss(gr_session* session, double* loss); /* loss of that step; NaN before the first */

/* {"loss": 0.1, "metrics": {"accuracy": 0.9}} over a whole split; nonfinite values are null. */
GR_API gr_error* gr_session_evaluate(gr_session* session, const char* split, char** json);

/* ---- states by number: after gr_session_find these functions allocate nothing, unless they fail */

typedef uint32_t gr_value;

GR_API gr_error* gr_session_find(gr_session* session, const char* name, gr_value* value);
GR_API gr_error* gr_session_type(gr_session* session, gr_value value, gr_type* type);
/* All elements, row-major; `bytes` must be their exact size. A data set of 8-bit images is f32 here, even if it is
   stored in a byte per element; then gr_session_write fails (code "state.code") for other values than scaled bytes. A
   split of "rows_vary" takes any values. */
GR_API gr_error* gr_session_read(gr_session* session, gr_value value, void* to, size_t bytes);
GR_API gr_error* gr_session_write(gr_session* session, gr_value value, const void* from, size_t bytes);
/* Writes rows of dimension 0 from `first` on, as many as `bytes` holds. Cost depends on these rows only. */
GR_API gr_error* gr_session_write_rows(gr_session* session, gr_value value, int64_t first, const void* from,
                                       size_t bytes);

/* Sets how many samples of a split are in use, counted from its first, up to those of its columns. Requires "rows_vary"
   in gr_session_open. Not allowed in a callback of gr_session_train. */
GR_API gr_error* gr_session_set_rows(gr_session* session, const char* split, int64_t rows);

/* State that determines the rest of a training run, without data and row counts, in the caller's buffer of exactly
   gr_session_state_bytes. A restored run is bitwise identical. Rejects a state with other parameter names or shapes
   without changing anything. Not allowed in a callback of gr_session_train. */
GR_API gr_error* gr_session_state_bytes(gr_session* session, size_t* bytes);
GR_API gr_error* gr_session_save_state(gr_session* session, void* to, size_t bytes);
GR_API gr_error* gr_session_load_state(gr_session* session, const void* from, size_t bytes);

typedef struct gr_const_bytes {
  const void* data;
  size_t size;
} gr_const_bytes;
typedef struct gr_bytes {
  void* data;
  size_t size;
} gr_bytes;

/* Any number of rows: inputs and the first outputs in the order of gr_session_describe, with their dtypes, in original
   units. Allocates nothing unless it fails, or "transform" changes columns of an input. */
GR_API gr_error* gr_session_predict(gr_session* session, const gr_const_bytes* inputs, size_t input_count,
                                    const gr_bytes* outputs, size_t output_count);

/* The same for inputs of f32 that are given as f64: they are transformed before they are rounded, which keeps the
   digits of a column such as 1.7e9 + row. Since version 4. */
GR_API gr_error* gr_session_predict_double(gr_session* session, const gr_const_bytes* inputs, size_t input_count,
                                           const gr_bytes* outputs, size_t output_count);

/* ---- DLPack: tensors of other libraries; its header is not needed here. Since version 2 */

struct DLManagedTensor;

/* Gives type and data of a host tensor without copying. It must be row-major without gaps, with a dtype of gr_dtype,
   else an error. The caller keeps the tensor, which must outlive the use of `data`. */
GR_API gr_error* gr_dlpack_view(const struct DLManagedTensor* tensor, gr_type* type, const void** data);
/* Wraps the caller's values as a tensor for another library. Its deleter calls release(user), if not NULL, and frees
   the tensor. */
GR_API gr_error* gr_dlpack_wrap(const gr_type* type, void* data, void (*release)(void* user), void* user,
                                struct DLManagedTensor** tensor);

/* ---- weights */

/* Writes safetensors if the path ends in .safetensors, else NPZ; replaces the file atomically. */
GR_API gr_error* gr_session_save_weights(gr_session* session, const char* path);
GR_API gr_error* gr_session_load_weights(gr_session* session, const char* path);
GR_API gr_error* gr_session_weights_hash(gr_session* session, char hash[17]); /* 16 hex digits and a terminating 0 */

/* ---- without a session */

/* Compares an executor with the reference, step by step; takes the model's content like gr_session_open. Options as
   there, and "against", "steps". Gives {"passed", "executor", "against", "values", "fused_values", "difference": text
   or null}. A difference is not an error. */
GR_API gr_error* gr_verify(gr_model* model, const char* options, char** json);
/* {"devices": [{"id": "cuda:0", "executor", "name", "capability", "units", "driver", "memory_free", "memory_total"}],
   "missing": [{"executor", "reason"}]} */
GR_API gr_error* gr_devices(char** json);
/* Text of `graphrun help TOPIC`: "adam", "dense", "optimizers". */
GR_API gr_error* gr_help(const char* topic, char** text);

#ifdef __cplusplus
}
#endif

#endif
