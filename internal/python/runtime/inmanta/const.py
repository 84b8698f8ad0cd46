"""Constants."""

import datetime
import enum
import logging
from typing import Any

from inmanta._fallback import lacking
from inmanta._words import (  # noqa: F401
    RESOURCE_ATTRIBUTE_MUTATORS,
    RESOURCE_ATTRIBUTE_RECEIVE_EVENTS,
    RESOURCE_ATTRIBUTE_REFERENCES,
    RESOURCE_ATTRIBUTE_REPORT_ONLY,
    RESOURCE_ATTRIBUTE_SEND_EVENTS,
)


class _Word(str, enum.Enum):
    """Base of enumerations whose values are equal to their names."""

    @staticmethod
    def _generate_next_value_(name: str, *_: object) -> str:
        return name


class _Bare(_Word):
    """An enumeration whose members print as their values."""

    def __str__(self) -> str:
        return self.value


class _Level(_Word):
    """An enumeration of the levels of Python's logging."""

    @property
    def to_int(self) -> int:
        return getattr(logging, self.name, LOG_LEVEL_TRACE)


def _enum(base: type[_Word], name: str, words: str) -> Any:
    return base(name, words, module=__name__)


# The states that a handler may report, and the other states of a resource.
_HANDLED = "skipped deployed failed dry unavailable non_compliant"
HandlerResourceState = _enum(_Bare, "HandlerResourceState", f"{_HANDLED} skipped_for_dependency")
ResourceState = _enum(
    _Bare, "ResourceState", f"{_HANDLED} deploying available cancelled undefined skipped_for_undefined"
)

VersionState = _enum(_Word, "VersionState", "success failed deploying pending")
Change = _enum(_Word, "Change", "nochange created purged updated")
ResourceAction = _enum(_Word, "ResourceAction", "store push pull deploy dryrun getfact other")
AgentTriggerMethod = _enum(_Word, "AgentTriggerMethod", "push_incremental_deploy push_full_deploy")
Compilestate = _enum(_Word, "Compilestate", "success failed")
ParameterSource = _enum(_Word, "ParameterSource", "fact plugin user report")
ClientType = _enum(_Word, "ClientType", "api agent compiler")
AgentAction = _enum(_Word, "AgentAction", "pause unpause keep_paused_on_resume unpause_on_resume")
AgentStatus = _enum(_Word, "AgentStatus", "paused up down")

LOG_LEVEL_TRACE = 3
LogLevel = _enum(_Level, "LogLevel", "CRITICAL ERROR WARNING INFO DEBUG TRACE")
LOG_LEVEL_AS_INTEGER = {level: level.to_int for level in LogLevel}
INTEGER_AS_LOG_LEVEL = {number: level for level, number in LOG_LEVEL_AS_INTEGER.items()}


def _states(words: str) -> list[Any]:
    return [ResourceState(word) for word in words.split()]


INITIAL_STATES = _states("available")
TRANSIENT_STATES = _states("available deploying")
NOT_DONE_STATES = _states("available deploying")
UNDEPLOYABLE_STATES = _states("undefined skipped_for_undefined")
UNDEPLOYABLE_NAMES = [state.value for state in UNDEPLOYABLE_STATES]
DONE_STATES = _states("unavailable skipped deployed failed cancelled non_compliant") + UNDEPLOYABLE_STATES


UNKNOWN_STRING = "<<undefined>>"
PLUGINS_PACKAGE = "inmanta_plugins"
MODULE_PKG_NAME_PREFIX = "inmanta-module-"
STD_PACKAGE = "inmanta-module-std"
CF_CACHE_DIR = ".cfcache"
SETUP_CFG_FILE = "setup.cfg"
PYPROJECT_TOML_FILE = "pyproject.toml"
EXPORT_META_DATA = "export_metadata"
META_DATA_COMPILE_STATE = "inmanta:compile:state"
INMANTA_URN = "urn:inmanta:"
INMANTA_MT_HEADER = "X-Inmanta-tid"
ENVELOPE_KEY = "data"
NAME_RESOURCE_ACTION_LOGGER = "inmanta.resource_action"
AGENT_SCHEDULER_ID = "$__scheduler"
TIME_ISOFMT = "%Y-%m-%dT%H:%M:%S.%f"
TIME_LOGFMT = "%Y-%m-%d %H:%M:%S%z"
DATETIME_MIN_UTC = datetime.datetime.min.replace(tzinfo=datetime.timezone.utc)
EXTENSION_MODULE = "extension"
EXTENSION_NAMESPACE = "inmanta_ext"

__getattr__ = lacking(__name__)
