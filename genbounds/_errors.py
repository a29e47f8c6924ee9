"""The error for bad input. Without NumPy: the command line starts with it."""

from __future__ import annotations

from genbounds._text import display


class InputError(ValueError):
    """Input from which no valid result can be computed. The message says what to do.

    Parameters
    ----------
    text : str
        What is wrong and what to do; begins with a verb if it is about an argument.
    argument : str, optional
        Name of the argument that it is about. A caller that knows it by another name, such as a
        file, says ``error.about(name)``.
    model : str, optional
        Name of the model whose sample it is about, where there are several.
    """

    def __init__(self, text: str, argument: str = "", model: str = "") -> None:
        super().__init__(text, argument, model)
        self.text = text
        self.argument = argument
        self.model = model

    def __str__(self) -> str:
        text = f"`{self.argument}` {self.text}" if self.argument else self.text
        # One printable line, whatever names, values and other people's errors it quotes.
        return display(f"model {self.model!r}: {text}" if self.model else text, limit=None)

    def about(self, name: str) -> InputError:
        """Return the same complaint about what the caller calls `name`."""
        return InputError(self.text, argument=name)

    def of_model(self, model: str) -> InputError:
        """Return the same complaint about the sample of `model`, one of several."""
        return InputError(self.text, self.argument, model)
