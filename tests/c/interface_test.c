/* The C interface as a program in C11 uses it. Prints each expectation that is not met; exits 1 if
 * there was one. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tegula/tegula.h"

static int failures = 0;

static void expect(int met, char const* what, int line) {
  if (met) return;
  printf("line %d: %s is not so; the last sentence is: %s\n", line, what, tegula_last_error());
  ++failures;
}
#define EXPECT(condition) expect(!!(condition), #condition, __LINE__)

/* Whether the text is `expected`; frees it. */
static int is_text(char* text, char const* expected) {
  int const same = strcmp(text, expected) == 0;
  if (!same) printf("'%s' instead of '%s'\n", text, expected);
  tegula_free(text);
  return same;
}

static tegula_value* evaluated(char const* expression) {
  tegula_value* value = NULL;
  EXPECT(tegula_evaluate(expression, &value) == TEGULA_OK);
  return value;
}

static int comes_to(tegula_value* value, char const* expected) {
  char* text = NULL;
  if (tegula_value_text(value, &text) != TEGULA_OK) return 0;
  tegula_value_free(value);
  return is_text(text, expected);
}

static void versions(void) {
  EXPECT(tegula_c_version() == TEGULA_C_VERSION);
  EXPECT(strchr(tegula_version(), '.') != NULL);
}

static void layouts(void) {
  tegula_value* const a = evaluated("(4,4):(4,1)");
  tegula_value* const b = evaluated("(4,2,2):(2,1,8)");
  tegula_value const* const both[] = {a, b};
  tegula_value* result = NULL;
  EXPECT(tegula_call("composition", both, 2, &result) == TEGULA_OK);
  EXPECT(tegula_value_kind(result) == TEGULA_LAYOUT);
  int64_t values[16];
  int64_t const indices[] = {0, 5, 15};
  EXPECT(tegula_layout_values(result, indices, 3, values) == TEGULA_OK);
  EXPECT(values[0] == 0 && values[1] == 12 && values[2] == 15);
  EXPECT(tegula_layout_values(result, NULL, 16, values) == TEGULA_OK);
  EXPECT(values[5] == 12);
  /* The second has no value: the first is not written either. */
  int64_t const beyond[] = {1, INT64_MAX};
  values[0] = values[1] = 777;
  tegula_value* const columns = evaluated("(4,8):(1,4)");
  EXPECT(tegula_layout_values(columns, beyond, 2, values) == TEGULA_LAYOUT_ERROR);
  tegula_value_free(columns);
  EXPECT(values[0] == 777 && values[1] == 777);
  EXPECT(tegula_layout_values(result, NULL, INT64_MAX, values) == TEGULA_OUT_OF_MEMORY);
  EXPECT(values[0] == 777);
  tegula_value *shape = NULL, *stride = NULL, *mode = NULL;
  EXPECT(tegula_layout_shape(result, &shape) == TEGULA_OK && comes_to(shape, "((2,2),2,2)"));
  EXPECT(tegula_layout_stride(result, &stride) == TEGULA_OK && comes_to(stride, "((8,1),4,2)"));
  EXPECT(tegula_layout_mode(result, 0, &mode) == TEGULA_OK && comes_to(mode, "(2,2):(8,1)"));
  EXPECT(tegula_value_equal(a, a) && !tegula_value_equal(a, b));
  EXPECT(comes_to(result, "((2,2),2,2):((8,1),4,2)"));

  tegula_value const* const sized[] = {a};
  int64_t size = 0;
  EXPECT(tegula_call("size", sized, 1, &result) == TEGULA_OK);
  EXPECT(tegula_value_integer(result, &size) == TEGULA_OK && size == 16);
  tegula_value_free(result);
  tegula_value_free(a);
  tegula_value_free(b);
}

static void coordinates_and_swizzles(void) {
  tegula_value* const coordinates = evaluated("(2,3):(1@1,2@0)");
  int32_t axes = 0;
  int64_t values[12];
  EXPECT(tegula_layout_axes(coordinates, &axes) == TEGULA_OK && axes == 2);
  EXPECT(tegula_layout_values(coordinates, NULL, 6, values) == TEGULA_OK);
  EXPECT(values[6] == 2 && values[7] == 1);
  tegula_value* stride = NULL;
  EXPECT(tegula_layout_stride(coordinates, &stride) == TEGULA_LAYOUT_ERROR && stride == NULL);
  tegula_value_free(coordinates);

  tegula_value* const swizzled = evaluated("Sw<2,0,3> o 5 o (8,8):(8,1)");
  int32_t bits = 0, base = 9, shift = 0;
  int64_t offset = 0;
  tegula_value* layout = NULL;
  EXPECT(tegula_value_kind(swizzled) == TEGULA_SWIZZLED_LAYOUT);
  EXPECT(tegula_swizzle_parts(swizzled, &bits, &base, &shift, &offset, &layout) == TEGULA_OK);
  EXPECT(bits == 2 && base == 0 && shift == 3 && offset == 5);
  EXPECT(comes_to(layout, "(8,8):(8,1)"));
  tegula_value_free(swizzled);
}

static void drawings(void) {
  tegula_value* const layout = evaluated("(4,8):(8,1)");
  char* drawing = NULL;
  EXPECT(tegula_layout_draw(layout, 0, TEGULA_SVG, &drawing) == TEGULA_OK);
  EXPECT(strncmp(drawing, "<svg", 4) == 0 || strncmp(drawing, "<?xml", 5) == 0);
  tegula_free(drawing);
  EXPECT(tegula_layout_draw(layout, 16, TEGULA_TEXT, &drawing) == TEGULA_OK);
  tegula_free(drawing);
  EXPECT(tegula_layout_draw(layout, 0, (tegula_drawing)9, &drawing) == TEGULA_ARGUMENT_ERROR);
  EXPECT(tegula_layout_draw(layout, 3, TEGULA_SVG, &drawing) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "element_bits is 3; it must be 0") != NULL);
  tegula_value* const threads = evaluated("((4,8),(2,2)):((32,1),(16,8))");
  EXPECT(tegula_layout_draw_threads(threads, 16, 8, TEGULA_SVG, &drawing) == TEGULA_OK);
  tegula_free(drawing);
  tegula_value_free(layout);
  tegula_value_free(threads);
}

static void refusals(void) {
  tegula_value* value = NULL;
  EXPECT(tegula_evaluate("(4,8", &value) == TEGULA_LAYOUT_ERROR && value == NULL);
  EXPECT(strstr(tegula_last_error(), "column 5") != NULL);
  EXPECT(tegula_evaluate("composition((3,4):(4,1), 4:2)", &value) == TEGULA_LAYOUT_ERROR);
  EXPECT(strstr(tegula_last_error(), "no layout is A(B(i))") != NULL);
  EXPECT(tegula_evaluate(NULL, &value) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "expression is NULL") != NULL);
  char* text = NULL;
  int64_t number = 0;
  int32_t axes = 0;
  EXPECT(tegula_value_text(NULL, &text) == TEGULA_ARGUMENT_ERROR);
  EXPECT(tegula_value_integer(NULL, &number) == TEGULA_ARGUMENT_ERROR);
  EXPECT(tegula_as_layout(NULL, &value) == TEGULA_ARGUMENT_ERROR);
  EXPECT(tegula_layout_axes(NULL, &axes) == TEGULA_ARGUMENT_ERROR);
  EXPECT(tegula_layout_shape(NULL, &value) == TEGULA_ARGUMENT_ERROR);
  EXPECT(tegula_layout_mode(NULL, 0, &value) == TEGULA_ARGUMENT_ERROR);
  EXPECT(tegula_layout_values(NULL, NULL, 1, &number) == TEGULA_ARGUMENT_ERROR);
  EXPECT(tegula_swizzle_parts(NULL, NULL, NULL, NULL, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "swizzled is NULL") != NULL);
  EXPECT(tegula_call("compose", NULL, 0, &value) == TEGULA_LAYOUT_ERROR);
  EXPECT(strstr(tegula_last_error(), "'compose'") != NULL);
  EXPECT(tegula_call("size", NULL, 0, &value) == TEGULA_LAYOUT_ERROR);
  tegula_machine* machine = NULL;
  EXPECT(tegula_machine_create("gpu", NULL, &machine) == TEGULA_ARGUMENT_ERROR && machine == NULL);
  tegula_machine_options options;
  tegula_machine_options_init(&options, sizeof options);
  options.arch = "sm70";
  EXPECT(tegula_machine_create("sim", &options, &machine) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "'sm70'") != NULL);
  options.arch = NULL, options.bank_conflicts = -2;
  EXPECT(tegula_machine_create("sim", &options, &machine) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "bank_conflicts is -2") != NULL);
  options.bank_conflicts = 0, options.check = 0;
  EXPECT(tegula_machine_create("sim", &options, &machine) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "bank_conflicts is 0, and check is off") != NULL);
  options.struct_size = 1 << 20;
  EXPECT(tegula_machine_create("sim", &options, &machine) == TEGULA_ARGUMENT_ERROR);
  tegula_value_free(NULL);
  tegula_machine_free(NULL);
  tegula_report_free(NULL);
  tegula_free(NULL);
}

/* What functions without a status answer for NULL. */
static void answers_for_null(void) {
  tegula_value* const value = evaluated("8:1");
  EXPECT(tegula_value_kind(NULL) == TEGULA_NO_KIND);
  EXPECT(tegula_value_equal(NULL, value) == 0 && tegula_value_equal(value, NULL) == 0);
  EXPECT(tegula_value_equal(NULL, NULL) == 1);
  tegula_value_free(value);
  EXPECT(tegula_machine_compute_capability(NULL) == 0 && tegula_machine_is_simulated(NULL) == 0);
  EXPECT(tegula_report_findings(NULL) == -1);
  EXPECT(tegula_kernel_threads(NULL) == 0 && tegula_kernel_params_bytes(NULL) == 0);
  EXPECT(tegula_kernel_members(NULL, NULL, 0) == -1);
  tegula_launch_free(NULL);
  tegula_kernel_free(NULL);
  tegula_gemm_arguments_init(NULL, sizeof(tegula_gemm_arguments));
  tegula_machine_options_init(NULL, sizeof(tegula_machine_options));
}

/* bf16 of a small integer, and back. */
static uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)(bits >> 16);
}
static float from_bf16(uint16_t value) {
  uint32_t const bits = (uint32_t)value << 16;
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

/* D = A B^T + C with rows of A and D further apart than they are long: what lies between is left
 * alone. */
static void multiplies(tegula_machine* machine) {
  enum { kM = 20, kN = 24, kK = 16, kLda = 40, kLdd = 32 };
  static uint16_t a[kM * kLda], b[kN * kK];
  static uint16_t c[kM * kN], d[kM * kLdd];
  for (int i = 0; i < kM * kLda; ++i) a[i] = to_bf16((float)(i % 5 - 2));
  for (int i = 0; i < kN * kK; ++i) b[i] = to_bf16((float)(i % 7 - 3));
  for (int i = 0; i < kM * kN; ++i) c[i] = to_bf16((float)(i % 100));
  for (int i = 0; i < kM * kLdd; ++i) d[i] = to_bf16(-77);
  tegula_gemm_arguments g;
  tegula_gemm_arguments_init(&g, sizeof g);
  g.in = TEGULA_BF16; /* small whole numbers: every sum is exact */
  g.m = kM, g.n = kN, g.k = kK;
  g.a = a, g.b = b, g.c = c, g.d = d;
  g.lda = kLda, g.ldd = kLdd;
  g.beta = 1;
  tegula_report* report = NULL;
  EXPECT(tegula_gemm(machine, &g, NULL, &report) == TEGULA_OK);
  EXPECT(report != NULL && tegula_report_findings(report) == 0);
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kLdd; ++j) {
      float expected = -77;
      if (j < kN) {
        expected = from_bf16(c[i * kN + j]);
        for (int k = 0; k < kK; ++k)
          expected += from_bf16(a[i * kLda + k]) * from_bf16(b[j * kK + k]);
      }
      if (from_bf16(d[i * kLdd + j]) != expected) {
        EXPECT(from_bf16(d[i * kLdd + j]) == expected);
        return;
      }
    }
  }
  char* text = NULL;
  EXPECT(tegula_report_text(report, 0, &text) == TEGULA_OK && strstr(text, "clean") != NULL);
  tegula_free(text);
  EXPECT(tegula_report_json(report, 0, &text) == TEGULA_OK && text[0] == '{');
  tegula_free(text);
  tegula_report_free(report);
  EXPECT(tegula_gemm_choice(machine, &g, &text) == TEGULA_OK && strncmp(text, "gemm_sm", 7) == 0);
  tegula_free(text);
  tegula_launch* launch = NULL;
  EXPECT(tegula_gemm_prepare(machine, &g, &launch) == TEGULA_ARGUMENT_ERROR && launch == NULL);
  EXPECT(strstr(tegula_last_error(), "it must be a GPU") != NULL);

  g.m = 0;
  EXPECT(tegula_gemm(machine, &g, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "m is 0") != NULL);
  g.m = kM, g.in = 99;
  EXPECT(tegula_gemm(machine, &g, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "in is 99") != NULL);
}

/* nvf4: elements of 1 and 2, scales of 1, but for one block of 2. */
static void multiplies_with_block_scales(void) {
  enum { kM = 3, kN = 8, kK = 64, kPiece = 512 };
  static _Alignas(16) uint8_t a[kM * kK / 2], b[kN * kK / 2], scale_a[kPiece], scale_b[kPiece];
  static float d[kM * kN];
  memset(a, 0x22, sizeof a);             /* 1, twice */
  memset(b, 0x44, sizeof b);             /* 2 */
  memset(scale_a, 0x38, sizeof scale_a); /* 1 */
  memset(scale_b, 0x38, sizeof scale_b);
  scale_a[1 * 16 + 3] = 0x40; /* 2, for row 1, elements 48 to 63 */
  tegula_machine* machine = NULL;
  tegula_machine_options options;
  tegula_machine_options_init(&options, sizeof options);
  options.arch = "sm100";
  EXPECT(tegula_machine_create("sim", &options, &machine) == TEGULA_OK);
  tegula_gemm_arguments g;
  tegula_gemm_arguments_init(&g, sizeof g);
  g.in = TEGULA_E2M1, g.out = TEGULA_F32;
  g.m = kM, g.n = kN, g.k = kK;
  g.a = a, g.b = b, g.d = d;
  g.block_scale = TEGULA_NV_SCALE, g.block_scale_a = scale_a, g.block_scale_b = scale_b;
  EXPECT(tegula_gemm(machine, &g, NULL, NULL) == TEGULA_OK);
  for (int i = 0; i < kM * kN; ++i) EXPECT(d[i] == (i / kN == 1 ? 2.0f * kK + 32 : 2.0f * kK));
  char* text = NULL;
  EXPECT(tegula_gemm_choice(machine, &g, &text) == TEGULA_OK &&
         strncmp(text, "scaled_gemm_sm100", 17) == 0);
  tegula_free(text);
  g.block_scale = 3;
  EXPECT(tegula_gemm(machine, &g, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "block_scale is 3") != NULL);
  g.block_scale = TEGULA_NV_SCALE, g.block_scale_b = NULL;
  EXPECT(tegula_gemm(machine, &g, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "block_scale_b is a null pointer") != NULL);
  tegula_machine_free(machine);
}

/* One key: every query gets its value, and the log-sum-exp is the score. */
static void attends(tegula_machine* machine) {
  enum { kHeads = 2, kSeq = 3, kDim = 64 };
  static _Alignas(16) uint16_t q[kSeq * kHeads * kDim], k[kHeads * kDim], v[kHeads * kDim],
      o[kSeq * kHeads * kDim];
  static float lse[kHeads * kSeq];
  for (int i = 0; i < kSeq * kHeads * kDim; ++i) q[i] = to_bf16(1);
  for (int i = 0; i < kHeads * kDim; ++i) k[i] = to_bf16(1), v[i] = to_bf16((float)(i % 9));
  tegula_attention_arguments a;
  tegula_attention_arguments_init(&a, sizeof a);
  a.dtype = TEGULA_BF16;
  a.heads = kHeads, a.seq_q = kSeq, a.seq_k = 1, a.head_dim = kDim;
  a.q = q, a.k = k, a.v = v, a.o = o, a.lse = lse;
  float const scale = 0.25f;
  a.scale = &scale;
  EXPECT(tegula_attention(machine, &a, NULL, NULL) == TEGULA_OK);
  for (int i = 0; i < kSeq * kHeads * kDim; ++i) {
    if (o[i] != v[i % (kHeads * kDim)]) {
      EXPECT(o[i] == v[i % (kHeads * kDim)]);
      return;
    }
  }
  for (int i = 0; i < kHeads * kSeq; ++i) EXPECT(fabsf(lse[i] - 16) < 1e-4f);
  a.softcap = -1;
  EXPECT(tegula_attention(machine, &a, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "softcap is -1") != NULL);
  a.softcap = 0, a.head_dim = 7;
  EXPECT(tegula_attention(machine, &a, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "head_dim is 7") != NULL);
}

/* K may be computed in parts, with a workspace. */
static void works_in_a_workspace(tegula_machine* machine) {
  enum { kM = 64, kN = 64, kK = 8192, kWorkspace = 1 << 20 };
  static _Alignas(16) uint16_t a[kM * kK], b[kN * kK], d[kM * kN];
  static _Alignas(16) unsigned char workspace[kWorkspace];
  for (int i = 0; i < kM * kK; ++i) a[i] = b[i] = to_bf16(1);
  tegula_gemm_arguments g;
  tegula_gemm_arguments_init(&g, sizeof g);
  g.in = TEGULA_BF16, g.m = kM, g.n = kN, g.k = kK;
  g.a = a, g.b = b, g.d = d;
  int64_t bytes = -1;
  EXPECT(tegula_gemm_workspace(machine, &g, &bytes) == TEGULA_OK);
  EXPECT(bytes >= 0 && bytes <= kWorkspace);
  g.workspace = workspace, g.workspace_bytes = kWorkspace;
  EXPECT(tegula_gemm(machine, &g, NULL, NULL) == TEGULA_OK);
  for (int i = 0; i < kM * kN; ++i) EXPECT(d[i] == to_bf16((float)kK));
  g.workspace_bytes = -1;
  EXPECT(tegula_gemm(machine, &g, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "workspace_bytes is -1") != NULL);
  g.workspace = workspace + 8, g.workspace_bytes = 64;
  EXPECT(tegula_gemm(machine, &g, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "workspace is") != NULL);
  EXPECT(tegula_gemm_workspace(machine, &g, NULL) == TEGULA_ARGUMENT_ERROR);
}

/* Two sequences in one tensor, and a caller that was compiled before there were any. */
static void attends_to_sequences(tegula_machine* machine) {
  enum { kTokens = 3, kDim = 64 };
  static _Alignas(16) uint16_t q[kTokens * kDim], v[kTokens * kDim], o[kTokens * kDim];
  int32_t const bounds[] = {0, 1, kTokens};
  for (int i = 0; i < kTokens * kDim; ++i) q[i] = to_bf16(1), v[i] = to_bf16((float)(i / kDim));
  tegula_attention_arguments a;
  tegula_attention_arguments_init(&a, sizeof a);
  a.dtype = TEGULA_BF16, a.batch = 2, a.seq_q = 2, a.head_dim = kDim;
  a.q = q, a.k = q, a.v = v, a.o = o;
  a.cu_seqlens_q = a.cu_seqlens_k = bounds, a.total_q = a.total_k = kTokens;
  int64_t bytes = -1;
  EXPECT(tegula_attention_workspace(machine, &a, &bytes) == TEGULA_OK && bytes == 0);
  EXPECT(tegula_attention(machine, &a, NULL, NULL) == TEGULA_OK);
  float const exact[] = {0, 1.5f, 1.5f};
  for (int i = 0; i < kTokens; ++i) EXPECT(o[i * kDim] == to_bf16(exact[i]));
  a.splits = 0;
  EXPECT(tegula_attention(machine, &a, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "splits is 0") != NULL);
  a.descale_head_stride = 1;
  EXPECT(tegula_attention(machine, &a, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "descale_batch_stride left out") != NULL);

  size_t const before = offsetof(tegula_attention_arguments, q_descale);
  tegula_attention_arguments_init(&a, before);
  a.dtype = TEGULA_BF16, a.batch = 1, a.seq_q = kTokens, a.head_dim = kDim;
  a.q = q, a.k = q, a.v = v, a.o = o;
  a.cu_seqlens_q = bounds; /* behind what the caller knows: not looked at */
  EXPECT(tegula_attention(machine, &a, NULL, NULL) == TEGULA_OK);
  for (int i = 0; i < kTokens; ++i) EXPECT(o[i * kDim] == to_bf16(1));
}

/* Caches of two sequences, with one key and none, to which one is appended, and the next one's
 * place stays as it is; and sums that only e4m3 chooses. */
static void appends_keys(tegula_machine* machine) {
  enum { kBatch = 2, kKeys = 3, kDim = 64 };
  static _Alignas(16) uint16_t q[kBatch * kDim], k[kBatch * kKeys * kDim], v[kBatch * kKeys * kDim],
      added[kBatch * kDim], o[kBatch * kDim];
  int32_t const lengths[kBatch] = {1, 0}, bounds[kBatch + 1] = {0, 1, 2};
  for (int i = 0; i < kBatch * kDim; ++i) q[i] = to_bf16(1), added[i] = to_bf16(4);
  for (int i = 0; i < kBatch * kKeys * kDim; ++i) k[i] = to_bf16(4), v[i] = to_bf16(2);
  tegula_attention_arguments a;
  tegula_attention_arguments_init(&a, sizeof a);
  a.dtype = TEGULA_BF16, a.batch = kBatch, a.seq_q = 1, a.seq_k = kKeys, a.head_dim = kDim;
  a.q = q, a.k = k, a.v = v, a.o = o, a.k_new = added, a.v_new = added;
  a.seqused_k = lengths, a.seq_new = 1;
  float const exact[kBatch] = {3, 4}; /* the mean of 2 and 4; and 4 alone */
  for (int packed = 0; packed < 2; ++packed) {
    if (packed) a.cu_seqlens_new = bounds, a.total_new = kBatch;
    for (int i = 0; i < kBatch * kDim; ++i) o[i] = 0;
    EXPECT(tegula_attention(machine, &a, NULL, NULL) == TEGULA_OK);
    for (int i = 0; i < kBatch; ++i) EXPECT(o[i * kDim] == to_bf16(exact[i]));
    for (int b = 0; b < kBatch; ++b) {
      for (int key = 0; key < kKeys; ++key)
        EXPECT(v[(b * kKeys + key) * kDim] == to_bf16(key == lengths[b] ? 4 : 2));
    }
    for (int i = 0; i < kBatch * kKeys * kDim; ++i) v[i] = to_bf16(2);
  }
  tegula_token_strides const strides = {kDim, kDim - 1, kDim};
  a.v_new_stride = &strides;
  EXPECT(tegula_attention(machine, &a, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "v_new_stride.seq is 63") != NULL);
  a.v_new_stride = NULL, a.precise = 2;
  EXPECT(tegula_attention(machine, &a, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "precise is 2") != NULL);
  a.precise = 0;
  EXPECT(tegula_attention(machine, &a, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "precise is false and dtype is bf16") != NULL);
}

/* e4m3, in sums of f32 and in faster ones: other kernels, and the same mean of equal values. */
static void chooses_sums(tegula_machine* machine) {
  enum { kTokens = 2, kDim = 64 };
  static _Alignas(16) uint8_t x[kTokens * kDim];
  static _Alignas(16) uint16_t o[kTokens * kDim];
  for (int i = 0; i < kTokens * kDim; ++i) x[i] = 0x38; /* 1 */
  tegula_attention_arguments a;
  tegula_attention_arguments_init(&a, sizeof a);
  a.dtype = TEGULA_E4M3, a.seq_q = kTokens, a.head_dim = kDim;
  a.q = x, a.k = x, a.v = x, a.o = o;
  for (int precise = 0; precise < 2; ++precise) {
    a.precise = precise;
    char* text = NULL;
    EXPECT(tegula_attention_choice(machine, &a, &text) == TEGULA_OK);
    EXPECT(text != NULL && (strstr(text, "precise") != NULL) == (precise == 1));
    tegula_free(text);
    EXPECT(tegula_attention(machine, &a, NULL, NULL) == TEGULA_OK);
    for (int i = 0; i < kTokens * kDim; ++i) {
      if (o[i] != to_bf16(1)) {
        EXPECT(o[i] == to_bf16(1));
        return;
      }
    }
  }
}

/* A key and a value of bf16, appended to a cache of e4m3 in a page. */
static void quantises_new_keys(tegula_machine* machine) {
  enum { kPage = 16, kDim = 64 };
  static _Alignas(16) uint8_t q[kDim], k[kPage * kDim], v[kPage * kDim];
  static _Alignas(16) uint16_t added[kDim], o[kDim];
  int32_t const length = 0, page = 0;
  float const half = 0.5f;
  for (int i = 0; i < kDim; ++i) q[i] = 0x38, added[i] = to_bf16(2);
  tegula_attention_arguments a;
  tegula_attention_arguments_init(&a, sizeof a);
  a.dtype = TEGULA_E4M3, a.seq_q = 1, a.seq_k = kPage, a.head_dim = kDim;
  a.q = q, a.k = k, a.v = v, a.o = o, a.k_new = added, a.v_new = added, a.seqused_k = &length;
  a.page_table = &page, a.pages = 1, a.page_size = kPage;
  a.seq_new = 1, a.new_dtype = TEGULA_BF16, a.v_descale = &half;
  EXPECT(tegula_attention(machine, &a, NULL, NULL) == TEGULA_OK);
  EXPECT(k[0] == 0x40 && v[0] == 0x48 && v[kDim] == 0); /* 2, 4 and nothing */
  EXPECT(o[0] == to_bf16(2) && o[kDim - 1] == to_bf16(2));
  a.new_dtype = TEGULA_F32;
  EXPECT(tegula_attention(machine, &a, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "new_dtype is f32 and dtype is e4m3") != NULL);
  a.k_new = a.v_new = NULL, a.new_dtype = TEGULA_DTYPE_LEFT_OUT;
  EXPECT(tegula_attention(machine, &a, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "seq_new is 1 and k_new is a null pointer") != NULL);
  a.seq_new = 0, a.new_dtype = TEGULA_F16;
  EXPECT(tegula_attention(machine, &a, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "new_dtype is f16 and k_new is a null pointer") != NULL);
}

/* The first 512 columns of the keys are the values: of one key, each query's answer. */
static void attends_to_latent_keys(tegula_machine* machine) {
  enum { kHeads = 2, kDim = 576, kDimV = 512 };
  static _Alignas(16) uint16_t q[kHeads * kDim], k[2 * kDim], added[kDim], o[kHeads * kDimV];
  int32_t const length = 1;
  for (int i = 0; i < kHeads * kDim; ++i) q[i] = to_bf16(1);
  for (int i = 0; i < kDim; ++i)
    k[i] = to_bf16((float)(i % 7)), added[i] = to_bf16((float)(i % 7 + 2));
  tegula_attention_arguments a;
  tegula_attention_arguments_init(&a, sizeof a);
  a.dtype = TEGULA_BF16, a.heads = kHeads, a.kv_heads = 1, a.seq_q = 1, a.seq_k = 2;
  a.head_dim = kDim, a.head_dim_v = kDimV, a.seqused_k = &length;
  a.q = q, a.k = k, a.v = k, a.o = o;
  EXPECT(tegula_attention(machine, &a, NULL, NULL) == TEGULA_OK);
  for (int i = 0; i < kHeads; ++i) EXPECT(o[i * kDimV + 8] == k[8] && o[i * kDimV + 511] == k[511]);
  float const none = 0x1p-126f; /* every key counts the same */
  a.scale = &none, a.k_new = added, a.seq_new = 1;
  EXPECT(tegula_attention(machine, &a, NULL, NULL) == TEGULA_OK);
  EXPECT(memcmp(k + kDim, added, sizeof added) == 0);
  for (int i = 0; i < kHeads; ++i) EXPECT(o[i * kDimV + 8] == to_bf16(8 % 7 + 1));
}

/* Ones times ones, of which the second group has two rows and the first none; what is no group's
 * stays. */
static void multiplies_groups(tegula_machine* machine) {
  enum { kM = 3, kN = 8, kK = 64 };
  static _Alignas(16) uint16_t a[kM * kK], b[2 * kN * kK], d[kM * kN];
  int32_t const group_of_row[kM] = {-1, 1, 1};
  int32_t begins[2], ends[2];
  for (int i = 0; i < kM * kK; ++i) a[i] = to_bf16(1);
  for (int i = 0; i < 2 * kN * kK; ++i) b[i] = to_bf16((float)(i / (kN * kK)) + 1);
  for (int i = 0; i < kM * kN; ++i) d[i] = to_bf16(7);
  tegula_gemm_inputs_arguments bounds;
  tegula_gemm_inputs_arguments_init(&bounds, sizeof bounds);
  bounds.step = TEGULA_GROUP_BOUNDS, bounds.rows = kM, bounds.groups = 2, bounds.x = group_of_row;
  bounds.begins = begins, bounds.ends = ends;
  EXPECT(tegula_gemm_inputs(machine, &bounds, NULL, NULL) == TEGULA_OK);
  EXPECT(begins[0] == ends[0] && begins[1] == 1 && ends[1] == kM);
  tegula_grouped_gemm_arguments g;
  tegula_grouped_gemm_arguments_init(&g, sizeof g);
  g.in = TEGULA_BF16, g.grouping = TEGULA_CONTIGUOUS, g.groups = 2;
  g.m = kM, g.n = kN, g.k = kK, g.a = a, g.b = b, g.d = d;
  g.group_begins = begins, g.group_ends = ends;
  char* text = NULL;
  EXPECT(tegula_grouped_gemm_choice(machine, &g, &text) == TEGULA_OK);
  EXPECT(text != NULL && strstr(text, "grouped_gemm_sm90 bf16") != NULL);
  tegula_free(text);
  EXPECT(tegula_grouped_gemm(machine, &g, NULL, NULL) == TEGULA_OK);
  EXPECT(d[0] == to_bf16(7) && d[kN] == to_bf16(2 * kK) && d[kM * kN - 1] == to_bf16(2 * kK));
  g.grouping = 4;
  EXPECT(tegula_grouped_gemm(machine, &g, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "grouping is 4; it must be a tegula_grouping") != NULL);
  bounds.step = -1;
  EXPECT(tegula_gemm_inputs(machine, &bounds, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "step is -1") != NULL);
}

/* mxf8: masked groups of ones, of which the second has two rows; a scale of 2 for a block of its
 * first row. */
static void multiplies_groups_with_block_scales(void) {
  enum { kGroups = 2, kM = 3, kN = 8, kK = 64, kPiece = 512 };
  static _Alignas(16) uint8_t a[kGroups * kM * kK], b[kGroups * kN * kK], scale_a[kGroups * kPiece],
      scale_b[kGroups * kPiece];
  static float d[kGroups * kM * kN];
  int32_t const ends[kGroups] = {0, 2};
  memset(a, 0x38, sizeof a); /* 1 */
  memset(b, 0x38, sizeof b);
  memset(scale_a, 127, sizeof scale_a); /* 1 */
  memset(scale_b, 128, sizeof scale_b); /* 2 */
  scale_a[kPiece + 1] = 128;            /* group 1, row 0, elements 32 to 63 */
  for (int i = 0; i < kGroups * kM * kN; ++i) d[i] = 7;
  tegula_machine* machine = NULL;
  tegula_machine_options options;
  tegula_machine_options_init(&options, sizeof options);
  options.arch = "sm100";
  EXPECT(tegula_machine_create("sim", &options, &machine) == TEGULA_OK);
  tegula_grouped_gemm_arguments g;
  tegula_grouped_gemm_arguments_init(&g, sizeof g);
  g.in = TEGULA_E4M3, g.out = TEGULA_F32, g.grouping = TEGULA_MASKED, g.groups = kGroups;
  g.m = kM, g.n = kN, g.k = kK, g.a = a, g.b = b, g.d = d, g.group_ends = ends;
  g.block_scale = TEGULA_MX_SCALE, g.block_scale_a = scale_a, g.block_scale_b = scale_b;
  char* text = NULL;
  EXPECT(tegula_grouped_gemm_choice(machine, &g, &text) == TEGULA_OK);
  EXPECT(text != NULL && strncmp(text, "grouped_gemm_sm100", 18) == 0);
  tegula_free(text);
  EXPECT(tegula_grouped_gemm(machine, &g, NULL, NULL) == TEGULA_OK);
  for (int i = 0; i < kGroups * kM * kN; ++i) {
    int const group = i / (kM * kN), row = i / kN % kM;
    EXPECT(d[i] == (row >= ends[group] ? 7 : row == 0 ? 2.0f * 96 : 2.0f * kK));
  }
  g.block_scale = 3;
  EXPECT(tegula_grouped_gemm(machine, &g, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "grouped_gemm: block_scale is 3") != NULL);
  g.block_scale = TEGULA_MX_SCALE, g.block_scale_a = NULL;
  EXPECT(tegula_grouped_gemm(machine, &g, NULL, NULL) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "block_scale_a is a null pointer") != NULL);
  /* A caller of an older interface has no such members. */
  tegula_grouped_gemm_arguments_init(&g, offsetof(tegula_grouped_gemm_arguments, block_scale));
  g.in = TEGULA_E4M3, g.m = kM, g.n = kN, g.k = kK, g.a = a, g.b = b, g.d = d;
  g.block_scale = TEGULA_MX_SCALE;
  EXPECT(tegula_grouped_gemm_choice(machine, &g, &text) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "scales is") != NULL);
  tegula_machine_free(machine);
}

/* Compiling takes seconds, and is tested elsewhere. */
static void compiled_kernels(void) {
  char* json = NULL;
  EXPECT(tegula_nvrtc_folder("/nowhere") == TEGULA_OK);
  EXPECT(tegula_cached_kernels(&json) == TEGULA_OK && json[0] == '{');
  EXPECT(strstr(json, "\"kernels\":[") != NULL);
  tegula_free(json);
  EXPECT(tegula_compile("gemm_sm70", "sm_90a", &json) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "gemm_sm70") != NULL);
  EXPECT(tegula_compile("gemm_sm90", "hopper", &json) == TEGULA_ARGUMENT_ERROR);
  EXPECT(strstr(tegula_last_error(), "hopper") != NULL);
}

static void machines(void) {
  multiplies_with_block_scales();
  multiplies_groups_with_block_scales();
  tegula_machine* machine = NULL;
  for (int generation = 0; generation < 2; ++generation) {
    tegula_machine_options options;
    tegula_machine_options_init(&options, sizeof options);
    options.arch = generation == 0 ? "sm80" : "sm90";
    EXPECT(tegula_machine_create("sim", &options, &machine) == TEGULA_OK);
    EXPECT(tegula_machine_compute_capability(machine) == (generation == 0 ? 80 : 90));
    EXPECT(tegula_machine_is_simulated(machine) == 1);
    char* name = NULL;
    EXPECT(tegula_machine_name(machine, &name) == TEGULA_OK);
    EXPECT(is_text(name, generation == 0 ? "simulated sm_80" : "simulated sm_90"));
    multiplies(machine);
    attends(machine);
    if (generation == 1) {
      works_in_a_workspace(machine);
      attends_to_sequences(machine), appends_keys(machine), chooses_sums(machine);
      quantises_new_keys(machine), attends_to_latent_keys(machine), multiplies_groups(machine);
    }
    tegula_machine_free(machine);
  }
}

static void command_line(void) {
  char name[] = "tegula", command[] = "layout", wrong[] = "(4,8";
  char* arguments[] = {name, command, wrong, NULL};
  EXPECT(tegula_main(3, arguments) == 1);
  char* ended[] = {name, command, wrong, NULL, name};
  EXPECT(tegula_main(5, ended) == 1); /* as of three: the arguments end at NULL */
  EXPECT(tegula_main(0, NULL) == 0);  /* its help */
}

int main(void) {
  versions();
  layouts();
  coordinates_and_swizzles();
  drawings();
  refusals();
  answers_for_null();
  machines();
  compiled_kernels();
  command_line();
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
