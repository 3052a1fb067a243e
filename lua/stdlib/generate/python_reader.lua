--- generate/python_reader.lua: the program that reads Python source in a sandbox: one JSON object a line in, one out.
---
--- It parses and never runs what it reads. `read` tells of each file what the gates ask for and gives its stub: every
--- function's body becomes its docstring and `raise NotImplementedError`, by cutting the text, so that names, signatures,
--- imports, comments outside of bodies and formatting stay. `mutate` gives variants of a solution with one thing wrong.
return {
  SOURCE = [==[
import ast, io, json, random, signal, sys, tokenize

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
CONTAINERS = {"list", "dict", "set", "tuple", "deque", "defaultdict", "OrderedDict", "Counter"}


def is_doc(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def is_not_implemented(node):
    exc = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return isinstance(exc, ast.Name) and exc.id == "NotImplementedError"


def is_stub(fn):
    for node in fn.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.Pass) or isinstance(node, ast.Return) and node.value is None:
            continue
        if isinstance(node, ast.Raise) and is_not_implemented(node):
            continue
        return False
    return True


def is_plain(value):
    if isinstance(value, (ast.Name, ast.Constant)):
        return True
    if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
        return all(is_plain(v) for v in value.elts)
    if isinstance(value, ast.Dict):
        return not value.keys
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id in CONTAINERS and all(is_plain(a) for a in value.args)
    return False


def only_stores(fn):
    # A constructor that keeps what it was given: no part of the work.
    if fn.name != "__init__":
        return False
    for node in fn.body:
        if is_doc(node) or isinstance(node, ast.Pass):
            continue
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and (node.value is None or is_plain(node.value)):
            continue
        return False
    return True


def functions(node, prefix=""):
    # Outermost functions, those of classes in classes too.
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FUNCTIONS):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from functions(child, prefix + child.name + ".")
        elif not isinstance(child, ast.expr):
            yield from functions(child, prefix)


def colon_of(text, starts, fn):
    # Where a function's head ends: the first colon outside of brackets.
    depth, begin = 0, starts[fn.lineno - 1] + fn.col_offset
    base = fn.lineno
    for token in tokenize.generate_tokens(io.StringIO(text[begin:].decode("utf-8")).readline):
        if token.type != tokenize.OP:
            continue
        if token.string in "([{":
            depth += 1
        elif token.string in ")]}":
            depth -= 1
        elif token.string == ":" and depth == 0:
            row, column = token.end
            first = begin if row == 1 else starts[base - 1 + row - 1]
            line = text[first:].decode("utf-8").split("\n", 1)[0]
            return first + len(line[:column].encode("utf-8"))
    raise SyntaxError("a function without a body")


def strip(text, tree):
    text = text.encode("utf-8")
    starts = [0]
    for line in text.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    edits = []
    for _, fn in functions(tree):
        if only_stores(fn) or is_stub(fn):
            continue
        indent = b" " * (fn.col_offset + 4)
        last = fn.body[-1]
        end = min(starts[last.end_lineno], len(text))
        row = last.end_lineno
        while row + 1 < len(starts):  # comments that belong to the body
            line = text[starts[row]:starts[row + 1]]
            bare = line.lstrip()
            if not bare.startswith(b"#") or len(line) - len(bare) < len(indent):
                break
            row, end = row + 1, min(starts[row + 1], len(text))
        new = b"\n"
        if is_doc(fn.body[0]):
            doc = fn.body[0]
            new += indent + text[starts[doc.lineno - 1] + doc.col_offset:starts[doc.end_lineno - 1] + doc.end_col_offset] + b"\n"
        edits.append((colon_of(text, starts, fn), end, new + indent + b"raise NotImplementedError\n"))
    for begin, end, new in sorted(edits, reverse=True):
        text = text[:begin] + new + text[end:]
    return text.decode("utf-8")


def imports(tree):
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    return sorted(names)


def asserts(tree):
    n = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            n += 1
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            n += name in ("raises", "warns") or name.startswith("assert")
    return n


def read_one(text):
    text = text.replace("\r\n", "\n")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        return {"error": "%s (line %s)" % (getattr(e, "msg", None) or type(e).__name__, getattr(e, "lineno", "?"))}
    found = []
    for name, fn in functions(tree):
        private = any(part.startswith("_") and not part.endswith("__") for part in name.split("."))
        found.append({"name": name, "line": fn.lineno, "stub": is_stub(fn), "private": private, "stores": only_stores(fn)})
    defs = sorted({node.name for node in ast.walk(tree) if isinstance(node, FUNCTIONS)})
    out = {"functions": found, "defs": defs, "imports": imports(tree), "asserts": asserts(tree)}
    out["stub"] = strip(text, tree)
    ast.parse(out["stub"])
    return out


SWAPS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
         ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult, ast.Mod: ast.Mult,
         ast.And: ast.Or, ast.Or: ast.And, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is}


def change(node):
    # What to put wrong at a node: a function that does it, or none.
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        def swap(): node.ops[0] = SWAPS[type(node.ops[0])]()
        return swap
    if isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)) and type(node.op) in SWAPS:
        def swap(): node.op = SWAPS[type(node.op)]()
        return swap
    if isinstance(node, ast.Constant) and type(node.value) in (int, bool):
        def other(): node.value = not node.value if isinstance(node.value, bool) else node.value + 1
        return other
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        def negate(): node.test = ast.UnaryOp(op=ast.Not(), operand=node.test)
        return negate
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        def nothing(): node.value = ast.Constant(value=None)
        return nothing


def sites(tree):
    return [node for _, fn in functions(tree) for part in fn.body if not is_doc(part)
            for node in ast.walk(part) if change(node)]


def mutate(request):
    rand, all_sites = random.Random(request.get("seed", 0)), []
    for path in sorted(request["files"]):
        text = request["files"][path].replace("\r\n", "\n")
        all_sites += [(path, text, i) for i in range(len(sites(ast.parse(text))))]
    rand.shuffle(all_sites)
    out = []
    for path, text, i in all_sites[:request.get("max", 8)]:
        tree = ast.parse(text)
        node = sites(tree)[i]
        line, what = node.lineno, type(node).__name__
        change(node)()
        out.append({"path": path, "text": ast.unparse(ast.fix_missing_locations(tree)) + "\n",
                    "what": "%s:%d %s" % (path, line, what)})
    return {"mutants": out}


def read(request):
    return {"files": {path: read_one(text) for path, text in request["files"].items()}}


def too_long(*_):
    raise TimeoutError("took too long")


signal.signal(signal.SIGALRM, too_long)
for line in sys.stdin:
    signal.alarm(10)
    try:
        request = json.loads(line)
        answer = read(request) if request["op"] == "read" else mutate(request)
    except Exception as e:
        answer = {"error": "%s: %s" % (type(e).__name__, str(e)[:200])}
    signal.alarm(0)
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
]==],
}
