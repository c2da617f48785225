/**
 * The C interface of tegula: layouts, the simulated machine, and the GEMM and attention kernels.
 * Other languages stand on it, as Python does (python/tegula).
 *
 * A function that can fail returns a tegula_status, and tegula_last_error() is then its sentence.
 * Results are written through the last parameters, and only where the status is TEGULA_OK; what a
 * launch computes, also where it is TEGULA_FINDING, for one looks at what a wrong kernel wrote. No
 * C++ exception leaves a function. Handles are freed by the function of their kind, texts by
 * tegula_free; freeing NULL does nothing. Functions may be called from several threads; one handle
 * is not freed while another thread uses it.
 *
 * A structure of arguments begins with its size, by which the library knows what the caller was
 * compiled with: members are only ever added at the end. Fill one by its _init function, then set
 * what differs.
 */
#ifndef TEGULA_TEGULA_H
#define TEGULA_TEGULA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The version of this interface. It grows where something that is here changes its meaning. */
#define TEGULA_C_VERSION 1

/** What the library was compiled with: a program compares it with its own TEGULA_C_VERSION. */
int32_t tegula_c_version(void);
/** The version of the library, "0.1.0". */
char const* tegula_version(void);

typedef enum tegula_status {
  TEGULA_OK = 0,
  TEGULA_LAYOUT_ERROR =
      1, /**< text that is no expression, or an operation that cannot keep its law */
  TEGULA_ARGUMENT_ERROR = 2, /**< an argument that is refused before anything runs */
  TEGULA_DEVICE_ERROR = 3,   /**< a machine that is absent, or that failed */
  TEGULA_FINDING = 4,        /**< the checker found the kernel wrong */
  TEGULA_OUT_OF_MEMORY = 5,
  TEGULA_INTERNAL_ERROR = 6 /**< anything else: a fault of the library */
} tegula_status;

/** The sentence of the last call of this thread that failed; valid until the next one that fails.
 */
char const* tegula_last_error(void);

/** Frees a text that the library returned. */
void tegula_free(char* text);

/* --- values --- */

/** An immutable value of the layout algebra. */
typedef struct tegula_value tegula_value;

typedef enum tegula_kind {
  TEGULA_NO_KIND = -1,        /**< of NULL */
  TEGULA_LAYOUT = 0,          /**< (4,8):(8,1) */
  TEGULA_SWIZZLED_LAYOUT = 1, /**< Sw<3,4,3> o (8,64):(64,1) */
  TEGULA_TUPLE = 2,           /**< an integer, a shape, a coordinate: 4, (4,(2,_)) */
  TEGULA_TILER = 3            /**< <4:1,_> */
} tegula_kind;

/** Evaluates an expression of the language of `tegula layout` (docs/tool.md): a literal, or calls
 * of operations. */
tegula_status tegula_evaluate(char const* expression, tegula_value** value);
/** The tuple that is one integer. */
tegula_status tegula_integer(int64_t integer, tegula_value** value);
/**
 * One operation of the algebra, by its C++ name: tegula_call("composition", arguments, 2, &result).
 * The names, forms and meanings are those of tegula_operations.
 */
tegula_status tegula_call(char const* operation, tegula_value const* const* arguments,
                          int32_t count, tegula_value** result);
/** A line for each operation: its form, and what it gives. */
tegula_status tegula_operations(char** text);
void tegula_value_free(tegula_value* value);

/* NULL for a handle is TEGULA_ARGUMENT_ERROR of every function with a status. A function without
 * one says what it answers. */

/** TEGULA_NO_KIND of NULL. */
tegula_kind tegula_value_kind(tegula_value const* value);
/** Whether it is the same value: the same kind, tree and numbers. 1 or 0. NULL equals NULL alone.
 */
int32_t tegula_value_equal(tegula_value const* value, tegula_value const* other);
/** The text form, which evaluates to the value again. */
tegula_status tegula_value_text(tegula_value const* value, char** text);
/** A tuple that is one integer, as that integer. TEGULA_ARGUMENT_ERROR for another value. */
tegula_status tegula_value_integer(tegula_value const* value, int64_t* integer);
/** A layout as it is; of a tuple the compact column-major layout of that shape.
 * TEGULA_ARGUMENT_ERROR for a tiler. */
tegula_status tegula_as_layout(tegula_value const* value, tegula_value** layout);
/** The shape of a layout, or of the layout under a swizzle, as a tuple. TEGULA_ARGUMENT_ERROR for
 * another value. */
tegula_status tegula_layout_shape(tegula_value const* layout, tegula_value** shape);
/** Its strides likewise. TEGULA_LAYOUT_ERROR where they are not integers but along axes (1@0). */
tegula_status tegula_layout_stride(tegula_value const* layout, tegula_value** stride);
/** Mode `mode` of a layout as a layout. A swizzled layout has none: take that of its layout. */
tegula_status tegula_layout_mode(tegula_value const* layout, int32_t mode, tegula_value** result);
/**
 * The parts of a swizzled layout, Sw<bits,base,shift> o offset o layout: three integers and the
 * offset, and the layout. NULL is allowed for each.
 */
tegula_status tegula_swizzle_parts(tegula_value const* swizzled, int32_t* bits, int32_t* base,
                                   int32_t* shift, int64_t* offset, tegula_value** layout);
/** How many axes the values of the layout have: 0 where they are offsets, else those of
 * coordinates. */
tegula_status tegula_layout_axes(tegula_value const* layout, int32_t* axes);
/**
 * The values of a layout at `count` flat colexicographic indices; NULL stands for the indices 0 to
 * count - 1. Of a layout of coordinates (tegula_layout_axes) each value takes as many places of
 * `values` as there are axes.
 */
tegula_status tegula_layout_values(tegula_value const* layout, int64_t const* indices,
                                   int64_t count, int64_t* values);

typedef enum tegula_drawing { TEGULA_SVG = 0, TEGULA_TEXT = 1, TEGULA_LATEX = 2 } tegula_drawing;
/**
 * Draws the table of a layout; with element_bits other than 0 the shared-memory banks of elements
 * of so many bits, coloured by bank.
 */
tegula_status tegula_layout_draw(tegula_value const* layout, int32_t element_bits,
                                 tegula_drawing form, char** drawing);
/**
 * Draws who holds what: a (thread, value) layout, whose values are column-major indices of an array
 * of rows x columns, coloured by thread.
 */
tegula_status tegula_layout_draw_threads(tegula_value const* layout, int32_t rows, int32_t columns,
                                         tegula_drawing form, char** drawing);

/* --- machines --- */

/** A GPU, or a simulated one. */
typedef struct tegula_machine tegula_machine;

typedef struct tegula_machine_options {
  size_t struct_size;
  char const* arch;      /**< of a simulated machine: "sm90" (the default), "sm80" or "sm100" */
  char const* scheduler; /**< its order of events: "last" (the default), "first" or "random" */
  uint64_t seed;         /**< of a random order */
  int32_t
      check; /**< 0: what kernels do is not checked, but for bounds, alignment and deadlock; 1 */
  int32_t workers; /**< threads of this process that it uses; 0, the default: as many as there are
                      cores */
  /** What an access of a warp may cost beyond what its bytes need: passes over the banks of shared
   * memory, sectors of global memory. An access that costs more is a finding. -1, the default: any
   * number. */
  int32_t bank_conflicts, excess_sectors;
} tegula_machine_options;

void tegula_machine_options_init(tegula_machine_options* options, size_t struct_size);
/** `device` is "sim", "cuda", "cuda:N", or "auto": a GPU where there is one. `options` may be NULL.
 */
tegula_status tegula_machine_create(char const* device, tegula_machine_options const* options,
                                    tegula_machine** machine);
void tegula_machine_free(tegula_machine* machine);
/** For people: "simulated sm_90". */
tegula_status tegula_machine_name(tegula_machine const* machine, char** name);
/** 80, 90, ...; 0 of NULL. */
int32_t tegula_machine_compute_capability(tegula_machine const* machine);
/** 1 or 0; 0 of NULL. */
int32_t tegula_machine_is_simulated(tegula_machine const* machine);

/** What a launch did on a simulated machine, and what the checker found. */
typedef struct tegula_report tegula_report;

void tegula_report_free(tegula_report* report);
/** How many findings there are; -1 of NULL, which is no report without findings. */
int64_t tegula_report_findings(tegula_report const* report);
/** For people, a finding a line; with `counters` not 0 followed by a table of what was counted, by
 * source line. */
tegula_status tegula_report_text(tegula_report const* report, int32_t counters, char** text);
/** The same as JSON. */
tegula_status tegula_report_json(tegula_report const* report, int32_t counters, char** json);

/* --- kernels --- */

/** In place of an extent or a stride that is left out, and then follows from the others. */
#define TEGULA_LEFT_OUT INT64_MIN

typedef enum tegula_dtype {
  TEGULA_DTYPE_LEFT_OUT = 0,
  TEGULA_F16 = 1,
  TEGULA_BF16 = 2,
  TEGULA_F32 = 3,
  TEGULA_TF32 = 4, /**< f32, of which the tensor cores read the upper 19 bits */
  TEGULA_E4M3 = 5,
  TEGULA_E5M2 = 6,
  TEGULA_E2M1 = 7, /**< two share a byte, the first in its low half; of tegula_gemm alone */
  TEGULA_E2M3 = 8, /**< four share three bytes, bit after bit; of tegula_gemm alone */
  TEGULA_E3M2 = 9  /**< likewise */
} tegula_dtype;

typedef enum tegula_major { TEGULA_MAJOR_K = 0, TEGULA_MAJOR_MN = 1 } tegula_major;

typedef enum tegula_activation {
  TEGULA_ACTIVATION_NONE = 0,
  TEGULA_RELU = 1,
  TEGULA_GELU = 2, /**< by tanh */
  TEGULA_SILU = 3
} tegula_activation;

/** Scales of blocks of k, for A and B alike. */
typedef enum tegula_block_scale {
  TEGULA_NO_BLOCK_SCALE = 0,
  TEGULA_MX_SCALE = 1, /**< ue8m0 for each 32 elements: e4m3, e5m2, e2m3, e3m2 or e2m1 each */
  TEGULA_NV_SCALE = 2  /**< ue4m3 for each 16: nvf4 (e2m1) */
} tegula_block_scale;

/**
 * D = activation(alpha scale_a scale_b A B + beta C + bias) for each matrix of a batch: A of m x k,
 * B of k x n, C and D of m x n; bias, n values, is added to every row. Extents and strides count
 * elements.
 *
 * A of TEGULA_MAJOR_K is m rows of k elements, lda apart, of TEGULA_MAJOR_MN k rows of m. B of
 * TEGULA_MAJOR_K is n rows of k (a linear layer's weight), of TEGULA_MAJOR_MN k rows of n. C and D
 * are m rows of n.
 *
 * On a GPU the pointers are to its memory. On a simulated machine they are to the caller's: inputs
 * are copied in, and D is copied out, its elements alone.
 */
typedef struct tegula_gemm_arguments {
  size_t struct_size;
  int32_t in;   /**< tegula_dtype of A: f16, bf16, tf32, e4m3 or e5m2; with block_scale also of less
                   than 8 bits */
  int32_t in_b; /**< of B; left out: A's */
  int32_t
      out; /**< of C, D and bias: f16, bf16 or f32; left out: f32 of tf32, bf16 of fp8, else A's */
  int32_t a_major; /**< tegula_major */
  int32_t b_major;
  int32_t activation; /**< tegula_activation */
  int64_t m, n, k;
  int64_t batch; /**< 1 */
  void const* a;
  void const* b;
  void const* c; /**< read where beta is not 0; may be d */
  void const* bias;
  void* d;
  int64_t lda, ldb, ldc, ldd; /**< left out: those of contiguous matrices */
  int64_t a_batch_stride, b_batch_stride, c_batch_stride, d_batch_stride;
  float const* scale_a; /**< optional: one factor */
  float const* scale_b;
  float alpha; /**< 1 */
  float beta;  /**< 0 */
  /** tegula_block_scale; on an sm_100, with both majors K */
  int32_t block_scale;
  /** With block_scale: the scales, a byte each, in pieces of 512 bytes, 128 rows x 4 blocks of k:
   * that of (row, block) at row % 32 * 16 + row / 32 * 4 + block. Pieces along k follow one
   * another, then come those of the next 128 rows, and then the batch's next matrix, where it has
   * one of its own (a_batch_stride or b_batch_stride is not 0). What a piece has beyond the matrix
   * is read. */
  void const* block_scale_a;
  void const* block_scale_b;
  /** With one of tegula_gemm_workspace bytes, aligned to 16, CTAs of several clusters may share a
   * tile's K, on an sm_90; for one launch at a time. */
  void* workspace;
  int64_t workspace_bytes; /**< of it; 0 without one */
} tegula_gemm_arguments;

void tegula_gemm_arguments_init(tegula_gemm_arguments* arguments, size_t struct_size);
/**
 * Computes it. On a GPU the work is queued on `stream` (a cudaStream_t; NULL: the default one). A
 * simulated machine has done it when the call returns; where the checker finds the kernel wrong,
 * the status is TEGULA_FINDING. With `report` not NULL findings are the report's instead, *report
 * is to be freed, and on a GPU it is NULL.
 */
tegula_status tegula_gemm(tegula_machine* machine, tegula_gemm_arguments const* arguments,
                          void* stream, tegula_report** report);
/** Which kernel and configuration would compute it, in one line: "gemm_sm90 f16 ... ". Nothing
 * runs. */
tegula_status tegula_gemm_choice(tegula_machine* machine, tegula_gemm_arguments const* arguments,
                                 char** text);
/** Bytes of a workspace with which it is computed best; 0 where it needs none. */
tegula_status tegula_gemm_workspace(tegula_machine* machine, tegula_gemm_arguments const* arguments,
                                    int64_t* bytes);

/** Elements from one token, or head, or sequence to the next. */
typedef struct tegula_token_strides {
  int64_t batch, seq, head;
} tegula_token_strides;

/**
 * O = softmax(scale Q K^T) V for each batch and head. q is (batch, seq_q, heads, head_dim), k
 * (batch, seq_k, kv_heads, head_dim), v and o are the same with head_dim_v; the head dimension is
 * contiguous. Head h reads the keys of head h / (heads / kv_heads).
 *
 * Query i stands at key i + seq_k - seq_q. With `causal` it sees no key behind that place, with a
 * window only the keys from window_left before it to window_right behind it; a query that sees none
 * gives zeros. With a softcap c, from 2^-60 to 2^12, a score s becomes c tanh(s / c). A sink is one
 * more score of every row of its head, which has no value.
 *
 * With cu_seqlens_q, q and o are packed: (total_q, heads, head_dim), sequence b has the queries
 * from cu_seqlens_q[b] up to cu_seqlens_q[b + 1], seq_q is at least the largest number of them, lse
 * is (heads, total_q), and strides of the batch do not count. cu_seqlens_k is the same of k and v.
 * With seqused_k, sequence b has the first seqused_k[b] keys of those that there are. With a
 * page_table, k and v are (pages, page_size, kv_heads, head_dim), and key j of sequence b is token
 * j % page_size of page page_table[b * page_table_stride + j / page_size].
 *
 * With k_new and v_new, k and v are a cache that is written to: sequence b has seqused_k[b] keys
 * there, its seq_new new ones are copied behind them, to the pages that page_table says, and
 * attention sees all of them. What would lie behind key seq_k is left out; seqused_k stays as it
 * is. New keys are (batch, seq_new, kv_heads, head_dim), or with cu_seqlens_new packed, as q.
 *
 * Latent attention, of one head of keys in bf16 (DeepSeek-V2's decoding): head_dim 576, head_dim_v
 * 512, and v is k, whose first 512 columns are the values; v_new is left out.
 *
 * With a workspace of tegula_attention_workspace bytes, few queries on many keys are computed by
 * more CTAs, each on a part of the keys.
 *
 * e4m3, a head_dim_v of its own, windows, softcap, sinks, lengths and pages need an sm_90 or an
 * sm_100, latent attention and keys in parts an sm_90.
 */
typedef struct tegula_attention_arguments {
  size_t struct_size;
  int32_t dtype;    /**< of q, k and v: f16, bf16 or e4m3 */
  int32_t causal;   /**< 0 */
  int64_t batch;    /**< 1 */
  int64_t heads;    /**< 1 */
  int64_t kv_heads; /**< a divisor of heads; left out: heads */
  int64_t seq_q;
  int64_t seq_k; /**< left out: seq_q */
  int64_t head_dim;
  void const* q;
  void const* k;
  void const* v;
  void* o;
  float* lse; /**< optional: ln(sum_j exp(scale S_ij)) as (batch, heads, seq_q) */
  tegula_token_strides const* q_stride; /**< NULL: those of contiguous tensors; of v, k's */
  tegula_token_strides const* k_stride;
  tegula_token_strides const* v_stride;
  tegula_token_strides const* o_stride;
  float const* scale; /**< NULL: 1 / sqrt(head_dim). Memory of the host, on every machine. */
  int64_t head_dim_v; /**< left out: head_dim */
  int64_t window_left, window_right; /**< left out: all keys; to the right with `causal` none */
  float const* sink;                 /**< optional: a score for each head */
  float softcap;                     /**< 0: scores are not capped */

  /* Factors of e4m3: an element stands for itself times that of its batch and key head. */
  float const* q_descale; /**< optional, (batch, kv_heads) */
  float const* k_descale;
  float const* v_descale;
  /** Elements, of all three; left out: contiguous. 0 and 0: each is one factor for all. */
  int64_t descale_batch_stride, descale_head_stride;

  /* Sequences of their own lengths. */
  int32_t const* cu_seqlens_q; /**< optional, (batch + 1), ascending from 0 */
  int32_t const* cu_seqlens_k;
  int32_t const* seqused_k; /**< optional, (batch) */
  int64_t total_q;          /**< tokens of q and o; with cu_seqlens_q */
  int64_t total_k;          /**< of k and v; with cu_seqlens_k */

  /* Paged keys. */
  int32_t const* page_table; /**< optional, (batch, pages of seq_k keys) */
  int64_t page_table_stride; /**< elements from sequence to sequence; left out: of a dense table */
  int64_t pages;             /**< of k and v; with page_table */
  int64_t page_size;         /**< tokens: 16, 32, 64, or a multiple of 128 */

  /* Keys in several parts. */
  void* workspace; /**< optional: aligned to 16 bytes, for one launch at a time; of a simulated
                      machine's launch it is not touched */
  int64_t workspace_bytes; /**< of it; 0 */
  int64_t splits;          /**< parts of the most keys; left out: chosen */
  int32_t out;             /**< tegula_dtype of o; left out: bf16 of e4m3, else dtype */

  /* Keys that are appended to k and v before they are read. */
  void const* k_new; /**< optional */
  void const* v_new;
  int64_t seq_new;               /**< new keys of a sequence; with cu_seqlens_new at most */
  int32_t const* cu_seqlens_new; /**< optional, (batch + 1), ascending from 0 */
  int64_t total_new;             /**< tokens of k_new and v_new; with cu_seqlens_new */
  tegula_token_strides const* k_new_stride; /**< NULL: those of contiguous tensors */
  tegula_token_strides const* v_new_stride;

  /** Of e4m3: 1, sums over keys are kept in f32; 0, faster, in the tensor core's 13 bits, which
   * lose the mean of many values. Left out: 1 of e4m3; of other types there is nothing to choose.
   */
  int64_t precise;
  /** tegula_dtype of k_new and v_new; left out: dtype. Of e4m3 f16 and bf16 too: x is stored as
   * x / k_descale or x / v_descale of its batch and head, at most 448 in magnitude. */
  int32_t new_dtype;
} tegula_attention_arguments;

void tegula_attention_arguments_init(tegula_attention_arguments* arguments, size_t struct_size);
/** As tegula_gemm. */
tegula_status tegula_attention(tegula_machine* machine, tegula_attention_arguments const* arguments,
                               void* stream, tegula_report** report);
/** As tegula_gemm_choice. */
tegula_status tegula_attention_choice(tegula_machine* machine,
                                      tegula_attention_arguments const* arguments, char** text);

/** Bytes of a workspace with which keys are computed in as many parts as are best; 0 where that is
 * one. */
tegula_status tegula_attention_workspace(tegula_machine* machine,
                                         tegula_attention_arguments const* arguments,
                                         int64_t* bytes);

/** A call on a GPU whose arguments have been checked and whose kernel has been chosen: what is left
 * is to queue it. The memory that the arguments pointed to must be there when it is run. */
typedef struct tegula_launch tegula_launch;

/** On a simulated machine TEGULA_ARGUMENT_ERROR: use tegula_gemm. */
tegula_status tegula_gemm_prepare(tegula_machine* machine, tegula_gemm_arguments const* arguments,
                                  tegula_launch** launch);
tegula_status tegula_attention_prepare(tegula_machine* machine,
                                       tegula_attention_arguments const* arguments,
                                       tegula_launch** launch);
/** Queues it on a stream, as tegula_gemm does. */
tegula_status tegula_launch_run(tegula_launch const* launch, void* stream);
void tegula_launch_free(tegula_launch* launch);

/* --- GEMMs of groups, and of fp8 with scales of blocks --- */

typedef enum tegula_scales {
  TEGULA_SCALES_LEFT_OUT = 0,
  TEGULA_SCALES_NONE = 1,
  TEGULA_ROWS_BY_BLOCKS = 2, /**< of A for a row's 128 of K, of B for 128 rows' 128 of K */
  TEGULA_ROWS_BY_ROWS = 3    /**< of both for a row's 128 of K */
} tegula_scales;

typedef enum tegula_grouping {
  TEGULA_NO_GROUPS = 0,
  TEGULA_CONTIGUOUS = 1, /**< a group has some of the rows of A and D, and a B of its own */
  TEGULA_MASKED = 2,     /**< the first rows of its own A and D, and a B of its own */
  TEGULA_GROUPS_OF_K = 3 /**< some of the columns of A and B, and a D of its own */
} tegula_grouping;

/**
 * D = A B^T + C for each group; A and B have rows of k contiguous elements, C and D of n.
 *
 * | grouping   | A              | B              | C, D           | group_ends              |
 * | no groups  | (m, k)         | (n, k)         | (m, n)         | NULL                    |
 * | contiguous | (m, k)         | (groups, n, k) | (m, n)         | running sums of rows    |
 * | masked     | (groups, m, k) | (groups, n, k) | (groups, m, n) | rows of a group         |
 * | of k       | (m, k)         | (n, k)         | (groups, m, n) | running sums of columns |
 *
 * Rows of D that are no group's stay as they are. Where group_begins is NULL a group begins where
 * the one before ends.
 *
 * Scales: block b of A's row i has scale_a[b * scale_a_stride + i], the rows of all groups counted
 * through. scale_b of blocks is (groups, blocks of n, blocks of K), contiguous; of rows as A's,
 * group by group. Blocks have 128 elements; with groups of k each group's columns begin one.
 *
 * Memory is as tegula_gemm has it. A, B and scales of rows lie at multiples of 16 bytes, and their
 * strides are multiples of 16 bytes. Needs an sm_90, or an sm_100, which has no scales of 128, but
 * block_scale: for A and B of e4m3 or e5m2 each, or e2m1 both.
 *
 * On an sm_90 A, B and D may be: e4m3 both, into bf16 or f32; e5m2 and e4m3, into bf16 (rows by
 * blocks) or f32; bf16 or f16 both, into their own type or f32.
 */
typedef struct tegula_grouped_gemm_arguments {
  size_t struct_size;
  int32_t in;       /**< tegula_dtype of A: e4m3, e5m2, bf16 or f16; with block_scale also e2m1 */
  int32_t in_b;     /**< of B; left out: e4m3 of fp8, else A's */
  int32_t out;      /**< of C and D; left out: bf16 of fp8, else A's */
  int32_t scales;   /**< tegula_scales; left out: of fp8 rows by blocks (groups of k: by rows) */
  int32_t grouping; /**< tegula_grouping */
  int64_t groups;   /**< 1 */
  int64_t m, n, k;
  void const* a;
  void const* b;
  void const* c; /**< optional; may be d */
  void* d;
  float const* scale_a;
  float const* scale_b;
  int32_t const* group_begins;
  int32_t const* group_ends;
  /** Elements; left out: those of contiguous matrices, of scales the rows up to a multiple of 4. */
  int64_t lda, ldb, ldc, ldd;
  int64_t b_group_stride, c_group_stride, d_group_stride;
  int64_t scale_a_stride, scale_b_stride;
  int64_t expected_rows; /**< of a group, for the choice of a kernel; left out: an equal share */
  /** tegula_block_scale; on an sm_100, where there are no scales of 128 */
  int32_t block_scale;
  /** With block_scale: the scales of A's and of B's rows, in pieces as tegula_gemm has them, those
   * of each matrix of (groups, rows, k) behind the one before. Contiguous groups share the pieces
   * of A and begin at multiples of 128 rows; groups of k share all, and begin with a piece, at
   * multiples of 4 blocks. A group that does not has a D of NaN. */
  void const* block_scale_a;
  void const* block_scale_b;
} tegula_grouped_gemm_arguments;

void tegula_grouped_gemm_arguments_init(tegula_grouped_gemm_arguments* arguments,
                                        size_t struct_size);
/** As tegula_gemm. */
tegula_status tegula_grouped_gemm(tegula_machine* machine,
                                  tegula_grouped_gemm_arguments const* arguments, void* stream,
                                  tegula_report** report);
/** As tegula_gemm_choice. */
tegula_status tegula_grouped_gemm_choice(tegula_machine* machine,
                                         tegula_grouped_gemm_arguments const* arguments,
                                         char** text);

typedef enum tegula_input_step {
  TEGULA_QUANTIZE_ROWS = 0,    /**< q = x / scale, for each row's 128 columns */
  TEGULA_QUANTIZE_BLOCKS = 1,  /**< the same for 128 x 128 */
  TEGULA_TRANSFORM_SCALES = 2, /**< f32 scales of rows, (rows, columns), to (columns, rows) */
  TEGULA_GROUP_BOUNDS = 3      /**< from the group of each row to where groups begin and end */
} tegula_input_step;

/**
 * What brings operands, scales and groups into the form of tegula_grouped_gemm. A scale is the
 * largest magnitude of its block over that of the fp8 type; scales of rows are (blocks, rows),
 * scale_stride apart. TEGULA_GROUP_BOUNDS reads from x an int32 for each row, a group's rows one
 * after the other; a row of -1, or of any number that no group has, is no group's.
 */
typedef struct tegula_gemm_inputs_arguments {
  size_t struct_size;
  int32_t step;         /**< tegula_input_step */
  int32_t in;           /**< tegula_dtype of x that is quantised: bf16 (the default) or f32 */
  int32_t out;          /**< of q: e4m3 (the default) or e5m2 */
  int32_t power_of_two; /**< not 0: scales are rounded up to powers of two */
  int64_t rows, columns;
  void const* x;
  void* q;
  float* scales;
  int64_t groups;
  int32_t* begins;
  int32_t* ends;
  int64_t ldx, ldq, scale_stride; /**< left out: of contiguous rows; rows up to a multiple of 4 */
} tegula_gemm_inputs_arguments;

void tegula_gemm_inputs_arguments_init(tegula_gemm_inputs_arguments* arguments, size_t struct_size);
/** As tegula_gemm. */
tegula_status tegula_gemm_inputs(tegula_machine* machine,
                                 tegula_gemm_inputs_arguments const* arguments, void* stream,
                                 tegula_report** report);

/* --- kernels compiled when they are first used --- */

/** Adds a folder that NVRTC is looked for in, before the first kernel is compiled. */
tegula_status tegula_nvrtc_folder(char const* folder);
/**
 * Compiles the kernels that `kernel` names for an architecture, into the cache: a whole name, as
 * tegula_gemm_choice gives it, or the words that names begin with. With `arch` NULL it is that of
 * the first GPU, or "sm_90a". *json is an array of {"name", "arch", "entry", "path", "from_cache",
 * "seconds", "registers", "spilled_bytes", "bytes"}; registers and spilled bytes are 0 of a kernel
 * that came from the cache.
 */
tegula_status tegula_compile(char const* kernel, char const* arch, char** json);
/** The cache: {"folder", "compiler", "kernels": [{"name", "arch", "compiler", "bytes", "path"}]};
 * without NVRTC "no_compiler", a sentence, in place of "compiler". */
tegula_status tegula_cached_kernels(char** json);

/* --- kernels of the caller's own --- */

/** A kernel: a struct of C++ that is written with the library (docs/tensors.md), compiled for one
 * machine, and kept in the same cache: for a GPU by NVRTC, for a simulated machine by the host's
 * C++ compiler (TEGULA_CXX, or c++, g++ or clang++). */
typedef struct tegula_kernel tegula_kernel;

typedef struct tegula_kernel_source {
  size_t struct_size;
  char const* text;           /**< C++ */
  char const* type;           /**< the struct's name, from the global namespace */
  char const* file;           /**< what findings and errors call the text; NULL: the type */
  char const* const* include; /**< folders that the text's own includes are looked for in */
  int32_t include_count;      /**< 0 */
} tegula_kernel_source;

void tegula_kernel_source_init(tegula_kernel_source* source, size_t struct_size);
/** TEGULA_DEVICE_ERROR where there is no compiler, or with its first error. The machine must be
 * there as long as the kernel is. */
tegula_status tegula_kernel_create(tegula_machine* machine, tegula_kernel_source const* source,
                                   tegula_kernel** kernel);
void tegula_kernel_free(tegula_kernel* kernel);
/** Threads of a CTA; 0 of NULL. */
int32_t tegula_kernel_threads(tegula_kernel const* kernel);
/** The size of the struct's Params; 0 of NULL, for no struct has that size. */
int64_t tegula_kernel_params_bytes(tegula_kernel const* kernel);

/** What a member of Params is. TEGULA_MEMBER_OTHER: a class that is no plain struct, or has one
 * member alone, as the number formats have. */
typedef enum tegula_member_kind {
  TEGULA_MEMBER_POINTER = 0,
  TEGULA_MEMBER_BOOL = 1,
  TEGULA_MEMBER_INTEGER = 2, /**< or an enumeration */
  TEGULA_MEMBER_FLOATING = 3,
  TEGULA_MEMBER_OTHER = 4
} tegula_member_kind;

typedef struct tegula_kernel_member {
  size_t offset, bytes;
  tegula_member_kind kind;
} tegula_kernel_member;

/** How many members the struct's Params have, and writes the first `room` of them, in order, to
 * `members`, which may be NULL where `room` is 0. Members of a struct in them, and up to 64
 * elements of an array, are each one of their own. -1 where they are not known, and of NULL: on a
 * GPU, and of Params that are no aggregate, or have a base, bit-fields, references, a union without
 * a name, or more than 64 members. */
int32_t tegula_kernel_members(tegula_kernel const* kernel, tegula_kernel_member* members,
                              int32_t room);

/** An array that a pointer of the parameters points to. */
typedef struct tegula_kernel_array {
  size_t offset;       /**< of the pointer in the parameters */
  int64_t bytes;       /**< of the array */
  char const* name;    /**< in reports; may be NULL */
  int32_t is_constant; /**< not 0: it is not copied back */
} tegula_kernel_array;

/**
 * Launches it on a grid of CTAs; `params` are the bytes of its Params. As tegula_gemm on a stream,
 * with a report. `arrays` are for a simulated machine: they lie in the caller's memory, are copied
 * in, and back. On a GPU the pointers are to its memory, and arrays are not looked at.
 */
tegula_status tegula_kernel_launch(tegula_kernel const* kernel, int32_t const grid[3],
                                   void const* params, size_t params_bytes,
                                   tegula_kernel_array const* arrays, int32_t array_count,
                                   void* stream, tegula_report** report);

/* --- command line --- */

/** The `tegula` command with these arguments, argv[0] its name, up to a NULL among them; returns
 * its exit status. Ignores SIGPIPE from then on. */
int32_t tegula_main(int32_t argc, char** argv);

#ifdef __cplusplus
}
#endif

#endif
