// SPDX-License-Identifier: Apache-2.0
/* One option: its name, the values that it takes, and what it is for. Tables of options are rows of these: one table
 * for what concerns every kernel (options.c), and one for each layout, in the layout's folder.
 */
#ifndef CBGEN_ANALYSIS_OPTION_H
#define CBGEN_ANALYSIS_OPTION_H

#include "base/status.h"
#include "base/text.h"

#include <stdint.h>

enum cb_switch { CB_AUTO, CB_ON, CB_OFF };

enum { CB_NO_NUMBER = -1 }; /* ends a list of numbers: no option takes negative ones */

/* The values are those of the first of these that a row has: words, a list of numbers, or all numbers of a range. A
 * list of words, "diag,col", is a number as well: word w (from 0) at place i adds (w + 1) << (CB_WORD_BITS * i). 0,
 * "auto", is the empty list. */
struct cb_option {
  const char *name;         /* as users write it: "sell-lanes" */
  const char *const *words; /* names of the values least, least + 1, …; ends with NULL */
  const int64_t *numbers;   /* ascending; ends with CB_NO_NUMBER */
  int is_list;              /* of words: several of them, in an order that counts, none twice */
  int64_t least, most;      /* of a range; `least` of words, too, unless they are a list */
  int or_zero;              /* of a range that begins above 0: 0 is a value as well */
  int is_text;              /* its value is a string, with no table here: option recipe */
  int64_t standard;         /* what it is unless it is set */
  int may_refuse;           /* other values ask for what the GPU, the types or the semiring may lack: CB_ERR_UNSUPPORTED
                             * names the option then */
  const char *help;         /* one line */
  const char *tuned_by;     /* the fact of the layout's part of the plan line that tells which number was taken. Tuning
                             * tries that number's neighbours in `numbers`. NULL: not tuned */
};

enum { CB_WORD_BITS = 4, CB_MOST_WORDS = 15 /* of an option that is a list of them */ };

/* Number of the word at place i of a list's value; -1: it has fewer. */
static inline int cb_option_word(int64_t list, int i) {
  return i < CB_MOST_WORDS ? (int)(list >> CB_WORD_BITS * i & CB_MOST_WORDS) - 1 : -1;
}

/* Values that several layouts' options take. */
extern const char *const cb_auto_on_off[];        /* enum cb_switch */
extern const int64_t cb_lanes_of_a_row[];       /* 0 (by the matrix), 1, 2, 4, …, 32 */
extern const int64_t cb_threads_of_a_block[];   /* 0 (by the matrix), 256, 512, 1024 */

/* Whether `number` is one of its values. */
int cb_option_takes(const struct cb_option *option, int64_t number);

/* The value that `text` says; CB_ERR_ARGUMENT names the option and what it takes. */
enum cb_status cb_option_parse(int64_t *number, const struct cb_option *option, const char *text,
                               struct cb_diag *diag);
/* The same for a number that did not come as text. */
enum cb_status cb_option_check(const struct cb_option *option, int64_t number, struct cb_diag *diag);

/* "auto", "8". */
void cb_option_print(struct cb_text *text, const struct cb_option *option, int64_t number);

/* The nearest value of `numbers` that is more than `number` (direction 1), or less, but more than 0 (direction -1);
 * CB_NO_NUMBER: there is none. */
int64_t cb_option_neighbour(const struct cb_option *option, int64_t number, int direction);

/* One line, "  --NAME=VALUES  help (default)". */
void cb_option_help(struct cb_text *text, const struct cb_option *option);

#endif
