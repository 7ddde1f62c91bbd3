"""Imports run one way, and none in a circle: those inside functions and those for types alone count too."""

import ast
from graphlib import CycleError, TopologicalSorter

from command import ROOT

# Each may import those before.
LAYERS = ("paddle_dialog", "paddle_dialog.tasks", "paddle_dialog.commands", "tools")
TASKS = "paddle_dialog.tasks."  # its folder stands at the top, and is linked


def modules():
    """Return the files of every layer by the name of their module."""
    tops = {"paddle_dialog": "", "tasks": "paddle_dialog.", "tools": ""}
    return {
        f"{above}{'.'.join(file.relative_to(ROOT).with_suffix('').parts)}".removesuffix(".__init__"): file
        for top, above in tops.items()
        for file in sorted((ROOT / top).rglob("*.py"))
    }


def layer(module):
    """Return the place of a module's layer."""
    return max(place for place, name in enumerate(LAYERS) if f"{module}.".startswith(f"{name}."))


def imported(file, known):
    """Yield the modules that a file names in an import, wherever it stands."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in known else node.module for name in names if node.module in known)


def graph():
    """Return what each module imports."""
    known = modules()
    return {name: set(imported(file, known)) - {name} for name, file in known.items()}


def circle(imports):
    """Return modules of which each imports the next and the last the first; none where there are none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_itself_by_way_of_others():
    assert circle(graph()) == []


def arrows():
    """Return each module with each that it imports."""
    return [(name, other) for name, others in graph().items() for other in others]


def test_imports_run_from_tools_to_tasks_to_the_library():
    assert [(name, other) for name, other in arrows() if layer(other) > layer(name)] == []


# The rooms of the library, each on a floor above those before; the longest name that fits a module counts.
FLOORS = (
    *("errors", "processes", "device", "config", "text", "data", "layers", "models", "decoding", "bundle"),
    *("metrics", "figures", "training.losses", "serving.config", "predictor", "serving.endpoint"),
    *("task", "recipes", "bundle.export", "judge", "training", "serving", "command_line"),
)


def floor(module):
    """Return the floor of a module of the library, without the library's name."""
    fitting = [name for name in FLOORS if f"{module}.".startswith(f"{name}.")]
    return FLOORS.index(max(fitting, key=len))


def test_imports_inside_the_library_run_downwards():
    inside = [
        tuple(name.removeprefix("paddle_dialog.") for name in arrow)
        for arrow in arrows()
        if all(layer(name) == 0 and name not in ("paddle_dialog", "paddle_dialog.shipped") for name in arrow)
    ]
    assert len(inside) > 100 and [arrow for arrow in inside if floor(arrow[1]) > floor(arrow[0])] == []


def test_tasks_do_not_import_each_other_and_the_product_never_the_workshop():
    def task(name):
        return name.split(".")[2] if name.startswith(TASKS) else ""

    found, workshop = arrows(), "tools.weights"
    assert [arrow for arrow in found if len({*map(task, arrow)} - {""}) > 1] == []
    assert any(name.startswith(workshop) for name, _ in found)
    wrong = [(a, b) for a, b in found if b.startswith(workshop) and not a.startswith(workshop)]
    assert wrong == []


def package(module):
    """Return the folder of a task in which a module stands; settings and what stands in none stay themselves."""
    parts = module.split(".")
    return ".".join(parts[:4]) if module.startswith(TASKS) and not parts[-1].endswith("config") else module


def test_the_folders_of_a_task_do_not_import_each_other_in_a_circle():
    folders = {}
    for name, others in graph().items():
        own = package(name)
        folders.setdefault(own, set()).update(package(other) for other in others if package(other) != own)
    assert {"paddle_dialog.tasks.empathetic.data", "paddle_dialog.tasks.couplet.rules"} <= set(folders)
    assert circle(folders) == []
