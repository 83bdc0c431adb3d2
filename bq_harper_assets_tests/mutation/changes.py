"""Lists the small changes that can be made to a module, each of which a test ought to notice.

Comparisons, boundaries, booleans, arithmetic, numbers, conditions, returned values and statements
are changed. Texts are not: what a message says is a matter of reading, and what a text decides is
compared somewhere. Annotations, decorators, assertions, log lines and the words of errors stay.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_CALLED = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}
# What these say shows only when something else is broken already, or to whoever reads a log.
_QUIET_KEYWORDS = {"strict", "repr", "stacklevel", "exc_info"}
_QUIET_NAMES = {"_log", "model_config"}
_QUIET_NODES = (ast.JoinedStr, ast.Assert, ast.Import, ast.ImportFrom)
_QUIET_FIELDS = {"annotation", "returns", "decorator_list", "bases"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Function:
    """A function is a def that lies in no other def; lines include its decorators."""

    name: str
    first_line: int
    last_line: int

    @property
    def lines(self) -> range:
        """Returns all lines of the function."""
        return range(self.first_line, self.last_line + 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Place:
    """A place is where a node hangs in the syntax tree, and the function that it lies in."""

    parent: ast.AST
    field: str
    index: int | None
    node: ast.AST
    function: Function | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Change:
    """A change replaces one node of a module's syntax tree by another."""

    line: int
    before: str
    after: str
    place: _Place
    node: ast.AST

    @property
    def function(self) -> Function | None:
        """Returns the function that is changed; None: it is run once, when it is imported."""
        return self.place.function


class Mutable:
    """A mutable module is its syntax tree and all the changes that can be made to it."""

    def __init__(self, source: str, file: str, left_out: frozenset[str] = frozenset()) -> None:
        self.file = file
        self._tree = ast.parse(source, file)
        self.changes = [
            each
            for place in _places(self._tree, None)
            if place.function is None or place.function.name not in left_out
            for each in _changes(place)
        ]

    def compiled(self, change: Change) -> CodeType:
        """Returns the code of the module with the change made."""
        place = change.place
        before = getattr(place.parent, place.field)
        after: object = change.node
        if place.index is not None:
            after = [*before[: place.index], change.node, *before[place.index + 1 :]]
        setattr(place.parent, place.field, after)
        try:
            return compile(self._tree, self.file, "exec", dont_inherit=True)
        finally:
            setattr(place.parent, place.field, before)


def functions_in(code: CodeType) -> Iterator[CodeType]:
    """Yields the code of each function that lies in no other function, also those of classes."""
    for each in code.co_consts:
        if not isinstance(each, CodeType):
            continue
        if "__module__" in each.co_names and "__qualname__" in each.co_names:
            yield from functions_in(each)  # the body of a class
        elif not each.co_name.startswith("<"):
            yield each


def _places(parent: ast.AST, function: Function | None) -> Iterator[_Place]:
    for field, value in ast.iter_fields(parent):
        if field in _QUIET_FIELDS:
            continue
        within = function
        if isinstance(parent, _Function) and function is None and field == "body":
            within = _function(parent)  # its defaults belong to the module, which evaluates them
        in_list = isinstance(value, list)
        for index, node in enumerate(value if in_list else [value]):
            if not isinstance(node, ast.AST) or _is_quiet(node):
                continue
            at = index if in_list else None
            yield _Place(parent=parent, field=field, index=at, node=node, function=within)
            if not isinstance(node, ast.Raise):
                yield from _places(node, within)


def _function(node: _Function) -> Function:
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return Function(node.name, first, node.end_lineno or node.lineno)


def _is_quiet(node: ast.AST) -> bool:
    match node:
        case ast.keyword(arg=name):
            return name in _QUIET_KEYWORDS
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name in _QUIET_NAMES
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in _QUIET_NAMES
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
    return isinstance(node, _QUIET_NODES)


def _changes(place: _Place) -> Iterator[Change]:
    for new in _instead_of(place):
        yield Change(
            line=getattr(place.node, "lineno", 0),
            before=ast.unparse(place.node),
            after=ast.unparse(ast.fix_missing_locations(new)),
            place=place,
            node=ast.copy_location(new, place.node),
        )


def _instead_of(place: _Place) -> Iterator[ast.AST]:
    node = place.node
    if isinstance(node, ast.stmt):
        yield from _statements_instead_of(node)
    if isinstance(node, ast.expr):
        yield from _expressions_instead_of(node, place.function)
        is_condition = place.field == "test" or place.field == "ifs"
        if is_condition and isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            yield ast.UnaryOp(ast.Not(), node)


def _statements_instead_of(node: ast.stmt) -> Iterator[ast.stmt]:
    match node:
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Yield() | ast.YieldFrom()):
            yield ast.If(ast.Constant(False), [node], [])  # it stays a generator
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.Continue() | ast.Break():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.AugAssign(target=target, op=op, value=value) if type(op) in _COMPUTED:
            yield ast.AugAssign(target, _COMPUTED[type(op)](), value)


def _expressions_instead_of(node: ast.expr, function: Function | None) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            for at, op in enumerate(ops):
                new = [*ops[:at], _COMPARED[type(op)](), *ops[at + 1 :]]
                yield ast.Compare(left, new, comparators)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _COMPUTED:
            if function is None and isinstance(op, ast.BitOr):
                return  # it is an alias of types
            yield ast.BinOp(left, _COMPUTED[type(op)](), right)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in _CALLED:
            kept = [] if name == "sorted" else keywords
            yield ast.Call(ast.Name(_CALLED[name], ast.Load()), args, kept)
