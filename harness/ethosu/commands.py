"""From the bytes of ``cmd_data`` to commands.

``cmd_data`` is what the driver gets. It begins with the FourCC ``COP1``, and then holds
*driver actions*: words whose lowest byte says what they are. 1 is the optimiser configuration
and is followed by two words, the NPU's CONFIG and ID registers that Vela compiled for; 5 is a
filler; 2 is followed by the command stream, whose length in words is in the rest of the word
(bits 8..15 are its high part). There is one command stream, and nothing comes after it.

Commands are one word (control 0) or two (control 1). Offsets are bytes in ``cmd_data``.

Facts: CreateDriverPayload1 in regor/tflite/custom_operator_ethosu.hpp; ``config_r`` and ``id_r``
of ethos_u65_interface.hpp and ethos_u85_interface.hpp; ConfigRegister in ethos_u55.cpp (MACs and
KiB of SHRAM of all cores together) and ethos_u85.cpp, of ethos-u-vela 5.1.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from harness.ethosu import registers_u55, registers_u85
from harness.ethosu.accelerator import ACCELERATORS, Accelerator
from harness.ethosu.records import Command, StreamError, Unimplemented
from harness.ethosu.registers import CMD1, CONTROL_AT, OPCODE_BITS, CommandSpec, Field

MAGIC, MAGIC_2 = b"COP1", b"COP2"
CONFIGURATION, COMMAND_STREAM, FILLER = 1, 2, 5
SILENT = ("OP_IRQ", "OP_PMU_MASK")
"""Operations that are no step: they do nothing to memory and wait for nothing."""
PRODUCTS = {0: "u55", 1: "u65", 2: "u85"}
_KEY = OPCODE_BITS | 3 << CONTROL_AT


@dataclass(frozen=True)
class DriverActions:
    """What ``cmd_data`` says of the NPU, and where its commands are.

    :param product: ``u55``, ``u65`` or ``u85``.
    :param macs: multiply-accumulates a cycle, of all cores together.
    :param shram: KiB of SHRAM of all cores together (U55 and U65; 0 on U85).
    :param streams: weight streams (U85; 0 elsewhere).
    :param stream_version: version of the command stream (0 on U55 and U65, 1 on U85).
    :param architecture: version of the architecture: major, minor, patch.
    :param optimiser: version of the optimiser configuration: release, patch.
    :param start: offset of the first command.
    :param length: bytes of all commands.
    """

    product: str
    macs: int
    shram: int
    streams: int
    stream_version: int
    architecture: tuple[int, int, int]
    optimiser: tuple[int, int]
    start: int
    length: int

    @property
    def accelerator(self) -> Accelerator:
        """The accelerator that the stream was compiled for.

        :raises StreamError: there is none of this product and size.
        """
        for item in ACCELERATORS.values():
            if item.family == self.product and item.macs == self.macs:
                return item
        raise StreamError(f"the configuration says {self}, which is no Ethos-U that the model knows")

    def __str__(self) -> str:
        sizes = f", {self.shram} KiB of SHRAM" if self.shram else ""
        streams = f", {self.streams} weight streams" if self.streams else ""
        return f"Ethos-{self.product.upper()} with {self.macs} MACs{sizes}{streams}"


def driver_actions(cmd_data: bytes) -> DriverActions:
    """Read everything up to the first command, and check that the stream ends where the data end.

    :raises StreamError: wrong FourCC or length, an unknown action, a configuration or a command
        stream missing, given twice or cut off, or words after the stream.
    :raises Unimplemented: the format is COP2.
    """
    if cmd_data[:4] == MAGIC_2:
        raise Unimplemented("the commands are in format COP2; compile with cop format COP1")
    if cmd_data[:4] != MAGIC:
        raise StreamError(f"the commands begin with {cmd_data[:4]!r}, not with COP1")
    if len(cmd_data) % 4:
        raise StreamError(f"the commands have {len(cmd_data)} bytes, which is no whole number of words")
    words = np.frombuffer(cmd_data, "<u4")
    at, registers, optimiser = 1, None, 0
    while at < len(words):
        word = int(words[at])
        action = word & 0xFF
        if action == FILLER:
            at += 1
        elif action == CONFIGURATION:
            if registers is not None:
                raise StreamError("a second optimiser configuration", 4 * at)
            if at + 2 >= len(words):
                raise StreamError("the optimiser configuration is cut off", 4 * at)
            registers, optimiser = (int(words[at + 1]), int(words[at + 2])), word >> 16
            at += 3
        elif action == COMMAND_STREAM:
            if registers is None:
                raise StreamError("the command stream comes before any optimiser configuration", 4 * at)
            length, left = word >> 16 | (word >> 8 & 0xFF) << 16, len(words) - at - 1
            if length > left:
                raise StreamError(f"the command stream is said to have {length} words, and {left} are left", 4 * at)
            if length < left:
                raise StreamError(
                    f"{left - length} words follow the command stream of {length} words, where it should end",
                    4 * (at + 1 + length),
                )
            return _configured(*registers, optimiser, 4 * (at + 1), 4 * length)
        else:
            raise StreamError(f"unknown driver action {action} (word {word:#010x})", 4 * at)
    raise StreamError("there is no command stream")


def _configured(config: int, identity: int, optimiser: int, start: int, length: int) -> DriverActions:
    product = PRODUCTS.get(config >> 28)
    if product is None:
        raise StreamError(f"the configuration {config:#010x} names product {config >> 28}; 0 to 2 are known")
    u85 = product == "u85"
    return DriverActions(
        product=product,
        macs=1 << (config & 0xF),
        shram=0 if u85 else config >> 8 & 0xFF,
        streams=1 << (config >> 12 & 3) if u85 else 0,
        stream_version=config >> 4 & 0xF,
        architecture=(identity >> 28, identity >> 20 & 0xFF, identity >> 16 & 0xF),
        optimiser=(optimiser & 0xF, optimiser >> 4),
        start=start,
        length=length,
    )


def check_configuration(actions: DriverActions, accelerator: Accelerator) -> None:
    """Compare what the stream was compiled for with what is to execute it.

    :raises StreamError: they differ; both are named.
    """
    wanted = (accelerator.family, accelerator.macs, accelerator.shram_banks * accelerator.cores, 0)
    if accelerator.u85:
        wanted = (accelerator.family, accelerator.macs, 0, accelerator.cores)
    if (actions.product, actions.macs, actions.shram, actions.streams) != wanted:
        raise StreamError(f"the stream is for {actions}, and it is taken for {accelerator.name}")


def command_table(accelerator: Accelerator) -> Mapping[int, CommandSpec]:
    """The accelerator's commands by opcode and control as they lie in the first word."""
    return _table(accelerator.u85)


def _table(u85: bool) -> Mapping[int, CommandSpec]:
    return registers_u85.COMMANDS if u85 else registers_u55.COMMANDS


@lru_cache(maxsize=4)  # a payload is run on several inputs, listed and examined
def decode_commands(cmd_data: bytes, accelerator: Accelerator) -> tuple[Command, ...]:
    """Every command of a stream.

    Commands of equal words share one dictionary of fields. Bits that belong to no field are not
    looked at: see ``reserved_bits``.

    :param cmd_data: driver actions and commands, from the FourCC on.
    :raises StreamError: wrong driver actions, another accelerator's configuration, an unknown
        opcode or control, a command whose second word is missing.
    """
    actions = driver_actions(cmd_data)
    check_configuration(actions, accelerator)
    words: list[int] = np.frombuffer(cmd_data, "<u4", actions.length // 4, actions.start).tolist()
    decoders = _decoders(accelerator.u85)
    known: dict[int, Mapping[str, int]] = {}
    commands: list[Command] = []
    at, end = 0, len(words)
    while at < end:
        word, offset = words[at], actions.start + 4 * at
        decoder = decoders.get(word & _KEY)
        if decoder is None:
            raise StreamError(_unknown(word, accelerator), offset)
        raw: tuple[int, ...] = (word,)
        if decoder.pair:
            if at + 1 >= end:
                raise StreamError(f"{decoder.name} has no second word: the stream ends", offset)
            raw = (word, words[at + 1])
            word |= raw[1] << 32
        fields = known.get(word)
        if fields is None:
            fields = known[word] = _fields(decoder, word)
        commands.append(Command(offset, raw, decoder.name, fields))
        at += len(raw)
    return tuple(commands)


def encode_command(name: str, fields: Mapping[str, int], accelerator: Accelerator) -> tuple[int, ...]:
    """The words of a command: the inverse of ``decode_commands`` for one of them.

    :param fields: every field of the command; a negative number for a signed one.
    :raises StreamError: no such command, other fields than it has, or a number that has no room.
    """
    spec = _spec_named(name, accelerator)
    if set(fields) != {field.name for field in spec.fields}:
        raise StreamError(f"{name} has the fields {[field.name for field in spec.fields]}, not {list(fields)}")
    word = spec.key
    for field in spec.fields:
        value = fields[field.name]
        lowest = -(1 << field.bits - 1) if field.signed else 0
        if not lowest <= value < lowest + (1 << field.bits):
            raise StreamError(f"{name}.{field.name} has {field.bits} bits, no room for {value}")
        word |= (value & (1 << field.width) - 1) << field.low
        word |= (value >> field.width & (1 << field.high_width) - 1) << field.high
    return (word & 0xFFFFFFFF, word >> 32) if spec.control == CMD1 else (word,)


def reserved_bits(command: Command, accelerator: Accelerator) -> int:
    """The bits set in a command that belong to none of its fields (0 is right); the second word is bits 32 to 63."""
    spec = _spec_named(command.name, accelerator)
    word = sum(part << 32 * index for index, part in enumerate(command.words))
    return word & spec.reserved


def field_text(command_name: str, field: str, value: int, accelerator: Accelerator) -> str:
    """A field's value for people: the enumeration's name, or a number.

    :raises StreamError: there is no such command or field.
    """
    found = next((item for item in _spec_named(command_name, accelerator).fields if item.name == field), None)
    if found is None:
        raise StreamError(f"{command_name} has no field {field!r}")
    if found.names is not None:
        return found.names.get(value, f"{value} (not a known value)")
    return f"{value:#x}" if found.hexadecimal else str(value)


@dataclass(frozen=True, slots=True)
class _Decoder:
    """A command's name, and where its fields lie in the word, or in the pair of words as one number.

    :param fields: name, low bit and mask; high part's low bit, mask and position; sign bit or 0.
    """

    pair: bool
    name: str
    fields: tuple[tuple[str, int, int, int, int, int, int], ...]


@cache
def _decoders(u85: bool) -> dict[int, _Decoder]:
    return {
        key: _Decoder(spec.control == CMD1, spec.name, tuple(map(_place, spec.fields)))
        for key, spec in _table(u85).items()
    }


def _place(field: Field) -> tuple[str, int, int, int, int, int, int]:
    low_mask, high_mask = (1 << field.width) - 1, (1 << field.high_width) - 1
    sign = 1 << field.bits - 1 if field.signed else 0
    return field.name, field.low, low_mask, field.high, high_mask, field.width, sign


def _fields(decoder: _Decoder, word: int) -> Mapping[str, int]:
    fields = {}
    for name, low, low_mask, high, high_mask, width, sign in decoder.fields:
        value = word >> low & low_mask
        if high_mask:
            value |= (word >> high & high_mask) << width
        fields[name] = (value ^ sign) - sign if sign else value
    return fields


@cache
def _names(u85: bool) -> dict[str, CommandSpec]:
    return {spec.name: spec for spec in _table(u85).values()}


def _spec_named(name: str, accelerator: Accelerator) -> CommandSpec:
    spec = _names(accelerator.u85).get(name)
    if spec is None:
        raise StreamError(f"{accelerator.name} has no command {name!r}")
    return spec


def _unknown(word: int, accelerator: Accelerator) -> str:
    control, opcode = word >> CONTROL_AT & 3, word & OPCODE_BITS
    if control > CMD1:
        return f"control is {control}, where 0 and 1 are known (word {word:#010x})"
    return f"{accelerator.name} has no cmd{control} opcode {opcode} (word {word:#010x})"
