"""The constants of inmanta.const that every compile needs, without the imports of that module."""

RESOURCE_ATTRIBUTE_SEND_EVENTS = "send_event"
RESOURCE_ATTRIBUTE_RECEIVE_EVENTS = "receive_events"
RESOURCE_ATTRIBUTE_REFERENCES = "references"
RESOURCE_ATTRIBUTE_MUTATORS = "mutators"
RESOURCE_ATTRIBUTE_REPORT_ONLY = "report_only"
