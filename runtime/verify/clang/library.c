// SPDX-License-Identifier: Apache-2.0
/* Opening libclang: where it is looked for, and the table of its functions. */
#include "runtime/verify/clang/library.h"

#include "base/memory.h"
#include "runtime/verify/clang/clang.h"

/* Debian keeps a version's own name, and a link to it in that version's folder. */
static const char *const clang_names[] = {
    "libclang-19.so.19", "libclang-19.so.1", "libclang.so.19.1", "/usr/lib/llvm-19/lib/libclang.so.1",
    "libclang-18.so.18", "libclang-18.so.1", "libclang.so.18.1", "/usr/lib/llvm-18/lib/libclang.so.1",
    "libclang-17.so.17", "libclang-17.so.1", "libclang.so.17",   "/usr/lib/llvm-17/lib/libclang.so.1",
    "libclang-16.so.16", "libclang-16.so.1", "libclang.so.16",   "/usr/lib/llvm-16/lib/libclang.so.1",
    "libclang-15.so.15", "libclang-15.so.1", "libclang.so.15",   "/usr/lib/llvm-15/lib/libclang.so.1",
    "libclang-14.so.14", "libclang-14.so.1", "libclang.so.14",   "/usr/lib/llvm-14/lib/libclang.so.1",
    "libclang-14.so.13", "libclang.so.13",   "libclang.so",      NULL,
};
static const struct cb_library_search clang_search = {
    .what = "libclang",
    .remedy = "install it (Debian: libclang1-14), or set CBGEN_LIBCLANG to its libclang.so",
    .variable = "CBGEN_LIBCLANG",
    .names = clang_names,
};

#define CALL(member, name)                                                                                             \
  { name, offsetof(struct cb_clang_calls, member), 0 }
static const struct cb_library_symbol clang_symbols[] = {
    CALL(version, "clang_getClangVersion"),
    CALL(string, "clang_getCString"),
    CALL(dispose_string, "clang_disposeString"),
    CALL(create_index, "clang_createIndex"),
    CALL(dispose_index, "clang_disposeIndex"),
    CALL(parse, "clang_parseTranslationUnit2"),
    CALL(dispose_unit, "clang_disposeTranslationUnit"),
    CALL(diagnostics, "clang_getNumDiagnostics"),
    CALL(diagnostic, "clang_getDiagnostic"),
    CALL(dispose_diagnostic, "clang_disposeDiagnostic"),
    CALL(severity, "clang_getDiagnosticSeverity"),
    CALL(diagnostic_text, "clang_getDiagnosticSpelling"),
    CALL(diagnostic_place, "clang_getDiagnosticLocation"),
    CALL(unit_cursor, "clang_getTranslationUnitCursor"),
    CALL(visit, "clang_visitChildren"),
    CALL(name, "clang_getCursorSpelling"),
    CALL(place, "clang_getCursorLocation"),
    CALL(extent, "clang_getCursorExtent"),
    CALL(range_begin, "clang_getRangeStart"),
    CALL(range_end, "clang_getRangeEnd"),
    CALL(referenced, "clang_getCursorReferenced"),
    CALL(is_null, "clang_Cursor_isNull"),
    CALL(file, "clang_getFile"),
    CALL(place_at, "clang_getLocationForOffset"),
    CALL(expansion, "clang_getExpansionLocation"),
    CALL(type, "clang_getCursorType"),
    CALL(canonical, "clang_getCanonicalType"),
    CALL(pointee, "clang_getPointeeType"),
    CALL(structure, "clang_getTypeDeclaration"),
    CALL(arguments, "clang_Cursor_getNumArguments"),
    {NULL, 0, 0},
};

enum cb_status cb_clang_open(struct cb_clang **out, const char *path, struct cb_diag *diag) {
  struct cb_clang *clang = cb_calloc(1, sizeof *clang);
  *out = NULL;
  if (!clang) return cb_fail_memory(diag, "libclang's table", sizeof *clang);
  const enum cb_status s = cb_library_open(&clang->library, &clang_search, path, clang_symbols, &clang->call, diag);
  if (s)
    cb_free(clang);
  else
    *out = clang;
  return s;
}

void cb_clang_close(struct cb_clang *clang) {
  if (!clang) return;
  cb_library_close(&clang->library);
  cb_free(clang);
}
