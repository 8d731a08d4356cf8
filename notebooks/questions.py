"""Questions between the plots: the learner commits to a number, and learns whether it is right, not what it is.

    mine = None                                            # put your number here, run the cell
    question(mine, t.checks["02.slope"].measured, within=0.05, hint="the slope of ln ρ^k")
"""


def question(mine, measured, within=0.05, hint=""):
    """Within what part of the measured number the answer must lie; 0: exactly."""
    if mine is None:
        print("Put your number in place of None and run this cell again.")
    elif abs(mine - measured) <= within * abs(measured):
        print("Right: " + (f"within {within:.0%} of what was measured." if within else "exactly what was measured."))
    else:
        wrong = "has the wrong sign" if mine * measured < 0 else f"is too {'small' if mine < measured else 'large'}"
        print(f"Not yet: {mine:g} {wrong}." + (f" Hint: {hint}." if hint else ""))
