"""The clusters of the environment, for its model.

The server sends the clusters along with every compile, and the compiler answers with those that a model asks for. A
cluster that is not in place is unknown, as a fact that nobody has found yet: what depends on it waits, and nothing is
removed because of it.
"""

from typing import Any, Optional

from inmanta.execute.util import Unknown
from inmanta.export import unknown_parameters
from inmanta.plugins import plugin
from inmanta.protocol.endpoints import SyncClient


def _ask(cluster: Optional[str] = None) -> Any:
    """What the server knows of its clusters, or of one; None if it does not know, or if there is no server."""
    return SyncClient("compiler").ordain_clusters(name=cluster).result["data"]


def _unknown(cluster: str) -> Unknown:
    lacking = {"resource": "", "parameter": f"cluster {cluster}", "source": "cluster"}
    if lacking not in unknown_parameters:
        unknown_parameters.append(lacking)
    return Unknown(source=cluster)


def _in_place(cluster: str) -> Optional[dict[str, Any]]:
    found: Optional[dict[str, Any]] = _ask(cluster)
    return found if found is not None and found.get("in_place", True) else None


def _nodes(cluster: str, every: bool, service: Optional[str] = None) -> Any:
    found = _in_place(cluster)
    if found is None:
        return _unknown(cluster)
    nodes = []
    for node in sorted(found.get("nodes") or (), key=lambda each: int(each["number"])):
        ready = node.get("state", "ready") == "ready"
        if (ready or every) and (service is None or service in node.get("services", ())):
            nodes.append({**node, "addresses": node.get("addresses") or {} if ready else _unknown(cluster)})
    return nodes


@plugin
def clusters() -> "string[]":  # type: ignore[name-defined] # noqa: F821
    """The names of the environment's clusters, sorted, also of those that are not in place yet."""
    return _ask() or []


@plugin
def cluster(name: "string") -> "dict":  # type: ignore[name-defined] # noqa: F821
    """What a cluster was made from: name, template, size, owner, provider, services and config. Unknown until all of it is
    in place.

    :param name: the name of the cluster.
    """
    found = _in_place(name)
    if found is None:
        return _unknown(name)  # type: ignore[return-value]
    return {key: value for key, value in found.items() if key not in ("in_place", "nodes")}


@plugin
def nodes(cluster: "string", every: "bool" = False) -> "dict[]":  # type: ignore[name-defined] # noqa: F821
    """The machines of a cluster, by number. Unknown until the cluster is in place for the first time.

    Each has number, hostname, addresses (access_v4, bind_v4), services, hardwaretype, imagetype, provider, state and
    facts.

    :param cluster: the name of the cluster.
    :param every: also the machines that are being made, whose addresses are unknown.
    """
    return _nodes(cluster, every)


@plugin
def nodes_with(cluster: "string", service: "string") -> "dict[]":  # type: ignore[name-defined] # noqa: F821
    """The machines of a cluster that have a service, by number. Unknown until the cluster is in place for the first time.

    :param cluster: the name of the cluster.
    :param service: the name of the service.
    """
    return _nodes(cluster, False, service)
