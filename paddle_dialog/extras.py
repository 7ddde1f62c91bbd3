"""The extra of the distribution that brings each package which only some commands need."""

from __future__ import annotations

EXTRAS = {
    "train": (
        *("paddle", "paddlenlp", "visualdl", "matplotlib", "sacrebleu", "nrclex", "sklearn", "scipy"),
        *("datasets", "huggingface_hub", "pyarrow", "aistudio_sdk", "setuptools", "tool_helpers"),
    ),
    "serve": ("fastapi", "uvicorn", "starlette", "pydantic", "anyio", "prometheus_client"),
    "dev": ("ToJyutping", "pypinyin"),
}


def how_to_install(module: str) -> str:
    """Return one sentence for a module that cannot be found.

    Args:
        module: its name as an import gives it, e.g. `paddle.nn`.
    """
    package = module.partition(".")[0]
    for extra, packages in EXTRAS.items():
        if package in packages:
            option = " --dev" if extra == "dev" else ""
            return (
                f"{package} is not installed; it comes with the extra {extra}: pip install 'paddle_dialog[{extra}]', "
                f"or in a checkout bash tools/setup_env.sh{option}"
            )
    return f"{package} is not installed, though others need it; install paddle_dialog with its requirements again"
