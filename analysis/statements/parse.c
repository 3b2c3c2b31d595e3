// SPDX-License-Identifier: Apache-2.0
/* From text to checked statements: see statements.h. Functions go by the rules of the grammar, bottom to top, and give
 * an expression's number, or -1 once something failed. */
#include "analysis/statements/statements.h"

#include "base/memory.h"
#include "frontend/number.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_TEXT = 1 << 16, MOST_DEPTH = 64 };

enum token { TOKEN_END, TOKEN_NAME, TOKEN_NUMBER, TOKEN_SIGN };

struct parser {
  struct cb_statements *statements;
  const char *text, *what;
  const char *at;    /* behind the token */
  const char *begin; /* of it */
  enum token token;
  char word[64];     /* a name's or sign's characters */
  double number;
  int depth;
  struct cb_diag *diag;
  enum cb_status status;
};

/* ---- messages */

/* What is wrong with the text at `at`. The first message stays. */
__attribute__((format(printf, 4, 5))) static int fail_at(struct parser *parser, enum cb_status status, const char *at,
                                                         const char *format, ...) {
  char message[600];
  int line = 1, column = 1;
  va_list arguments;
  if (parser->status) return -1;
  for (const char *c = parser->text; c < at; c++) {
    column = *c == '\n' ? 1 : column + ((unsigned char)(*c & 0xc0) != 0x80);
    line += *c == '\n';
  }
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  parser->status = cb_fail(parser->diag, status, "%s:%d:%d: %s", parser->what, line, column, message);
  return -1;
}
#define WRONG(parser, ...) fail_at(parser, CB_ERR_ARGUMENT, (parser)->begin, __VA_ARGS__)

/* ---- tokens */

static void skip_blanks(struct parser *parser) {
  for (;; parser->at++) {
    if (parser->at[0] == '/' && parser->at[1] == '/') parser->at += strcspn(parser->at, "\n");
    if (!*parser->at || !strchr(" \t\r\n", *parser->at)) return;
  }
}

static int is_digit(char c) { return c >= '0' && c <= '9'; }
static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static int is_of_name(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

/* Digits with a point and an exponent, and nothing else that a reader of numbers would take. */
static void take_number(struct parser *parser) {
  char digits[sizeof parser->word + 1];
  const char *at = parser->at;
  while (is_digit(*at)) at++;
  if (*at == '.') at++;
  while (is_digit(*at)) at++;
  if ((*at == 'e' || *at == 'E') && is_digit(at[1 + (at[1] == '+' || at[1] == '-')])) {
    at += 2;
    while (is_digit(*at)) at++;
  }
  const size_t length = (size_t)(at - parser->at);
  parser->token = TOKEN_NUMBER;
  if (length >= sizeof parser->word || is_of_name(*at) || *at == '.') {
    WRONG(parser, "a number that is none, or has too many digits");
    return;
  }
  memcpy(digits, parser->at, length);
  memcpy(digits + length, "\n", 2);
  parser->at = at;
  if (!cb_parse_double(digits, digits + length + 1, &parser->number) || !cb_real_is_finite(parser->number))
    WRONG(parser, "a number beyond the range of double");
}

static void take_sign(struct parser *parser) {
  static const char *const signs[] = {"<=", ">=", "==", "!=", "+", "-", "*", "/", "<", ">", "=",
                                      "?",  ":",  "(",  ")",  ",", ";"};
  parser->token = TOKEN_SIGN;
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
    const size_t length = strlen(signs[i]);
    if (strncmp(parser->at, signs[i], length)) continue;
    snprintf(parser->word, sizeof parser->word, "%s", signs[i]);
    parser->at += length;
    return;
  }
  WRONG(parser, "'%c' has no meaning here", *parser->at);
}

static void take_name(struct parser *parser) {
  size_t length = 1;
  while (is_of_name(parser->at[length])) length++;
  parser->token = TOKEN_NAME;
  if (length >= sizeof((struct cb_name *)0)->name) {
    WRONG(parser, "a name of more than %zu characters", sizeof((struct cb_name *)0)->name - 1);
    return;
  }
  memcpy(parser->word, parser->at, length);
  parser->word[length] = 0;
  parser->at += length;
}

static void next(struct parser *parser) {
  skip_blanks(parser);
  parser->begin = parser->at;
  parser->word[0] = 0;
  if (parser->status || !*parser->at) parser->token = TOKEN_END;
  else if (is_letter(*parser->at)) take_name(parser);
  else if (is_digit(*parser->at) || (*parser->at == '.' && is_digit(parser->at[1]))) take_number(parser);
  else take_sign(parser);
}

static int is_sign(const struct parser *parser, const char *sign) {
  return parser->token == TOKEN_SIGN && !strcmp(parser->word, sign);
}

static const char *token_text(const struct parser *parser) {
  return parser->token == TOKEN_END ? "the end" : parser->token == TOKEN_NUMBER ? "a number" : parser->word;
}

static void expect(struct parser *parser, const char *sign) {
  if (parser->status) return;
  if (!is_sign(parser, sign)) WRONG(parser, "'%s' is expected here, not '%s'", sign, token_text(parser));
  next(parser);
}

/* ---- expressions */

static const struct cb_expression *expression(const struct parser *parser, int number) {
  return &parser->statements->expressions[number];
}

static int add(struct parser *parser, struct cb_expression one) {
  struct cb_statements *statements = parser->statements;
  if (parser->status) return -1;
  if (statements->expressions_count == CB_MOST_EXPRESSIONS)
    return fail_at(parser, CB_ERR_LIMIT, parser->begin, "more than %d operations", CB_MOST_EXPRESSIONS);
  statements->expressions[statements->expressions_count] = one;
  return statements->expressions_count++;
}

/* An operand that must be a number, or a truth. `at`: where it begins. */
static void check_kind(struct parser *parser, int operand, int is_truth, const char *at) {
  if (parser->status || operand < 0 || expression(parser, operand)->is_truth == is_truth) return;
  fail_at(parser, CB_ERR_ARGUMENT, at, is_truth ? "a comparison is expected here, not a number"
                                                : "a number is expected here, not a comparison");
}

static int parse_choice(struct parser *parser);

static int parse_operand(struct parser *parser) {
  const char *at = parser->begin;
  const int operand = parse_choice(parser);
  check_kind(parser, operand, 0, at);
  return operand;
}

static const struct function {
  const char *name;
  enum cb_operation operation;
  int operands;
} functions[] = {
    {"abs", CB_OP_ABS, 1}, {"sqrt", CB_OP_SQRT, 1}, {"min", CB_OP_MIN, 2}, {"max", CB_OP_MAX, 2}, {"fma", CB_OP_FMA, 3}};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static const char *const reductions[] = {"dot", "sum"}; /* and max, of one number */
static const char *const declarations[] = {[CB_NAME_IN] = "in",         [CB_NAME_OUT] = "out",
                                           [CB_NAME_INOUT] = "inout",   [CB_NAME_SCALAR] = "scalar",
                                           [CB_NAME_DEVICE] = "device"};
enum { DECLARATIONS = sizeof declarations / sizeof *declarations };

static const struct function *find_function(const char *word) {
  for (int i = 0; i < FUNCTIONS; i++)
    if (!strcmp(functions[i].name, word)) return &functions[i];
  return NULL;
}

static int is_reserved(const char *word) {
  for (int i = 0; i < DECLARATIONS; i++)
    if (!strcmp(declarations[i], word)) return 1;
  return find_function(word) || !strcmp(word, reductions[0]) || !strcmp(word, reductions[1]) ||
         !strcmp(word, "double") || !strcmp(word, "float");
}

static int parse_call(struct parser *parser, const struct function *function, const char *at) {
  struct cb_expression call = {.operation = function->operation};
  expect(parser, "(");
  for (int i = 0; i < function->operands; i++) {
    if (i && is_sign(parser, ")"))
      return fail_at(parser, CB_ERR_ARGUMENT, at,
                     function->operation == CB_OP_MAX
                         ? "'max' of one number is over all rows: it is the whole right side of a statement"
                         : "'%s' takes %d numbers",
                     function->name, function->operands);
    if (i) expect(parser, ",");
    call.operands[i] = parse_operand(parser);
  }
  expect(parser, ")");
  return add(parser, call);
}

/* What the word stands for when it is read. */
static int parse_name(struct parser *parser) {
  const char *at = parser->begin;
  char word[sizeof parser->word];
  memcpy(word, parser->word, sizeof word);
  next(parser);
  const struct function *function = find_function(word);
  if (function) return parse_call(parser, function, at);
  if (!strcmp(word, reductions[0]) || !strcmp(word, reductions[1]))
    return fail_at(parser, CB_ERR_ARGUMENT, at, "'%s' is the whole right side of a statement", word);
  const int number = cb_statements_find(parser->statements, word);
  if (number < 0) return fail_at(parser, CB_ERR_ARGUMENT, at, "there is no '%s' here", word);
  struct cb_name *name = &parser->statements->names[number];
  name->read = 1;
  if (name->kind == CB_NAME_RESULT)
    return fail_at(parser, CB_ERR_ARGUMENT, at, "'%s' is known only when all rows are done", word);
  if (name->kind == CB_NAME_OUT && !name->assigned)
    return fail_at(parser, CB_ERR_ARGUMENT, at, "'%s' is not assigned yet; declare it 'inout' to read what is there",
                   word);
  return add(parser, (struct cb_expression){.operation = CB_OP_NAME, .name = number, .is_truth = name->is_truth});
}

static int parse_unary(struct parser *parser) {
  int inner;
  if (parser->status) return -1;
  if (++parser->depth > MOST_DEPTH)
    return fail_at(parser, CB_ERR_LIMIT, parser->begin, "more than %d parentheses in each other", MOST_DEPTH);
  if (is_sign(parser, "-")) {
    next(parser);
    const char *at = parser->begin;
    inner = parse_unary(parser);
    check_kind(parser, inner, 0, at);
    inner = add(parser, (struct cb_expression){.operation = CB_OP_NEGATE, .operands = {inner}});
  } else if (is_sign(parser, "(")) {
    next(parser);
    inner = parse_choice(parser);
    expect(parser, ")");
  } else if (parser->token == TOKEN_NUMBER) {
    inner = add(parser, (struct cb_expression){.operation = CB_OP_NUMBER, .number = parser->number});
    next(parser);
  } else if (parser->token == TOKEN_NAME) {
    inner = parse_name(parser);
  } else {
    inner = WRONG(parser, "a number is expected here, not '%s'", token_text(parser));
  }
  parser->depth--;
  return inner;
}

struct binary {
  const char *sign;
  enum cb_operation operation;
};

/* Operands of `inner` joined by any of the signs, from left to right. */
static int parse_chain(struct parser *parser, const struct binary *signs, int (*inner)(struct parser *)) {
  const char *left_at = parser->begin;
  int left = inner(parser);
  for (;;) {
    const struct binary *found = signs;
    while (found->sign && !is_sign(parser, found->sign)) found++;
    if (!found->sign || parser->status) return left;
    next(parser);
    const char *right_at = parser->begin;
    const int right = inner(parser);
    check_kind(parser, left, 0, left_at);
    check_kind(parser, right, 0, right_at);
    left = add(parser, (struct cb_expression){.operation = found->operation, .operands = {left, right}});
  }
}

static int parse_product(struct parser *parser) {
  static const struct binary signs[] = {{"*", CB_OP_MULTIPLY}, {"/", CB_OP_DIVIDE}, {NULL, CB_OP_NUMBER}};
  return parse_chain(parser, signs, parse_unary);
}

static int parse_addition(struct parser *parser) {
  static const struct binary signs[] = {{"+", CB_OP_ADD}, {"-", CB_OP_SUBTRACT}, {NULL, CB_OP_NUMBER}};
  return parse_chain(parser, signs, parse_product);
}

static int parse_relation(struct parser *parser) {
  static const struct binary signs[] = {{"<", CB_OP_LESS},           {"<=", CB_OP_LESS_EQUAL}, {">", CB_OP_GREATER},
                                        {">=", CB_OP_GREATER_EQUAL}, {"==", CB_OP_EQUAL},      {"!=", CB_OP_NOT_EQUAL}};
  const char *left_at = parser->begin;
  const int left = parse_addition(parser);
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
    if (!is_sign(parser, signs[i].sign)) continue;
    next(parser);
    const char *right_at = parser->begin;
    const int right = parse_addition(parser);
    check_kind(parser, left, 0, left_at);
    check_kind(parser, right, 0, right_at);
    return add(parser, (struct cb_expression){
                           .operation = signs[i].operation, .operands = {left, right}, .is_truth = 1});
  }
  return left;
}

static int parse_choice(struct parser *parser) {
  const char *at = parser->begin;
  const int condition = parse_relation(parser);
  if (!is_sign(parser, "?")) return condition;
  check_kind(parser, condition, 1, at);
  if (++parser->depth > MOST_DEPTH)
    return fail_at(parser, CB_ERR_LIMIT, parser->begin, "more than %d choices in each other", MOST_DEPTH);
  next(parser);
  const int first = parse_operand(parser);
  expect(parser, ":");
  const int second = parse_operand(parser);
  parser->depth--;
  return add(parser, (struct cb_expression){.operation = CB_OP_CHOOSE, .operands = {condition, first, second}});
}

/* ---- declarations and statements */

int cb_statements_find(const struct cb_statements *statements, const char *name) {
  for (int i = 0; i < statements->names_count; i++)
    if (!strcmp(statements->names[i].name, name)) return i;
  return -1;
}

static int add_name(struct parser *parser, const char *word, const char *at, struct cb_name name) {
  struct cb_statements *statements = parser->statements;
  if (parser->status) return -1;
  if (statements->names_count == CB_MOST_NAMES)
    return fail_at(parser, CB_ERR_LIMIT, at, "more than %d names", CB_MOST_NAMES);
  snprintf(name.name, sizeof name.name, "%s", word);
  statements->names[statements->names_count] = name;
  return statements->names_count++;
}

static void parse_declaration(struct parser *parser, enum cb_name_kind kind) {
  enum cb_type type = CB_TYPE_COUNT;
  next(parser);
  if (parser->token == TOKEN_NAME && !strcmp(parser->word, "double")) type = CB_F64;
  if (parser->token == TOKEN_NAME && !strcmp(parser->word, "float")) type = CB_F32;
  if (type != CB_TYPE_COUNT) next(parser);
  for (;;) {
    if (parser->token != TOKEN_NAME || is_reserved(parser->word))
      WRONG(parser, "a name is expected here, not '%s'", token_text(parser));
    else if (cb_statements_find(parser->statements, parser->word) >= 0)
      WRONG(parser, "there is a '%s' already", parser->word);
    add_name(parser, parser->word, parser->begin, (struct cb_name){.kind = kind, .type = type});
    next(parser);
    if (parser->status || !is_sign(parser, ",")) break;
    next(parser);
  }
  expect(parser, ";");
}

/* The right side of a statement that is a reduction: its argument, and which. */
static int parse_reduction(struct parser *parser, enum cb_reduction *reduction) {
  const int is_dot = !strcmp(parser->word, "dot"), is_sum = !strcmp(parser->word, "sum");
  const char *before = parser->at, *begin = parser->begin;
  const int count = parser->statements->expressions_count;
  if (parser->token != TOKEN_NAME || (!is_dot && !is_sum && strcmp(parser->word, "max") != 0)) return -1;
  next(parser);
  expect(parser, "(");
  int left = parse_operand(parser);
  if (!is_dot && !is_sum && !is_sign(parser, ")")) { /* max of two numbers: an operation */
    if (parser->status) return -1;
    parser->statements->expressions_count = count;
    parser->at = before;
    parser->begin = begin;
    parser->token = TOKEN_NAME;
    memcpy(parser->word, "max", 4);
    return -1;
  }
  *reduction = is_dot || is_sum ? CB_REDUCE_SUM : CB_REDUCE_MAX;
  if (is_dot) {
    expect(parser, ",");
    const int right = parse_operand(parser);
    left = add(parser, (struct cb_expression){.operation = CB_OP_INNER, .operands = {left, right}});
  }
  expect(parser, ")");
  return left;
}

/* The name that a statement assigns to: one that is declared, or a new one. */
static int take_target(struct parser *parser, const char *word, const char *at, enum cb_reduction reduction,
                       int is_truth) {
  int number = cb_statements_find(parser->statements, word);
  const enum cb_name_kind kind = reduction ? CB_NAME_RESULT : CB_NAME_LOCAL;
  if (number < 0)
    number = add_name(parser, word, at, (struct cb_name){.kind = kind, .type = CB_TYPE_COUNT, .is_truth = is_truth});
  if (number < 0) return -1;
  struct cb_name *name = &parser->statements->names[number];
  if (name->assigned) return fail_at(parser, CB_ERR_ARGUMENT, at, "'%s' is assigned already", word);
  if (name->kind != kind && name->kind != CB_NAME_OUT && name->kind != CB_NAME_INOUT)
    return fail_at(parser, CB_ERR_ARGUMENT, at, "'%s' cannot be assigned: it is no 'out' or 'inout' vector", word);
  if (reduction && name->kind != kind)
    return fail_at(parser, CB_ERR_ARGUMENT, at, "'%s' is a vector, and the right side is one number for all rows", word);
  name->assigned = 1;
  return number;
}

static void parse_statement(struct parser *parser) {
  struct cb_statements *statements = parser->statements;
  const char *at = parser->begin;
  char word[sizeof parser->word];
  enum cb_reduction reduction = CB_REDUCE_NONE;
  if (parser->token != TOKEN_NAME || is_reserved(parser->word)) {
    WRONG(parser, "a statement begins with the name that it assigns to, not with '%s'", token_text(parser));
    return;
  }
  memcpy(word, parser->word, sizeof word);
  next(parser);
  expect(parser, "=");
  const char *right_at = parser->begin;
  int right = parse_reduction(parser, &reduction);
  if (!reduction) right = parse_choice(parser);
  if (parser->status) return;
  const int is_truth = expression(parser, right)->is_truth;
  const int target = take_target(parser, word, at, reduction, is_truth);
  if (target >= 0 && statements->names[target].kind != CB_NAME_LOCAL) check_kind(parser, right, 0, right_at);
  expect(parser, ";");
  if (statements->statements_count == CB_MOST_STATEMENTS)
    fail_at(parser, CB_ERR_LIMIT, at, "more than %d statements", CB_MOST_STATEMENTS);
  if (reduction && cb_statements_results(statements) > CB_MOST_RESULTS)
    fail_at(parser, CB_ERR_LIMIT, at, "more than %d reductions", CB_MOST_RESULTS);
  if (parser->status) return;
  statements->statements[statements->statements_count++] = (struct cb_statement){target, right, reduction};
}

static void parse_text(struct parser *parser, int has_ax) {
  if (has_ax) add_name(parser, "ax", parser->text, (struct cb_name){.kind = CB_NAME_AX, .type = CB_TYPE_COUNT});
  add_name(parser, "row", parser->text, (struct cb_name){.kind = CB_NAME_ROW, .type = CB_TYPE_COUNT});
  next(parser);
  while (!parser->status && parser->token != TOKEN_END) {
    const int is_name = parser->token == TOKEN_NAME;
    int kind = 0;
    while (kind < DECLARATIONS && (!is_name || strcmp(parser->word, declarations[kind]) != 0)) kind++;
    if (kind < DECLARATIONS) parse_declaration(parser, (enum cb_name_kind)kind);
    else parse_statement(parser);
  }
}

/* A name that is never used, or a text that does nothing, is a mistake. */
static void check_whole(struct parser *parser) {
  const struct cb_statements *statements = parser->statements;
  int writes = 0;
  for (int i = 0; i < statements->names_count; i++) {
    const struct cb_name *name = &statements->names[i];
    if (name->kind == CB_NAME_OUT && !name->assigned)
      fail_at(parser, CB_ERR_ARGUMENT, parser->at, "'%s' is declared 'out' and never assigned", name->name);
    if (name->kind == CB_NAME_LOCAL && !name->read)
      fail_at(parser, CB_ERR_ARGUMENT, parser->at, "'%s' is assigned and never read; declare it 'out' if it is a vector",
              name->name);
    writes |= cb_name_is_written(name) && name->assigned;
  }
  if (!writes) fail_at(parser, CB_ERR_ARGUMENT, parser->at, "nothing is written: no vector, and no result");
}

enum cb_status cb_statements_parse(struct cb_statements **out, const char *text, const char *what, int has_ax,
                                   struct cb_diag *diag) {
  struct cb_statements *statements = cb_calloc(1, sizeof *statements);
  struct parser parser = {
      .statements = statements, .text = text, .at = text, .begin = text, .what = what, .diag = diag};
  *out = NULL;
  if (!statements) return cb_fail_memory(diag, what, sizeof *statements);
  if (strlen(text) > MOST_TEXT) fail_at(&parser, CB_ERR_LIMIT, text, "more than %d characters", MOST_TEXT);
  else parse_text(&parser, has_ax);
  if (!parser.status) check_whole(&parser);
  if (parser.status) cb_free(statements);
  else *out = statements;
  return parser.status;
}

int cb_statements_results(const struct cb_statements *statements) {
  int results = 0;
  for (int i = 0; i < statements->names_count; i++) results += statements->names[i].kind == CB_NAME_RESULT;
  return results;
}
