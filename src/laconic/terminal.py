r"""Text from elsewhere on a terminal: a member's reason, a file's name, what a server answers.

A terminal obeys control characters: they set its title, move its cursor, colour or hide what follows, and a new line
looks like one that this program wrote.
"""

from __future__ import annotations

#: Those that turn round the direction of writing, so that a text reads as another one.
_TURNING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROL = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *_TURNING)
_ESCAPED = {code: f"\\u{code:04x}" for code in _CONTROL}
_IN_LINES = {code: escape for code, escape in _ESCAPED.items() if code != ord("\n")}


def shown(text: str, *, in_lines: bool = False) -> str:
    r"""A text with its control characters escaped as JSON has them; ``in_lines``: new lines are ours, and stay.

    >>> print(shown("edge-1\n\x1b[31mready"))
    edge-1\u000a\u001b[31mready
    """
    return text.translate(_IN_LINES if in_lines else _ESCAPED)


def all_shown(value: object) -> object:
    """Plain values with every text in them so, those of keys too."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, dict):
        return {all_shown(key): all_shown(each) for key, each in value.items()}
    return [all_shown(each) for each in value] if isinstance(value, list) else value
