"""The budget holds answers to their limits."""

from command import run_here
from empathetic_toys import save_model


def budget(trained, folder, *words, five="limit: 1000"):
    """Run the budget of a tiny couplet model and a tiny dialogue model; `five` is of the five candidates."""
    recipe, reply = trained.config, save_model(folder / "empathetic")
    path = folder / "budget.yaml"
    path.write_text(
        f"""
rounds: 3
answers:
  plain: {{config: {recipe}, override: [decoding.beam_size=1], texts: [春红, 天山春]}}
  five candidates:
    {{config: {recipe}, n_best: 5, texts: [春红, 天山春], baseline: plain, {five}}}
  reply: {{config: {reply}, texts: [I lost it.], baseline: plain, limit: 1000}}
""",
        "utf-8",
    )
    return run_here("benchmark", "--budget", "-c", path, *words)


def test_answers_within_the_budget_are_told_beside_their_limits(trained, tmp_path):
    outcome = budget(trained["transformer"], tmp_path)
    assert outcome.status == 0, outcome.stderr
    plain, five, reply = outcome.stdout.splitlines()
    assert plain.split()[1:] == ["ms", "plain"]
    assert five.split()[3:] == ["of", "1000", "five", "candidates"] and float(five.split()[2]) > 1
    assert reply.split()[3:] == ["of", "1000", "reply"]


def test_a_limit_that_is_exceeded_gives_exit_status_1(trained, tmp_path):
    outcome = budget(trained["transformer"], tmp_path, five="limit: 0.1")
    assert outcome.status == 1
    assert [line.endswith("EXCEEDED  five candidates") for line in outcome.stdout.splitlines()] == [0, 1, 0]
