"""Imports that the stand-ins answer."""

from __future__ import annotations

import importlib
import sys
import types

import pytest

from tilewright import ttl as language
from tilewright.standins import finder


def test_ttl_is_our_language_however_it_is_imported():
    with finder.installed():
        import ttl
        from ttlang import ttl as through_ttlang

        assert ttl is language
        assert through_ttlang is language


def test_the_first_generation_finds_its_names():
    with finder.installed():
        from ttlang import make_circular_buffer_like
        from ttlang.operators import copy, exp
        from ttlang.ttl_api import CircularBuffer, Program, compute, datamovement

        assert make_circular_buffer_like is language.make_circular_buffer_like
        assert (Program, compute, datamovement) == (language.Program, language.compute, language.datamovement)
        assert CircularBuffer is language.CircularBuffer
        assert copy is language.copy
        assert repr(exp) == repr(language.math.exp)


def test_nothing_is_left_behind():
    before = {name for name in sys.modules if name.partition(".")[0] in finder.PACKAGES}
    finders = list(sys.meta_path)
    with finder.installed():
        importlib.import_module("ttnn")
        importlib.import_module("ttlang.operators")
    assert {name for name in sys.modules if name.partition(".")[0] in finder.PACKAGES} == before
    assert sys.meta_path == finders


def test_modules_loaded_before_come_back():
    real = types.ModuleType("ttnn")
    sys.modules["ttnn"] = real
    try:
        with finder.installed():
            assert importlib.import_module("ttnn") is not real
        assert sys.modules["ttnn"] is real
    finally:
        del sys.modules["ttnn"]


def test_only_the_packages_asked_for_are_answered():
    with finder.installed(("ttl", "ttlang")):
        assert importlib.import_module("ttl") is language
        spec = finder.StandInFinder(("ttl", "ttlang")).find_spec("ttnn")
        assert spec is None


def test_a_missing_name_says_whose_module_this_is():
    with finder.installed():
        import ttnn

        with pytest.raises(AttributeError, match="stand-in for ttnn has no 'conv2d'"):
            _ = ttnn.conv2d


def test_checks_of_scripts_are_found_in_the_package_and_in_its_module():
    with finder.installed():
        package, module = importlib.import_module("utils"), importlib.import_module("utils.correctness")
        assert package.assert_with_ulp is module.assert_with_ulp
