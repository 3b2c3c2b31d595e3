# SPDX-License-Identifier: Apache-2.0
"""Whether an expression in C can be put into parentheses where it stands without a change of meaning: `a && b` of
`a && b != c` cannot, since != binds tighter. mutate.py asks that of what a planted bug replaces."""
import re

TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[A-Za-z_]\w*|\d[\w.]*|->|\+\+|--|<<=|>>=|<<|>>|&&|\|\||'
                   r"[-+*/%&|^<>=!]=|[-+*/%&|^<>=?:!~.,;(){}\[\]]")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
# The loosest first.
LEVELS = ("= += -= *= /= %= &= |= ^= <<= >>=", "? :", "||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -",
          "* / %")
BINDS = {operator: level for level, line in enumerate(LEVELS) for operator in line.split()}
# What an operand stands behind: what looks binary there is unary.
OPENS = set(BINDS) | set("([{,;}!~") | {"return", "case"}
ASSOCIATIVE = {"&&", "||", "|", "^", "&", "+", "*"}
BEHIND_A_NAME = {"[", "(", ".", "->", "++", "--"}
CAST = re.compile(r"\((?:const |enum |struct |unsigned |signed )*(?:\w+_t|cb_\w+|int|unsigned|double|float|char|long)"
                  r"(?: ?\*+)?\)\s*$")
CONTEXT = 400  # characters


def tokens_of(text):
    return TOKEN.findall(COMMENT.sub(" ", text))


def loosest(tokens, before):
    """The binary operator of the expression that binds least, outside all brackets; None: it has none."""
    depth, found = 0, None
    for token in tokens:
        depth += (token in "([{") - (token in ")]}")
        if not depth and token in BINDS and before not in OPENS:
            found = token if found is None or BINDS[token] <= BINDS[found] else found
        before = token
    return found


def what_splits(text, place, old):
    """The operator beside `old`, which stands at `place` of the text, that takes a part of it away; None: none does.

    >>> def split(text, old): return what_splits(text, text.index(old), old)
    >>> split("x = a && b != c;", "a && b"), split("x = a + b * c;", "a + b"), split("x = a - b - c;", "b - c")
    ('!=', '*', '-')
    >>> split("x = (long)a + b;", "a + b"), split("x = !a == b;", "a == b"), split("x = a + b[1];", "a + b")
    ('a cast', '!', '[')
    >>> [split("if (a && *b < c + f(d * e) || g) x += h;", old) for old in ("a && *b < c + f(d * e)", "*b", "d * e", "h")]
    [None, None, None, None]
    """
    before = tokens_of(text[max(0, place - CONTEXT):place])
    after = tokens_of(text[place + len(old):place + len(old) + CONTEXT])
    left, right = before[-1] if before else ";", after[0] if after else ";"
    inner = loosest(tokens_of(old), left)
    if inner is None:
        return None
    if left in ("!", "~", ".", "->") or left in BINDS and before[-2:-1] and before[-2] in OPENS:
        return left
    if BINDS.get(left, -1) > BINDS[inner] or BINDS.get(left) == BINDS[inner] > 1 and left not in ASSOCIATIVE:
        return left
    if right in BEHIND_A_NAME or BINDS.get(right, -1) > BINDS[inner]:
        return right
    return "a cast" if CAST.search(text[:place]) else None
