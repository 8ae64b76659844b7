"""Which language a message is in, from its commonest short words. Good enough to answer in kind, and says so when it can't tell."""

import re
from collections import Counter

UNDETERMINED = "und"

_WORDS = {
    "en": "the and you your with this that have has are was been not please we our from would could been twice hello thanks regards",
    "de": "der die das und ist nicht wir uns ich sie ihre ihr ein eine einen bitte mit für auf von zum haben wurde sehr guten grüße danke",
    "pt": "o os uma não você vocês nós nossa nosso para com foi por que em do da dos das obrigado obrigada olá bom dia fatura favor",
    "es": "el los las una no usted nosotros nuestra nuestro para con fue por que en del gracias hola buenos factura saludos y favor",
    "fr": "le les des une nous vous notre votre pour avec est pas que dans sur merci bonjour cordialement été avons cette du et je",
    "it": "il gli una non noi nostra nostro per con è stato che di della del grazie buongiorno fattura saluti abbiamo questa sono vi",
    "nl": "de het een en niet wij ons onze u uw voor met van is dat te graag bedankt hallo groet factuur hebben deze zijn wordt",
}
_LANGUAGES_OF: dict[str, tuple[str, ...]] = {}
for _code, _list in _WORDS.items():
    for _word in set(_list.split()):
        _LANGUAGES_OF[_word] = (*_LANGUAGES_OF.get(_word, ()), _code)


def guess(text: str) -> str:
    """A code of ISO 639-1 (en, de, pt, es, fr, it, nl), or "und". Looks at the first 5,000 characters."""
    scores: Counter[str] = Counter()
    for word in re.findall(r"[^\W\d_]+", text[:5000].lower()):
        known = _LANGUAGES_OF.get(word, ())
        for code in known:
            scores[code] += 1 / len(known)  # a word of three languages says a third about each
    ranked = scores.most_common(2)
    if not ranked or ranked[0][1] < 2:
        return UNDETERMINED
    if len(ranked) == 2 and ranked[0][1] == ranked[1][1]:
        return UNDETERMINED
    return ranked[0][0]
