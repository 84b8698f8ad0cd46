"""Words and numbers that are the same everywhere."""

import datetime
import enum

from inmanta._fallback import lacking


class ResourceState(str, enum.Enum):
    unavailable = "unavailable"
    skipped = "skipped"
    dry = "dry"
    deployed = "deployed"
    failed = "failed"
    deploying = "deploying"
    available = "available"
    cancelled = "cancelled"
    undefined = "undefined"
    skipped_for_undefined = "skipped_for_undefined"
    non_compliant = "non_compliant"

    def __str__(self) -> str:
        return self.value


class HandlerResourceState(str, enum.Enum):
    """What a handler may report."""

    skipped = "skipped"
    deployed = "deployed"
    failed = "failed"
    dry = "dry"
    skipped_for_dependency = "skipped_for_dependency"
    unavailable = "unavailable"
    non_compliant = "non_compliant"

    def __str__(self) -> str:
        return self.value


class VersionState(str, enum.Enum):
    success = "success"
    failed = "failed"
    deploying = "deploying"
    pending = "pending"


class Change(str, enum.Enum):
    nochange = "nochange"
    created = "created"
    purged = "purged"
    updated = "updated"


class ResourceAction(str, enum.Enum):
    store = "store"
    push = "push"
    pull = "pull"
    deploy = "deploy"
    dryrun = "dryrun"
    getfact = "getfact"
    other = "other"


class AgentTriggerMethod(str, enum.Enum):
    push_incremental_deploy = "push_incremental_deploy"
    push_full_deploy = "push_full_deploy"


class Compilestate(str, enum.Enum):
    success = "success"
    failed = "failed"


class ParameterSource(str, enum.Enum):
    fact = "fact"
    plugin = "plugin"
    user = "user"
    report = "report"


class ClientType(str, enum.Enum):
    api = "api"
    agent = "agent"
    compiler = "compiler"


class AgentAction(str, enum.Enum):
    pause = "pause"
    unpause = "unpause"
    keep_paused_on_resume = "keep_paused_on_resume"
    unpause_on_resume = "unpause_on_resume"


class AgentStatus(str, enum.Enum):
    paused = "paused"
    up = "up"
    down = "down"


class LogLevel(str, enum.Enum):
    CRITICAL = "CRITICAL"
    ERROR = "ERROR"
    WARNING = "WARNING"
    INFO = "INFO"
    DEBUG = "DEBUG"
    TRACE = "TRACE"

    @property
    def to_int(self) -> int:
        return LOG_LEVEL_AS_INTEGER[self]


LOG_LEVEL_TRACE = 3
LOG_LEVEL_AS_INTEGER = {
    LogLevel.CRITICAL: 50,
    LogLevel.ERROR: 40,
    LogLevel.WARNING: 30,
    LogLevel.INFO: 20,
    LogLevel.DEBUG: 10,
    LogLevel.TRACE: LOG_LEVEL_TRACE,
}
INTEGER_AS_LOG_LEVEL = {number: level for level, number in LOG_LEVEL_AS_INTEGER.items()}

INITIAL_STATES = [ResourceState.available]
TRANSIENT_STATES = [ResourceState.available, ResourceState.deploying]
NOT_DONE_STATES = [ResourceState.available, ResourceState.deploying]
DONE_STATES = [
    ResourceState.unavailable,
    ResourceState.skipped,
    ResourceState.deployed,
    ResourceState.failed,
    ResourceState.cancelled,
    ResourceState.undefined,
    ResourceState.skipped_for_undefined,
    ResourceState.non_compliant,
]
UNDEPLOYABLE_STATES = [ResourceState.undefined, ResourceState.skipped_for_undefined]
UNDEPLOYABLE_NAMES = [state.value for state in UNDEPLOYABLE_STATES]

RESOURCE_ATTRIBUTE_SEND_EVENTS = "send_event"
RESOURCE_ATTRIBUTE_RECEIVE_EVENTS = "receive_events"
RESOURCE_ATTRIBUTE_REFERENCES = "references"
RESOURCE_ATTRIBUTE_MUTATORS = "mutators"
RESOURCE_ATTRIBUTE_REPORT_ONLY = "report_only"

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
