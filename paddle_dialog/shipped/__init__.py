"""What ships with the project, found by name from any folder: recipes, and trained models.

`configs` and `pretrained` beside this file are links to the folders of those names in a checkout; an installed wheel
has their files here.
"""

from __future__ import annotations

import difflib
from pathlib import Path

from paddle_dialog.errors import UserError

RECIPES = Path(__file__).with_name("configs").resolve()
MODELS = Path(__file__).with_name("pretrained").resolve()


def find_recipe(name: str | Path) -> Path:
    """Return the file of a recipe.

    Args:
        name: a path; or, without a suffix, the name of a recipe that ships.

    Returns:
        The path itself where it has a suffix or exists and no recipe has its name.

    Raises:
        UserError: it has no suffix, does not exist, and no recipe of this name ships.
    """
    path = Path(name)
    if path.suffix or path.is_file():
        return path
    shipped = {
        recipe.relative_to(RECIPES).with_suffix("").as_posix(): recipe for recipe in RECIPES.rglob("*.yaml")
    }
    if str(name) in shipped:
        return shipped[str(name)]
    if path.exists():
        return path  # whoever reads it says what is wrong with it
    near = difflib.get_close_matches(str(name), shipped, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(shipped)) or 'none at all'}"
    raise UserError(f"{name}: no such file, and no recipe of this name ships; {hint}")


def find_model(name: str | Path) -> Path:
    """Return the folder of a model: a path, or where there is no such folder the name of a model that ships."""
    path, shipped = Path(name), MODELS / name
    return shipped if shipped.is_dir() and not path.is_dir() else path
