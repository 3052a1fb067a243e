class CalcError(Exception):
    """What is wrong with a program, and where: position is the 0-based offset in its text."""

    def __init__(self, message, position):
        super().__init__(f"{message} at {position}")
        self.message = message
        self.position = position
