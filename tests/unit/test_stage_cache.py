"""What is cached for a graph's next target: copies that are tied to their taker's module, and when nothing is taken."""

import contextlib
import copy

import msgspec
import pytest
import torch

from generators.cases import draw_block
from harness.compat.warm import stage_cache
from harness.compat.warm.fingerprint import fingerprint
from harness.compat.warm.stage_cache import GraphCache, WorkerCache

[CASES] = draw_block(0, 0, 1, ("TOSA-1.0+INT", "ethos-u55-128"))


@pytest.fixture(autouse=True)
def tricks(monkeypatch):
    """All stages are cached inside a test."""
    monkeypatch.setattr(stage_cache, "_on", {stage_cache.QUANTIZED, stage_cache.EDGE})


def module(weight=1.0):
    made = torch.nn.Linear(2, 2)
    torch.nn.init.constant_(made.weight, weight)
    torch.nn.init.zeros_(made.bias)
    return made.requires_grad_(False)


def exports(model, made=None):
    """Stands for an export: a parameter, a view that shares its storage, and a tensor of its own."""

    def make():
        if made is not None:
            made.append(model)
        return ({"weight": model.weight, "row": model.weight.detach()[0], "own": torch.ones(2), "nodes": [1, 2]},)

    return make


def taken_by(cache, model, made=None):
    """What a module gets whose graph is prepared like the others'."""
    return cache.quantized(model, "alike", exports(model, made))[0]


def test_the_next_target_gets_a_copy_that_is_tied_to_its_own_module():
    cache, made = GraphCache(), []
    first, second, third = module(), module(), module()
    live = taken_by(cache, first, made)
    live["weight"].fill_(7.0)  # whoever made it works in place
    live["own"].fill_(7.0)
    live["nodes"].append(7)
    taken = taken_by(cache, second, made)
    assert taken["weight"] is second.weight
    assert taken["row"].data_ptr() == second.weight.data_ptr()
    taken["own"].fill_(8.0)
    taken["nodes"].append(8)
    last = taken_by(cache, third, made)
    assert (last["own"].tolist(), last["nodes"]) == ([1.0, 1.0], [1, 2])
    assert last["weight"] is third.weight
    assert made == [first]


def test_a_module_with_other_tensors_gets_nothing():
    cache, made = GraphCache(), []
    for model in (module(), module(2.0), module().to(torch.float64), module().requires_grad_()):
        taken = taken_by(cache, model, made)
        assert taken["weight"] is model.weight
    assert len(made) == 4


def test_what_a_stage_changed_in_the_module_must_show_again():
    cache, made = GraphCache(), []
    for model in (module(), module()):

        def make(model=model):
            made.append(model)
            model.weight.fill_(3.0)  # a conversion that spoils the user's weights
            return (model,)

        cache.quantized(model, "alike", make)
    assert [model.weight[0, 0].item() for model in made] == [3.0, 3.0]


def test_a_stage_that_raises_leaves_nothing():
    cache, made = GraphCache(), []
    model = module()
    with pytest.raises(ZeroDivisionError):
        cache.quantized(model, "alike", lambda: 1 / 0)
    taken_by(cache, model, made)
    assert len(made) == 1


def test_quantized_graphs_are_shared_by_those_that_are_prepared_alike():
    cache, made = GraphCache(), []
    for prepared in ("one", "other", "one", "other", None):
        model = module()
        cache.quantized(model, prepared, lambda prepared=prepared: made.append(prepared) or (1, [prepared]))
    assert made == ["one", "other", None]


def test_a_compile_may_leave_and_not_take():
    cache, made = GraphCache(), []
    for takes in (True, False, True):
        cache.takes = takes
        model = module()
        taken_by(cache, model, made)
    assert len(made) == 2


PLACE, OTHER = ("module", "Class.method"), ("module", "function")


def beside(cache, *changed):
    """Is a stage made anew for a compile with other code at these places?"""
    made = []
    taken_by(cache.beside(frozenset(changed)), module(), made)
    return bool(made)


def coming_to(*places):
    """A context in which the places are reached."""
    return lambda: contextlib.nullcontext({*places})


def test_a_compile_with_other_code_takes_what_never_came_there():
    cache, made = GraphCache(), []
    cache.reaching = coming_to(PLACE)
    taken_by(cache, module(), made)
    assert (beside(cache, OTHER), beside(cache, PLACE), beside(cache, PLACE, OTHER)) == (False, True, True)
    assert cache.came_to == {PLACE}


def test_what_the_next_target_comes_to_does_not_count_if_it_takes_the_stage():
    cache, made = GraphCache(), []
    for place in (PLACE, OTHER):
        cache.reaching = coming_to(place)
        taken_by(cache, module(), made)
    assert len(made) == 1
    assert not beside(cache, OTHER)
    assert cache.came_to == {PLACE}


def test_where_nobody_looked_what_a_stage_comes_to_nobody_with_other_code_takes():
    cache = GraphCache()
    taken_by(cache, module())
    cache.reaching = coming_to()
    taken_by(cache, module())
    assert cache.came_to is None
    assert beside(cache, PLACE)


def test_a_compile_with_other_code_leaves_nothing():
    cache, made = GraphCache(), []
    taken_by(cache.beside(frozenset([PLACE])), module(), made)
    taken_by(cache, module(), made)
    assert len(made) == 2


def test_a_module_with_tensors_that_overlap_is_not_cached():
    cache, made = GraphCache(), []
    for _ in range(2):
        model = module()
        model.register_buffer("row", model.weight.detach()[0])
        taken_by(cache, model, made)
    assert len(made) == 2


def test_only_the_last_graph_is_cached():
    cache = WorkerCache()
    one, same = (cache.stages(case, takes=True) for case in CASES)
    assert one is same
    other = msgspec.structs.replace(CASES[0], samples=CASES[0].samples + 1)
    assert cache.stages(other, takes=True) is not one
    assert cache.stages(CASES[0], takes=True) is not one
    cache.forget()
    assert not cache.holds


def test_a_case_that_comes_again_takes_nothing():
    cache = WorkerCache()
    first, second = (cache.stages(case, takes=True) for case in CASES)
    assert cache.stages(CASES[1], takes=True) is not second
    assert first is second


def test_without_the_tricks_nothing_is_cached(monkeypatch):
    monkeypatch.setattr(stage_cache, "_on", set())
    cache = WorkerCache()
    assert cache.stages(CASES[0], takes=True) is None
    assert not cache.holds


class _Observed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("min_val", torch.tensor([]))
        self.low = -128

    def forward(self, x):
        return x


def prepared(low=-128, minimum=(), target=torch.relu, **meta):
    root = torch.nn.Module()
    root.observer = _Observed()
    root.observer.low = low
    root.observer.min_val = torch.tensor(minimum)
    graph = torch.fx.Graph()
    value = graph.call_function(target, (graph.placeholder("x"),), name="value")
    value.meta.update(meta)
    graph.output(graph.call_module("observer", (value,)))
    return torch.fx.GraphModule(root, graph)


def test_graphs_that_are_prepared_alike_have_one_fingerprint():
    assert fingerprint(prepared()) == fingerprint(prepared()) is not None
    assert fingerprint(copy.deepcopy(prepared())) == fingerprint(prepared())
    assert fingerprint(prepared(seq_nr=1)) == fingerprint(prepared(seq_nr=2))


@pytest.mark.parametrize(
    "other",
    [
        {"low": -127},
        {"minimum": (1.0,)},
        {"target": torch.sigmoid},
        {"custom": {"a": 1}},
        {"custom": {"a": [1]}},
        {"custom": {"a": (1,)}},
        {"custom": {"a": lambda: None}},
        {"custom": {"a": True}},
    ],
)
def test_what_differs_has_another_fingerprint(other):
    alike = {"custom": {"a": 1.0}} if "custom" in other else {}
    assert fingerprint(prepared(**other)) != fingerprint(prepared(**alike))


def test_what_a_function_closes_over_counts():
    def closed(value):
        return lambda: value

    assert fingerprint(prepared(custom=closed(1))) == fingerprint(prepared(custom=closed(1)))
    assert fingerprint(prepared(custom=closed(1))) != fingerprint(prepared(custom=closed(2)))


def test_an_object_that_nobody_knows_has_no_fingerprint():
    assert fingerprint(prepared(custom=object())) is None


def test_a_fingerprint_leaves_what_it_reads_as_it_was():
    module = prepared()
    fingerprint(module)
    module.observer.min_val.resize_(3)  # as observers do with an empty tensor; numpy would forbid it
