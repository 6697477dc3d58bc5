"""What the inputs and the outputs of joint graphs are: parameters, arguments, gradients of them."""
from __future__ import annotations

from dataclasses import dataclass


class AOTInput:
    """An input of a graph."""

    def expr(self) -> str:
        """Where it comes from, as an expression.

        >>> ParamAOTInput("fc.weight").expr()
        "self.get_parameter('fc.weight')"
        """
        raise NotImplementedError(f"{type(self).__name__}.expr")

    def is_param(self) -> bool:
        """Is it a parameter?"""
        return isinstance(self, ParamAOTInput)

    def is_buffer(self) -> bool:
        """Is it a buffer?"""
        return isinstance(self, BufferAOTInput)

    def is_tangent(self) -> bool:
        """Is it a gradient that the backward pass begins with?"""
        return isinstance(self, TangentAOTInput)


class AOTOutput:
    """An output of a graph."""

    def expr(self) -> str:
        """What it is, as an expression."""
        raise NotImplementedError(f"{type(self).__name__}.expr")

    def is_grad(self) -> bool:
        """Is it the gradient of an input?"""
        return isinstance(self, GradAOTOutput)


class DifferentiableAOTInput(AOTInput):
    """An input that may have a gradient."""


class DifferentiableAOTOutput(AOTOutput):
    """An output that may have a tangent."""


@dataclass(frozen=True)
class ParamAOTInput(DifferentiableAOTInput):
    """The parameter of this name."""

    target: str

    def expr(self) -> str:
        return f"self.get_parameter({self.target!r})"


@dataclass(frozen=True)
class BufferAOTInput(DifferentiableAOTInput):
    """The buffer of this name."""

    target: str

    def expr(self) -> str:
        return f"self.get_buffer({self.target!r})"


@dataclass(frozen=True)
class PlainAOTInput(DifferentiableAOTInput):
    """The argument of this number, among flat ones."""

    idx: int

    def expr(self) -> str:
        return f"args[{self.idx}]"


@dataclass(frozen=True)
class PlainAOTOutput(DifferentiableAOTOutput):
    """The result of this number, among flat ones."""

    idx: int

    def expr(self) -> str:
        return f"output[{self.idx}]"


@dataclass(frozen=True)
class TangentAOTInput(DifferentiableAOTInput):
    """The gradient by an output."""

    output: DifferentiableAOTOutput

    def expr(self) -> str:
        return f"__output_tangent({self.output.expr()})"


@dataclass(frozen=True)
class GradAOTOutput(DifferentiableAOTOutput):
    """The gradient of an input."""

    grad_of: DifferentiableAOTInput

    def expr(self) -> str:
        return f"__grad({self.grad_of.expr()})"


__all__ = ["AOTInput", "AOTOutput", "BufferAOTInput", "DifferentiableAOTInput",
           "DifferentiableAOTOutput", "GradAOTOutput", "ParamAOTInput", "PlainAOTInput",
           "PlainAOTOutput", "TangentAOTInput"]
