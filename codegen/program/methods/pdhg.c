// SPDX-License-Identifier: Apache-2.0
/* Primal-dual hybrid gradient for linear programs: minimise cost·x where row_lower <= A x <= row_upper and
 * lower <= x <= upper.
 *
 * A step (Chambolle and Pock, 2011) from z = (x, y) goes to the point ẑ that has
 *
 *   x̂ = x - tau (cost - Aᵀ y), moved into its bounds      ŷ = y - sigma A (2 x̂ - x), likewise by the rows' bounds
 *
 * with sqrt(tau sigma) below 1 / |A|. Iterations are those of Halpern with reflection: z becomes far (2 ẑ - z) +
 * (1 - far) z0, where z0 is the iteration's anchor and far = (k + 1) / (k + 2) behind k steps from it; now and then the
 * anchor is renewed (Lu and Yang, "Restarted Halpern PDHG for linear programming", 2024). When it is, and the weight of
 * the primal against the dual, omega = sqrt(sigma / tau), follow the rules of PDLP (Applegate and others, 2021), with
 * the KKT error as measure (Lu and Yang, cuPDLP, 2023): it is looked at in every CHECK-th iteration.
 *
 * The two products and a pass over columns and one over rows are all that an iteration has: nothing is summed, and
 * nothing waited for, but in those that check. They compute residuals of ẑ from products of their own, so that what is
 * called solved is.
 *
 * With scales (squares of them: `t` of columns, `s` of rows) the method is that for the matrix with scaled rows and
 * columns, whose norm is first found by the power method, from below. If an iteration shows it to be larger than was
 * thought, the steps become shorter; if it is so much larger that they may have led away (`back`), the method goes back
 * to its anchor. */
#include "codegen/program/methods/methods.h"

enum {
  POWER = 24, /* steps of the power method */
  CHECK = 64  /* iterations, with the one that checks */
};

#define POWER_TEXT "24"
#define CHECK_TEXT "64"
_Static_assert(POWER == 24 && CHECK == 64, "the texts say the same");

/* Entries of bounds that no number lies between, and of numbers that are none; infinite ones where none may be. */
#define BOUNDS(low, high)                                                                                        \
  "wrong = " low " == " low " ? (" high " == " high " ? 0 : 1) : 1;"                                             \
  "below = " low " <= " high " ? (" low " - " low " == 0 ? 0 : (" low " < 0 ? 0 : 1)) : 1;"                      \
  "above = " high " - " high " == 0 ? 0 : (" high " > 0 ? 0 : 1);"

/* x̂ and ŷ. What is no number stays none. */
#define PRIMAL_STEP(t_times, bare)                                                                                  \
  "free = fma(-tau" t_times ", cost - g, x);" bare " = free < lower ? lower : (free > upper ? upper : free);"
#define DUAL_STEP(s_times, bare)                                                                                    \
  "length = sigma" s_times "; free = fma(-length, q, y); up = fma(length, row_lower, free);"                        \
  "down = fma(length, row_upper, free);" bare " = up > 0 ? up : (down < 0 ? down : 0 * free);"

/* The reduced cost r of a column against its bounds: what it adds to the dual's value, or what is wrong with it. */
#define REDUCED                                                                                                  \
  "r = cost - g; has_lower = lower - lower == 0; has_upper = upper - upper == 0;"                                \
  "worth = r > 0 ? (has_lower ? r * lower : 0) : (r < 0 ? (has_upper ? r * upper : 0) : 0 * r);"                 \
  "miss = r > 0 ? (has_lower ? 0 : r) : (r < 0 ? (has_upper ? 0 : r) : 0 * r);"

/* The step (d, e) = ẑ - z. Where a program has no solution, it converges to a direction that proves so, up to its
 * length (Applegate and others, "Infeasibility detection with primal-dual hybrid gradient", 2024; for Halpern's
 * iterations Lu and Yang): e, multipliers whose value against all bounds is above 0 though they cost nothing; or d,
 * along which the value falls without end, as no finite bound ends it. A d is q - p here, and Aᵀ e is g - old_g.
 *
 * Each row and column adds its worth (of e) or gain (of d), less the share `gate` of its size: what is left of them is
 * no rounding. `miss` and `off` are what the directions lack: where a bound that is not there would have to hold. And
 * they are looked at only where the step is not so short against its point (`fresh`, squared) that the difference of
 * two products says nothing of it. */
#define DIRECTION(low, high)                                                                                     \
  "has_low = " low " - " low " == 0; has_high = " high " - " high " == 0;"
#define WORTH(of, low, high)                                                                                     \
  "worth = " of " > 0 ? (has_low ? " of " * " low " : 0) : (" of " < 0 ? (has_high ? " of " * " high " : 0) : 0);" \
  "miss = " of " > 0 ? (has_low ? 0 : " of ") : (" of " < 0 ? (has_high ? 0 : " of ") : 0);"
#define OFF(along)                                                                                               \
  "off = " along " < 0 ? (has_low ? " along " : 0) : (" along " > 0 ? (has_high ? " along " : 0) : 0);"
#define RAYS_OF_ROWS                                                                                             \
  "e = best_y - y; along = q - p;" DIRECTION("row_lower", "row_upper") WORTH("e", "row_lower", "row_upper")      \
  OFF("along") "row_net = sum(worth - gate * abs(worth)); row_miss = sum(miss * miss); row_off = sum(off * off);" \
  "row_fresh = sum(e * e - fresh * y * y);"
#define RAYS_OF_COLUMNS                                                                                          \
  "d = best_x - x; r = old_g - g; gain = -(cost * d);" DIRECTION("lower", "upper") WORTH("r", "lower", "upper")  \
  OFF("d") "column_net = sum(worth - gate * abs(worth)); column_miss = sum(miss * miss); column_off = sum(off * off);" \
  "column_fresh = sum(d * d - fresh * x * x); gain_net = sum(gain - gate * abs(gain));"

/* Where a direction lacks at most `ray` times what it is worth, it is a certificate, and scaled to a worth of 1. */
#define CERTIFICATES                                                                                             \
  "in row_net, column_net, row_miss, column_miss, row_fresh, gain_net, row_off, column_off, column_fresh, ray;"  \
  "out ray_x, ray_y, length_x, length_y; net = row_net + column_net; most_y = ray * net; most_x = ray * gain_net;" \
  "good_y = row_miss + column_miss <= most_y * most_y ? (row_fresh > 0 ? 1 : 0) : 0;"                            \
  "good_x = row_off + column_off <= most_x * most_x ? (column_fresh > 0 ? 1 : 0) : 0;"                           \
  "ray_y = ray > 0 ? (net > 0 ? good_y : 0) : 0; ray_x = ray > 0 ? (gain_net > 0 ? good_x : 0) : 0;"             \
  "length_y = ray_y > 0 ? 1 / net : 0; length_x = ray_x > 0 ? 1 / gain_net : 0;"

#define NONE_LEFT "in left; out go; go = left > 0 ? 0 : 1;"

#define SIZES                                                                                                    \
  "in size, omega; out tau, sigma; eta = size > 0 ? 0.95 / sqrt(size) : 1; tau = eta / omega; sigma = eta * omega;"

#define PDHG(in_t, in_s, made_t, made_s, t_wrong, s_wrong, t_times, s_times, by_t, by_s, own_t, own_s, ...)      \
  {                                                                                                              \
    .name = "pdhg", .parameters = {"relative", "absolute", "norm", "weight", "most", "ray", "gate", "fresh"}, .given = {NULL}, \
    .work = {"x", "y", "cost", "lower", "upper", "row_lower", "row_upper", "anchor_x", "anchor_y", "ahead",      \
             "best_x", "best_y", "g", "q", "p", "old_g", own_t, own_s},                                                   \
    .copied = (const struct cb_copied[]){{"cost", "0", NULL},                                                    \
                                         {"lower", "0", NULL},                                                   \
                                         {"upper", "infinity<double>()", NULL},                                  \
                                         {"row_lower", "-infinity<double>()", NULL},                             \
                                         {"row_upper", "infinity<double>()", NULL},                              \
                                         {"x", NULL, "best_x"},                                                  \
                                         {"y", NULL, "best_y"},                                                  \
                                         __VA_ARGS__{NULL, NULL, NULL}},                                         \
    .columns = (const char *const[]){"x", "cost", "lower", "upper", "anchor_x", "ahead", "best_x", "g", "old_g", "t", NULL}, \
    .told = (const struct cb_told[]){{"primal_residual", "sqrt(double(primal_))"},                               \
                                     {"dual_residual", "sqrt(double(dual_))"},                                   \
                                     {"primal_value", "value_"},                                                 \
                                     {"dual_value", "dual_value_"},                                              \
                                     {NULL, NULL}},                                                              \
    .sections_count = 11,                                                                                        \
    .sections = {                                                                                                \
        {.steps = {STEP(SCALARS, "out ray_x, ray_y, length_x, length_y; ray_x = 0; ray_y = 0; length_x = 0; length_y = 0;"), \
                   STEP(COLUMNS, "in cost, lower, upper, x; out anchor_x, best_x, ahead;" made_t                 \
                                 BOUNDS("lower", "upper")                                                        \
                                 "anchor_x = x; best_x = x; start = 0.5 + 1 / (1 + row); ahead = start;"         \
                                 "bad = sum(wrong" t_wrong "); crossed = sum(below + above);"                    \
                                 "cc = dot(cost, cost); xx = dot(x, x); cw = sum(cost * cost" t_times ");"       \
                                 "vv = sum(start * start" by_t ");"),                                            \
                   STEP(ROWS, "in row_lower, row_upper, y; out anchor_y, best_y;" made_s                         \
                              BOUNDS("row_lower", "row_upper")                                                   \
                              "anchor_y = y; best_y = y;"                                                        \
                              "low = row_lower - row_lower == 0 ? abs(row_lower) : 0;"                           \
                              "high = row_upper - row_upper == 0 ? abs(row_upper) : 0; larger = low > high ? low : high;" \
                              "row_bad = sum(wrong" s_wrong "); row_crossed = sum(below + above);"               \
                              "bb = dot(larger, larger); yy = dot(y, y); bw = sum(larger * larger" s_times ");"), \
                   STEP(STOP, "in bad, crossed, cc, xx, row_bad, row_crossed, bb, yy; out stop;"                 \
                              "all = cc + xx + bb + yy; stop = all - all == 0 ? (bad + row_bad > 0 ? 4 :"        \
                              "(crossed + row_crossed > 0 ? 3 : 0)) : 4;"),                                      \
                   STEP(SCALARS, "in cw, bw, weight, norm, cc, bb, relative, absolute, most;"                    \
                                 "out omega, size, left, k, far, total, merit, first_merit, primal_limit, dual_limit;" \
                                 "omega = weight > 0 ? weight : (cw > 0 ? (bw > 0 ? sqrt(cw / bw) : 1) : 1);"    \
                                 "size = norm * norm; left = norm > 0 ? 0 : " POWER_TEXT ";"                     \
                                 "k = 0; far = 0.5; total = 0; merit = 0; first_merit = 0;"                      \
                                 "primal_limit = fma(relative, sqrt(bb), absolute);"                             \
                                 "dual_limit = fma(relative, sqrt(cc), absolute);"),                             \
                   GO(NONE_LEFT, 3)},                                                                            \
         .next = 1},                                                                                             \
        {.from = "ahead",                                                                                        \
         .to = "q",                                                                                              \
         .times = POWER,                                                                                         \
         .steps = {STEP(ROWS, "in q" in_s "; out p; p = q" s_times "; qq = sum(q * q" s_times ");"),             \
                   STEP(SCALARS, "in qq, vv; inout size; out scale; new = vv > 0 ? qq / vv : 0;"                 \
                                 "size = new > size ? new : size + 0 * new; scale = qq > 0 ? 1 / sqrt(qq) : 0;")}, \
         .next = 2},                                                                                             \
        {.from = "p",                                                                                            \
         .to = "g",                                                                                              \
         .transposed = 1,                                                                                        \
         .times = POWER,                                                                                         \
         .steps = {STEP(COLUMNS, "in g" in_t "; out ahead; scalar scale; v = scale * g; ahead = v" t_times ";"   \
                                 "vv = sum(v * v" t_times ");"),                                                 \
                   STEP(SCALARS, "inout left; left = left - 1;"),                                                \
                   GO(NONE_LEFT, 3)},                                                                            \
         .next = 1},                                                                                             \
        {.steps = {STEP(SCALARS, SIZES),                                                                         \
                   STEP(SCALARS, "in most; out left; left = min(most, " CHECK_TEXT ") - 1;"),                    \
                   GO(NONE_LEFT, 6)},                                                                            \
         .next = 4},                                                                                             \
        {.from = "y",                                                                                            \
         .to = "g",                                                                                              \
         .transposed = 1,                                                                                        \
         .times = CHECK - 1,                                                                                     \
         .steps = {STEP(COLUMNS, "in cost, lower, upper, g, anchor_x" in_t "; inout x; out ahead; scalar tau, far;" \
                                 PRIMAL_STEP(t_times, "hat") "over = fma(2, hat, -x); ahead = over;"             \
                                 "x = fma(far, over - anchor_x, anchor_x);")},                                   \
         .next = 5},                                                                                             \
        {.from = "ahead",                                                                                        \
         .to = "q",                                                                                              \
         .times = CHECK - 1,                                                                                     \
         .steps = {STEP(ROWS, "in q, row_lower, row_upper, anchor_y" in_s "; inout y; scalar sigma, far;"        \
                              DUAL_STEP(s_times, "hat") "over = fma(2, hat, -y);"                                \
                              "y = fma(far, over - anchor_y, anchor_y);"),                                       \
                   STEP(SCALARS, "inout k, left, total; out far; k = k + 1; far = (k + 1) / (k + 2);"            \
                                 "left = left - 1; total = total + 1;"),                                         \
                   STEP(COUNT, NULL),                                                                            \
                   GO(NONE_LEFT, 6)},                                                                            \
         .next = 4},                                                                                             \
        {.from = "y",                                                                                            \
         .to = "g",                                                                                              \
         .transposed = 1,                                                                                        \
         .steps = {STEP(COLUMNS, "in cost, lower, upper, g, x" in_t "; out best_x, ahead, old_g; scalar tau;"    \
                                 PRIMAL_STEP(t_times, "best_x") "ahead = fma(2, best_x, -x); old_g = g;")},      \
         .next = 7},                                                                                             \
        {.from = "ahead",                                                                                        \
         .to = "q",                                                                                              \
         .steps = {STEP(ROWS, "in q, row_lower, row_upper, y" in_s "; out best_y; scalar sigma;"                 \
                              DUAL_STEP(s_times, "best_y"))},                                                    \
         .next = 8},                                                                                             \
        {.from = "best_x",                                                                                       \
         .to = "p",                                                                                              \
         .steps = {STEP(ROWS, "in p, q, best_y, anchor_y, row_lower, row_upper" in_s ";"                         \
                              "lack = row_lower - p; excess = p - row_upper;"                                    \
                              "miss = lack > 0 ? lack : (excess > 0 ? excess : 0 * p);"                          \
                              "worth = best_y > 0 ? best_y * row_lower : (best_y < 0 ? best_y * row_upper : 0 * best_y);" \
                              "change = q - p; apart = best_y - anchor_y;"                                       \
                              "primal = dot(miss, miss); row_worth = sum(worth);"                                \
                              "changed = sum(change * change" s_times "); reached = sum(p * p" s_times ");"      \
                              "dual_moved = sum(apart * apart" by_s ");"),                                       \
                   STEP(ROWS, "in p, q, y, best_y, row_lower, row_upper; scalar gate, fresh;" RAYS_OF_ROWS)},    \
         .next = 9},                                                                                             \
        {.from = "best_y",                                                                                       \
         .to = "g",                                                                                              \
         .transposed = 1,                                                                                        \
         .steps = {STEP(COLUMNS, "in g, cost, lower, upper, x, best_x, anchor_x" in_t ";" REDUCED                \
                                 "move = best_x - x; apart = best_x - anchor_x; dual = dot(miss, miss);"         \
                                 "column_worth = sum(worth); value = dot(cost, best_x);"                         \
                                 "moved = sum(move * move" by_t "); primal_moved = sum(apart * apart" by_t ");"), \
                   STEP(COLUMNS, "in g, old_g, cost, lower, upper, x, best_x; scalar gate, fresh;" RAYS_OF_COLUMNS), \
                   STEP(COUNT, NULL),                                                                            \
                   STEP(SCALARS, CERTIFICATES),                                                                  \
                   STEP(SCALARS, "in row_worth, column_worth, value, relative, absolute; inout total;"           \
                                 "out dual_value, gap, gap_limit; total = total + 1;"                            \
                                 "dual_value = row_worth + column_worth; gap = abs(value - dual_value);"         \
                                 "gap_limit = fma(relative, abs(value) + abs(dual_value), absolute);"),          \
                   STEP(STOP, "in primal, dual, gap, total, most, primal_limit, dual_limit, gap_limit, ray_x, ray_y;" \
                              "out stop; all = primal + dual + gap;"                                             \
                              "over = ray_y > 0 ? 6 : (ray_x > 0 ? 7 : (total >= most ? 2 : 0));"                \
                              "stop = all - all == 0 ? (sqrt(primal) <= primal_limit ? (sqrt(dual) <= dual_limit ?" \
                              "(gap <= gap_limit ? 1 : over) : over) : over) : 4;"),                             \
                   STEP(SCALARS, "in primal, dual, gap, changed, reached, moved, primal_moved, dual_moved, total, most," \
                                 "weight; inout size, omega, merit, first_merit, k, far; out restart, back, jump, left;" \
                                 "ratio = moved > 0 ? changed / moved : 0;"                                      \
                                 "longer = changed > 1e-8 * reached ? (ratio > size ? 1 : 0) : 0;"               \
                                 "back = longer > 0 ? (ratio > 1.1 * size ? 1 : 0) : 0; size = longer > 0 ? 1.05 * ratio : size;" \
                                 "now = fma(omega * omega, primal, dual / (omega * omega)) + gap * gap;"         \
                                 "enough = now <= 0.04 * first_merit ? 1 : 0;"                                   \
                                 "stuck = now <= 0.64 * first_merit ? (now > merit ? 1 : 0) : 0;"                \
                                 "old = k + 1 >= 0.36 * total ? 1 : 0;"                                          \
                                 "restart = longer + enough + stuck + old;"                                      \
                                 "both = primal_moved > 0 ? (dual_moved > 0 ? 1 : 0) : 0;"                       \
                                 "free = weight > 0 ? 0 : (back > 0 ? 0 : both * restart);"                      \
                                 "balance = free > 0 ? sqrt(omega) * sqrt(sqrt(dual_moved / primal_moved)) : omega;" \
                                 "omega = balance > 1e-12 ? (balance < 1e12 ? balance : 1e12) : 1e-12;"          \
                                 "anew = fma(omega * omega, primal, dual / (omega * omega)) + gap * gap;"        \
                                 "renewed = back > 0 ? 0 : restart; first_merit = renewed > 0 ? anew : first_merit;" \
                                 "merit = back > 0 ? merit : (restart > 0 ? anew : now);"                        \
                                 "jump = far; k = restart > 0 ? 0 : k + 1; far = (k + 1) / (k + 2);"             \
                                 "left = min(most - total, " CHECK_TEXT ") - 1;"),                               \
                   STEP(COLUMNS, "in best_x, ahead; inout x, anchor_x; scalar restart, back, jump;"              \
                                 "x = back > 0 ? anchor_x : (restart > 0 ? best_x : fma(jump, ahead - anchor_x, anchor_x));" \
                                 "anchor_x = back > 0 ? anchor_x : (restart > 0 ? best_x : anchor_x);"),         \
                   STEP(ROWS, "in best_y; inout y, anchor_y; scalar restart, back, jump; over = fma(2, best_y, -y);" \
                              "y = back > 0 ? anchor_y : (restart > 0 ? best_y : fma(jump, over - anchor_y, anchor_y));" \
                              "anchor_y = back > 0 ? anchor_y : (restart > 0 ? best_y : anchor_y);"),            \
                   STEP(SCALARS, SIZES),                                                                         \
                   GO(NONE_LEFT, 6)},                                                                            \
         .next = 4},                                                                                             \
        {.steps = {STEP(COLUMNS, "in x; inout best_x; scalar ray_x, length_x;"                                   \
                                 "best_x = ray_x > 0 ? length_x * (best_x - x) : best_x;"),                      \
                   STEP(ROWS, "in y; inout best_y; scalar ray_y, length_y;"                                      \
                              "best_y = ray_y > 0 ? length_y * (best_y - y) : best_y;")},                        \
         .next = 0}}                                                                                             \
  }

#define SCALE_WRONG(t) " + (" t " > 0 ? (" t " - " t " == 0 ? 0 : 1) : 1)"

const struct cb_program cb_program_pdhg[] = {
    PDHG("", "", "", "", "", "", "", "", "", "", NULL, NULL, ),
    PDHG(", t", ", s", "inout t; t = t * t;", "inout s; s = s * s;", SCALE_WRONG("t"), SCALE_WRONG("s"), " * t", " * s",
         " / t", " / s", "t", "s", {"t", NULL, NULL}, {"s", NULL, NULL}, )};
