// SPDX-License-Identifier: Apache-2.0
/* NVRTC: see state.h. A program is a thing with its text; compiling wraps the text into an ELF image.
 *
 *   image   = ELF header { section } section headers        as runtime/cuda/cubin.h describes a cubin, and
 *   section ".cbgen.fake" = "sm_90 REGISTERS STACK" { " " kernel } "\n" text NUL        for modules.c
 */
#include "tests/fake/state.h"

#include <ctype.h>
#include <elf.h>
#include <stdio.h>

enum { NVRTC_INVALID_INPUT = 3, NVRTC_INVALID_PROGRAM = 4, NVRTC_INVALID_OPTION = 5, NVRTC_COMPILATION = 6 };
enum { MACHINE_CUDA = 190, CODE_BYTES = 1024, PARAMETER_BYTES = 0x200, MAX_KERNELS = 64 };

static const int arches[] = {80, 89, 90, 100};
enum { ARCHES = sizeof arches / sizeof *arches };

EXPORT const char *nvrtcGetErrorString(unsigned result) {
  static _Thread_local char words[64];
  snprintf(words, sizeof words, "the fake NVRTC's error %u", result);
  return words;
}

EXPORT unsigned nvrtcVersion(int *major, int *minor) {
  ENTER;
  *major = state.nvrtc_major;
  *minor = state.nvrtc_minor;
  return SUCCESS;
}

EXPORT unsigned nvrtcGetNumSupportedArchs(int *count) {
  ENTER;
  *count = ARCHES;
  return SUCCESS;
}

EXPORT unsigned nvrtcGetSupportedArchs(int *list) {
  ENTER;
  memcpy(list, arches, sizeof arches);
  return SUCCESS;
}

/* ---- programs */

EXPORT unsigned nvrtcCreateProgram(void **program, const char *text, const char *name, int headers,
                                   const char *const *header_texts, const char *const *header_names) {
  ENTER;
  if (!text || headers || header_texts || header_names)
    return misuse(NVRTC_INVALID_INPUT, "a program without text, or with headers");
  struct thing *thing = create(PROGRAM, 0);
  thing->bytes = strdup(text);
  thing->log = strdup("");
  if (!thing->bytes || !thing->log) abort();
  snprintf(thing->name, sizeof thing->name, "%s", name ? name : "default_program");
  *program = thing;
  return SUCCESS;
}

EXPORT unsigned nvrtcDestroyProgram(void **program) {
  LOCK;
  const unsigned result = enter(__func__);
  struct thing *thing = find(*program, PROGRAM);
  if (!thing) return misuse(NVRTC_INVALID_PROGRAM, "a program destroyed that is none");
  destroy(thing);
  *program = NULL;
  return result;
}

/* ---- names of kernels */

struct names {
  int count;
  char list[MAX_KERNELS][128];
};

/* Behind a kernel's "void": its name, past the bounds. */
static const char *name_after(const char *at) {
  while (isspace((unsigned char)*at)) at++;
  if (strncmp(at, "__launch_bounds__", 17)) return at;
  int depth = 0; /* bounds may be calls themselves */
  for (at += 17; *at && (*at != ')' || --depth); at++) depth += *at == '(';
  if (!*at) return "";
  for (at++; isspace((unsigned char)*at);) at++;
  return at;
}

static void find_names(struct names *names, const char *text, const char *declaration) {
  for (const char *at = text; names->count < MAX_KERNELS && (at = strstr(at, declaration));) {
    at = name_after(at + strlen(declaration));
    int length = 0;
    while (isalnum((unsigned char)at[length]) || at[length] == '_') length++;
    if (length && length < 128) snprintf(names->list[names->count++], 128, "%.*s", length, at);
  }
}

/* ---- the image */

struct image {
  char *bytes;
  size_t length;
  Elf64_Shdr sections[2 * MAX_KERNELS + 4];
  int count;
  char section_names[MAX_KERNELS * 320];
  size_t section_names_length;
};

static size_t append(struct image *image, const void *bytes, size_t length) {
  const size_t at = (image->length + 7) / 8 * 8;
  image->bytes = realloc(image->bytes, at + length + 1);
  if (!image->bytes) abort();
  memset(image->bytes + image->length, 0, at - image->length);
  memcpy(image->bytes + at, bytes, length);
  image->length = at + length;
  return at;
}

/* `bytes` NULL: a section that only has a size. */
static void add_section(struct image *image, const char *prefix, const char *name, const void *bytes,
                        size_t length, unsigned symbol) {
  Elf64_Shdr *section = &image->sections[image->count++];
  *section = (Elf64_Shdr){.sh_name = (Elf64_Word)image->section_names_length,
                          .sh_type = bytes ? SHT_PROGBITS : SHT_NOBITS,
                          .sh_size = length,
                          .sh_info = symbol};
  if (bytes) section->sh_offset = append(image, bytes, length);
  image->section_names_length +=
      1 + (size_t)snprintf(image->section_names + image->section_names_length,
                           sizeof image->section_names - image->section_names_length, "%s%s", prefix, name);
}

/* The records of ".nv.info": registers and stack of each kernel's symbol. */
static void add_info(struct image *image, const struct names *names, int stack) {
  uint32_t records[MAX_KERNELS * 6];
  for (int k = 0; k < names->count; k++) {
    const uint32_t record[] = {0x00082f04, (uint32_t)k + 1, (uint32_t)state.registers,
                               0x00081204, (uint32_t)k + 1, (uint32_t)stack};
    memcpy(&records[6 * k], record, sizeof record);
  }
  add_section(image, ".nv.info", "", records, (size_t)names->count * 6 * sizeof *records, 0);
}

static void add_text(struct image *image, const struct names *names, const char *arch, int stack, const char *text) {
  char *packed = NULL;
  size_t length;
  FILE *stream = open_memstream(&packed, &length);
  if (!stream) abort();
  fprintf(stream, "%s %d %d", arch, state.registers, stack);
  for (int k = 0; k < names->count; k++) fprintf(stream, " %s", names->list[k]);
  fprintf(stream, "\n%s", text);
  if (fclose(stream)) abort();
  add_section(image, ".cbgen.fake", "", packed, length + 1, 0);
  free(packed);
}

static void close_image(struct image *image, int arch) {
  Elf64_Ehdr header = {.e_type = ET_EXEC,
                       .e_machine = MACHINE_CUDA,
                       .e_version = EV_CURRENT,
                       .e_flags = (Elf64_Word)arch,
                       .e_ehsize = sizeof header,
                       .e_shentsize = sizeof(Elf64_Shdr)};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_ident[EI_ABIVERSION] = 7;
  add_section(image, ".shstrtab", "", "", 0, 0);
  Elf64_Shdr *strings = &image->sections[image->count - 1];
  strings->sh_type = SHT_STRTAB;
  strings->sh_offset = append(image, image->section_names, image->section_names_length);
  strings->sh_size = image->section_names_length;
  header.e_shstrndx = (Elf64_Half)(image->count - 1);
  header.e_shnum = (Elf64_Half)image->count;
  header.e_shoff = append(image, image->sections, (size_t)image->count * sizeof *image->sections);
  memcpy(image->bytes, &header, sizeof header);
}

static void wrap(struct thing *program, const char *arch, int stack) {
  static const char no_header[sizeof(Elf64_Ehdr)];
  struct names names = {0};
  struct image *image = calloc(1, sizeof *image);
  char *ptx = NULL;
  if (!image) abort();
  find_names(&names, program->bytes, "CBGEN_KERNEL void ");
  find_names(&names, program->bytes, "extern \"C\" __global__ void ");
  append(image, no_header, sizeof no_header);
  add_section(image, "", "", NULL, 0, 0);
  image->sections[0].sh_type = SHT_NULL;
  for (int k = 0; k < names.count; k++) {
    add_section(image, ".text.", names.list[k], NULL, CODE_BYTES, (unsigned)k + 1);
    add_section(image, ".nv.constant0.", names.list[k], NULL, PARAMETER_BYTES, 0);
  }
  add_info(image, &names, stack);
  add_text(image, &names, arch, stack, program->bytes);
  close_image(image, atoi(arch + 3));
  if (asprintf(&ptx, "// the fake NVRTC's PTX of '%s'\n.version 9.0\n.target %s\n", program->name, arch) < 0)
    abort();
  free(program->bytes);
  free(program->ptx);
  program->ptx = ptx;
  program->bytes = image->bytes;
  program->length = image->length;
  free(image);
}

/* ---- compiling */

static int is_known(int arch) {
  for (int i = 0; i < ARCHES; i++)
    if (arches[i] == arch) return 1;
  return 0;
}

static unsigned take_options(int count, const char *const *options, char arch[16], int *fewer_blocks) {
  static const char prefix[] = "--gpu-architecture=";
  for (int i = 0; i < count; i++) {
    if (strncmp(options[i], "-", 1)) return misuse(NVRTC_INVALID_OPTION, "option '%s'", options[i]);
    sscanf(options[i], "-DCBGEN_FEWER_BLOCKS=%d", fewer_blocks);
    if (!strncmp(options[i], prefix, sizeof prefix - 1))
      snprintf(arch, 16, "%s", options[i] + sizeof prefix - 1);
  }
  if (!strncmp(arch, "sm_", 3) && is_known(atoi(arch + 3))) return SUCCESS;
  return misuse(NVRTC_INVALID_OPTION, "architecture '%s'", arch);
}

static int stack_of(const char *text, int fewer_blocks) {
  const int spared = state.spare_blocks && fewer_blocks >= state.spare_blocks;
  return strstr(text, state.spilling) && !spared ? state.stack_bytes : 0;
}

static int shall_fail(const char *text) {
  const long every = state.failing_compilations;
  return strstr(text, FAKE_COMPILE_ERROR) || (every && state.compilations % every == 0);
}

/* A message about the line where `word` stands, or the first, in the program's log. */
static void write_log(struct thing *program, const char *word, const char *what) {
  int line = 1;
  const char *at = strstr(program->bytes, word);
  if (!at) at = program->bytes;
  for (const char *c = program->bytes; c < at; c++) line += *c == '\n';
  free(program->log);
  if (asprintf(&program->log, "%s(%d): %s: the text asks for it\n", program->name, line, what) < 0) abort();
}

EXPORT unsigned nvrtcCompileProgram(void *program, int count, const char *const *options) {
  ENTER;
  char arch[16] = "";
  int fewer_blocks = 0;
  struct thing *thing = find(program, PROGRAM);
  if (!thing || thing->length)
    return misuse(NVRTC_INVALID_PROGRAM, "a program that is none, or compiled before");
  const unsigned result = take_options(count, options, arch, &fewer_blocks);
  if (result) return result;
  state.compilations++;
  for (int i = 0; i < count; i++) state.line_infos += !strcmp(options[i], "--generate-line-info");
  if (shall_fail(thing->bytes)) {
    write_log(thing, FAKE_COMPILE_ERROR, "error");
    return NVRTC_COMPILATION;
  }
  if (strstr(thing->bytes, FAKE_COMPILE_WARNING)) write_log(thing, FAKE_COMPILE_WARNING, "warning");
  wrap(thing, arch, stack_of(thing->bytes, fewer_blocks));
  return SUCCESS;
}

/* ---- results */

static unsigned give_size(void *program, size_t *bytes, int which) {
  const struct thing *thing = find(program, PROGRAM);
  if (!thing || (which != 'l' && !thing->length))
    return misuse(NVRTC_INVALID_PROGRAM, "a program that is none, or was not compiled");
  *bytes = which == 'c' ? thing->length : strlen(which == 'l' ? thing->log : thing->ptx) + 1;
  return SUCCESS;
}

static unsigned give(void *program, char *to, int which) {
  size_t bytes = 0;
  const unsigned result = give_size(program, &bytes, which);
  if (result) return result;
  const struct thing *thing = find(program, PROGRAM);
  memcpy(to, which == 'c' ? thing->bytes : which == 'l' ? thing->log : thing->ptx, bytes);
  return SUCCESS;
}

EXPORT unsigned nvrtcGetProgramLogSize(void *program, size_t *bytes) {
  ENTER;
  return give_size(program, bytes, 'l');
}
EXPORT unsigned nvrtcGetProgramLog(void *program, char *log) {
  ENTER;
  return give(program, log, 'l');
}
EXPORT unsigned nvrtcGetCUBINSize(void *program, size_t *bytes) {
  ENTER;
  return give_size(program, bytes, 'c');
}
EXPORT unsigned nvrtcGetCUBIN(void *program, char *cubin) {
  ENTER;
  return give(program, cubin, 'c');
}
EXPORT unsigned nvrtcGetPTXSize(void *program, size_t *bytes) {
  ENTER;
  return give_size(program, bytes, 'p');
}
EXPORT unsigned nvrtcGetPTX(void *program, char *ptx) {
  ENTER;
  return give(program, ptx, 'p');
}
