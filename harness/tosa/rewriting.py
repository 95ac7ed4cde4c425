"""A program with other operators in the place of one: what twins and mutations are made with.

``rewritten`` keeps everything before the operator and everything behind it. A *rewrite* appends what stands in its
place to a ``Draft`` and returns the name of the result, which takes the name of the operator's own result. Where its
type or shape is another one, what follows has to follow (``harness.tosa.resizing``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from harness.tosa.program import SHAPE, Attribute, Fill, Operator, Program, Tensor

Shape = tuple[int, ...]


@dataclass
class Draft:
    """What stands in an operator's place, while it is written.

    :param before: the program that is rewritten.
    :ivar tensors: new ones; ``operators``: new ones, in order.
    """

    before: Program
    tensors: dict[str, Tensor] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors.get(name) or self.before.by_name[name]

    def constant(self, shape: Shape, dtype: str, data: Sequence[int] | Fill) -> str:
        """A constant; its name."""
        return self._new(
            Tensor("", shape, dtype, data if isinstance(data, Fill) else tuple(int(item) for item in data))
        )

    def dims(self, numbers: Sequence[int]) -> str:
        """A constant shape; its name."""
        return self.constant((len(numbers),), SHAPE, numbers)

    def add(
        self,
        op: str,
        inputs: Sequence[str],
        shape: Shape,
        dtype: str,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> str:
        """Append an operator; its result's name."""
        name = self._new(Tensor("", tuple(shape), dtype))
        self.operators.append(Operator(op, tuple(inputs), (name,), dict(attributes or {})))
        return name

    def again(self, step: Operator, inputs: Sequence[str], shape: Shape | None = None, **changed: Attribute) -> str:
        """Append an operator like another one; ``changed`` are its attributes that differ."""
        after = self[step.outputs[0]]
        wanted = after.shape if shape is None else shape
        return self.add(step.op, inputs, wanted, after.dtype, {**step.attributes, **changed})

    def _new(self, tensor: Tensor) -> str:
        number = len(self.before.tensors) + len(self.tensors)
        while (name := f"t{number}") in self.before.by_name or name in self.tensors:
            number += 1
        self.tensors[name] = msgspec.structs.replace(tensor, name=name)
        return name


Rewrite = Callable[[Draft, Operator], str]


def rewritten(program: Program, place: int, rewrite: Rewrite) -> Program:
    """The program with something else in the place of an operator."""
    step = program.operators[place]
    draft = Draft(program)
    result, own = rewrite(draft, step), step.outputs[0]
    *made, last = draft.operators
    if last.outputs != (result,):
        raise ValueError(f"{result} is not what the last operator of the rewrite makes")
    last = msgspec.structs.replace(last, outputs=(own,))
    renamed = {own: msgspec.structs.replace(draft.tensors.pop(result), name=own)}
    return msgspec.structs.replace(
        program,
        tensors=(*(renamed.get(item.name, item) for item in program.tensors), *draft.tensors.values()),
        operators=(*program.operators[:place], *made, last, *program.operators[place + 1 :]),
    )
