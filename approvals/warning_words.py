"""What a warning says to a person, by its code. Parameters fill the gaps; none of them ever holds what an argument says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from access import characters


@dataclass(frozen=True)
class Words:
    """A warning for a person. `tag` is short, for beside an address; `ack` is the sentence to tick before approving, if there is one."""

    strong: str
    text: str = ""
    tag: str = ""
    ack: str = ""


def words(code: str, params: Mapping[str, Any]) -> Words:
    """What a warning says. A code that is not known is said as it is."""
    known = WORDS.get(code)
    if known is None:
        return Words(code.replace("_", " ").capitalize() + ".")
    given = _Blank(params, odd=_odd(params))
    return Words(*(part.format_map(given) for part in (known.strong, known.text, known.tag, known.ack)))


def _odd(params: Mapping[str, Any]) -> str:
    """Which character of a host's name is another one: “Its character 8 is “1” (Digit one, U+0031), where that has “l”.”"""
    char, instead = _char(params.get("char")), _char(params.get("instead"))
    if not char:
        return "The name is written with other characters that look the same."
    named = f"“{char}” ({characters.name(char)}, {params['char']})"
    if not instead:
        return f"There is a {named} in its name, which looks like another character."
    return f"Character {params['at'] + 1} of its name is {named}, where that one has “{instead}”."


def _char(code: object) -> str:
    """The character of `U+0031`; nothing if there is none, or none that can be seen."""
    char = chr(int(code[2:], 16)) if isinstance(code, str) and code.startswith("U+") else ""
    return char if characters.seen_length(char) else ""


class _Blank(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "?"


WORDS: Mapping[str, Words] = {
    "bidi_characters": Words(
        "Hidden marks turn this text around.",
        "Mail programs would show it in another order. Here it stands as it is stored: {codes}.",
        "Turned around",
        "I read the text in the order in which it is stored.",
    ),
    "tag_characters": Words(
        "Invisible tag characters are in this text.", "People do not see them, programs and models can read them: {codes}."
    ),
    "control_characters": Words("Control characters are in this text.", "{count} of them: {codes}."),
    "invisible_characters": Words("Characters that can’t be seen are in this text.", "{count} of them: {codes}."),
    "special_spaces": Words("Special spaces or joiners are in this text.", "{count} of them: {codes}."),
    "lookalike_domain": Words(
        "This is not {passes_for}.",
        "{odd}",
        "Look-alike",
        "I compared the look-alike with the real address and mean to use it.",
    ),
    "mixed_script_domain": Words(
        "This host’s name mixes alphabets.",
        "It looks like {passes_for}, and is another one. {odd}",
        "Look-alike",
        "I compared the look-alike with the real address and mean to use it.",
    ),
    "similar_domain": Words("This is not {passes_for}.", "The names differ by very little.", "Similar"),
    "encoded_domain": Words("This host’s name is encoded.", "In its own letters it is {passes_for}."),
    "link_hides_host": Words("A link hides where it goes.", "What stands before the @ is not the host."),
    "link_goes_elsewhere": Words("A link shows one address and goes to another."),
    "external_recipient": Words("Outside your organisation.", "", "Outside"),
    "first_time_recipient": Words("Never written to before.", "", "New"),
    "odd_address": Words(
        "This address could be read as another one.", "It holds quotes, spaces or marks that mail servers treat specially."
    ),
    "recipient_twice": Words("A recipient stands twice."),
    "many_recipients": Words("{count} recipients."),
    "executable_attachment": Words(
        "This file is a program.",
        "Opening it runs what is in it ({kind}).",
        "Program",
        "I know that this attachment is a program and mean to send it.",
    ),
    "double_extension": Words("This file’s name hides what it is.", "It looks like .{shown} and is .{real}."),
    "macros_in_attachment": Words("This document holds macros.", "Opening it can run them."),
    "locked_attachment": Words("This file is locked by a password.", "Handrail cannot look inside."),
    "active_attachment": Words("This file does something when it is opened.", "It holds a script, a form action or another file."),
    "archive_holds_executable": Words("This archive holds a program (.{kind})."),
    "attachment_is_something_else": Words("This file is not what it is called.", "By its content it is {kind}."),
    "attachment_name_is_path": Words("This file’s name is a path, or holds marks that no file name has."),
    "attachment_not_read": Words("Handrail has not looked into this file."),
    "large_attachment": Words("This file is large.", "{bytes} bytes; many mail servers refuse it."),
    "large_attachments": Words("The attachments together are large.", "{bytes} bytes; many mail servers refuse them."),
    "secret": Words("A secret is in this value.", "It would leave with the action and stay in its record."),
    "secret_in_attachment": Words("A secret is in this file.", "It would leave with the action."),
    "card_number": Words("A payment card’s number is in this value."),
    "bank_account": Words("A bank account’s number is in this value."),
    "local_path": Words("A path of a machine is in this value."),
    "repeat_of_executed": Words(
        "This was already done in this run.",
        "The same tool ran with the same arguments {count} time(s).",
        "Repeat",
        "I know that this was done before and mean to do it again.",
    ),
    "repeat_of_rejected": Words("This was rejected before.", "The same tool with the same arguments, {count} time(s).", "Rejected before"),
    "sql_without_where": Words(
        "{kind} without WHERE.",
        "It reaches every row of the table.",
        "",
        "I know that this reaches every row of the table and mean it.",
    ),
    "sql_always_true": Words(
        "{kind} with a WHERE that looks at no column.",
        "Every row of the table fits it, or none does.",
        "",
        "I know that this may reach every row of the table and mean it.",
    ),
    "sql_changes_shape": Words(
        "This changes what the database is made of: {kind}.",
        "What was in it may be gone at once, and many databases can’t roll it back.",
        "",
        "I know that this changes the tables themselves and mean it.",
    ),
    "sql_many": Words("{count} statements in one.", "Each is run, one after the other."),
    "sql_not_read": Words(
        "Handrail can’t tell what this statement does.",
        "It was not read to its end, or it is none that reads or changes rows.",
        "",
        "I read the statement myself and know what it does.",
    ),
    "shell_acts_on": Words(
        "A shell acts on marks in this command.",
        "They join commands, run others or stand for other text: {shown}",
        "",
        "I know what a shell makes of these marks and mean it.",
    ),
    "shell_marks": Words("Marks that a shell would act on.", "No shell reads this; they are taken as they are: {shown}"),
    "command_not_read": Words(
        "Handrail could not take this command apart.",
        "A quote in it has no end.",
        "",
        "I read the command myself and know what it does.",
    ),
    "runs_what_it_reads": Words(
        "This program runs whatever text it is given.",
        "What {kind} is told to run is a program of its own.",
        "",
        "I read what it is told to run and mean it.",
    ),
    "runs_as_another": Words(
        "This runs with the rights of somebody else.",
        "By {kind}.",
        "",
        "I know with whose rights this runs and mean it.",
    ),
    "amount_not_read": Words("This amount can’t be read for certain.", "An amount is digits with at most one point."),
    "amount_not_above_zero": Words("This amount is not above zero.", "What takes money back is another action."),
    "amount_over_limit": Words("This is more than the tool may move at once.", "Its limit is {shown}."),
    "amount_over_day": Words("With this the tool would move more than it may in a day.", "Its limit for a day is {shown}."),
    "amount_over_left": Words("This is more than is left to pay back.", "The payment does not hold as much."),
    "amount_in_other_currency": Words("The limit of this tool is in another currency.", "It is in {shown}, so it can’t be held to it."),
    "paid_before": Words("Paid to this account before.", "By the same tool: {count}."),
    "record_moved_on": Words("The record has changed since the agent read it.", "It was at version {shown} when this was proposed."),
    "before_is_not_so": Words(
        "The record does not hold this now.",
        "What the agent says stands there was not there when Handrail looked.",
        "",
        "I know that the record holds something else and still mean this.",
    ),
    "not_looked_up": Words("Nothing could be looked up.", "What stands outside is not known here."),
    "plain_http": Words("This goes out unencrypted.", "Whoever is on the way can read and change it."),
    "hidden_text": Words(
        "Text is in this HTML that people do not see.",
        "{count} of it: {kind}. It stands below the message.",
        "",
        "I read what is hidden in the HTML and mean to send it.",
    ),
    "html_comments": Words("Comments are in this HTML.", "{count} of them. People do not see them, programs and models can read them."),
    "html_does": Words(
        "This HTML does something: {kind}.", "It is left out here. Most mail programs leave it out as well, or refuse the message."
    ),
    "html_style_sheet": Words("A style sheet is in this HTML.", "It is not applied here, so mail programs may show it otherwise."),
    "html_remote": Words("Not loaded here: {kind}.", "From {shown}. Who opens the message may ask there, and so tells that it was opened."),
    "html_embedded": Words("Pictures that the message itself brings are not drawn here.", "{count} of them."),
    "html_too_much": Words(
        "There is more in this HTML than can be told: {kind}.",
        "Read its source, or have it written shorter.",
        "",
        "I read the whole source of the HTML and mean to send it.",
    ),
    "html_without_text": Words("There is no text beside the HTML.", "Who reads mail as text sees nothing."),
    "parts_differ": Words(
        "The text and the HTML do not say the same.",
        "Words that only one of them has: {count}. They stand below the message.",
        "",
        "I read both parts and mean to send both.",
    ),
    "parts_in_other_order": Words(
        "The text and the HTML have the same words in another order.", "Read both: they may say different things."
    ),
    "parts_link_differently": Words(
        "A link or an address stands in only one of the two parts.",
        "{count} of them, to {shown}.",
        "",
        "I compared the links of both parts and mean to send both.",
    ),
    "odd_url": Words(
        "This address can be read in two ways.",
        "Programs disagree on which host it names.",
        "",
        "I know which host this goes to and mean it.",
    ),
}
