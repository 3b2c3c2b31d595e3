// SPDX-License-Identifier: Apache-2.0
/* JSON on top of jansson, whose calls give NULL or -1 where memory is short. In a document to write, one flag notes
 * every such failure, so that it is written whole or not at all:
 *
 *   int failed = 0;
 *   const struct cb_json root = cb_json_object(&failed);
 *   cb_json_set_text(root, "name", name);
 *   cb_json_set(root, "sizes", json_pack("[II]", rows, cols));
 *   return cb_json_write(&text, root, JSON_INDENT(2), "a matrix as JSON", diag);
 */
#ifndef CBGEN_BASE_JSON_H
#define CBGEN_BASE_JSON_H

#include "base/status.h"
#include "base/text.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* An object or an array, and the flag of the document that it will be part of. */
struct cb_json {
  json_t *json; /* NULL when memory was short: then the flag is set, and everything below is harmless */
  int *failed;
};

struct cb_json cb_json_object(int *failed);
struct cb_json cb_json_array(int *failed);

/* These take over `value`, and a NULL is noted. Keys keep the order in which they are set. */
void cb_json_set(struct cb_json object, const char *key, json_t *value);
void cb_json_append(struct cb_json array, json_t *value);

void cb_json_set_integer(struct cb_json object, const char *key, int64_t value);
void cb_json_set_real(struct cb_json object, const char *key, double value); /* null where it is not finite */
void cb_json_set_flag(struct cb_json object, const char *key, int value);
void cb_json_set_text(struct cb_json object, const char *key, const char *value);

/* A string. JSON is UTF-8: in one that is not, such as a strange file name, bytes beyond ASCII become '?'. */
json_t *cb_json_text(const char *value);

/* Appends `root` as text, with jansson's `flags`, and releases it. CB_ERR_MEMORY names `what`; the
 * text has failed then, and is empty. */
enum cb_status cb_json_write(struct cb_text *text, struct cb_json root, size_t flags, const char *what,
                             struct cb_diag *diag);

/* The same text as of jansson's with JSON_INDENT(2), written line by line without a document. `key`: NULL in an array,
 * and of the outermost object. What fails is the text. */
struct cb_json_lines {
  struct cb_text *text;
  int depth, has_member; /* of the object or array that is open */
};
void cb_json_begin(struct cb_json_lines *lines, const char *key, char bracket); /* '{' or '[' */
void cb_json_end(struct cb_json_lines *lines, char bracket);
void cb_json_line_integer(struct cb_json_lines *lines, const char *key, int64_t value);
void cb_json_line_flag(struct cb_json_lines *lines, const char *key, int value);
void cb_json_line_text(struct cb_json_lines *lines, const char *key, const char *value); /* as cb_json_text */

/* *root, an object or an array, is the caller's (json_decref). CB_ERR_FORMAT with line and reason, also of an object
 * that has a name twice; CB_ERR_MEMORY. */
enum cb_status cb_json_read(json_t **root, const char *bytes, size_t length, struct cb_diag *diag);

#endif
