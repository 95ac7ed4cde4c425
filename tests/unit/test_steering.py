"""Which of the graphs that were drawn run."""

from harness.campaign.steering import Rarest, forms, pairs
from harness.case.case import Case, Constant, Graph, Input, Node

X = Input(name="x", shape=(1, 2, 4, 4))


def case(*nodes: Node, outputs: tuple[str, ...] = ("b",), recipe: str = "a8w8", constants: tuple[Constant, ...] = ()):
    graph = Graph(inputs=(X,), constants=constants, nodes=nodes, outputs=outputs)
    return Case(graph=graph, calibration={}, recipe=recipe, target="ethos-u85-256")


def node(name: str, operator: str, *inputs: str, **attributes) -> Node:
    return Node(name=name, operator=operator, inputs=inputs, attributes=attributes)


def chain(first: str, second: str, **attributes) -> Case:
    return case(node("a", first, "x"), node("b", second, "a", **attributes))


RELU, TANH = chain("relu", "abs"), chain("tanh", "abs")


def taken(cases: list[Case], of: int = 2) -> list[Case]:
    rarest = Rarest[Case](of)
    return [found for item in cases if (found := rarest.offer(item, item)) is not None]


def test_what_ran_is_passed_over_for_what_did_not():
    assert taken([RELU, RELU, RELU, TANH]) == [RELU, TANH]
    assert taken([RELU, RELU, TANH, RELU]) == [RELU, TANH]
    assert taken([TANH, TANH, TANH, RELU]) == [TANH, RELU]


def test_what_was_passed_over_is_as_rare_as_before():
    assert taken([RELU, TANH, RELU, TANH]) == [RELU, TANH]


def test_an_attribute_or_a_recipe_that_did_not_run_is_rare():
    ceil = chain("relu", "max_pool2d", ceil_mode=True)
    floor = chain("relu", "max_pool2d", ceil_mode=False)
    assert taken([floor, floor, floor, ceil]) == [floor, ceil]
    other = case(*RELU.graph.nodes, recipe="a16w8")
    assert taken([RELU, RELU, RELU, other]) == [RELU, other]


def test_of_graphs_that_are_as_rare_the_cheaper_one_runs():
    longer = case(*RELU.graph.nodes, node("c", "relu", "x"), outputs=("b", "c"))
    assert forms(longer) == forms(RELU) | {("relu", "as", "output")}
    assert taken([longer, RELU]) == [RELU]


def test_without_a_choice_every_graph_runs():
    assert taken([RELU, RELU, TANH], of=1) == [RELU, RELU, TANH]


def test_the_last_ones_are_asked_for():
    rarest = Rarest[str](3)
    assert rarest.last() is None
    assert rarest.offer("first", RELU) is None
    assert rarest.last() == "first"
    assert rarest.last() is None


def test_forms_are_pairs_and_how_operators_occur():
    weight = Constant(name="w", shape=(1,), kind="full", parameters={"value": 1.0})
    found = case(
        node("a", "mul", "x", "w"),
        node("b", "cat", "a", "a", dim=-3, sizes=[1, 7], mode="nearest"),
        constants=(weight,),
    )
    assert pairs(found.graph) == {("full", "mul"), ("mul", "cat")}
    ways = {
        "mul": ("a8w8", "ethos-u85", "input", "float32", "rank 4", "constant"),
        "cat": ("a8w8", "ethos-u85", "repeated", "output", "dim=int", "sizes=1,int", "mode=nearest"),
    }
    assert forms(found) == {
        *pairs(found.graph),
        ("mul",),
        ("cat",),
        *((operator, "as", way) for operator, told in ways.items() for way in told),
    }
