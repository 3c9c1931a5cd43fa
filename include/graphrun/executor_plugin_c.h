/* executor_plugin_c.h: an executor as a shared library, written in C or in what can export a C function.

   The library exports graphrun_executor_plugin_c(), which gives a table of functions. `--executor=./libmine.so` loads
   it; executor-plugins.md is the guide, kernels.md lists the ops, their operands and attributes.
   Program. Arrays of plain structs: buffers, phases and their steps. Steps run one after the other, each reads its
   inputs and writes its output. All buffers lie in one arena that the plug-in allocates, and keep their places.
   Errors. A function that can fail returns 0 or a gr_kind; it may write what is wrong, one line, to `why`, which has
   room for GR_WHY bytes and holds "" before. C++ exceptions may leave a function of the plug-in: they become errors.
   Functions of the host throw nothing.
   Ownership. What the host hands over lives until the function returns, what load() is given until unload(). What the
   plug-in hands over lives until it is asked again, and its table for ever: the library is never closed.
   Threads. What create() made may be used by several threads at once, what load() made by one at a time.
   Compatibility. Fields are only added, and at the end: structs begin with struct_size, and arrays are walked with
   GR_AT, which goes by their stride. A field that the other side does not have is as 0. gr_array and gr_type stay. */
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

/* Of this header. gr_executor.version is the version that a plug-in needs: a host that is older refuses it. One that
   can do with less looks at gr_host.version first, and says so. */
#define GR_EXECUTOR_VERSION 1

#define GR_WHY 1024
#define GR_MAX_OPERANDS 8
#define GR_NO_BUFFER UINT32_MAX

typedef struct gr_array {
  const void* items;
  size_t count;
  size_t stride; /* bytes from one item to the next */
} gr_array;

/* Whether the other side's struct has the field. */
#define GR_HAS(type, object, field) ((object)->struct_size >= offsetof(type, field) + sizeof(((type*)0)->field))
#define GR_AT(type, array, i) ((const type*)((const char*)(array).items + (size_t)(i) * (array).stride))

/* ---- what a step is */

typedef struct gr_tensor_type {
  gr_type type;
  int64_t rows; /* not 0: dimension 0 is the batch, with so many rows for each of its samples */
} gr_tensor_type;

typedef struct gr_attribute {
  const char* name;
  int64_t integer; /* a flag is 0 or 1; of a `key` all 64 bits */
  double number;   /* the same as a number */
  const int32_t* list;
  size_t list_count; /* 0: it is no list */
} gr_attribute;

typedef struct gr_signature {
  size_t struct_size;
  const char* op;               /* "matmul" */
  gr_array inputs;              /* gr_tensor_type */
  const gr_tensor_type* output; /* both row-major and dense */
  gr_array attributes;          /* gr_attribute */
  int32_t partial_rows;         /* batches may be shorter than the capacity: the step has a row count */
  const void* params;           /* the attributes as the library's kernels take them */
} gr_signature;

/* Of a Program. The rows of a batch past its count are zero in what a step reads, and it leaves them zero in what it
   writes; reductions over rows leave them out. */

typedef enum gr_buffer_kind { /* those before GR_ACTIVATION keep their values between steps and phases */
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
  int32_t poll;     /* the host reads it after every run() */
  uint32_t storage; /* whose bytes these are: its own number, or that of the buffer it is a view of or reuses */
  uint64_t offset;  /* of the arena, in bytes */
  uint64_t bytes;
} gr_buffer;

typedef struct gr_step {
  const char* name;
  const gr_signature* signature;
  gr_array inputs;    /* uint32_t: buffers */
  uint32_t output;    /* may be the storage of an input, where the op allows that (kernels.md) */
  uint32_t workspace; /* scratch that supports() asked for, or GR_NO_BUFFER */
  uint32_t row_count; /* int32, one element: samples in this batch; GR_NO_BUFFER: always the capacity */
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
  gr_array initial; /* gr_initial: written by load(); all else is zero then */
} gr_program;

/* ---- what the host gives */

typedef struct gr_kernel gr_kernel;     /* one of the library's, with its operands */
typedef struct gr_progress gr_progress; /* of what load() made */

/* Addresses in host memory; `workspace` is aligned to 256 bytes. */
typedef struct gr_operands {
  size_t struct_size;
  const void* inputs[GR_MAX_OPERANDS];
  void* output;
  void* workspace;
  const int32_t* row_count; /* null: the capacity */
  int64_t capacity;
} gr_operands;

typedef struct gr_host {
  size_t struct_size;
  uint32_t version;    /* GR_EXECUTOR_VERSION of the library that asks */
  const char* library; /* its own version, "0.2.0" */

  /* The library's kernel for a step, that of `cpu` or else of `ref`, on these operands; null: why. For steps that
     supports() answered with GR_FALLBACK. Running it allocates nothing. */
  gr_kernel* (*find_kernel)(const gr_signature* step, const gr_operands* operands, char* why);
  void (*run_kernel)(const gr_kernel* kernel);
  void (*free_kernel)(gr_kernel* kernel); /* takes null */

  /* Words `first` to first + count - 1 of the stream of a `key` at a step: what random ops draw from. */
  void (*random_bits)(uint64_t key, uint64_t step, uint64_t first, size_t count, uint32_t* words);
  /* Where element i of 0 ... n - 1 goes in the shuffled order of an epoch: what `minibatch` and `permutation` take. */
  uint64_t (*permuted)(uint64_t i, uint64_t n, uint64_t key, uint64_t epoch);

  /* What was allocated on a device or pinned, for --assert-no-alloc. `call` lives for ever: "cudaMalloc". */
  void (*report_allocation)(const char* call, uint64_t bytes);
  /* Step `step` of the run() under way begins, counted from 0: what a deadline or a progress report goes by. */
  void (*begin_step)(gr_progress* progress, uint64_t step);
} gr_host;

/* ---- what the plug-in gives */

typedef enum gr_answer {
  GR_NO = 0,      /* it does not run the step: why */
  GR_YES = 1,     /* it has a kernel of its own */
  GR_FALLBACK = 2 /* it will take the library's (gr_host.find_kernel), whose workspace is planned, too */
} gr_answer;

typedef struct gr_device {
  const char* id; /* what --executor takes for it */
  const char* name;
  const char* capability; /* these two may be null */
  const char* driver;
  int32_t units;                      /* cores, multiprocessors */
  uint64_t memory_free, memory_total; /* bytes; 0: unknown */
} gr_device;

typedef struct gr_counter {
  const char* name;
  uint64_t value;
} gr_counter;

typedef struct gr_executor {
  size_t struct_size; /* sizeof(gr_executor) */
  uint32_t version;   /* GR_EXECUTOR_VERSION, or less */
  const char* name;   /* lower-case letters, digits, _ and - */

  /* const char*: machines that plans may be made for, the first one unless --target says another. None: "host". */
  gr_array targets;

  /* `argument` is what follows the colon of --executor=./libmine.so:argument, or "". Null: nothing is made, and `self`
     is null. */
  int (*create)(const char* argument, void** self, char* why);
  void (*destroy)(void* self); /* may be null */

  /* A gr_answer, for GR_YES with the scratch that the step needs. A pure function that needs no device. */
  int (*supports)(void* self, const gr_signature* step, const char* target, uint64_t* workspace_bytes, char* why);

  /* Allocates all there is to allocate. Steps are those that supports() took, with the workspace it asked for. */
  int (*load)(void* self, const gr_program* program, gr_progress* progress, void** loaded, char* why);
  void (*unload)(void* loaded);

  /* Runs all steps of a phase n times. Allocates nothing; when it returns everything is there to be read. */
  int (*run)(void* loaded, uint32_t phase, uint64_t n, char* why);
  /* Runs steps [first, last) of a phase once: what graphrun verify and graphrun-conformance use. */
  int (*run_steps)(void* loaded, uint32_t phase, uint32_t first, uint32_t last, char* why);

  /* Bytes [first, first + size) of a buffer, which has them. */
  int (*write)(void* loaded, uint32_t buffer, uint64_t first, const void* from, size_t size, char* why);
  int (*read)(void* loaded, uint32_t buffer, uint64_t first, void* to, size_t size, char* why);

  /* ---- these may be null */

  /* gr_device: what `graphrun devices` lists. What is in the way is written to `why`. */
  gr_array (*devices)(void* self, char* why);
  /* gr_counter: what was counted since load(); the same names each time. */
  gr_array (*counters)(void* loaded);
} gr_executor;

/* What a plug-in exports. Null: it does not run under this host. Called once for each time the library is named. */
GR_API const gr_executor* graphrun_executor_plugin_c(const gr_host* host);

/* ---- for both sides: no more than reading what stands above */

/* The attribute, or null. */
static inline const gr_attribute* gr_find_attribute(const gr_signature* step, const char* name) {
  size_t i;
  for (i = 0; i < step->attributes.count; ++i) {
    const gr_attribute* attribute = GR_AT(gr_attribute, step->attributes, i);
    if (strcmp(attribute->name, name) == 0) return attribute;
  }
  return NULL;
}
/* 0 where there is none: so it is with flags that are not set. */
static inline int64_t gr_integer(const gr_signature* step, const char* name) {
  const gr_attribute* attribute = gr_find_attribute(step, name);
  return attribute == NULL ? 0 : attribute->integer;
}

/* Where a step's operands lie in an arena of the host with the Program's own offsets. */
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
/* Samples of this batch: never more than the capacity, whatever was written to the row count. */
static inline int64_t gr_samples(const gr_operands* at) {
  const int64_t count = at->row_count == NULL ? at->capacity : *at->row_count;
  return count < 0 ? 0 : count < at->capacity ? count : at->capacity;
}
/* Rows of dimension 0 that are valid in it. */
static inline int64_t gr_rows_of(const gr_operands* at, const gr_tensor_type* type) {
  if (type->rows > 0) return type->rows * gr_samples(at);
  return type->type.rank == 0 ? 1 : type->type.shape[0];
}

#ifdef __cplusplus
}
#endif

#endif
/* NOLINTEND(modernize-deprecated-headers,modernize-use-nullptr) */
