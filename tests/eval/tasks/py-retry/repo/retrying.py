def call(function, attempts, sleep):
    """Call `function` until it returns, at most `attempts` times."""
    delay = 1
    for attempt in range(attempts + 1):
        try:
            return function()
        except OSError as error:
            last = error
        sleep(delay)
        delay *= 2
    raise last
