"""The manifests of deploy/kubernetes: valid by the schema of Kubernetes, and what they name is there."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from highwater.jobs.cli import highwater

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "deploy" / "kubernetes"
SCHEMA = json.loads(gzip.decompress((ROOT / "tests" / "data" / "kubernetes" / "schema.json.gz").read_bytes()))
FILES = sorted(file for file in FOLDER.glob("*.yaml") if file.name != "kustomization.yaml")


def resources(file: Path) -> list[dict[str, Any]]:
    return list(YAML(typ="safe").load_all(file.read_text(encoding="utf-8")))


ALL = [(file.name, resource) for file in FILES for resource in resources(file)]


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    for file, resource in ALL:
        spec = resource.get("spec", {})
        template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
        if template is not None:
            yield f"{file} {resource['kind']}", template["spec"]


def problems(resource: dict[str, Any]) -> list[str]:
    kind = SCHEMA["kinds"].get(resource["kind"])
    if kind is None:
        return [f"no schema of {resource['kind']}"]
    return [error.message for error in Draft202012Validator({**kind, "$defs": SCHEMA["$defs"]}).iter_errors(resource)]


@pytest.mark.parametrize(("file", "resource"), ALL, ids=[f"{file} {each['kind']}" for file, each in ALL])
def test_resources_are_valid(file: str, resource: dict[str, Any]) -> None:
    assert problems(resource) == []


def test_what_is_invalid_is_found() -> None:
    (cron,) = resources(FOLDER / "cronjob.yaml")
    assert problems(cron | {"spec": cron["spec"] | {"shedule": "5 * * * *"}})
    assert problems(cron | {"spec": cron["spec"] | {"schedule": 5}})
    assert problems(cron | {"apiVersion": "batch/v1beta1"})


@pytest.mark.parametrize(("name", "pod"), list(pods()), ids=[name for name, _ in pods()])
def test_containers_run_as_a_user_without_rights(name: str, pod: dict[str, Any]) -> None:
    assert pod["securityContext"]["runAsNonRoot"]
    users = re.findall(r"^USER (\d+)", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert users == [str(pod["securityContext"]["runAsUser"])]
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"]
        assert not context["allowPrivilegeEscalation"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes


def test_the_role_reads_logs_and_nothing_else() -> None:
    (role,) = (each for _, each in ALL if each["kind"] == "Role")
    allowed = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    assert allowed == {("pods", "list"), ("pods/log", "get")}
    (binding,) = (each for _, each in ALL if each["kind"] == "RoleBinding")
    (account,) = (each for _, each in ALL if each["kind"] == "ServiceAccount")
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert [subject["name"] for subject in binding["subjects"]] == [account["metadata"]["name"]]
    assert {pod["serviceAccountName"] for _, pod in pods()} == {account["metadata"]["name"]}


def test_options_of_commands_are_there() -> None:
    scripts = [
        argument
        for _, pod in pods()
        for container in pod["containers"]
        for argument in container.get("args", [])
        if "highwater" in argument
    ]
    given = [line for script in scripts for line in re.findall(r"highwater (?:.*\\\n)*.*", script)]
    assert len(given) == 5
    for line in given:
        verb, *words = shlex.split(re.sub(r"\\\n|\$\{\w+:\+|\}$|\|\|.*", " ", line))[1:]
        known = {option for parameter in highwater.commands[verb].params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} - {"--utc", "--date"} <= known


def test_the_collector_has_the_options_that_it_is_given() -> None:
    source = (FOLDER / "collect.py").read_text(encoding="utf-8")
    for _, pod in pods():
        for container in [*pod.get("initContainers", []), *pod["containers"]]:
            if "/collect/collect.py" in container["command"]:
                words = [*container["command"], *container["args"]]
                options = {word.partition("=")[0] for word in words if word.startswith("--")}
                assert all(f'"{option}"' in source for option in options)


def test_the_kustomization_names_files_that_are_there() -> None:
    (made,) = resources(FOLDER / "kustomization.yaml")
    generated = [file for each in made["configMapGenerator"] for file in each["files"]]
    assert all((FOLDER / name).is_file() for name in [*made["resources"], *generated])
    mapped = {each["name"] for each in made["configMapGenerator"]}
    used = {volume["configMap"]["name"] for _, pod in pods() for volume in pod["volumes"] if "configMap" in volume}
    assert used == mapped
