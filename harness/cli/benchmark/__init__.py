"""How fast armdiff is, measured against upstream's own tester and against the bare upstream calls.

A *contestant* is a warm process that answers one question: how long do the cases of this *subject* (a generated
graph or a model, one case a target) take you? Three of them, in ``contestant``: upstream's tester pipelines, the
plain sequence of public upstream calls, and armdiff as a campaign runs it. ``contest`` starts them and asks them
in turn, subject by subject and never two at once, so that whatever else the machine does hits all alike.
``figures`` are pure statistics of what they answered; ``output`` writes them down and draws them.

A *pair* is one subject in one round as two contestants did it. Only pairs where both did the whole work make a
ratio; the others are named.
"""
