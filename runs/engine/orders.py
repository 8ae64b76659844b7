"""What in a text from outside reads like an order to the machine that reads it, in a few languages. Pure, and in linear time.

It marks, so that people look twice, and lets a workflow leave such paragraphs aside. It is no protection: text is never an order here,
whether this finds it or not. What stops a leak is that what sends is approved exactly (`docs/approvals.md`).
"""

import re
import unicodedata

MOST, LONGEST = 8, 200  # passages, and characters of one
READ = 100_000  # characters
_THOSE_BEFORE = r"(?:\w+ ){0,3}(?:previous|prior|above|earlier|preceding|existing|your|system)\b[^.\n]{0,20}"
_ORDERS = r"\b(?:instruction|prompt|rule|guideline|polic(?:y|ie)|command)s?\b"
_READER = r"(?:ai|a\.i\.|llm|(?:language )?model|chat ?bot|bot|agent|assistant|automated (?:system|agent|reader)|copilot|gpt)s?"
_HEY = r"(?:note|notice|message|instructions?|attention|important|hinweis|nota)\b[ :,]{1,3}(?:to|for|an|para)? ?(?:the|any|all|die|o|a)?"
_PEOPLE = r"(?:reviewer|approver|operator|human|user|customer|anyone|anybody)"
_PATTERN = re.compile(
    "|".join(
        (
            rf"\b(?:ignore|disregard|forget|override|bypass)\b {_THOSE_BEFORE}{_ORDERS}",
            r"\b(?:ignorier\w*|vergiss|vergessen sie|missachte\w*)\b[^.\n]{0,40}\b(?:anweisung|regel|vorgabe|prompt)\w*",
            r"\b(?:ignor[ea]r?|desconsider\w+|esque[çc]\w+|olvid\w+)\b[^.\n]{0,40}\b(?:instru[çc]\w+|regras|reglas)",
            r"\b(?:ignore[zr]?|oublie[zr]?)\b[^.\n]{0,40}\b(?:instructions|consignes|règles)\b",
            rf"\b{_HEY} ?{_READER}\b",
            rf"\b(?:you are|act as|pretend to be)\b(?: now)? (?:an? |the )?(?:\w+ ){{0,2}}{_READER}\b",
            rf"\b{_READER}\b ?(?:reading|processing|handling|that reads|who reads|which reads) this\b",
            r"\bsystem (?:prompt|override|instructions?)\b|\bdeveloper message\b",
            r"<\|?/?(?:system|im_start|im_end|assistant|instructions?)\|?>|\[/?(?:system|inst|instructions?)\]|^\W{0,4}system ?:",
            rf"\bdo not (?:tell|inform|mention|show|alert|reveal)\b[^.\n]{{0,40}}\b{_PEOPLE}",
            r"\b(?:without|no need for|needs? no|skip(?:ping)?|bypass(?:ing)?)\b (?:any |all |the )?(?:human|manual) \w+",
            r"\b(?:skip|bypass)(?:ping)?\b (?:any |all |the )?(?:approval|review|confirmation)",
            r"\bapprove\b[^.\n]{0,40}\b(?:automatically|yourself|at once|immediately)\b|\bpre-?approved\b",
            r"\b(?:new|updated|real|following) (?:system )?instructions?(?: for you)? ?:",
        )
    ),
    re.I | re.M,
)


def found(text: str) -> tuple[str, ...]:
    """The first few sentences that read like orders to a machine, each on one line."""
    sentences = (sentence for paragraph in _paragraphs(text) for sentence in _sentences(paragraph))
    told = (" ".join(sentence.split())[:LONGEST] for sentence in sentences if _reads_like_one(sentence))
    return tuple(dict.fromkeys(told))[:MOST]


def without(text: str) -> str:
    """The text without the paragraphs that hold such a sentence: what stands beside an order may belong to it."""
    return "\n\n".join(paragraph for paragraph in _paragraphs(text) if not _reads_like_one(paragraph))


def _paragraphs(text: str) -> list[str]:
    return [paragraph for paragraph in re.split(r"\n[ \t]*\n", text[:READ].replace("\r\n", "\n")) if paragraph.strip()]


def _sentences(paragraph: str) -> list[str]:
    return re.split(r"(?<=[.!?])\s+", " ".join(paragraph.split()))


def _reads_like_one(text: str) -> bool:
    """Whatever is invisible, or looks like a letter, is read as a person would take it; names of files have marks for spaces."""
    shown = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")
    return bool(_PATTERN.search(" ".join(re.sub(r"[_*~`]+|(?<=\w)-(?=\w)", " ", shown).split())))
