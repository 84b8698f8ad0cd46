"""Errors of the server that have an HTTP status."""

from typing import Any, Optional

from inmanta._fallback import lacking


class BaseHttpException(Exception):
    """An error with a status, a message for the log and details for the caller."""

    def __init__(self, status_code: int = 500, message: Optional[str] = None, details: Any = None) -> None:
        super().__init__()
        self.status_code = status_code
        self.log_message = message
        self.details = details
        self.reason: Optional[str] = None

    def get_message(self) -> Optional[str]:
        return self.log_message

    def to_status(self) -> int:
        return self.status_code

    def to_body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"message": self.log_message}
        if self.details is not None:
            body["error_details"] = self.details
        return body

    def __str__(self) -> str:
        from http.client import responses

        text = f"HTTP {self.status_code}: {self.reason or responses.get(self.status_code, 'Unknown')}"
        return f"{text} ({self.log_message})" if self.log_message else text


class _Worded(BaseHttpException):
    """One whose class says the status and how the message begins."""

    status = 500
    words = ""

    def __init__(self, message: Optional[str] = None, details: Any = None) -> None:
        super().__init__(self.status, self.words if message is None else f"{self.words}: {message}", details)


class Forbidden(_Worded):
    """The caller may not do that."""

    status, words = 403, "Access denied"


class UnauthorizedException(BaseHttpException):
    """The caller did not say who it is."""

    def __init__(self, message: Optional[str] = None, details: Any = None, no_prefix: bool = False) -> None:
        words = "Access to this resource is unauthorized"
        if message is not None:
            words = message if no_prefix else f"{words}: {message}"
        super().__init__(401, words, details)


class BadRequest(_Worded):
    """The request makes no sense."""

    status, words = 400, "Invalid request"


class NotFound(_Worded):
    """What is asked for is not there."""

    status, words = 404, "Request or referenced resource does not exist"


class Conflict(_Worded):
    """What is asked for does not go together with what is there."""

    status, words = 409, "Request conflicts with the current state of the resource"


class ServerError(_Worded):
    """The server did not expect that itself."""

    status, words = 500, "An unexpected error occurred in the server while processing the request"


class ServiceUnavailable(_Worded):
    """Something that the server needs is not there now."""

    status, words = 503, "The service is temporarily unavailable"


class ShutdownInProgress(_Worded):
    """The server is about to end."""

    status, words = 503, "Can not complete this request as a shutdown is on progress"


__getattr__ = lacking(__name__)
