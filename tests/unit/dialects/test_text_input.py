"""Every use comes after its definition, in its block or in one around it. xDSL's verifier does not look."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.arith import AddiOp, ConstantOp
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Block, Region
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from tilewright.diagnostics import KernelError
from tilewright.dialects import text_input
from tilewright.dialects.text_input import check_dominance, load_dialects


def parse(body: str):
    text = f"func.func @f(%n : index) {{\n{body}\n  return\n}}"
    return Parser(load_dialects(Context()), text).parse_module()


def test_values_of_outer_blocks_are_visible():
    check_dominance(
        parse(
            """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = arith.addi %i, %c1 : index
    scf.for %j = %c0 to %x step %c1 {
      %y = arith.addi %x, %j : index
    }
  }
"""
        )
    )


def test_use_before_definition():
    module = parse(
        """
  %a = arith.constant 1 : index
  %b = arith.addi %a, %n : index
"""
    )
    module.verify()
    addition = next(op for op in module.walk() if op.name == "arith.addi")
    addition.detach()
    function = next(iter(module.ops))
    function.body.blocks[0].insert_op_before(addition, function.body.blocks[0].first_op)
    with pytest.raises(VerifyException, match=r"arith.addi: operand 0 is used before it is defined"):
        check_dominance(module)


def test_value_of_a_finished_loop_is_gone():
    module = parse(
        """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = arith.addi %i, %c1 : index
  }
  %y = arith.addi %c0, %c1 : index
"""
    )
    inner, outer = [op for op in module.walk() if op.name == "arith.addi"]
    outer.operands = [inner.results[0], outer.operands[1]]
    with pytest.raises(VerifyException, match="used before it is defined"):
        check_dominance(module)


def test_value_of_the_other_branch():
    module = parse(
        """
  %true = arith.constant true
  scf.if %true {
    %x = arith.addi %n, %n : index
  } else {
    %y = arith.addi %n, %n : index
  }
"""
    )
    first, second = [op for op in module.walk() if op.name == "arith.addi"]
    second.operands = [first.results[0], second.operands[1]]
    with pytest.raises(VerifyException, match="used before it is defined"):
        check_dominance(module)


def test_op_that_uses_itself():
    one = ConstantOp(IntegerAttr(1, IndexType()))
    addition = AddiOp(one, one)
    addition.operands = [addition.result, one.result]
    with pytest.raises(VerifyException, match="operand 0"):
        check_dominance(ModuleOp(Region(Block([one, addition]))))


BROKEN = {  # found by mutations of texts
    "func.func @f() {\nfunc.return\n^other:\n}": (1, ("func.func: its code is one block",)),
    "scf.if %second {\nttl.compute_thread {\n%second = arith.constant true\n}\n}": (
        1, ("scf.if uses a value that nothing defines", "SSA value used before assignment"),  # xDSL 0.73 (Python 3.10) finds it itself
    ),
}


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_broken_has_a_line(text: str):
    line, messages = BROKEN[text]
    with pytest.raises(KernelError, match="TW603") as caught:
        text_input.verify(text_input.parse(text, "text.mlir"))
    (found,) = caught.value.diagnostics
    assert found.span is not None and found.span.line == line and any(message in found.message for message in messages)
