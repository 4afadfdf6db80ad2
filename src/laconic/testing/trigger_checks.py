"""What a trigger must keep to."""

from __future__ import annotations

from itertools import product

import numpy as np

from laconic.tail import NOTHING_NEW, News
from laconic.testing.wording import Subject
from laconic.triggers import Trigger


def check_trigger(trigger: Trigger) -> None:
    """Check a trigger on all sorts of news.

    It must be a function of the news alone, work elementwise on arrays of news, and stay silent when there is none.

    Args:
        trigger: A value with a method fires(news).

    Raises:
        AssertionError: It breaks the contract; the message says with which news.
    """
    subject = Subject.of("trigger", trigger)
    subject.claim(isinstance(trigger, Trigger), "it has no method fires(news)")
    every = _news()
    answers = [_asked(subject, trigger, news) for news in every]
    subject.claim(not answers[0], "it fires when there is no news, so that one sync would follow another without end")
    again = [_asked(subject, trigger, news) for news in every]
    subject.claim(answers == again, "the same news has another answer the second time")
    _check_arrays(subject, trigger, every, answers)


def _news() -> list[News]:
    sizes = product((1, 2, 30, 4000), (1e-6, 0.5, 40.0), (1e-6, 0.7, 600.0), (0.0, 0.2))
    return [NOTHING_NEW, *(News(count, log_det, variance, residual) for count, log_det, variance, residual in sizes)]


def _asked(subject: Subject, trigger: Trigger, news: News) -> bool:
    with subject.calling(f"fires({news})"):
        answer = trigger.fires(news)
    subject.claim(isinstance(answer, bool | np.bool_), f"fires({news}) is {answer!r}, which is neither True nor False")
    return bool(answer)


def _check_arrays(subject: Subject, trigger: Trigger, every: list[News], answers: list[bool]) -> None:
    subject = subject.at("on news whose fields are arrays")
    stacked = News(
        count=np.array([news.count for news in every]),  # type: ignore[arg-type]  # News says that arrays are allowed
        log_det=np.array([news.log_det for news in every]),  # type: ignore[arg-type]
        variance=np.array([news.variance for news in every]),  # type: ignore[arg-type]
        residual=np.array([news.residual for news in every]),  # type: ignore[arg-type]
    )
    with subject.calling("fires(news), which must work elementwise (& for and, | for or, np.where for if),"):
        together = np.broadcast_to(np.asarray(trigger.fires(stacked)), len(every))
    subject.claim(together.tolist() == answers, "its answers are not those for one piece of news at a time")
