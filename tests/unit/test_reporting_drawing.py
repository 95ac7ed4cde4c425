"""Pictures: layouts without overlaps, well-formed SVG that says in words what it shows."""

import itertools
import xml.etree.ElementTree as ElementTree

import msgspec
import pytest

from harness.case.case import Input, Node
from harness.case.checking import value_types
from harness.reports.reporting import charts
from harness.reports.reporting.drawing import MOST, described, needed_for, picture
from harness.reports.reporting.histograms import histograms
from harness.reports.reporting.layout import GAP, Box, Edge, laid_out
from harness.reports.reporting.svg import element, figure
from harness.reports.reporting.words import compact, duration, moment, operator_name
from tests.unit.reporting_runs import chain_case, drawn, join_case

BOXES = [Box(name, 40.0 + 10 * place, 20.0 + place) for place, name in enumerate("abcdef")]
EDGES = [Edge("a", "c"), Edge("b", "c"), Edge("c", "d"), Edge("a", "e"), Edge("d", "e"), Edge("b", "f")]


def test_edges_go_down_and_boxes_of_a_layer_keep_their_distance():
    layout = laid_out(BOXES, EDGES)
    size = {box.name: box for box in BOXES}
    for edge, route in zip(EDGES, layout.routes, strict=True):
        assert layout.corners[edge.source][1] + size[edge.source].high <= layout.corners[edge.target][1]
        assert [y for _, y in route] == sorted(y for _, y in route)
        assert route[0][1] == layout.corners[edge.source][1] + size[edge.source].high
        assert route[-1][1] == layout.corners[edge.target][1]
    for one, two in itertools.combinations(BOXES, 2):
        (x0, y0), (x1, y1) = layout.corners[one.name], layout.corners[two.name]
        if y0 == y1:
            left, right = sorted([(x0, one.wide), (x1, two.wide)])
            assert left[0] + left[1] + GAP <= right[0] + 1e-6
    assert min(x for x, _ in layout.corners.values()) >= 0
    assert max(x + size[name].wide for name, (x, _) in layout.corners.items()) <= layout.wide + 1e-6


def test_a_crossing_that_can_be_avoided_is_avoided():
    boxes = [Box(name, 40.0, 20.0) for name in "abcd"]
    places = laid_out(boxes, [Edge("a", "d"), Edge("b", "c")]).corners
    assert (places["a"][0] < places["b"][0]) == (places["d"][0] < places["c"][0])


def test_an_edge_over_a_layer_goes_around_the_box_there():
    layout = laid_out([Box(name, 40.0, 20.0) for name in "abc"], [Edge("a", "b"), Edge("b", "c"), Edge("a", "c")])
    bend = layout.routes[2][1][0]
    left = layout.corners["b"][0]
    assert bend < left or bend > left + 40.0


def test_a_source_is_drawn_next_to_its_reader():
    boxes = [Box(name, 40.0, 20.0) for name in ("x", "c", "one", "two", "three")]
    edges = [Edge("x", "one"), Edge("one", "two"), Edge("two", "three"), Edge("c", "three")]
    corners = laid_out(boxes, edges).corners
    assert corners["c"][1] == corners["two"][1]


def test_nothing_has_no_size():
    assert (laid_out([], []).wide, laid_out([], []).high) == (0.0, 0.0)


def parsed(svg):
    return ElementTree.fromstring(svg)


@pytest.mark.parametrize("number", range(6))
def test_a_drawn_graph_has_a_box_for_everything_and_says_so_in_words(number):
    case = drawn()[number][0]
    root = parsed(picture(case, "g"))
    boxes = [item for item in root.iter("g") if item.get("class", "").startswith("g-")]
    graph = case.graph
    assert len(boxes) == len(graph.inputs) + len(graph.constants) + len(graph.nodes) + len(graph.outputs)
    words = " ".join(root.itertext())
    for node in graph.nodes:
        assert f"{node.name}: {node.operator}(" in words
    assert root.get("role") == "img"
    assert {root.get("aria-labelledby"), root.get("aria-describedby")} == {
        item.get("id") for item in root.iter() if item.tag in ("title", "desc")
    }
    wide, high = (float(root.get(side)) for side in ("width", "height"))
    for rect in root.iter("rect"):
        assert float(rect.get("x")) >= 0
        assert float(rect.get("x")) + float(rect.get("width")) <= wide
        assert float(rect.get("y")) + float(rect.get("height")) <= high


def test_operands_enter_from_left_to_right_and_results_leave_in_order():
    case = join_case()
    root = parsed(picture(case, "g"))
    paths = [item.get("d") for item in root.iter("path") if "g-head" not in item.get("class")]
    starts, ends = ([float(path.replace("M", "").split("C")[0].split()[0]) for path in paths], [])
    for path in paths:
        ends.append(float(path.replace("C", " ").split()[-2]))
    # edges in order: x -> n0; n0.1, c, n0.0 -> n1; y -> n2; then the outputs
    assert ends[1] < ends[2] < ends[3]
    assert starts[3] < starts[1]


def test_a_picture_shows_types_attributes_calibration_and_what_stays_float():
    words = " ".join(parsed(picture(join_case(), "g")).itertext())
    for part in ("1×4", "uniform low=-1 high=1", "full value=0.5", "sizes=[2,2] dim=1", "2 × 1×2", "left float"):
        assert part in words, part
    assert "outputs: n1, n2" in words


def test_what_the_output_does_not_need_is_faint():
    case = join_case()
    needed = needed_for(case.graph, 0)
    assert needed == {"x", "c", "n0", "n1"}
    faint = [
        "".join(item.itertext())
        for item in parsed(picture(case, "g", needed)).iter("g")
        if "g-faint" in item.get("class", "")
    ]
    assert len(faint) == 3
    assert any("tanh" in text for text in faint)
    assert needed_for(case.graph, None) == needed_for(case.graph, 7) == {"x", "y", "c", "n0", "n1", "n2"}


def test_captured_nodes_show_their_arguments_without_values():
    node = Node(
        name="conv",
        operator="aten.max_pool2d.default",
        inputs=("x",),
        attributes={"args": [{"value": "x"}, [2, 2], {"dtype": "float32"}], "kwargs": {"ceil_mode": True}},
        types=({"shape": (1, 1), "dtype": "float32"},),
    )
    case = msgspec.convert(
        {
            **msgspec.to_builtins(chain_case("relu")),
            "graph": {
                "inputs": [{"name": "x", "shape": [1, 4]}],
                "nodes": [msgspec.to_builtins(node)],
                "outputs": ["conv"],
            },
        },
        type=type(chain_case("relu")),
    )
    words = "".join(parsed(picture(case, "g")).itertext())
    assert "max_pool2d conv" in words
    assert "[2,2] float32 ceil_mode=True" in words


def test_a_graph_of_a_whole_network_is_not_drawn():
    assert picture(chain_case(*["relu"] * MOST), "g") is None


def test_a_description_has_a_line_a_value():
    case = chain_case("relu", "tanh")
    assert list(described(case, value_types(case.graph))) == [
        "x: input 1×4, calibrated uniform low=-1 high=1",
        "n0: relu(x) gives 1×4",
        "n1: tanh(n0) gives 1×4",
        "outputs: n1",
    ]


def test_long_words_are_cut_and_long_lists_shortened():
    case = msgspec.structs.replace(
        chain_case("relu"),
        graph=msgspec.structs.replace(chain_case("relu").graph, inputs=(Input(name="x" * 1, shape=(1,) * 8),)),
    )
    root = parsed(picture(case, "g"))
    assert max(len(item.text or "") for item in root.iter("text")) <= 27


def test_markup_in_text_and_attributes_is_escaped():
    made = element("text", "<script>", element("b", "&"), class_='"><i>', stroke_width=1.5, x=2.0, hidden=None)
    assert made == '<text class="&#34;&gt;&lt;i&gt;" stroke-width="1.5" x="2">&lt;script&gt;<b>&amp;</b></text>'
    assert parsed(figure("n", "<t>", "<d>", 1, 2)).find("desc").text == "<d>"


def test_charts_say_their_numbers():
    (sizes,) = histograms([{"distance": value, "unit": "steps"} for value in (1, 2, 2, 100)])
    words = " ".join(parsed(charts.histogram(sizes, "h")).itertext())
    assert "1 up to 1; 2 up to 2; 0 up to 4" in words
    assert "error in steps; 4 hits" in words
    root = parsed(charts.rates((2.0, 4.0, 0.0), 60.0, 2.0, "r"))
    assert "1 min a point: 2, 4, 0" in root.find("desc").text
    heights = [float(pair.split(",")[1]) for pair in root.find("polyline").get("points").split()]
    assert heights[1] < heights[0] < heights[2]


def test_an_empty_histogram_is_drawn_without_bars():
    (sizes,) = histograms([{"unit": "steps"}])
    root = parsed(charts.histogram(sizes, "h"))
    assert root.find("rect") is None
    assert root.find("desc").text == "no finite error; 1 not finite"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (4.23, "4.2 s"),
        (42.4, "42 s"),
        (59.6, "1 min"),
        (550, "9 min 10 s"),
        (2667, "44 min"),
        (3900, "1 h 5 min"),
        (7200, "2 h"),
    ],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.346, "0.346"), (8.0, "8"), (249.6, "250"), (12500, "12.5k"), (2.0**24, "16.8M"), (3e9, "3G")]
)
def test_compact_numbers(value, text):
    assert compact(value) == text


def test_moments_and_names():
    assert moment(1_795_000_000) == "2026-11-18 11:06 UTC"
    assert moment(1e300) == moment(float("nan")) == "an unknown time"
    names = ("aten.conv2d.default", "aten.add.Tensor", "_operator.getitem", "relu")
    assert [operator_name(name) for name in names] == ["conv2d", "add.Tensor", "getitem", "relu"]
