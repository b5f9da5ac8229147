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
        "requests": _amounts("What is reserved on a node, by resource."),
        "limits": _amounts("What may be taken at most, by resource."),
    },
}

TOLERATION: JsonSchema = {
    "type": "object",
    "description": "One taint that is stood.",
    "properties": {
        "key": {"description": "Of the taint.", "type": "string", "maxLength": 316},
        "operator": {
            "description": "Is the value compared, or is the key enough?",
            "type": "string",
            "enum": ["Equal", "Exists"],
        },
        "value": {"description": "Of the taint.", "type": "string", "maxLength": 63},
        "effect": {
            "description": "Of the taint; any if it is left out.",
            "type": "string",
            "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"],
        },
        "tolerationSeconds": {
            "description": "How long a NoExecute is stood; for ever if it is left out.",
            "type": "integer",
            "format": "int64",
        },
    },
}


def _named(prose: str, one: str) -> JsonSchema:
    """A list that the operator adds to, of things with names."""
    name = {"description": "Its name.", "type": "string", "minLength": 1}
    item = {"type": "object", "required": ["name"], "properties": {"name": name}, **KEPT}
    return {"description": prose, "type": "array", "items": {"description": one, **item}}


_CONTAINER: JsonSchema = {
    "description": "A container of the Job's pods.",
    "type": "object",
    "required": ["name", "image"],
    "properties": {
        "name": {"description": "Its name.", "type": "string", "minLength": 1, "maxLength": 63},
        "image": {"description": "What it runs.", "type": "string", "minLength": 1},
        "env": _named("Goes before what the operator says.", "One variable."),
        "volumeMounts": _named("Beside the one of the token.", "One of them."),
    },
    **KEPT,
}

_TEXTS: JsonSchema = {
    "type": "object",
    "additionalProperties": {"description": "Its value.", "type": "string"},
}


def _metadata(whose: str) -> JsonSchema:
    return {
        "description": f"Labels and annotations of the {whose}.",
        "type": "object",
        "properties": {
            "labels": {"description": f"Of the {whose}.", **_TEXTS},
            "annotations": {"description": f"Of the {whose}.", **_TEXTS},
        },
    }


_POD_SPEC: JsonSchema = {
    "description": "What the Job's pods run; all of a pod's spec.",
    "type": "object",
    "required": ["containers"],
    "properties": {
        "containers": {
            "description": "Their success is the gate's.",
            "type": "array",
            "minItems": 1,
            "items": _CONTAINER,
        },
        "initContainers": {
            "description": "They run before, and get the fork's address too.",
            "type": "array",
            "items": _CONTAINER,
        },
        "volumes": _named("Beside the one of the token.", "One of them."),
        "serviceAccountName": {
            "description": "One of `gates.serviceAccounts`; the installation's own if left out.",
            "type": "string",
            "maxLength": 253,
        },
        "restartPolicy": {
            "description": "Is a container that failed started again in its pod?",
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
            "description": "All of a Job's spec.",
            "type": "object",
            "required": ["template"],
            "properties": {
                "backoffLimit": {
                    "description": "How often a pod that failed is tried again.",
                    "type": "integer",
                    "format": "int32",
                    "minimum": 0,
                    "default": 0,
                },
                "template": {
                    "description": "The Job's pods.",
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
