"""What is sent to a model is made to fit: the oldest results first, then the longest texts, and never the instructions."""

import pytest

from runs.engine.conversation import Request, TooLarge, Turn, fit

SCHEMA = {"type": "object"}


def turn(size: int) -> Turn:
    return Turn({"call": {"tool": "look", "arguments": {}}}, {"result": "x" * size})


def test_what_fits_is_sent_as_it_is():
    request = Request("Do it.", {"thing": "tea"}, SCHEMA)
    fitted = fit(request, 1000)
    assert fitted.request is request and (fitted.left_out, fitted.shortened) == (0, 0)


def test_the_results_of_the_oldest_turns_are_left_out_first_and_the_newest_two_stay():
    request = Request("Do it.", {}, SCHEMA, "done", (), (turn(3000), turn(3000), turn(3000), turn(3000)))
    fitted = fit(request, 3600)
    assert fitted.left_out == 1 and "left out to fit: 3002 bytes" in fitted.request.turns[0].told["result"]
    assert [len(each.told["result"]) for each in fitted.request.turns[1:]] == [3000] * 3
    assert fitted.request.tokens <= 3600
    with pytest.raises(TooLarge):
        fit(request, 1500)


def test_then_the_longest_texts_are_cut_wherever_they_stand_and_it_says_so():
    request = Request("Do it." * 50, {"ticket": {"text": "y" * 9000, "from": "a@example.org"}, "notes": ["z" * 3000]}, SCHEMA)
    fitted = fit(request, 2600)
    assert fitted.shortened == 1 and fitted.request.tokens <= 2600
    assert "characters more]" in fitted.request.variables["ticket"]["text"] and fitted.request.variables["notes"] == ["z" * 3000]
    assert fitted.request.instructions == request.instructions


@pytest.mark.parametrize("text", ["é" * 4000, '"' * 4000, "\U0001f600" * 4000, "\n" * 4000])
def test_it_fits_whatever_the_text_is_made_of(text):
    fitted = fit(Request("Do it.", {"text": text}, SCHEMA), 1200)
    assert fitted.shortened == 1 and fitted.request.tokens <= 1200


def test_what_has_no_text_to_cut_is_too_large():
    with pytest.raises(TooLarge):
        fit(Request("Do it.", {"numbers": list(range(5000))}, SCHEMA), 1000)
