"""Shapes that are Kubernetes' own, checked as far as a mistake is better told at once."""

from typing import Any

from anabranch_operator.api.common import KEPT

JsonSchema = dict[str, Any]

_QUANTITY: JsonSchema = {
    "description": "An amount, such as `500m` or `2Gi`.",
    "x-kubernetes-int-or-string": True,
    "pattern": r"^[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?$",
}


def _amounts(prose: str) -> JsonSchema:
    return {
        "description": prose,
        "type": "object",
        "maxProperties": 16,
        "additionalProperties": _QUANTITY,
    }


RESOURCES: JsonSchema = {
    "type": "object",
    "properties": {
        "requests": _amounts(
            "What is reserved on a node for each pod, by resource, such as `cpu: 500m`."
        ),
        "limits": _amounts("What each pod may take at most, by resource, such as `memory: 2Gi`."),
    },
}

TOLERATION: JsonSchema = {
    "type": "object",
    "description": "A taint that doesn't keep the pods away from a node.",
    "properties": {
        "key": {"description": "Key of the taint.", "type": "string", "maxLength": 316},
        "operator": {
            "description": "Whether the value must match (`Equal`) or only the key (`Exists`).",
            "type": "string",
            "enum": ["Equal", "Exists"],
        },
        "value": {"description": "Value of the taint.", "type": "string", "maxLength": 63},
        "effect": {
            "description": "Effect of the taint; any effect if this is left out.",
            "type": "string",
            "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"],
        },
        "tolerationSeconds": {
            "description": "Seconds that a pod stays in spite of a NoExecute taint; else for ever.",
            "type": "integer",
            "format": "int64",
        },
    },
}


def _named(prose: str, one: str) -> JsonSchema:
    """A list that the operator adds to, of things with names."""
    name = {"description": "Name of the entry.", "type": "string", "minLength": 1}
    item = {"type": "object", "required": ["name"], "properties": {"name": name}, **KEPT}
    return {"description": prose, "type": "array", "items": {"description": one, **item}}


_CONTAINER: JsonSchema = {
    "description": "A container of the Job's pods.",
    "type": "object",
    "required": ["name", "image"],
    "properties": {
        "name": {
            "description": "Name of the container.",
            "type": "string",
            "minLength": 1,
            "maxLength": 63,
        },
        "image": {
            "description": "Image that the container runs.",
            "type": "string",
            "minLength": 1,
        },
        "env": _named("Environment variables; they win over those of the operator.", "A variable."),
        "volumeMounts": _named("Volumes to mount, beside that of the token.", "A mount."),
    },
    **KEPT,
}

_TEXTS: JsonSchema = {
    "type": "object",
    "additionalProperties": {"description": "Value of the entry.", "type": "string"},
}


def _metadata(whose: str) -> JsonSchema:
    return {
        "description": f"Labels and annotations of the {whose}.",
        "type": "object",
        "properties": {
            "labels": {"description": f"Labels of the {whose}.", **_TEXTS},
            "annotations": {"description": f"Annotations of the {whose}.", **_TEXTS},
        },
    }


_POD_SPEC: JsonSchema = {
    "description": "Spec of the Job's pods, as in Kubernetes.",
    "type": "object",
    "required": ["containers"],
    "properties": {
        "containers": {
            "description": "Containers of the Job. The gate passes if all of them succeed.",
            "type": "array",
            "minItems": 1,
            "items": _CONTAINER,
        },
        "initContainers": {
            "description": "Containers that run before the others, also with the fork's address.",
            "type": "array",
            "items": _CONTAINER,
        },
        "volumes": _named("Volumes of the pods, beside that of the token.", "A volume."),
        "serviceAccountName": {
            "description": (
                "ServiceAccount of the Job: one of the chart's `gates.serviceAccounts`, or the "
                "release's own for gates if this is left out."
            ),
            "type": "string",
            "maxLength": 253,
        },
        "restartPolicy": {
            "description": "Whether a container that failed is started again in its pod.",
            "type": "string",
            "enum": ["Never", "OnFailure"],
            "default": "Never",
        },
    },
    **KEPT,
}

JOB_TEMPLATE: JsonSchema = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "metadata": _metadata("Job"),
        "spec": {
            "description": "Spec of the Job, as in Kubernetes.",
            "type": "object",
            "required": ["template"],
            "properties": {
                "backoffLimit": {
                    "description": "Number of times that a failed pod is tried again.",
                    "type": "integer",
                    "format": "int32",
                    "minimum": 0,
                    "default": 0,
                },
                "template": {
                    "description": "Template of the Job's pods.",
                    "type": "object",
                    "required": ["spec"],
                    "properties": {"metadata": _metadata("pods"), "spec": _POD_SPEC},
                },
            },
            **KEPT,
        },
    },
}
"""The API server that runs the Job knows all of it, and the operator asks it before."""
