"""English contractions written out, and short forms that people use in tweets."""

from __future__ import annotations

# Full forms after which "'s" is "is"; after any other word it may be a possessive and is left alone.
_IS = ("he", "here", "how", "it", "she", "that", "there", "this", "what", "when", "where", "who", "why")
_PRONOUNS = ("I", "he", "it", "she", "that", "there", "they", "we", "what", "who", "you")
_NOT = {
    "are": "are", "could": "could", "did": "did", "do": "do", "does": "does", "had": "had", "has": "has",
    "have": "have", "is": "is", "might": "might", "must": "must", "need": "need", "should": "should",
    "was": "was", "were": "were", "would": "would", "ca": "can", "wo": "will", "sha": "shall", "ai": "is",
}  # fmt: skip


def _contractions() -> dict[str, str]:
    table = {f"{short}n't": f"{full} not" for short, full in _NOT.items()} | {"cannot": "can not"}
    # Without the apostrophe, unless another word is spelled so.
    table |= {
        short.replace("'", ""): full
        for short, full in table.items()
        if short not in ("can't", "won't", "shan't", "cannot")
    }
    table |= {"can't": "can not", "cant": "can not", "won't": "will not", "wont": "will not"}
    table |= {f"{word}'s": f"{word} is" for word in _IS} | {"thats": "that is", "whats": "what is"}
    for word in _PRONOUNS:
        table[f"{word.lower()}'ll"] = f"{word} will"
        table[f"{word.lower()}'ve"] = f"{word} have"
        table[f"{word.lower()}'d"] = f"{word} would"
    for word in ("they", "we", "you"):
        table[f"{word}'re"] = f"{word} are"
    table |= {"i'm": "I am", "im": "I am", "ive": "I have", "let's": "let us", "y'all": "you all"}
    for word in ("could", "might", "must", "should", "would"):
        table[f"{word}'ve"] = f"{word} have"
    return table | {"gonna": "going to", "gotta": "got to", "wanna": "want to", "lemme": "let me"}


CONTRACTIONS: dict[str, str] = _contractions()

SHORT_FORMS: dict[str, str] = {
    "abt": "about", "b4": "before", "bc": "because", "bday": "birthday", "btw": "by the way",
    "coz": "because", "cuz": "because", "flght": "flight", "flgt": "flight", "flt": "flight",
    "flts": "flights", "fyi": "for your information", "gr8": "great",
    "hr": "hour", "hrs": "hours", "idk": "I do not know", "l8": "late", "l8r": "later", "luv": "love",
    "min": "minute", "mins": "minutes", "msg": "message", "omg": "oh my god", "pls": "please",
    "plz": "please", "ppl": "people", "r": "are", "rly": "really", "smh": "shaking my head",
    "svc": "service", "thanx": "thanks", "thnx": "thanks", "tho": "though", "thru": "through",
    "thx": "thanks", "tix": "tickets", "tmrw": "tomorrow", "u": "you", "ur": "your", "wknd": "weekend",
    "wth": "what the hell", "wtf": "what the fuck", "yr": "year", "yrs": "years", "2day": "today",
    "2morrow": "tomorrow", "2nite": "tonight", "4ever": "forever",
}  # fmt: skip
