"""What this operator refuses in a well-formed spec: accounts, privileges, settings without effect, sizes that cannot run.

Only the present spec is checked, never the last good one. After an upgrade, or a narrower policy, the condition says what is not accepted any more,
and what runs continues (`observe.parse.accept`). Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice_operator.resource import spark_conf
from sluice_operator.resource.privileges import automount_problem, privilege_problem
from sluice_operator.resource.sizes import driver_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice_operator.resource.fields import Spec

OPEN = "; the operator's administrator may allow it (Helm: policy.privilegedPods)"


@dataclass(frozen=True, slots=True)
class Policy:
    """`privileged_pods`: pod templates may exceed a tenant's rights. `service_accounts`: those that a spec may name; none means any.

    `own` is the operator's own account, by namespace and name. No spec may name it.
    """

    privileged_pods: bool = False
    service_accounts: tuple[str, ...] = ()
    own: tuple[str, str] | None = None


def problem(spec: Spec, namespace: str, policy: Policy) -> str | None:
    """Why this spec is not carried out in this namespace, one sentence a field, at most five; None if it is."""
    problems = [*_accounts(spec, namespace, policy), *_templates(spec, policy), *_settings(spec, policy), *_sizes(spec)]
    return "; ".join(problems[:5]) or None


def _accounts(spec: Spec, namespace: str, policy: Policy) -> Iterator[str]:
    named = {"spec.executor.serviceAccountName": spec.executor.service_account_name}
    if "service_account_name" in spec.model_fields_set:
        named = {"spec.serviceAccountName": spec.service_account_name, **named}
    for field, name in named.items():
        if name is not None and (namespace, name) == policy.own:
            yield f"{field}: {name} is the operator's own account; its rights are not for pipelines"
        elif name is not None and policy.service_accounts and name not in policy.service_accounts:
            allowed = ", ".join(policy.service_accounts)
            yield f"{field}: {name} is not among the accounts that the operator's administrator allows (Helm: policy.serviceAccounts): {allowed}"


def _templates(spec: Spec, policy: Policy) -> Iterator[str]:
    if not policy.privileged_pods and (why := privilege_problem({"spec": {"volumes": spec.pipeline.volumes}})):
        yield f"spec.pipeline.{why.removeprefix('spec.')}{OPEN}"
    for field, template in (("driver", spec.driver.pod_template), ("executor", spec.executor.pod_template)):
        if why := automount_problem(template):
            yield f"spec.{field}.podTemplate: {why}"
        if not policy.privileged_pods and (why := privilege_problem(template)):
            yield f"spec.{field}.podTemplate: {why}{OPEN}"


def _settings(spec: Spec, policy: Policy) -> Iterator[str]:
    for key in spec.spark_conf:
        if why := spark_conf.without_effect(key):
            yield f"spec.sparkConf: {key} {why}"
        elif not policy.privileged_pods and (why := spark_conf.privilege(key)):
            yield f"spec.sparkConf: {key} {why}{OPEN}"


def _sizes(spec: Spec) -> Iterator[str]:
    if why := driver_problem(spec.driver):
        yield f"spec.driver.{why}"
