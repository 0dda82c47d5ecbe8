"""Which trailers commits and pull requests carry."""

from __future__ import annotations

from pathlib import Path

from drone.installation.policy import Policy, load
from drone.runs.delivery import commit_message
from shared.trailers import has_trailers, trailers_of
from shared.work_order import WorkOrder
from tests.support.repositories import work_order

BOTH = ["Assisted-by: openai/x via Dronefleet", "Fleet-Order: 0rder"]


def test_a_project_chooses_its_trailers_and_without_a_choice_work_names_its_order() -> None:
    cases: dict[tuple[str, ...], list[str]] = {
        (): BOTH[1:],
        ("Fleet-Order",): BOTH[1:],
        ("Assisted-by",): BOTH[:1],
        ("Fleet-Order", "Assisted-by"): BOTH,
        ("Signed-off-by", "Assisted-by"): BOTH[:1],
    }
    assert {chosen: trailers_of(chosen, model="openai/x", order_id="0rder") for chosen in cases} == cases


def test_a_models_name_cannot_add_a_trailer() -> None:
    (line,) = trailers_of(["Assisted-by"], model="x\nSigned-off-by: kim", order_id="0rder")
    assert line == "Assisted-by: x Signed-off-by: kim via Dronefleet"


def order(prompt: str, *trailers: str, task: str | None = None) -> WorkOrder:
    made = work_order("file:///r", order_id="0rder0rder00")
    project = made.project.model_copy(update={"trailers": trailers})
    return made.model_copy(update={"prompt": prompt, "project": project, "task": task})


def test_the_drones_commit_says_what_it_is_about_and_carries_the_trailers() -> None:
    made = order("\nFix it\n\nand more", "Assisted-by", "Fleet-Order")
    assert commit_message(made) == (
        f"Fix it\n\nAssisted-by: {made.provider.model} via Dronefleet\nFleet-Order: 0rder0rder00\n"
    )
    turn = order("# Task PAYM-0001: Mend it\n\nOrganization: payments", task="PAYM-0001")
    assert commit_message(turn).splitlines()[0] == "PAYM-0001: Mend it"


def test_a_trailer_is_one_only_in_the_last_paragraph() -> None:
    assert has_trailers("Fix it\n\nFleet-Order: a\n")
    assert not has_trailers("Fix it\n\nFleet-Order: a\n\nThat is all.")
    assert not has_trailers("Fix it")


def test_an_owner_can_forbid_pull_requests_and_nobody_forbids_them_by_mistake(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text("[repositories]\npull_requests = false\n")
    assert load(file) == Policy(pull_requests=False)
    assert load(tmp_path / "none.toml").pull_requests
