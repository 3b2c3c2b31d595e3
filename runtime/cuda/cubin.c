// SPDX-License-Identifier: Apache-2.0
/* Reading a cubin: see cubin.h. A cubin is a 64-bit little-endian ELF file. A kernel NAME has
 *
 *   .text.NAME          its code; sh_info's low 24 bits are its symbol
 *   .nv.shared.NAME     static shared memory, including what the system reserves from sm_90 on
 *   .nv.constant0.NAME  parameters
 *   .nv.info            of all kernels: records (format, attribute, size), a register count and a stack size for
 *                       each symbol
 *
 * The bytes may come from a damaged cache, so every offset is checked.
 */
#include "runtime/cuda/cubin.h"

#include "base/memory.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct image {
  const unsigned char *bytes;
  size_t length;
  Elf64_Ehdr header;
  const char *names; /* section names, NUL-terminated as a whole */
  size_t names_length;
};

/* `length` bytes at `offset`, or NULL. */
static const unsigned char *part(const struct image *image, uint64_t offset, uint64_t length) {
  if (offset > image->length || length > image->length - offset) return NULL;
  return image->bytes + offset;
}

static int section(const struct image *image, unsigned index, Elf64_Shdr *out) {
  const unsigned char *at =
      part(image, image->header.e_shoff + (uint64_t)index * sizeof(Elf64_Shdr), sizeof(Elf64_Shdr));
  if (!at) return 0;
  memcpy(out, at, sizeof *out);
  return 1;
}

static const char *section_name(const struct image *image, const Elf64_Shdr *header) {
  return header->sh_name < image->names_length ? image->names + header->sh_name : "";
}

static int open_image(struct image *image, const void *bytes, size_t length) {
  enum { MACHINE_CUDA = 190 };
  Elf64_Shdr names;
  *image = (struct image){.bytes = bytes, .length = length};
  if (length < sizeof image->header) return 0;
  memcpy(&image->header, bytes, sizeof image->header);
  if (memcmp(image->header.e_ident, ELFMAG, SELFMAG) || image->header.e_ident[EI_CLASS] != ELFCLASS64 ||
      image->header.e_machine != MACHINE_CUDA || image->header.e_shoff > length)
    return 0;
  if (!section(image, image->header.e_shstrndx, &names)) return 0;
  image->names = (const char *)part(image, names.sh_offset, names.sh_size);
  image->names_length = names.sh_size;
  return image->names && names.sh_size && !image->names[names.sh_size - 1];
}

/* Shared memory that the system takes of every block; ptxas counts it into a kernel's section. */
static int reserved_shared(const struct image *image) {
  enum { FIRST_ARCH = 90, RESERVED = 1024, ABI_WITH_ARCH_SECOND = 8 };
  const unsigned flags = image->header.e_flags;
  const unsigned arch =
      image->header.e_ident[EI_ABIVERSION] >= ABI_WITH_ARCH_SECOND ? flags >> 8 & 0xff : flags & 0xff;
  return arch >= FIRST_ARCH ? RESERVED : 0;
}

struct kernel_list {
  struct cb_cubin_stats *stats;
  uint32_t *symbols; /* of each kernel */
};

static int kernel_named(const struct kernel_list *list, const char *name) {
  for (int i = 0; i < list->stats->count; i++)
    if (!strcmp(list->stats->kernels[i].name, name)) return i;
  return -1;
}

static const char text_prefix[] = ".text.";

/* A row for each ".text.NAME". */
static enum cb_status list_kernels(struct kernel_list *list, const struct image *image,
                                   struct cb_diag *diag) {
  const unsigned sections = image->header.e_shnum;
  list->stats->kernels = cb_calloc(sections + 1u, sizeof *list->stats->kernels);
  list->symbols = cb_calloc(sections + 1u, sizeof *list->symbols);
  if (!list->stats->kernels || !list->symbols) return cb_fail_memory(diag, "a cubin's kernels", sections);
  for (unsigned i = 0; i < sections; i++) {
    Elf64_Shdr header;
    if (!section(image, i, &header))
      return cb_fail(diag, CB_ERR_FORMAT, "the cubin is cut short in its sections");
    const char *name = section_name(image, &header);
    if (strncmp(name, text_prefix, sizeof text_prefix - 1)) continue;
    struct cb_kernel_stats *kernel = &list->stats->kernels[list->stats->count];
    snprintf(kernel->name, sizeof kernel->name, "%s", name + sizeof text_prefix - 1);
    kernel->code_bytes = (int)header.sh_size;
    list->symbols[list->stats->count++] = header.sh_info & 0xffffff;
  }
  return CB_OK;
}

static void read_sizes(struct kernel_list *list, const struct image *image) {
  static const char shared[] = ".nv.shared.", constant[] = ".nv.constant0.";
  const int reserved = reserved_shared(image);
  for (unsigned i = 0; i < image->header.e_shnum; i++) {
    Elf64_Shdr header;
    if (!section(image, i, &header)) return;
    const char *name = section_name(image, &header);
    const int is_shared = !strncmp(name, shared, sizeof shared - 1);
    const int is_constant = !strncmp(name, constant, sizeof constant - 1);
    if (!is_shared && !is_constant) continue;
    const int at = kernel_named(list, name + (is_shared ? sizeof shared : sizeof constant) - 1);
    if (at < 0) continue;
    const int bytes = (int)header.sh_size;
    if (is_constant)
      list->stats->kernels[at].constant_bytes = bytes;
    else
      list->stats->kernels[at].static_shared = bytes > reserved ? bytes - reserved : 0;
  }
}

/* One record of .nv.info that speaks of a symbol. */
static void take_record(struct kernel_list *list, int attribute, uint32_t symbol, uint32_t value) {
  enum { FRAME_SIZE = 0x11, MIN_STACK_SIZE = 0x12, REGISTER_COUNT = 0x2f };
  for (int i = 0; i < list->stats->count; i++) {
    struct cb_kernel_stats *kernel = &list->stats->kernels[i];
    if (list->symbols[i] != symbol) continue;
    if (attribute == REGISTER_COUNT) kernel->registers = (int)value;
    /* the frame is the kernel's own, the least stack counts the functions it calls */
    if ((attribute == FRAME_SIZE || attribute == MIN_STACK_SIZE) && (int)value > kernel->stack_bytes)
      kernel->stack_bytes = (int)value;
  }
}

static enum cb_status read_records(struct kernel_list *list, const unsigned char *bytes, size_t length,
                                   struct cb_diag *diag) {
  enum {
    SIZED = 4,
    HEAD = 4
  }; /* format 4: the half-word is the size of what follows; else it is the value */
  for (size_t at = 0; at + HEAD <= length;) {
    const unsigned size = bytes[at] == SIZED ? bytes[at + 2] | bytes[at + 3] << 8 : 0;
    uint32_t words[2];
    if (size > length - at - HEAD) return cb_fail(diag, CB_ERR_FORMAT, "the cubin's '.nv.info' is cut short");
    if (size == sizeof words) {
      memcpy(words, bytes + at + HEAD, sizeof words);
      take_record(list, bytes[at + 1], words[0], words[1]);
    }
    at += HEAD + size;
  }
  return CB_OK;
}

static enum cb_status read_info(struct kernel_list *list, const struct image *image, struct cb_diag *diag) {
  for (unsigned i = 0; i < image->header.e_shnum; i++) {
    Elf64_Shdr header;
    if (!section(image, i, &header) || strcmp(section_name(image, &header), ".nv.info")) continue;
    const unsigned char *bytes = part(image, header.sh_offset, header.sh_size);
    if (!bytes) return cb_fail(diag, CB_ERR_FORMAT, "the cubin is cut short in '.nv.info'");
    return read_records(list, bytes, header.sh_size, diag);
  }
  return list->stats->count ? cb_fail(diag, CB_ERR_FORMAT, "the cubin has no '.nv.info'") : CB_OK;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const struct cb_kernel_stats *)a)->name, ((const struct cb_kernel_stats *)b)->name);
}

enum cb_status cb_cubin_stats(struct cb_cubin_stats *stats, const void *cubin, size_t bytes,
                              struct cb_diag *diag) {
  struct image image;
  struct kernel_list list = {.stats = stats};
  *stats = (struct cb_cubin_stats){0};
  if (!open_image(&image, cubin, bytes))
    return cb_fail(diag, CB_ERR_FORMAT, "not a cubin: no CUDA ELF file, or cut short");
  enum cb_status s = list_kernels(&list, &image, diag);
  if (!s) s = read_info(&list, &image, diag);
  if (!s) read_sizes(&list, &image);
  cb_free(list.symbols);
  if (s)
    cb_cubin_stats_release(stats);
  else if (stats->count)
    qsort(stats->kernels, (size_t)stats->count, sizeof *stats->kernels, by_name);
  return s;
}

void cb_cubin_stats_release(struct cb_cubin_stats *stats) {
  cb_free(stats->kernels);
  *stats = (struct cb_cubin_stats){0};
}

struct cb_kernel_stats cb_cubin_stats_worst(const struct cb_cubin_stats *stats) {
  struct cb_kernel_stats worst = {0};
  for (int i = 0; i < stats->count; i++) {
    const struct cb_kernel_stats *kernel = &stats->kernels[i];
    if (kernel->registers > worst.registers) worst.registers = kernel->registers;
    if (kernel->stack_bytes > worst.stack_bytes) worst.stack_bytes = kernel->stack_bytes;
    if (kernel->static_shared > worst.static_shared) worst.static_shared = kernel->static_shared;
    if (kernel->constant_bytes > worst.constant_bytes) worst.constant_bytes = kernel->constant_bytes;
    worst.code_bytes += kernel->code_bytes;
  }
  return worst;
}
