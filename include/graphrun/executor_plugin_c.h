/* executor_plugin_c.h: an executor in a shared library, written in C or in any language that can export C functions.

   The library exports graphrun_executor_plugin_c(), which returns a table of functions. `--executor=./libmine.so` loads
   it. executor-plugins.md is the guide; kernels.md lists the ops with their operands and attributes.
   Program. Arrays of plain structs: buffers, phases and their steps. Steps run in order; each reads its inputs and
   writes its output. The plug-in allocates one arena, which contains all buffers at fixed offsets.
   Errors. A function that can fail returns 0 or a gr_kind. It may write a one-line message to `why`, which has space
   for GR_WHY bytes and initially contains "". If a C++ exception leaves a function of the plug-in, it becomes an error.
   Functions of the host never throw.
   Ownership. Pointers from the host are valid until the function returns; those that load() receives, until unload().
   Arrays that the plug-in returns must be valid until the next call of the same function, and its table for ever: the
   host never closes the library.
   Threads. Several threads may use an object from create() at once. One thread at a time uses an object from load().
   Compatibility. New versions only add fields, at the end of a struct. Each struct therefore begins with struct_size,
   and GR_AT reads arrays by their stride. A field that the other side does not have counts as 0. gr_array and gr_type
   never change. */
/* NOLINTBEGIN(modernize-deprecated-headers,modernize-use-nullptr): it is C */
#ifndef GRAPHRUN_EXECUTOR_PLUGIN_C_H
#define GRAPHRUN_EXECUTOR_PLUGIN_C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "graphrun/c.h" /* gr_dtype, gr_type, gr_kind, GR_API */

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this header. gr_executor.version is the version that a plug-in needs: an older host rejects the plug-in. A
   plug-in that can also run on an older host checks gr_host.version and sets a lower version. */
#define GR_EXECUTOR_VERSION 1

#define GR_WHY 1024
#define GR_MAX_OPERANDS 8
#define GR_NO_BUFFER UINT32_MAX

typedef struct gr_array {
  const void* items;
  size_t count;
  size_t stride; /* bytes from one item to the next */
} gr_array;

/* True if the struct, which the other side made, has this field. */
#define GR_HAS(type, object, field) ((object)->struct_size >= offsetof(type, field) + sizeof(((type*)0)->field))
#define GR_AT(type, array, i) ((const type*)((const char*)(array).items + (size_t)(i) * (array).stride))

/* ---- steps */

typedef struct gr_tensor_type {
  gr_type type;
  int64_t rows; /* rows per sample in dimension 0, the batch; 0: dimension 0 is not the batch */
} gr_tensor_type;

typedef struct gr_attribute {
  const char* name;
  int64_t integer; /* a flag is 0 or 1; a `key` uses all 64 bits */
  double number;   /* the same value as a double */
  const int32_t* list;
  size_t list_count; /* 0: not a list */
} gr_attribute;

typedef struct gr_signature {
  size_t struct_size;
  const char* op;               /* "matmul" */
  gr_array inputs;              /* gr_tensor_type */
  const gr_tensor_type* output; /* inputs and output are row-major and dense */
  gr_array attributes;          /* gr_attribute */
  int32_t partial_rows;         /* 1: a batch may be shorter than the capacity, so the step has a row count */
  const void* params;           /* the attributes in the form that the library's kernels take */
} gr_signature;

/* ---- the program

   Rows of a batch beyond its row count are zero in the inputs of a step, and the step must leave them zero in its
   output. Reductions over rows skip them. */

typedef enum gr_buffer_kind { /* kinds before GR_ACTIVATION keep their values between steps and phases */
                              GR_DATA = 0,
                              GR_CONSTANT = 1,
                              GR_PARAMETER = 2,
                              GR_SLOT = 3,
                              GR_COUNTER = 4,
                              GR_METRIC = 5,
                              GR_ACTIVATION = 6,
                              GR_WORKSPACE = 7
} gr_buffer_kind;

typedef struct gr_buffer {
  const char* name;
  const gr_tensor_type* type;
  int32_t kind;     /* gr_buffer_kind */
  int32_t poll;     /* 1: the host reads it after every run() */
  uint32_t storage; /* owner of the bytes: its own number, or that of the buffer that it views or reuses */
  uint64_t offset;  /* bytes from the start of the arena */
  uint64_t bytes;
} gr_buffer;

typedef struct gr_step {
  const char* name;
  const gr_signature* signature;
  gr_array inputs;    /* uint32_t: buffers */
  uint32_t output;    /* may share the storage of an input if the op allows it (kernels.md) */
  uint32_t workspace; /* scratch memory that supports() requested, or GR_NO_BUFFER */
  uint32_t row_count; /* one int32: samples in this batch; GR_NO_BUFFER: always the capacity */
} gr_step;

typedef struct gr_phase {
  const char* name; /* "train", "evaluate.test", "predict" */
  int64_t capacity; /* samples of a full batch */
  gr_array steps;   /* gr_step, in order */
} gr_phase;

typedef struct gr_initial {
  uint32_t buffer;
  const void* bytes;
  size_t size;
} gr_initial;

typedef struct gr_program {
  size_t struct_size;
  const char* name;
  const char* target;
  uint64_t arena_bytes;
  gr_array buffers; /* gr_buffer, by number */
  gr_array phases;  /* gr_phase, by number */
  gr_array initial; /* gr_initial: load() writes these, and sets all other bytes to zero */
} gr_program;

/* ---- functions of the host */

typedef struct gr_kernel gr_kernel;     /* a kernel of the library, bound to its operands */
typedef struct gr_progress gr_progress; /* progress of an object from load() */

/* Addresses in host memory. `workspace` must be aligned to 256 bytes. */
typedef struct gr_operands {
  size_t struct_size;
  const void* inputs[GR_MAX_OPERANDS];
  void* output;
  void* workspace;
  const int32_t* row_count; /* null: the batch is full */
  int64_t capacity;
} gr_operands;

typedef struct gr_host {
  size_t struct_size;
  uint32_t version;    /* GR_EXECUTOR_VERSION of the library that loads the plug-in */
  const char* library; /* version of that library, "0.2.0" */

  /* Returns the library's kernel for a step, bound to these operands: that of `cpu`, or of `ref` if `cpu` has none. If
     there is no kernel, returns null and writes the reason to `why`. Use it for steps for which supports() returned
     GR_FALLBACK. The caller frees the kernel. Running it allocates nothing. */
  gr_kernel* (*find_kernel)(const gr_signature* step, const gr_operands* operands, char* why);
  void (*run_kernel)(const gr_kernel* kernel);
  void (*free_kernel)(gr_kernel* kernel); /* null is allowed */

  /* Writes `count` 32-bit words of the random stream of `key` at a step, from word `first` on. Random ops use them. */
  void (*random_bits)(uint64_t key, uint64_t step, uint64_t first, size_t count, uint32_t* words);
  /* Returns the position of element i, out of n, in the shuffled order of an epoch. `minibatch` and `permutation` use
     this order. */
  uint64_t (*permuted)(uint64_t i, uint64_t n, uint64_t key, uint64_t epoch);

  /* Reports an allocation of device memory or pinned memory, so that --assert-no-alloc detects it. `call` names the
     function, such as "cudaMalloc", and must be valid for ever. */
  void (*report_allocation)(const char* call, uint64_t bytes);
  /* Call this at the start of each of the n repetitions of run(), with its number from 0. Time limits and progress
     reports depend on it. */
  void (*begin_step)(gr_progress* progress, uint64_t step);
} gr_host;

/* ---- functions of the plug-in */

typedef enum gr_answer {
  GR_NO = 0,      /* the plug-in does not run the step; `why` has the reason */
  GR_YES = 1,     /* the plug-in has its own kernel */
  GR_FALLBACK = 2 /* use the library's kernel (gr_host.find_kernel); the host plans its workspace */
} gr_answer;

typedef struct gr_device {
  const char* id; /* value of --executor that selects this device */
  const char* name;
  const char* capability; /* may be null, like driver */
  const char* driver;
  int32_t units;                      /* number of cores or multiprocessors */
  uint64_t memory_free, memory_total; /* bytes; 0: unknown */
} gr_device;

typedef struct gr_counter {
  const char* name;
  uint64_t value;
} gr_counter;

typedef struct gr_executor {
  size_t struct_size; /* sizeof(gr_executor) */
  uint32_t version;   /* at most GR_EXECUTOR_VERSION */
  const char* name;   /* lower-case letters, digits, _ and - */

  /* const char*: targets for which plans can be made (default: the first; --target selects another). If the array is
     empty, the only target is "host". */
  gr_array targets;

  /* Creates the object `self`. `argument` is the text after the colon in --executor=./libmine.so:argument, or "". If
     this pointer is null, `self` is null. */
  int (*create)(const char* argument, void** self, char* why);
  void (*destroy)(void* self); /* may be null */

  /* Returns a gr_answer. For GR_YES, also writes the bytes of scratch memory that the step needs. Must be a pure
     function that works without a device. */
  int (*supports)(void* self, const gr_signature* step, const char* target, uint64_t* workspace_bytes, char* why);

  /* Allocates all memory for the program. supports() has accepted its steps, and each has the workspace that supports()
     requested. */
  int (*load)(void* self, const gr_program* program, gr_progress* progress, void** loaded, char* why);
  void (*unload)(void* loaded);

  /* Runs all steps of a phase n times without allocating memory. All results can be read after it returns. */
  int (*run)(void* loaded, uint32_t phase, uint64_t n, char* why);
  /* Runs steps [first, last) of a phase once, for `graphrun verify` and graphrun-conformance. */
  int (*run_steps)(void* loaded, uint32_t phase, uint32_t first, uint32_t last, char* why);

  /* Copy bytes [first, first + size) of a buffer from and to host memory. The buffer contains this range. */
  int (*write)(void* loaded, uint32_t buffer, uint64_t first, const void* from, size_t size, char* why);
  int (*read)(void* loaded, uint32_t buffer, uint64_t first, void* to, size_t size, char* why);

  /* ---- optional functions, which may be null */

  /* Returns the devices (gr_device) that `graphrun devices` lists. If a device cannot be used, `why` has the reason. */
  gr_array (*devices)(void* self, char* why);
  /* Returns counters (gr_counter) since load(), with the same names in each call. */
  gr_array (*counters)(void* loaded);
} gr_executor;

/* The function that a plug-in exports. It returns null if the plug-in does not support this host. The host calls it
   each time the library is named. */
GR_API const gr_executor* graphrun_executor_plugin_c(const gr_host* host);

/* ---- helpers for both sides, which only read the structs above */

/* Returns the attribute with this name, or null. */
static inline const gr_attribute* gr_find_attribute(const gr_signature* step, const char* name) {
  size_t i;
  for (i = 0; i < step->attributes.count; ++i) {
    const gr_attribute* attribute = GR_AT(gr_attribute, step->attributes, i);
    if (strcmp(attribute->name, name) == 0) return attribute;
  }
  return NULL;
}
/* Returns the value of an integer attribute or flag, or 0 if the step does not have it. */
static inline int64_t gr_integer(const gr_signature* step, const char* name) {
  const gr_attribute* attribute = gr_find_attribute(step, name);
  return attribute == NULL ? 0 : attribute->integer;
}

/* Returns the addresses of a step's operands in an arena in host memory that uses the program's offsets. */
static inline gr_operands gr_operands_in(void* arena, const gr_program* program, const gr_phase* phase,
                                         const gr_step* step) {
  gr_operands at;
  size_t i;
  memset(&at, 0, sizeof at);
  at.struct_size = sizeof at;
  for (i = 0; i < step->inputs.count && i < GR_MAX_OPERANDS; ++i)
    at.inputs[i] = (char*)arena + GR_AT(gr_buffer, program->buffers, *GR_AT(uint32_t, step->inputs, i))->offset;
  at.output = (char*)arena + GR_AT(gr_buffer, program->buffers, step->output)->offset;
  if (step->workspace != GR_NO_BUFFER)
    at.workspace = (char*)arena + GR_AT(gr_buffer, program->buffers, step->workspace)->offset;
  if (step->row_count != GR_NO_BUFFER)
    at.row_count = (const int32_t*)(void*)((char*)arena + GR_AT(gr_buffer, program->buffers, step->row_count)->offset);
  at.capacity = phase->capacity;
  return at;
}
/* Returns the number of samples in this batch, limited to the range from 0 to the capacity. */
static inline int64_t gr_samples(const gr_operands* at) {
  const int64_t count = at->row_count == NULL ? at->capacity : *at->row_count;
  return count < 0 ? 0 : count < at->capacity ? count : at->capacity;
}
/* Returns the number of valid rows in dimension 0 of an operand of this type. */
static inline int64_t gr_rows_of(const gr_operands* at, const gr_tensor_type* type) {
  if (type->rows > 0) return type->rows * gr_samples(at);
  return type->type.rank == 0 ? 1 : type->type.shape[0];
}

#ifdef __cplusplus
}
#endif

#endif
/* NOLINTEND(modernize-deprecated-headers,modernize-use-nullptr) */
