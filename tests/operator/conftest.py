"""What tests against a real API server share."""

from tests.kubernetes.fixtures import (  # noqa: F401
    api_server,
    control_plane,
    namespace,
    own_api_server,
)
from tests.operator.installed import resources  # noqa: F401
