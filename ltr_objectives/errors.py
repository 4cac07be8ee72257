"""The one exception type that bad input and bad parameters raise."""


class LTRError(ValueError):
    """Input or a parameter that cannot be right; the message names the argument and says what to do."""


def require(condition: object, message: str) -> None:
    """Raise :class:`LTRError` with ``message`` unless ``condition`` holds."""
    if not condition:
        raise LTRError(message)


def choice(argument: str, value: object, allowed: tuple[object, ...]) -> None:
    """Raise unless ``value`` is one of ``allowed``."""
    require(value in allowed, f"{argument}={value!r} is not known; choose one of {', '.join(map(repr, allowed))}")
